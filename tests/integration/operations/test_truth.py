"""What the command line says while PostgreSQL is away, and of many changes at once: nothing but what is so."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from cronring.client import AsyncClient, ClientError, OutcomeUnknown, Unavailable, Unreachable
from cronring.client.failures import judged
from cronring.client.model import JobSpec
from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc
from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer, running_server
from tests.support.waiting import TIMEOUT_S, wait_until

CREATES = 500
MODULE = Path(__file__).parent / "modules" / "seldom.py"
SPEC = JobSpec("0 0 1 1 *")
SPEC_SENT = jobs_pb2.JobSpec(schedule="0 0 1 1 *")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_server("postgres18") as server:
        yield server


@pytest.fixture
def cluster(server: PostgresServer, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(server.url(server.create_database()), tmp_path) as cluster:
        cluster.start_controller()
        cluster.start_controller()
        cluster.start_runner(MODULE)

        async def deployed() -> None:
            async with AsyncClient(cluster.addresses.split(",")) as client:
                await wait_until(lambda: _is_deployed(client), "the module isn't deployed")

        asyncio.run(deployed())
        yield cluster


async def test_with_postgresql_stopped_it_says_that_and_what_to_do(server: PostgresServer, cluster: Cluster) -> None:
    async with AsyncClient(cluster.addresses.split(",")) as client:
        server.stop()

        async def is_told() -> bool:
            try:
                await client.jobs.list()
            except ClientError as error:
                return "PostgreSQL is away since 20" in str(error)
            return False

        await wait_until(is_told, "nobody says since when PostgreSQL is away")
    for arguments in (("jobs", "list"), ("jobs", "trigger", "seldom.yearly"), ("cluster", "members"), ("stats",)):
        done = await asyncio.to_thread(cluster.ask, *arguments)
        assert done.returncode == 3, done.stderr
        assert "the controllers answer, but PostgreSQL is away since 20" in done.stderr
        assert "no controller answered" not in done.stderr
        assert "Traceback" not in done.stderr
    diagnosed = await asyncio.to_thread(cluster.ask, "doctor")
    assert "can't reach PostgreSQL" in diagnosed.stdout, "what the message points to works without it"


async def test_with_postgresql_frozen_the_controllers_still_answer(server: PostgresServer, cluster: Cluster) -> None:
    async with AsyncClient(cluster.addresses.split(",")) as client:
        server.freeze()
        try:
            with pytest.raises((Unavailable, OutcomeUnknown)) as caught:
                await client.jobs.create("seldom", "yearly", "a", SPEC)
            with pytest.raises(Unavailable):
                await client.jobs.list()
        finally:
            server.thaw()
        await wait_until(lambda: _answers(client), "it doesn't answer again")
        is_there = "seldom.yearly:a" in await _keys(client)
    assert isinstance(caught.value, OutcomeUnknown) or not is_there


async def test_many_changes_at_once_are_all_done_or_said_not_to_be(cluster: Cluster) -> None:
    async with AsyncClient(cluster.addresses.split(","), timeout_s=TIMEOUT_S) as client:
        told = dict(zip(
            (f"seldom.yearly:n{number}" for number in range(CREATES)),
            await asyncio.gather(*(_created(client, f"n{number}") for number in range(CREATES))),
            strict=True,
        ))  # fmt: skip
        keys = await _keys(client)
    assert Counter(told.values()).keys() <= {"done", "not done", "unknown"}
    assert not [key for key, said in told.items() if said == "done" and key not in keys]
    assert not [key for key, said in told.items() if said == "not done" and key in keys]
    assert Counter(told.values())["done"] > CREATES / 2, told


async def test_many_changes_at_once_of_a_plain_client_are_done_or_were_never_begun(cluster: Cluster) -> None:
    """One that doesn't come again by itself. All but the first 16 were sent away."""

    async def created(jobs: Any, name: str) -> str:
        try:
            await jobs.CreateJob(
                jobs_pb2.CreateJobRequest(module="seldom", verb="yearly", name=name, spec=SPEC_SENT),
                timeout=60,
            )
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}, {judged(error).fate.name}"
        return "done"

    async with grpc.aio.insecure_channel(cluster.controllers[0].grpc) as channel:
        jobs = jobs_pb2_grpc.JobsStub(channel)
        told = await asyncio.gather(*(created(jobs, f"p{number}") for number in range(CREATES)))
    async with AsyncClient(cluster.addresses.split(",")) as client:
        keys = await _keys(client)
    assert Counter(told).keys() <= {"done", "RESOURCE_EXHAUSTED, NOT_DONE"}
    assert Counter(told)["done"] > CREATES / 2, Counter(told)
    assert {f"seldom.yearly:p{number}" for number in range(CREATES) if told[number] == "done"} == {
        key for key in keys if key.startswith("seldom.yearly:p")
    }


async def _created(client: AsyncClient, name: str) -> str:
    try:
        await client.jobs.create("seldom", "yearly", name, SPEC)
    except OutcomeUnknown:
        return "unknown"
    except (Unavailable, Unreachable):
        return "not done"
    return "done"


async def _keys(client: AsyncClient) -> set[str]:
    return {job.key for job in await client.jobs.list(limit=10_000)}


async def _answers(client: AsyncClient) -> bool:
    try:
        await client.jobs.list()
    except Unavailable:
        return False
    return True


async def _is_deployed(client: AsyncClient) -> bool:
    return bool(await _keys(client))
