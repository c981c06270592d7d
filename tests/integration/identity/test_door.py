"""A token of an issuer at a controller's door: over gRPC, with the server's own options."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cronring.client import AsyncClient, ClientError, PermissionDenied, Unauthenticated, Unavailable
from cronring.controller.api.calls import Calls
from cronring.controller.api.judging import Known
from cronring.controller.api.server import GrpcServer
from cronring.controller.identity.settings import GrantRule, IssuerSettings
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.runtime.clock import SystemClock
from cronring.protos.cronring.v1 import jobs_pb2_grpc
from cronring.schema.identity import Role
from tests.support.callers import counting, no_certificate, unlimited
from tests.support.issuer import AUDIENCE, TestIssuer
from tests.unit.cli.fake_api import FakeApi, job

TIMES = 20  # gRPC refuses metadata above its soft limit by chance, the larger the likelier


class Doors:
    """Servers of two controllers, whose tokens are an issuer's."""

    def __init__(self, issuer: TestIssuer, addresses: list[str]) -> None:
        self.issuer = issuer
        self.first, self.second = addresses

    async def jobs(self, token: str, *addresses: str) -> list[str]:
        async with AsyncClient(addresses or [self.first], token=token, insecure=True) as client:
            return [each.key for each in await client.jobs.list()]


@asynccontextmanager
async def opened(issuer: TestIssuer) -> AsyncIterator[str]:
    """Its address."""
    rule = GrantRule("sre", Role.VIEWER, "*", "groups")
    own = IssuerSettings("corp", issuer.url, AUDIENCE, issuer.jwks_url, grants=(rule,))
    verifier = JwtVerifier([own], SystemClock())
    api = FakeApi()
    api.jobs = [job("refresh")]
    calls = Calls(api, counting([]), lambda: None)
    server = GrpcServer(calls, lambda: True, counting([]), Known([verifier], no_certificate, unlimited()))
    port = server.bind("--grpc", "127.0.0.1:0", None)
    adds: Any = jobs_pb2_grpc.add_JobsServicer_to_server
    server.add([("cronring.v1.Jobs", lambda target: adds(api, target))])
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)
    await verifier.close()


@pytest.fixture
async def door() -> AsyncIterator[Doors]:
    async with TestIssuer() as issuer, opened(issuer) as first, opened(issuer) as second:
        yield Doors(issuer, [first, second])


async def test_whoever_has_the_group_is_let_in(door: Doors) -> None:
    assert await door.jobs(door.issuer.token()) == ["billing.refresh"]


async def test_whoever_has_another_group_is_known_and_may_nothing(door: Doors) -> None:
    with pytest.raises(PermissionDenied, match=r"user:corp/ada@example\.org has no role"):
        await door.jobs(door.issuer.token(groups=["guests"]))


async def test_whoever_comes_too_late_is_told_so(door: Doors) -> None:
    now = int(time.time())
    with pytest.raises(Unauthenticated, match=r"^this token is refused: it expired 5m"):
        await door.jobs(door.issuer.token(exp=now - 300))


async def test_while_the_issuer_is_down_nobody_new_is_let_in(door: Doors) -> None:
    token = door.issuer.token()
    await door.issuer.stop()
    with pytest.raises(Unavailable, match="the keys of issuer 'corp' can't be fetched now"):
        await door.jobs(token)


async def test_who_is_not_known_to_one_controller_asks_another(door: Doors) -> None:
    token = door.issuer.token()
    await door.jobs(token, door.second)
    await door.issuer.stop()
    assert await door.jobs(token, door.first, door.second) == ["billing.refresh"]


async def test_a_token_with_many_groups_is_let_in_each_time(door: Doors) -> None:
    groups = ["sre", *(f"group-{number:04}" for number in range(840))]
    token = door.issuer.token(groups=groups)
    assert 15_000 < len(token) <= 16_384
    for _ in range(TIMES):
        assert await door.jobs(token)


async def test_a_token_that_is_too_large_is_not(door: Doors) -> None:
    with pytest.raises(ClientError, match="characters, and a token may have 16,384"):
        await door.jobs(door.issuer.token(pad="x" * 13_000))
