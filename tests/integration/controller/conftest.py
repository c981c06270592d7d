"""Real controllers, as processes on loopback, on a real PostgreSQL. What is asked of them goes over gRPC and HTTP."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from cronring.protos.cronring.v1 import (
    cluster_pb2,
    cluster_pb2_grpc,
    deployments_pb2,
    deployments_pb2_grpc,
    executions_pb2_grpc,
    jobs_pb2_grpc,
    ledger_pb2_grpc,
    schema_pb2,
)
from tests.support.cluster import READY_S, Cluster, Process
from tests.support.waiting import TIMEOUT_S, wait_until


class Client:
    """Every service of one controller."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.deployments = deployments_pb2_grpc.DeploymentsStub(channel)
        self.jobs = jobs_pb2_grpc.JobsStub(channel)
        self.executions = executions_pb2_grpc.ExecutionsStub(channel)
        self.ledger = ledger_pb2_grpc.LedgerStub(channel)
        self.cluster = cluster_pb2_grpc.ClusterStub(channel)

    async def view(self) -> cluster_pb2.GetClusterResponse:
        return await self.cluster.GetCluster(cluster_pb2.GetClusterRequest(), timeout=60)

    async def deploy(self, module: schema_pb2.Module, digest: str) -> deployments_pb2.CreateDeploymentResponse:
        request = deployments_pb2.CreateDeploymentRequest(schema=module, digest=digest)
        return await self.deployments.CreateDeployment(request, timeout=60)


class Clients:
    """Channels to controllers, closed at the end."""

    def __init__(self) -> None:
        self._stack = contextlib.AsyncExitStack()

    async def of(self, process: Process) -> Client:
        return Client(await self._stack.enter_async_context(grpc.aio.insecure_channel(process.grpc)))

    async def close(self) -> None:
        await self._stack.aclose()


@pytest.fixture
async def clients() -> AsyncIterator[Clients]:
    clients = Clients()
    yield clients
    await clients.close()


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    """Nothing runs in it yet."""
    with Cluster(database_url, tmp_path) as cluster:
        yield cluster


async def get(process: Process, path: str) -> tuple[int, Any]:
    """Status and JSON of an HTTP GET; (0, None) when nobody answers."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{process.http}{path}", timeout=TIMEOUT) as answer,
        ):
            return answer.status, json.loads(await answer.text())
    except (aiohttp.ClientError, TimeoutError):
        return 0, None


TIMEOUT = aiohttp.ClientTimeout(total=2)


async def start(cluster: Cluster, count: int, *extra: str) -> list[Process]:
    """Ready controllers, started at once."""
    processes = [cluster.start_controller(*extra, wait=False) for _ in range(count)]
    for process in processes:
        await wait_ready(process)
    return processes


async def wait_ready(process: Process) -> None:
    async def ready() -> bool:
        assert process.alive(), f"{process.name} died:\n{process.tail()}"
        return (await get(process, "/readyz"))[0] == 200

    await wait_until(ready, lambda: f"{process.name} isn't ready:\n{process.tail()}", READY_S)


async def exit_code(process: Process) -> int:
    """Wait for the process to end."""
    return await asyncio.to_thread(process.popen.wait, TIMEOUT_S)


async def wait_agreed(clients: list[Client], members: int) -> list[cluster_pb2.GetClusterResponse]:
    """Until all see the same ring of so many members: their views."""
    views: list[cluster_pb2.GetClusterResponse] = []

    async def agreed() -> bool:
        views[:] = [await client.view() for client in clients]
        sizes = {sum(member.primary_slots > 0 for member in view.members) for view in views}
        return sizes == {members} and len({view.ring_digest for view in views}) == 1

    await wait_until(agreed, lambda: f"no agreement on {members} members: {views}")
    return views
