"""Links that break: a proxy before a controller, which cuts its connections, or lets nothing through without a word."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

CHUNK = 65_536


class Link:
    """From anybody to one address. Its methods are called from the thread that made the links."""

    def __init__(self, loop: asyncio.AbstractEventLoop, target: str) -> None:
        self.target = target
        self.address = ""
        self._loop = loop
        self._flows = asyncio.Event()
        self._flows.set()
        self._cut = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"

    async def close(self) -> None:
        self._break()
        if self._server is not None:
            self._server.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Connections are reset, and none comes about."""
        self._loop.call_soon_threadsafe(self._break)

    def stall(self) -> None:
        """Connections stay, and nothing passes."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._mend)

    def _break(self) -> None:
        self._cut = True
        for task in self._tasks:
            task.cancel()

    def _mend(self) -> None:
        self._cut = False
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server's callback runs in a task"
        self._tasks.add(task)
        try:
            if not self._cut:
                await self._pass(reader, writer)
        except asyncio.CancelledError:
            pass  # cut; nobody waits for this task but close()
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, port = self.target.split(":")
        try:
            there_reader, there_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return
        ways = {
            asyncio.ensure_future(self._pump(reader, there_writer)),
            asyncio.ensure_future(self._pump(there_reader, writer)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            there_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()


class Links:
    """A thread that carries them all. Use it in a `with`."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links")
        self._thread.start()
        self._links: list[Link] = []
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for link in self._links:
            self._run(link.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def to(self, target: str) -> Link:
        """A link to that address; it listens at once."""
        link = Link(self._loop, target)
        self._links.append(link)
        self._run(link.open())
        return link

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)
