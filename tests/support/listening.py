"""A controller's own doors as they are deployed: --grpc, --peer and --http with TLS, judged by its real verifiers.

Behind them are its services on real PostgreSQL, without the controller's life. Gossip and runners are answered by
stand-ins, which only take what is let in.
"""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final, NamedTuple

from cronring.controller.api.calls import Calls
from cronring.controller.api.http import HttpServer
from cronring.controller.api.listeners import Listeners
from cronring.controller.api.login import LoginParts
from cronring.controller.api.login_attempts import Attempts
from cronring.controller.api.services import Registration
from cronring.controller.config import ProcessConfig
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.interval_jobs.settings import interval_settings
from cronring.controller.members import enrolling, judge_of
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.store.pool import Database
from cronring.controller.store.request_keys import PostgresRequestKeys
from cronring.controller.store.tokens import PostgresTokens
from cronring.controller.store.web_sessions import PostgresWebSessions
from cronring.controller.web import Web
from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc
from cronring.protos.runner.v1 import runner_pb2, runner_pb2_grpc
from cronring.trust.holding import CertificateFolder
from cronring.trust.web import server_context
from tests.support.boxes import BOX
from tests.support.callers import counting, unlimited
from tests.support.guarded import Around, api_on
from tests.support.secured import CLUSTER, Pki


class Doors(NamedTuple):
    """Addresses, and the paths of HTTP."""

    people: str
    members: str
    http: str
    routes: frozenset[str]


class TakesPackets(gossip_pb2_grpc.GossipServicer):
    async def Deliver(self, request: Any, context: Any) -> gossip_pb2.Delivered:  # noqa: ARG002, N802 - gRPC's own
        return gossip_pb2.Delivered()


class TakesRunners(runner_pb2_grpc.RunnerGatewayServicer):
    async def Connect(self, request_iterator: Any, context: Any) -> Any:  # noqa: ARG002, N802 - gRPC's own
        async for _ in request_iterator:
            yield runner_pb2.ControllerMessage(welcome=runner_pb2.Welcome())


OF_MEMBERS: Final[tuple[Registration, ...]] = (
    ("cronring.gossip.v1.Gossip", partial(gossip_pb2_grpc.add_GossipServicer_to_server, TakesPackets())),
    (
        "cronring.runner.v1.RunnerGateway",
        partial(runner_pb2_grpc.add_RunnerGatewayServicer_to_server, TakesRunners()),
    ),
)


def _config(pki: Pki) -> ProcessConfig:
    return ProcessConfig(
        database_url="postgresql://unused",
        certs=pki.controller("c1"),
        grpc_address="127.0.0.1:0",
        peer_address="127.0.0.1:0",
    )


@contextlib.asynccontextmanager
async def listening(database: Database, pki: Pki, keys: JwtVerifier | None) -> AsyncIterator[Doors]:
    """`keys`: of issuers whose tokens count beside those in the database."""
    config, tokens = _config(pki), PostgresTokens(database)
    assert config.certs is not None
    own = CertificateFolder(config.certs)

    of_browsers = Web(interval_jobs=interval_settings(""))
    clock, throttle, count = SystemClock(), unlimited(), counting([])
    judge = judge_of(config, own, keys, tokens, throttle, clock)
    servers = Listeners(
        Calls(Around(), count, lambda: None), lambda: True, count, judge, own, own, 1_024, of_browsers.rest
    )
    people, members = servers.bind(config)
    signing = enrolling(own, pki.authority, CLUSTER, tuple, tokens, count)
    api = api_on(database)
    servers.add([*api.registrations(), *signing.outside], [*OF_MEMBERS, *signing.inside], PostgresRequestKeys(database))
    await servers.start()
    parts = LoginParts(
        judge, tokens, PostgresWebSessions(database), {}, BOX, "https://cronring.example", Attempts(clock.now_ns),
        clock.wall_us, Around(), count,
    )  # fmt: skip
    of_browsers.open(parts, throttle, clock.now_ns)
    of_browsers.serve(api.parts)
    http = HttpServer(lambda: None, lambda: b"", count, of_browsers.door, *of_browsers.routes)
    web = await http.start("127.0.0.1", 0, server_context(own))
    yield Doors(f"127.0.0.1:{people}", f"127.0.0.1:{members}", f"127.0.0.1:{web}", _routes(http))
    await http.stop()
    await api.close()
    await servers.stop(0)


def _routes(http: HttpServer) -> frozenset[str]:
    resources = http._runner.app.router.resources()
    return frozenset(resource.canonical for resource in resources)
