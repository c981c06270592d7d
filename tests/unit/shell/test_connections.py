"""How many connections of gRPC there are, and for how long one may say nothing; over real sockets."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Final

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cronring.controller.api import server as servers
from cronring.controller.api.calls import Calls
from cronring.controller.api.judging import Insecure
from cronring.controller.api.server import GrpcServer
from tests.support.callers import counting
from tests.support.waiting import wait_until

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS: Final = b"\0\0\0\4\0\0\0\0\0"
MOST: Final = 20


class Quiet:
    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(event) from error


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[int]:
    """The port of a server with room for MOST connections."""
    calls = Calls(Quiet(), counting([]), lambda: None)
    server = GrpcServer(calls, lambda: True, counting([]), Insecure(), MOST)
    server.add([], reflects=False)
    port = server.bind("--grpc", "127.0.0.1:0", None)
    await server.start()
    yield port
    await server.stop(0)


class Sockets(contextlib.ExitStack):
    """All that were connected; closed at the end."""

    def connect(self, port: int, begin: bytes = b"") -> socket.socket:
        connection = self.enter_context(socket.create_connection(("127.0.0.1", port)))
        connection.sendall(begin)
        connection.setblocking(False)
        return connection


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    with Sockets() as found:
        yield found


def is_open(connection: socket.socket) -> bool:
    try:
        while connection.recv(4_096):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def gone(connection: socket.socket) -> bool:
    return not is_open(connection)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "HANDSHAKE_S", 0.5)
    monkeypatch.setattr(servers, "IDLE_S", 0.5)


async def test_who_does_not_finish_the_handshake_is_hung_up_on(hurried: None, sockets: Sockets) -> None:
    async with opened() as port:
        slow = [sockets.connect(port, begin) for begin in (b"", PREFACE[:9], PREFACE, PREFACE + SETTINGS)]
        await wait_until(lambda: not any(map(is_open, slow)), "some are still open")


async def test_a_connection_with_a_stream_stays_and_one_without_goes(hurried: None, sockets: Sockets) -> None:
    """A runner's stream says nothing for long, at times."""
    async with opened() as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        await watch.read()
        for _ in range(3):  # several times as long as a connection may be idle
            without = sockets.connect(port, PREFACE + SETTINGS)
            await wait_until(partial(gone, without), "it is still open")
        assert channel.get_state() is grpc.ChannelConnectivity.READY
        assert not watch.done()
        watch.cancel()

        async def is_idle() -> bool:
            return channel.get_state() is not grpc.ChannelConnectivity.READY

        await wait_until(is_idle, "it is still connected")
        await stub.Check(health_pb2.HealthCheckRequest())


async def test_more_than_there_is_room_for_are_hung_up_on_at_once(sockets: Sockets) -> None:
    async with opened() as port:
        first = [sockets.connect(port) for _ in range(MOST)]
        more = [sockets.connect(port) for _ in range(MOST)]
        await wait_until(lambda: not any(map(is_open, more)), "there are more than there is room for")
        assert all(map(is_open, first))
        first.pop().close()

        async def has_room() -> bool:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub: Any = health_pb2_grpc.HealthStub(channel)
                try:
                    await stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
                except grpc.aio.AioRpcError:
                    return False
                return True

        await wait_until(has_room, "whoever came after one had gone was not let in")
