"""Tokens and grants of runners in PostgreSQL, by its own clock."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.tokens import GrantInForce, Listing, NewRunnerGrant, NewToken, RunnerGrant, TokenRow
from cronring.controller.services.tokens import TokenVerifier
from cronring.controller.store import maintenance
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.schema.identity import EVERYWHERE, Role, RoleGrant
from cronring.schema.tokens import SecretKind, hash_of, make_secret_text
from cronring.sql.parameters import ForgetIdentities

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
DEPLOYER = (RoleGrant(Role.DEPLOYER, "billing"),)
ALL = Listing(None, with_revoked=True, after_id=0, limit=100)
DAY_MS = 86_400_000


class Office:
    """The store, and the database as it is."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self.tokens = PostgresTokens(database)
        self.sql = connection

    async def token(
        self, name: str = "ci", number: int = 1, grants: tuple[RoleGrant, ...] = DEPLOYER, lasts_ms: int | None = None
    ) -> TokenRow:
        return await self.tokens.create_token(NewToken(name, hash_of(secret(number)), grants, "ann", lasts_ms))

    async def grant(self, name: str = "east", number: int | None = 1, uses: int | None = None) -> RunnerGrant:
        digest = None if number is None else hash_of(secret(number))
        return await self.tokens.create_runner_grant(
            NewRunnerGrant(name, "billing", ("invoices",), True, digest, uses, "ann", DAY_MS)
        )


def secret(number: int) -> bytes:
    return number.to_bytes(32)


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    database = await Database.open(database_url, "cronring test")
    connection = await connect(database_url, "cronring test")
    yield Office(database, connection)
    await connection.close()
    await database.close()


async def test_a_token_is_kept_as_it_was_made_and_its_secret_is_not(office: Office) -> None:
    row = await office.token(lasts_ms=DAY_MS)
    assert (row.name, row.grants, row.created_by, row.revoked_at, row.last_used_at) == (
        "ci",
        DEPLOYER,
        "ann",
        None,
        None,
    )
    assert row.expires_at == row.created_at + DAY_MS * 1_000
    assert await office.tokens.get_token("ci") == row
    assert (await office.token("for-ever", 2)).expires_at is None
    assert (
        await office.sql.fetchval("SELECT count(*) FROM cron_tokens t WHERE t::text LIKE '%' || $1 || '%'", "0001") == 0
    )


async def test_a_name_is_taken_until_its_token_is_revoked(office: Office) -> None:
    row = await office.token()
    with pytest.raises(Conflict, match="cronring token revoke ci"):
        await office.token(number=2)
    revoked = await office.tokens.revoke_token(row.token_id, "bob")
    assert (revoked.revoked_by, revoked.revoked_at is None) == ("bob", False)
    with pytest.raises(NotFound):
        await office.tokens.revoke_token(row.token_id, "eve")
    with pytest.raises(NotFound):
        await office.tokens.get_token("ci")
    await office.token(number=2)
    assert [each.name for each in await office.tokens.list_tokens(ALL)] == ["ci", "ci"]


async def test_lists_go_on_and_show_nobody_what_lies_elsewhere(office: Office) -> None:
    await office.token("a", 1)
    await office.token("b", 2, (*DEPLOYER, RoleGrant(Role.VIEWER, "prod")))
    everywhere = await office.token("c", 3, (RoleGrant(Role.ADMIN, EVERYWHERE),))
    await office.tokens.revoke_token(everywhere.token_id, "ann")

    async def names(**changes: Any) -> list[str]:
        wanted = ALL._replace(**changes)
        found = [row.name for row in await office.tokens.list_tokens(wanted)]
        assert wanted.after_id or await office.tokens.count_tokens(wanted._replace(limit=1)) == len(found)
        return found

    assert await names() == ["a", "b", "c"]
    assert await names(with_revoked=False) == ["a", "b"]
    assert await names(namespaces=frozenset({"billing"})) == ["a"]
    assert await names(namespaces=frozenset({"billing", "prod"})) == ["a", "b"]
    assert await names(namespaces=frozenset()) == []
    first = (await office.tokens.list_tokens(ALL._replace(limit=1)))[0]
    assert await names(after_id=first.token_id, limit=1) == ["b"]


async def test_a_revocation_holds_for_the_next_call(office: Office) -> None:
    row = await office.token()
    verifier, text = TokenVerifier(office.tokens, lambda: 0), make_secret_text(SecretKind.TOKEN, secret(1))
    assert str(await verifier.principal(text)) == "token:ci"
    await office.tokens.revoke_token(row.token_id, "ann")
    with pytest.raises(TokenRefused, match="was revoked"):
        await verifier.principal(text)


async def test_postgresqls_clock_says_when_a_token_expires(office: Office) -> None:
    await office.token(lasts_ms=DAY_MS)
    used = await office.tokens.use_token(hash_of(secret(1)))
    assert used is not None
    assert (used.expired, used.expires_at is not None and used.expires_at > used.now) == (False, True)
    await office.sql.execute("UPDATE cron_tokens SET expires_at = now()")
    used = await office.tokens.use_token(hash_of(secret(1)))
    assert used is not None
    assert used.expired


async def test_a_role_of_a_later_release_gives_nothing(office: Office) -> None:
    await office.token()
    await office.sql.execute("""UPDATE cron_tokens SET grants = grants || '[{"role": "auditor", "namespace": "*"}]'""")
    assert (await office.tokens.get_token("ci")).grants == DEPLOYER


async def test_use_is_written_once_a_minute_and_not_of_what_is_refused(office: Office) -> None:
    row = await office.token()

    async def used_at() -> int | None:
        await office.tokens.use_token(hash_of(secret(1)))
        at: int | None = await office.sql.fetchval("SELECT last_used_at FROM cron_tokens")
        return at

    first = await used_at()
    assert first is not None
    assert await used_at() == first
    await office.sql.execute("UPDATE cron_tokens SET last_used_at = now() - interval '61 s'")
    second = await used_at()
    assert second is not None
    assert second > first
    await office.tokens.revoke_token(row.token_id, "ann")
    await office.sql.execute("UPDATE cron_tokens SET last_used_at = now() - interval '61 s'")
    refused = await used_at()
    assert refused is not None
    assert refused < second


async def test_a_grant_is_kept_as_it_was_given_and_found_by_its_name(office: Office) -> None:
    row = await office.grant(uses=3)
    assert (row.name, row.namespace, row.modules, row.may_activate) == ("east", "billing", ("invoices",), True)
    assert (row.may_enroll, row.uses_left, row.created_by) == (True, 3, "ann")
    assert await office.tokens.runner_grant("east") == GrantInForce(row, None)
    assert await office.tokens.get_runner_grant("east") == row
    with pytest.raises(Conflict, match="runner-grant revoke east"):
        await office.grant(number=2)
    await office.tokens.revoke_runner_grant(row.grant_id, "bob")
    assert await office.tokens.runner_grant("east") is None
    with pytest.raises(NotFound):
        await office.tokens.revoke_runner_grant(row.grant_id, "eve")
    with pytest.raises(NotFound):
        await office.tokens.get_runner_grant("east")
    without = await office.grant(number=None)
    assert (without.may_enroll, without.uses_left) == (False, None)
    again = await office.tokens.runner_grant("east")
    assert again is not None
    assert (again.grant, again.name_freed_at) == (without, (await office.tokens.list_runner_grants(ALL))[0].revoked_at)
    listed = await office.tokens.list_runner_grants(ALL)
    assert [each.revoked_by for each in listed] == ["bob", ""]
    elsewhere = ALL._replace(namespaces=frozenset({"prod"}))
    assert await office.tokens.list_runner_grants(elsewhere) == []
    living = ALL._replace(with_revoked=False)
    assert [await office.tokens.count_runner_grants(each) for each in (ALL, living, elsewhere)] == [2, 1, 0]


async def test_twenty_who_come_at_once_find_three_places(office: Office) -> None:
    await office.grant(uses=3)
    came = await asyncio.gather(
        *(office.tokens.take_join(hash_of(secret(1))) for _ in range(20)), return_exceptions=True
    )
    left = sorted(each.uses_left for each in came if isinstance(each, RunnerGrant) and each.uses_left is not None)
    refused = [str(each) for each in came if isinstance(each, TokenRefused)]
    assert (left, len(refused)) == ([0, 1, 2], 17)
    assert all("used as often as it may be" in each for each in refused)


async def test_a_join_that_is_none_any_more_says_why(office: Office) -> None:
    row = await office.grant()
    digest = hash_of(secret(1))
    assert (await office.tokens.take_join(digest)).uses_left is None
    with pytest.raises(TokenRefused, match="not known here"):
        await office.tokens.take_join(hash_of(secret(2)))
    await office.sql.execute("UPDATE cron_runner_grants SET expires_at = now()")
    with pytest.raises(TokenRefused, match="has expired"):
        await office.tokens.take_join(digest)
    assert await office.tokens.runner_grant("east") is not None, "who has enrolled goes on"
    await office.tokens.revoke_runner_grant(row.grant_id, "ann")
    with pytest.raises(TokenRefused, match="was revoked"):
        await office.tokens.take_join(digest)


async def test_what_ended_long_ago_is_forgotten(office: Office) -> None:
    for number, (name, change) in enumerate({
        "young": "revoked_at = now()",
        "revoked": "revoked_at = now() - interval '91 days'",
        "expired": "expires_at = now() - interval '91 days'",
        "in-use": "created_at = now() - interval '91 days'",
    }.items()):  # fmt: skip
        await office.token(name, number)
        await office.grant(name, number)
        for table in ("cron_tokens", "cron_runner_grants"):
            await office.sql.execute(f"UPDATE {table} SET {change} WHERE name = $1", name)
    await office.sql.execute(*ForgetIdentities(kept_ms=maintenance.IDENTITIES_KEPT_MS))
    assert [each.name for each in await office.tokens.list_tokens(ALL)] == ["young", "in-use"]
    assert [each.name for each in await office.tokens.list_runner_grants(ALL)] == ["young", "expired", "in-use"]
