"""What a flood of wrong tokens costs PostgreSQL: counted at the store, over real gRPC, with the default settings."""

import asyncio
import secrets
import time
from typing import Any, Final

import grpc
import pytest

from cronring.controller.api.judging import Known
from cronring.controller.api.throttle import Allowances, Throttle
from cronring.controller.ports.tokens import TokenInUse
from cronring.controller.services.identities import WantedToken, make_token
from cronring.controller.services.tokens import TokenVerifier
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.protos.cronring.v1 import identities_pb2, identities_pb2_grpc
from cronring.schema.identity import Role
from cronring.schema.tokens import SECRET_BYTES, SecretKind, make_secret_text
from tests.support.callers import no_certificate
from tests.support.guarded import guarded

WRONG: Final = 2_000
AT_ONCE: Final = 100


class Counting(PostgresTokens):
    asked = 0

    async def use_token(self, digest: bytes) -> TokenInUse | None:
        self.asked += 1
        return await super().use_token(digest)


async def code_of(stub: Any, secret: str) -> grpc.StatusCode:
    try:
        await stub.WhoAmI(identities_pb2.WhoAmIRequest(), metadata=(("authorization", f"Bearer {secret}"),))
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_they_cost_a_bounded_number_of_statements(database_url: str) -> None:
    """Of 2,000 each was one. Whoever is known at that host is answered all the same."""
    database = await Database.open(database_url, "cronring test")
    store = Counting(database)
    _, good = await make_token(store, WantedToken("ann", ((Role.VIEWER, "*"),), None, "test"))
    throttle = Throttle(Allowances(), time.monotonic_ns)
    judge = Known([TokenVerifier(store, time.monotonic_ns)], no_certificate, throttle)
    refused: list[grpc.StatusCode] = []
    async with guarded(database, judge) as channel:
        stub: Any = identities_pb2_grpc.IdentitiesStub(channel)
        assert await code_of(stub, good) is grpc.StatusCode.OK
        store.asked, began_s, looks = 0, time.monotonic(), 0
        for _ in range(WRONG // AT_ONCE):
            wrong = [make_secret_text(SecretKind.TOKEN, secrets.token_bytes(SECRET_BYTES)) for _ in range(AT_ONCE)]
            refused += await asyncio.gather(*(code_of(stub, each) for each in wrong))
            assert await code_of(stub, good) is grpc.StatusCode.OK
            looks += 1
        took_s = time.monotonic() - began_s
    await database.close()
    allowed = Allowances().strangers
    most = allowed.burst + allowed.per_s * took_s + 1
    assert store.asked <= most + looks, "one more for each time that ann's token was looked up again"
    assert set(refused) == {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert refused.count(grpc.StatusCode.UNAUTHENTICATED) <= most


@pytest.mark.parametrize("secret", ["", "crt_of-no-kind"])
async def test_what_is_no_token_of_ours_costs_none(database_url: str, secret: str) -> None:
    database = await Database.open(database_url, "cronring test")
    store = Counting(database)
    judge = Known([TokenVerifier(store, time.monotonic_ns)], no_certificate, Throttle(Allowances(), time.monotonic_ns))
    async with guarded(database, judge) as channel:
        codes = {await code_of(identities_pb2_grpc.IdentitiesStub(channel), secret) for _ in range(10)}
    await database.close()
    assert (codes, store.asked) == ({grpc.StatusCode.UNAUTHENTICATED}, 0)
