"""A controller that answers with little that would become much: to a runner, to the command line, to its peers."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import grpc
import psutil
import pytest

from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.runner.v1 import runner_pb2
from tests.attacks.wire import growing
from tests.support.cluster import Cluster, Process
from tests.support.waiting import wait_until

MIB: Final = 1 << 20
GROWN_MAX: Final = 128 * MIB
RUNNER: Final = 120 * MIB  # with what TLS and certificates need
MODULE: Final = Path(__file__).parents[1] / "faults" / "modules" / "steady.py"


class Hostile:
    """Answers each call, of whatever method, with the same bytes again and again."""

    def __init__(self, body: bytes, compression: grpc.Compression) -> None:
        self.body = body
        self.asked = 0
        self._server = grpc.aio.server(compression=compression, options=[("grpc.max_send_message_length", -1)])
        self._server.add_generic_rpc_handlers((self._Handlers(self),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    class _Handlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its stubs only
        def __init__(self, hostile: "Hostile") -> None:
            self._hostile = hostile

        def service(self, handler_call_details: Any) -> Any:  # noqa: ARG002 - every method is answered alike
            return grpc.stream_stream_rpc_method_handler(self._answer)

        async def _answer(self, requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
            self._hostile.asked += 1
            async for _request in requests:
                break
            yield self._hostile.body

    async def __aenter__(self) -> "Hostile":
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)


def bombs(kind: Any) -> list[tuple[bytes, grpc.Compression]]:
    """Compressed ones, and what a bound of 32 MiB lets through."""
    return [
        (growing(kind.DESCRIPTOR, 100 * MIB), grpc.Compression.Gzip),
        (growing(kind.DESCRIPTOR, 30 * MIB), grpc.Compression.NoCompression),
    ]


@pytest.mark.parametrize("bomb", [0, 1])
async def test_the_command_line_says_what_came(bomb: int) -> None:
    body, compression = bombs(jobs_pb2.ListJobsResponse)[bomb]
    async with Hostile(body, compression) as hostile:
        command = [sys.executable, "-m", "cronring.cli.main", "jobs", "list", "--controllers", hostile.address]
        asked = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        highest = await _peak(asked.pid, lambda: asked.returncode is not None)
        _, words = await asked.communicate()
    assert (asked.returncode, b"Traceback" in words) in {(1, False), (3, False)}, words.decode()
    assert hostile.asked
    assert highest < RUNNER + GROWN_MAX, highest // MIB


@pytest.mark.parametrize("bomb", [0, 1])
async def test_a_runner_hangs_up(bomb: int, tmp_path: Path) -> None:
    body, compression = bombs(runner_pb2.ControllerMessage)[bomb]
    with Cluster("unused", tmp_path) as cluster:
        async with Hostile(body, compression) as hostile:
            runner = cluster.start_runner(MODULE, extra=("--controllers", hostile.address))
            highest = await _peak(runner.pid, lambda: hostile.asked >= 4)
            assert runner.alive(), runner.tail()
            assert "Traceback" not in runner.log.read_text(), runner.tail(60)
            assert highest < RUNNER + GROWN_MAX, highest // MIB


async def test_a_peers_answer_is_not_inflated(attacked: Cluster, victim: Process) -> None:
    """`--join` names anybody."""
    async with Hostile(b"\0" * 100 * MIB, grpc.Compression.Gzip) as hostile:
        joining = attacked.start_controller("--join", hostile.address)
        highest = await _peak(joining.pid, lambda: hostile.asked >= 2)
        assert joining.alive()
        assert "Traceback" not in joining.log.read_text(), joining.tail(60)
        assert highest < 120 * MIB + GROWN_MAX, highest // MIB
    joining.kill()


async def _peak(pid: int, over: Callable[[], bool]) -> int:
    """The most memory of it, until then: bytes."""
    highest = 0
    process = psutil.Process(pid)

    def looked() -> bool:
        nonlocal highest
        try:
            highest = max(highest, process.memory_info().rss)
        except psutil.NoSuchProcess:
            return True
        return over()

    await wait_until(looked, lambda: f"process {pid} goes on, with {highest // MIB} MiB", 30.0, poll_s=0.005)
    return highest
