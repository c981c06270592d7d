"""Whose a bearer token is: by PostgreSQL, and for a minute by what PostgreSQL has said before it went away."""

import asyncio
from typing import Any

import pytest

from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.tokens import TokenInUse
from cronring.controller.services import vouching
from cronring.controller.services.tokens import TokenVerifier
from cronring.controller.services.vouching import REMEMBERED_MAX
from cronring.schema.identity import Kind, Principal, Role, RoleGrant
from cronring.schema.tokens import SecretKind, make_secret_text, secret_hash

SECOND_NS = 1_000_000_000
NOW_US = 1_790_000_000_000_000
GRANTS = (RoleGrant(Role.DEPLOYER, "billing"),)


def text_of(number: int) -> str:
    return make_secret_text(SecretKind.TOKEN, number.to_bytes(32))


class Postgres:
    """Answers by hash; `away` with StoreUnavailable, `silent` never."""

    def __init__(self) -> None:
        self.rows: dict[bytes, TokenInUse] = {}
        self.away = self.silent = False
        self.asked = 0
        self.now_ns = 0

    def add(self, number: int, **changes: Any) -> str:
        row = TokenInUse(f"ci-{number}", GRANTS, None, NOW_US, revoked=False, expired=False)
        self.rows[secret_hash(SecretKind.TOKEN, text_of(number))] = row._replace(**changes)
        return text_of(number)

    async def use_token(self, digest: bytes) -> TokenInUse | None:
        self.asked += 1
        if self.silent:
            await asyncio.Event().wait()
        if self.away:
            raise StoreUnavailable("nobody there")
        return self.rows.get(digest)

    def verifier(self) -> TokenVerifier:
        store: Any = self
        return TokenVerifier(store, lambda: self.now_ns)


@pytest.fixture
def postgres() -> Postgres:
    return Postgres()


async def test_a_token_is_its_principal_by_one_statement_a_call(postgres: Postgres) -> None:
    verifier, text = postgres.verifier(), postgres.add(1, expires_at=NOW_US + 9)
    for call in (1, 2):
        assert await verifier.principal(text) == Principal(Kind.TOKEN, "ci-1", GRANTS, NOW_US + 9)
        assert postgres.asked == call


async def test_what_is_mistyped_is_refused_without_asking(postgres: Postgres) -> None:
    verifier = postgres.verifier()
    assert verifier.knows("crt_x")
    assert not verifier.knows(make_secret_text(SecretKind.JOIN, bytes(32)))
    assert not verifier.knows("eyJhbGciOiJFZERTQSJ9.e30.x")
    with pytest.raises(TokenRefused, match="45 characters") as caught:
        await verifier.principal(text_of(1)[:45])
    assert text_of(1)[4:20] not in str(caught.value)
    assert postgres.asked == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"revoked": True}, "'ci-1' was revoked"), ({"expired": True}, "'ci-1' has expired"), (None, "not known here")],
)
async def test_what_ended_is_refused_and_forgotten_at_once(
    postgres: Postgres, changes: dict[str, Any] | None, says: str
) -> None:
    verifier, text = postgres.verifier(), postgres.add(1)
    await verifier.principal(text)
    postgres.rows.clear()
    if changes is not None:
        postgres.add(1, **changes)
    with pytest.raises(TokenRefused, match=says):
        await verifier.principal(text)
    postgres.away = True
    with pytest.raises(StoreUnavailable):
        await verifier.principal(text)


async def test_without_postgresql_a_token_is_believed_for_a_minute(postgres: Postgres) -> None:
    verifier, text, other = postgres.verifier(), postgres.add(1), postgres.add(2)
    known = await verifier.principal(text)
    postgres.away = True
    with pytest.raises(StoreUnavailable):
        await verifier.principal(other)
    postgres.now_ns = 60 * SECOND_NS - 1
    assert await verifier.principal(text) == known
    postgres.now_ns += 1
    with pytest.raises(StoreUnavailable):
        await verifier.principal(text)


async def test_no_longer_than_it_lasts(postgres: Postgres) -> None:
    verifier, text = postgres.verifier(), postgres.add(1, expires_at=NOW_US + 5_000_000)
    await verifier.principal(text)
    postgres.away, postgres.now_ns = True, 5 * SECOND_NS - 1
    await verifier.principal(text)
    postgres.now_ns += 1
    with pytest.raises(StoreUnavailable):
        await verifier.principal(text)


async def test_a_postgresql_that_says_nothing_is_away(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vouching, "AWAY_S", 0.01)
    verifier, text = postgres.verifier(), postgres.add(1)
    known = await verifier.principal(text)
    postgres.silent = True
    assert await verifier.principal(text) == known


async def test_so_many_are_remembered_and_no_more(postgres: Postgres) -> None:
    verifier = postgres.verifier()
    for number in range(REMEMBERED_MAX + 1):
        await verifier.principal(postgres.add(number))
    postgres.away = True
    await verifier.principal(text_of(1))
    with pytest.raises(StoreUnavailable):
        await verifier.principal(text_of(0))
