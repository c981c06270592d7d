"""The API of a controller behind its door, on real gRPC and PostgreSQL, without the controller's life."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import grpc

from cronring.controller.api.calls import Calls
from cronring.controller.api.judging import Judge
from cronring.controller.api.server import GrpcServer
from cronring.controller.api.services import Api, ApiParts, Registration
from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.runners.sessions import RunnerStreams
from cronring.controller.runtime.chance import seeded_chance
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.services.deploying import Deployer
from cronring.controller.services.vault import Vault
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.controller.store.stores import postgres_stores
from cronring.protos.gossip.v1 import gossip_pb2_grpc
from cronring.protos.runner.v1 import runner_pb2_grpc
from tests.support.sealing import SEAL

INFO = ControllerInfo("c1", "127.0.0.1:1", "127.0.0.1:2", 7, "0.1.0")
# As they are generated: who is let in, hears UNIMPLEMENTED.
_GOSSIP: Any = gossip_pb2_grpc.GossipServicer
_GATEWAY: Any = runner_pb2_grpc.RunnerGatewayServicer
_ENROLLMENT: Any = runner_pb2_grpc.EnrollmentServicer
_RENEWALS: Any = runner_pb2_grpc.RenewalsServicer
OF_MEMBERS: tuple[Registration, ...] = (
    ("cronring.gossip.v1.Gossip", partial(gossip_pb2_grpc.add_GossipServicer_to_server, _GOSSIP())),
    ("cronring.runner.v1.RunnerGateway", partial(runner_pb2_grpc.add_RunnerGatewayServicer_to_server, _GATEWAY())),
    ("cronring.runner.v1.Enrollment", partial(runner_pb2_grpc.add_EnrollmentServicer_to_server, _ENROLLMENT())),
    ("cronring.runner.v1.Renewals", partial(runner_pb2_grpc.add_RenewalsServicer_to_server, _RENEWALS())),
)


class _Around:
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


async def _nothing() -> tuple[()]:
    return ()


def _api(database: Database) -> Api:
    settings, clock, around = ClusterSettings(), SystemClock(), _Around()
    node = Node(INFO.controller_id, INFO.grpc_address, settings, seeded_chance(), clock.now_ns())
    examine: Callable[[], Awaitable[Any]] = _nothing
    posting: Any = None  # nothing is posted

    vault = Vault([], plain_allowed=False)

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
            seal=SEAL,
            stores=postgres_stores(database, settings),
            deployer=Deployer(PostgresStore(database), settings, put, put),
            outputs=RunnerStreams(),
            posting=posting,
            vault=vault,
            around=around,
            examine=examine,
        )
    )


@contextlib.asynccontextmanager
async def guarded(database: Database, judge: Judge) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to all its services."""
    server = GrpcServer(Calls(_Around(), lambda _: None, lambda: None), lambda: True, lambda _: None, judge)
    api = _api(database)
    server.add([*api.registrations(), *OF_MEMBERS])
    port = server.bind("--grpc", "127.0.0.1:0", None)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await api.close()
    await server.stop(0)
