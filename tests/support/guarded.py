"""The API of a controller behind its door, on real gRPC and PostgreSQL, without the controller's life."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from cronring.controller.api.calls import Calls
from cronring.controller.api.judging import Judge
from cronring.controller.api.keyed import keyed
from cronring.controller.api.server import GrpcServer
from cronring.controller.api.services import Api, ApiParts
from cronring.controller.core.node.node import Node
from cronring.controller.core.notify.delivering import Answer
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.ports.webhooks import Sent
from cronring.controller.runners.streams import RunnerStreams
from cronring.controller.runtime.chance import seeded_chance
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.services.deploying import Deployer
from cronring.controller.services.vault import Vault
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.controller.store.stores import postgres_stores
from tests.support.boxes import BOX
from tests.support.callers import counting

INFO = ControllerInfo("c1", "127.0.0.1:1", "127.0.0.1:2", 7, "0.1.0")


class Around:
    """What a process knows beside its node, and the log, where no error is foreseen."""

    def not_ready(self) -> str | None:
        return None

    def database_ok(self) -> bool:
        return True

    def queues(self) -> dict[str, int]:
        return {}

    def certificate_left_ms(self) -> int | None:
        return None

    def certificate_problem(self) -> str:
        return ""

    def issuer_problem(self) -> str:
        return ""

    def secrets_key(self) -> str:
        return ""

    def secrets_problem(self) -> str:
        return ""

    def runners(self) -> tuple[str, ...]:
        return ()

    async def unreachable(self, _: object) -> dict[str, str]:
        return {}

    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(event) from error

    def info(self, event: str, **values: str | int | float | bool) -> None:
        """Nobody reads it."""

    def warning(self, event: str, **values: str | int | float | bool) -> None:
        """Of somebody who was turned away; nobody reads it."""


class _Posting:
    """Whoever is posted to takes it. Nothing leaves this process."""

    async def post(self, *_: object) -> Sent:
        return Sent(Answer(204, ""), 1)


async def _nothing() -> tuple[()]:
    return ()


def api_on(database: Database, *, takes_secrets: bool = True) -> Api:
    """All services, of a node that does nothing. It has no key: secrets are kept as they are, or refused."""
    settings, clock, around = ClusterSettings(), SystemClock(), Around()
    node = Node(INFO.controller_id, INFO.grpc_address, settings, seeded_chance(), clock.now_ns())
    examine: Callable[[], Awaitable[Any]] = _nothing
    vault = Vault([], plain_allowed=takes_secrets)

    def put(_: object) -> None:
        """There is nobody to tell."""

    return Api(
        ApiParts(
            info=INFO,
            settings=settings,
            clock=clock,
            node=node,
            put=put,
            fail=put,
            box=BOX,
            stores=postgres_stores(database, settings),
            deployer=Deployer(PostgresStore(database), settings, put, put),
            outputs=RunnerStreams(),
            posting=_Posting(),
            vault=vault,
            around=around,
            examine=examine,
        )
    )


@contextlib.asynccontextmanager
async def guarded(database: Database, judge: Judge, *, takes_secrets: bool = True) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to all services that people call."""
    server = GrpcServer(Calls(Around(), counting([]), lambda: None), lambda: True, counting([]), judge)
    api = api_on(database, takes_secrets=takes_secrets)
    server.add(keyed(api.registrations(), api.parts.stores.request_keys))
    port = server.bind("--grpc", "127.0.0.1:0", None)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await api.close()
    await server.stop(0)
