"""A way to a server that breaks after so many bytes: each point at which a connection can be lost, in turn."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Direction(Enum):
    THERE = "there"
    BACK = "back"


class Cut:
    """`after` bytes in `direction` have passed, all connections end and no new one is taken. `passed`: until now."""

    def __init__(self, connect: Callable[[], Awaitable[Streams]], direction: Direction, after: int) -> None:
        self._connect = connect
        self._direction = direction
        self._after = after
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.passed = 0
        self.armed = True
        self.has_cut = False
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._taken, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self.has_cut = True
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await self._connect()
        self._writers |= {writer, there_writer}
        await asyncio.gather(
            self._pump(reader, there_writer, Direction.THERE), self._pump(there_reader, writer, Direction.BACK)
        )

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction) -> None:
        with contextlib.suppress(OSError):
            while (data := await reader.read(65_536)) and not self.has_cut:
                if direction is self._direction and self.armed:
                    left = self._after - self.passed
                    self.passed += len(data)
                    writer.write(data[:left])
                    if left <= len(data):
                        await writer.drain()
                        self.cut()
                        return
                else:
                    writer.write(data)
                await writer.drain()
            writer.close()


@contextlib.asynccontextmanager
async def cutting(
    connect: Callable[[], Awaitable[Streams]], direction: Direction, after: int, *, armed: bool = True
) -> AsyncIterator[Cut]:
    """Listens on a free port of loopback. While it isn't `armed`, nothing is counted."""
    way = Cut(connect, direction, after)
    way.armed = armed
    await way.start()
    try:
        yield way
    finally:
        way.cut()
