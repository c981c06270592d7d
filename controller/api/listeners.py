"""Where a controller's services are reached: gRPC and REST for people and services, and one more port for members.

gRPC in Python can't make client certificates optional, so callers with certificates have a port of their own. With
--insecure there is one port for all.
"""

import asyncio
from collections.abc import Callable, Sequence

import grpc

from cronring.controller.api.calls import Calls
from cronring.controller.api.judging import Judge
from cronring.controller.api.keyed import keyed
from cronring.controller.api.rest.rest import Rest
from cronring.controller.api.server import GrpcServer
from cronring.controller.config import ProcessConfig
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.request_keys import RequestKeys
from cronring.trust.holding import Certificates

Services = Sequence[tuple[str, Callable[[grpc.aio.Server], None]]]


class Listeners:
    """bind, add the services, start, stop; in this order. `shown`: by --grpc; `own`: by --peer, None: --insecure.

    `rest`: by --http.

    `files`: how many files this process may have open. They are divided, so that strangers who take all connections of
    one port leave enough for the other port and for PostgreSQL.
    """

    def __init__(
        self,
        calls: Calls,
        is_ready: Callable[[], bool],
        refused: OnRefusal,
        judge: Judge,
        shown: Certificates | None,
        own: Certificates | None,
        files: int,
        rest: Rest,
    ) -> None:
        self._calls = calls
        self._refused = refused
        self._rest = rest
        self._shown = shown
        self._own = own
        self._open = GrpcServer(calls, is_ready, refused, judge, files // 4)
        self._inner = self._open if own is None else GrpcServer(calls, is_ready, refused, judge, files // 2)
        self._servers = list(dict.fromkeys((self._open, self._inner)))

    def bind(self, config: ProcessConfig) -> tuple[int, int]:
        """Their ports, of clients and of members; the same one with --insecure. Raises AddressInUseError."""
        port = self._open.bind("--grpc", config.grpc_address, self._shown)
        if self._own is None:
            return port, port
        return port, self._inner.bind("--peer", config.peer_address, self._own, mutual=True)

    def add(self, services: Services, of_members: Services, keys: RequestKeys) -> None:
        """Raises UnjudgedMethodError for a method without a line in controller/api/policy.py."""
        services = keyed(services, keys)
        self._rest.open(services, self._calls, self._refused)
        if self._inner is self._open:
            self._open.add([*services, *of_members])
            return
        self._open.add(services)
        self._inner.add(of_members, reflects=False)

    async def start(self) -> None:
        for server in self._servers:
            await server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and give those under way `grace_s`."""
        await asyncio.gather(self._rest.close(grace_s), *(server.stop(grace_s) for server in self._servers))

    async def follow_health(self) -> None:
        """For ever."""
        await asyncio.gather(*(server.health.follow() for server in self._servers))
