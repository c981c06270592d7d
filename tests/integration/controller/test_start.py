"""What a controller does when something isn't there: a schema, a port, PostgreSQL."""

import asyncio
import json
import signal
from pathlib import Path

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from cronring.protos.cronring.v1.jobs_pb2 import ListJobsRequest
from tests.integration.controller.conftest import Clients, exit_code, get, start, wait_ready
from tests.support.cluster import Cluster
from tests.support.databases import running_server
from tests.support.waiting import TIMEOUT_S, wait_until

SERVING = health_pb2.HealthCheckResponse.SERVING
JOBS = "/api/v1/cron/jobs"
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def test_a_database_without_tables_is_refused_with_the_remedy(empty_database_url: str, tmp_path: Path) -> None:
    with Cluster(empty_database_url, tmp_path) as cluster:
        process = cluster.start_controller(wait=False)
        assert await exit_code(process) == 1
        assert "cronring migrate" in process.tail()
        assert "Traceback" not in process.tail()


@pytest.mark.parametrize("option", ["--grpc", "--http"])
async def test_an_address_in_use_is_named(cluster: Cluster, option: str) -> None:
    (first,) = await start(cluster, 1)
    taken = first.grpc if option == "--grpc" else first.http
    second = cluster.start_controller(option, taken, wait=False)  # the last one given counts
    assert await exit_code(second) == 1
    assert taken in second.tail()
    assert option in second.tail()
    assert "Traceback" not in second.tail()


async def test_it_waits_for_postgresql_and_outlives_its_absence(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, clients: Clients
) -> None:
    with running_server("postgres18", durable=True) as server:
        url = server.url(server.create_database())
        server.stop()
        with Cluster(url, tmp_path) as cluster:
            process = cluster.start_controller(wait=False)
            await wait_until(lambda: answers(process, "/readyz", 503), "HTTP doesn't answer")
            assert (await get(process, "/healthz"))[0] == 200
            assert (await get(process, "/readyz"))[1]["reason"] == "waiting for PostgreSQL"
            status, problem = await get(process, JOBS)
            assert (status, problem["reason"]) == (503, "DATABASE_AWAY")
            await asyncio.to_thread(server.start)
            await wait_ready(process)
            client = await clients.of(process)
            await client.jobs.ListJobs(ListJobsRequest())

            health = health_pb2_grpc.HealthStub(client.channel).Watch(
                health_pb2.HealthCheckRequest(service="cronring.v1.Jobs")
            )
            await becomes(health, SERVING)
            await asyncio.to_thread(server.stop)
            await becomes(health, NOT_SERVING)
            with pytest.raises(grpc.aio.AioRpcError) as away:
                await client.jobs.ListJobs(ListJobsRequest())
            assert away.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "PostgreSQL can't be reached" in (away.value.details() or "")
            assert (await get(process, "/healthz"))[0] == 200
            status, problem = await get(process, JOBS)
            assert (status, problem["detail"]) == (503, away.value.details()), "REST says what gRPC says"
            lines_away = len(process.tail(10_000).splitlines())

            await asyncio.to_thread(server.start)
            await becomes(health, SERVING)
            await client.jobs.ListJobs(ListJobsRequest())
            assert lines_away < 60, process.tail(100)
            watch = f"http://{process.http}{JOBS}:watch"
            async with aiohttp.ClientSession() as session, session.get(watch) as watching:
                assert json.loads(await watching.content.readline())["kind"] == "KIND_LISTED"
                process.send(signal.SIGTERM)
                assert await exit_code(process) == 0, "a stream that is open keeps nobody"
            assert "Traceback" not in process.tail(10_000)


async def becomes(health, status: int) -> None:  # a stream of HealthCheckResponse
    async with asyncio.timeout(TIMEOUT_S):
        while (await health.read()).status != status:
            pass


async def answers(process, path: str, status: int) -> bool:  # a Process
    assert process.alive(), process.tail()
    return (await get(process, path))[0] == status


async def test_a_signal_ends_the_wait_for_postgresql(tmp_path: Path) -> None:
    with Cluster("postgresql://nobody@127.0.0.1:1/none", tmp_path) as cluster:
        process = cluster.start_controller(wait=False)
        await wait_until(lambda: answers(process, "/readyz", 503), "HTTP doesn't answer")
        process.send(signal.SIGTERM)
        assert await exit_code(process) == 0


async def test_reflection_and_who_asks(cluster: Cluster, clients: Clients) -> None:
    (process,) = await start(cluster, 1)
    client = await clients.of(process)
    stream = reflection_pb2_grpc.ServerReflectionStub(client.channel).ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="*")])
    )
    async for answer in stream:
        names = {service.name for service in answer.list_services_response.service}
    assert {"cronring.v1.Jobs", "cronring.v1.Cluster", "grpc.health.v1.Health"} <= names
    assert (await get(process, "/session"))[1]["kind"] == "local", "with --insecure nobody logs in"
    assert (await get(process, "/no/such/path"))[0] == 404
