"""Sessions of browsers in PostgreSQL, by its own clock."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cronring.controller.errors import NotFound
from cronring.controller.ports.tokens import NewToken
from cronring.controller.ports.web_sessions import NewWebSession, WebSessionListing
from cronring.controller.store import maintenance
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.controller.store.web_sessions import PostgresWebSessions
from cronring.schema.identity import Kind, Principal, Role, RoleGrant
from cronring.schema.tokens import hash_of
from cronring.sql.parameters import ForgetIdentities

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
VIEWER = (RoleGrant(Role.VIEWER, "billing"),)
ADMIN = (RoleGrant(Role.ADMIN, "*"),)
ADA = Principal(Kind.USER, "corp/ada", VIEWER)
HOUR_MS = 3_600_000
MS_US = 1_000
ALL = WebSessionListing("", None, with_ended=True, after_id=0, limit=100)
LIVING = ALL._replace(with_ended=False)


class Desk:
    """The store, and the database as it is. A cookie is a number here."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self.sessions = PostgresWebSessions(database)
        self.tokens = PostgresTokens(database)
        self.sql = connection

    async def login(self, number: int, principal: Principal = ADA, **changes: Any) -> int:
        new = NewWebSession(
            digest(number), principal, None, "corp", "192.0.2.1", None, others=9, idle_ms=HOUR_MS, lasts_ms=12 * HOUR_MS
        )
        return await self.sessions.create_session(new._replace(**changes))

    async def why(self, number: int) -> str:
        """It ended; "": it lives."""
        found = await self.sessions.use_session(digest(number), HOUR_MS)
        assert found is not None
        return found.ended

    async def living(self, listing: WebSessionListing = LIVING) -> list[int]:
        found = [row.session_id for row in await self.sessions.list_sessions(listing)]
        assert listing.after_id or await self.sessions.count_sessions(listing._replace(limit=1)) == len(found)
        return found


def digest(number: int) -> bytes:
    return hash_of(number.to_bytes(32))


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    database = await Database.open(database_url, "cronring test")
    connection = await connect(database_url, "cronring test")
    yield Desk(database, connection)
    await connection.close()
    await database.close()


async def test_a_session_of_an_issuer_is_kept_as_it_was_at_the_login(desk: Desk) -> None:
    session_id = await desk.login(1)
    row = await desk.sessions.get_session(session_id)
    assert (row.principal, row.grants, row.issuer, row.origin, row.ended) == (
        "user:corp/ada", VIEWER, "corp", "192.0.2.1", "",
    )  # fmt: skip
    assert row.expires_at == row.created_at + HOUR_MS * MS_US, "it is idle by then"
    used = await desk.sessions.use_session(digest(1), HOUR_MS)
    assert used is not None
    assert (used.principal, used.grants, used.ended) == ("user:corp/ada", VIEWER, "")
    assert await desk.sessions.use_session(digest(2), HOUR_MS) is None
    with pytest.raises(NotFound, match="no session 99"):
        await desk.sessions.get_session(99)


async def test_it_lives_while_it_is_used_and_no_longer_than_it_may(desk: Desk) -> None:
    session_id = await desk.login(1)
    first = await desk.sessions.get_session(session_id)
    await desk.why(1)
    assert await desk.sessions.get_session(session_id) == first, "it is written once a minute"
    await desk.sql.execute("UPDATE cron_sessions SET last_used_at = now() - interval '61 seconds'")
    assert await desk.why(1) == ""
    assert (await desk.sessions.get_session(session_id)).expires_at > first.expires_at
    await desk.sql.execute("UPDATE cron_sessions SET idle_at = now(), last_used_at = now() - interval '1 hour'")
    assert await desk.why(1) == "expired"
    assert await desk.why(1) == "expired", "who comes too late doesn't wake it"
    await desk.login(2, lasts_ms=0)
    assert await desk.why(2) == "expired"
    assert await desk.living() == []


async def test_one_that_is_revoked_is_over(desk: Desk) -> None:
    first, second = await desk.login(1), await desk.login(2)
    await desk.sessions.revoke_session(first, "ann")
    with pytest.raises(NotFound):
        await desk.sessions.revoke_session(first, "bob")
    await desk.sessions.log_out(digest(2))
    await desk.sessions.log_out(digest(2))
    await desk.sessions.log_out(digest(3))
    assert [await desk.why(number) for number in (1, 2)] == ["revoked", "revoked"]
    rows = await desk.sessions.list_sessions(ALL)
    assert [(row.session_id, row.revoked_by) for row in rows] == [(first, "ann"), (second, "user:corp/ada")]
    assert await desk.living() == []


async def test_one_of_a_token_may_what_the_token_may_and_ends_with_it(desk: Desk) -> None:
    me = Principal(Kind.TOKEN, "me", VIEWER)
    token = await desk.tokens.create_token(NewToken("me", digest(7), VIEWER, "ann", 2 * HOUR_MS))
    session_id = await desk.login(1, me, token_hash=digest(7), issuer="", idle_ms=9 * HOUR_MS)
    row = await desk.sessions.get_session(session_id)
    assert (row.principal, row.grants, row.issuer) == ("token:me", VIEWER, "")
    assert row.expires_at == token.expires_at, "which comes first"
    await desk.sql.execute("UPDATE cron_tokens SET grants = '[]'")
    assert (await desk.sessions.get_session(session_id)).grants == ()
    await desk.tokens.revoke_token(token.token_id, "ann")
    assert await desk.why(1) == "token_revoked"
    await desk.sql.execute("DELETE FROM cron_tokens")
    assert await desk.living(ALL) == []


async def test_a_login_takes_the_place_of_the_session_before(desk: Desk) -> None:
    former, other = await desk.login(1), await desk.login(2)
    assert await desk.living() == [former, other]
    new = await desk.login(3, former_hash=digest(1))
    assert await desk.living(ALL) == [other, new]


async def test_somebody_has_so_many_and_the_oldest_go(desk: Desk) -> None:
    eve = await desk.login(99, ADA._replace(name="corp/eve"))
    made = [await desk.login(number, others=2) for number in range(5)]
    assert await desk.living(ALL) == [eve, *made[-3:]]
    await desk.sessions.revoke_session(made[4], "ann")
    last = await desk.login(5, others=2)
    assert await desk.living(ALL) == [eve, made[2], made[3], last], "what has ended goes first"


async def test_who_sees_which(desk: Desk) -> None:
    ada, nobody = await desk.login(1), await desk.login(2, ADA._replace(name="corp/eve", grants=()))
    boss = await desk.login(3, Principal(Kind.USER, "corp/boss", ADMIN))
    assert await desk.living() == [ada, nobody, boss]
    assert await desk.living(LIVING._replace(after_id=ada, limit=1)) == [nobody]
    billing = LIVING._replace(namespaces=frozenset({"billing", "prod"}))
    assert await desk.living(billing) == [ada]
    assert await desk.living(billing._replace(own="user:corp/eve")) == [ada, nobody]
    none = LIVING._replace(namespaces=frozenset())
    assert await desk.living(none) == []
    assert await desk.living(none._replace(own="user:corp/boss")) == [boss]


async def test_what_ended_long_ago_is_forgotten(desk: Desk) -> None:
    kept = await desk.login(1)
    for number, column in enumerate(("revoked_at", "idle_at", "expires_at"), 2):
        gone = await desk.login(number)
        await desk.sql.execute(f"UPDATE cron_sessions SET {column} = now() - interval '91 days' WHERE id = $1", gone)
    await desk.sql.execute(*ForgetIdentities(kept_ms=maintenance.IDENTITIES_KEPT_MS))
    assert await desk.living(ALL) == [kept]
