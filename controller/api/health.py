"""grpc.health.v1: SERVING only while this controller may claim, that is, while its lease is valid."""

import asyncio
from collections.abc import Callable
from typing import Final

from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio as health_aio  # type: ignore[attr-defined]  # absent from its stubs

POLL_S: Final = 0.1

NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
SERVING: Final = health_pb2.HealthCheckResponse.SERVING


class _Servicer(health_aio.HealthServicer):  # type: ignore[misc]  # absent from its stubs
    """With the one method that grpcio's own lacks: each call of it would be a traceback in the log."""

    async def List(self, request: object, context: object) -> health_pb2.HealthListResponse:
        each = {name: health_pb2.HealthCheckResponse(status=told) for name, told in self._server_status.items()}
        return health_pb2.HealthListResponse(statuses=each)


class ServiceHealth:
    """The health of every service in `names`, and of the server as a whole (the empty name)."""

    def __init__(self, names: tuple[str, ...], is_ready: Callable[[], bool]) -> None:
        self.servicer = _Servicer()
        self._names = ("", *names)
        self._is_ready = is_ready
        self._told: bool | None = None

    async def follow(self) -> None:
        """For ever: tell watchers of each change within POLL_S."""
        while True:
            await self.tell()
            await asyncio.sleep(POLL_S)

    async def tell(self) -> None:
        ready = self._is_ready()
        if ready is self._told:
            return
        self._told = ready
        for name in self._names:
            await self.servicer.set(name, SERVING if ready else NOT_SERVING)

    async def shut_down(self) -> None:
        """NOT_SERVING from now on."""
        await self.servicer.enter_graceful_shutdown()
