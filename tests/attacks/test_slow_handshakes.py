"""A thousand connections that never finish a handshake, at both TLS ports: a cluster works on beside them."""

import contextlib
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

EACH: Final = 500
FILES: Final = 4_096
NEW_CLIENTS: Final = 20
RUNS: Final = 5
MIB: Final = 1 << 20
GROWN_MAX: Final = 100 * MIB  # 100 KiB for each
# The beginning of a ClientHello: a record of 512 bytes, of which five more come.
BEGUN: Final = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
MODULE: Final = """from cronring import every


@every("1s")
def each_second() -> None: ...
"""


@pytest.fixture
def files() -> Iterator[None]:
    """As many as these tests open, and the controller, which inherits that."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def cluster(files: None, database_url: str, tmp_path: Path) -> Iterator[SecuredCluster]:
    with SecuredCluster(database_url, tmp_path) as made:
        made.start_controller()
        made.let_in()
        (tmp_path / "ticks.py").write_text(MODULE)
        made.start_runner(tmp_path / "ticks.py")
        yield made


@contextlib.contextmanager
def silent(addresses: list[str]) -> Iterator[list[socket.socket]]:
    """Connections of which every other one has begun."""
    with contextlib.ExitStack() as stack:
        made = []
        for number in range(EACH * len(addresses)):
            host, _, port = addresses[number % len(addresses)].rpartition(":")
            made.append(stack.enter_context(socket.create_connection((host, int(port)), timeout=60)))
            if number // len(addresses) % 2:
                made[-1].sendall(BEGUN)
        yield made


async def completed(cluster: SecuredCluster) -> int:
    """Of runs. By a client that connects anew."""
    async with cluster.client() as client:
        found = await client.executions.list("ticks.each_second", limit=500)
    return sum(each.outcome == "completed" for each in found)


async def test_a_thousand_silent_connections_keep_nobody_out(cluster: SecuredCluster) -> None:
    controller, runner = cluster.controllers[0], cluster.runners[0]

    async def runs() -> bool:
        with contextlib.suppress(Exception):  # the module isn't there yet
            return await completed(cluster) > 0
        return False

    await wait_until(runs, runner.tail)
    before = psutil.Process(controller.pid).memory_info().rss
    with silent([controller.grpc, cluster.peers[0]]) as connections:
        assert len(connections) == 2 * EACH
        had = await completed(cluster)
        for _ in range(NEW_CLIENTS):
            assert await completed(cluster) >= had

        async def go_on() -> bool:
            return await completed(cluster) >= had + RUNS

        await wait_until(go_on, controller.tail)
        grown = psutil.Process(controller.pid).memory_info().rss - before
    assert grown < GROWN_MAX, grown // MIB
    assert "contact_lost" not in runner.log.read_text(), runner.tail()
    assert controller.alive(), controller.tail()
    assert "Traceback" not in controller.log.read_text(), controller.tail(60)
