"""What a benchmark of the whole runs on: a durable PostgreSQL 18, controllers and runners, all on this machine."""

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.processes import spent_s
from cronring.client import AsyncClient
from tests.support.cluster import POLL_S, Cluster, Process
from tests.support.databases import PostgresServer, running_server
from tests.support.secured import SecuredCluster

# Of one verb, which takes a number and does nothing.
NO_OP_MODULE: Final = """
from cronring import verb

@verb
async def run(payload: dict[str, int]) -> None:
    pass
"""


@dataclass
class Fleet:
    """Real processes. `url`: the database of `cluster`, for a benchmark's own questions."""

    server: PostgresServer
    url: str
    folder: Path
    cluster: Cluster

    def spent_s(self) -> dict[str, float]:
        """CPU seconds that each kind of process has spent so far, its children included, those that ended as well."""
        controllers, runners = (
            [each.pid for each in kind] for kind in (self.cluster.controllers, self.cluster.runners)
        )
        kinds = {"controllers": controllers, "runners": runners, "postgresql": [self.server.pid]}
        return {kind: spent_s(pids) for kind, pids in kinds.items()}

    def controllers_cpu_s(self) -> list[float]:
        """Of each, without what it has started."""
        times = [psutil.Process(each.pid).cpu_times() for each in self.cluster.controllers]
        return [each.user + each.system for each in times]

    def start_runners(self, count: int, files: Sequence[Path], wrapper: tuple[str, ...] = ()) -> list[Process]:
        """New ones that host these modules, which are the fleet's from now on; those before them, which still run.

        `wrapper`: a command that starts another.
        """
        before, self.cluster.runners = self.cluster.runners, []
        for _ in range(count):
            self.cluster.start_runner(*files, wrapper=wrapper)
        return before


async def until_deployed(client: AsyncClient, within_s: float) -> None:
    """Until a runner's module is active. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not await client.deployments.list(active_only=True):
            await asyncio.sleep(POLL_S)


def end_runners(runners: Sequence[Process]) -> None:
    """As an operator does: they finish what runs, deliver, and go."""
    for each in runners:
        each.send(signal.SIGTERM)
    for each in runners:
        assert each.popen.wait(timeout=30) == 0, each.tail()


@contextlib.contextmanager
def fleet(
    controllers: int, wrapper: tuple[str, ...] = (), tree: Path | None = None, *, secured: bool = False
) -> Iterator[Fleet]:
    """Controllers that are ready, and no runner yet; all are stopped at the end.

    `wrapper`: a command that starts another, of the controllers. `tree`: another checkout, whose code all of it runs.
    `secured`: with certificates and tokens, as it is deployed; else with --insecure.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-bench-")))
        database = folder / "database"
        database.mkdir()
        server = stack.enter_context(running_server("postgres18", database, durable=True))
        url = server.url(server.create_database() if tree is None else server.create_database("template1"))
        environment = None if tree is None else {"PYTHONPATH": str(tree)}
        kind = SecuredCluster if secured else Cluster
        cluster: Cluster = stack.enter_context(kind(url, folder, environment))
        if tree is not None:
            cluster.migrate()
        started = [cluster.start_controller(wait=False, wrapper=wrapper) for _ in range(controllers)]
        for each in started:
            cluster.wait_ready(each)
        if isinstance(cluster, SecuredCluster):
            cluster.let_in()
        yield Fleet(server, url, folder, cluster)
