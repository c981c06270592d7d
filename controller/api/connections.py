"""HTTP connections with a time limit: a slow or silent client can't keep others out."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from aiohttp import web

REQUEST_S: Final = 10.0  # until the head of a first request is there
IDLE_S: Final = 75.0  # until the head of the next one; scrapes come at least each minute
CONNECTIONS_MAX: Final = 600


class Connections:
    """All open connections; those that have made us wait longest come first. The loop calls it for each new one."""

    def __init__(self, make: Callable[[], asyncio.Protocol]) -> None:
        self._make = make
        self._waited_for: dict[asyncio.BaseTransport, asyncio.TimerHandle] = {}
        self._asking: set[asyncio.BaseTransport] = set()

    def __call__(self) -> asyncio.Protocol:
        return _Watched(self, self._make())

    def __len__(self) -> int:
        return len(self._waited_for) + len(self._asking)

    def opened(self, transport: asyncio.BaseTransport) -> None:
        """Above CONNECTIONS_MAX, the connection that has made us wait longest is closed."""
        self._wait(transport, REQUEST_S)
        if len(self) > CONNECTIONS_MAX:
            self._give_up(next(iter(self._waited_for)))

    def closed(self, transport: asyncio.BaseTransport) -> None:
        self._asking.discard(transport)
        if (timer := self._waited_for.pop(transport, None)) is not None:
            timer.cancel()

    def asked(self, transport: asyncio.BaseTransport | None) -> None:
        """The head of a request is there."""
        if transport is not None and (timer := self._waited_for.pop(transport, None)) is not None:
            timer.cancel()
            self._asking.add(transport)

    def answered(self, transport: asyncio.BaseTransport | None) -> None:
        if transport in self._asking and transport is not None:
            self._asking.discard(transport)
            self._wait(transport, IDLE_S)

    def _wait(self, transport: asyncio.BaseTransport, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._waited_for[transport] = loop.call_later(seconds, self._give_up, transport)

    def _give_up(self, transport: asyncio.BaseTransport) -> None:
        self.closed(transport)
        cast("asyncio.Transport", transport).abort()  # uvloop's only looks like one


class _Watched(asyncio.Protocol):
    """aiohttp's own protocol of one connection, whose comings and goings are told."""

    def __init__(self, connections: Connections, inner: asyncio.Protocol) -> None:
        self._connections = connections
        self._inner = inner
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._inner.connection_made(transport)
        self._connections.opened(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._connections.closed(self._transport)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def telling(connections: Callable[[], Connections]) -> object:
    """A middleware that says of each request that it is there, and that it has been answered."""

    @web.middleware
    async def tell(request: web.Request, handler: Callable[[web.Request], object]) -> web.StreamResponse:
        transport = request.transport
        connections().asked(transport)
        try:
            return await handler(request)  # type: ignore[misc, no-any-return]  # aiohttp's own type is not exported
        finally:
            connections().answered(transport)

    return tell
