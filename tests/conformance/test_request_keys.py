"""Keys of requests in PostgreSQL, by its own clock."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cronring.controller.errors import TooMany
from cronring.controller.ports.request_keys import FormerRequest, RequestKey
from cronring.controller.store import request_keys
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.request_keys import PostgresRequestKeys
from cronring.sql.parameters import ForgetRequests

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
KEY = RequestKey("token:ann", "/cronring.v1.Jobs/TriggerJob", "k")
HASH, OTHER = b"h" * 32, b"o" * 32


class Desk:
    def __init__(self, database: Database, sql: Connection) -> None:
        self.keys = PostgresRequestKeys(database)
        self.sql = sql

    async def ages(self, interval: str) -> None:
        """All rows are older by so much."""
        await self.sql.execute(
            f"UPDATE cron_request_keys SET begun_at = begun_at - interval '{interval}',"
            f" expires_at = expires_at - interval '{interval}'"
        )

    async def rows(self) -> int:
        found: Any = await self.sql.fetchval("SELECT count(*) FROM cron_request_keys")
        return int(found)


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    database = await Database.open(database_url, "cronring test keys", 8)
    sql = await connect(database_url, "cronring test keys sql")
    yield Desk(database, sql)
    await sql.close()
    await database.close()


async def test_a_key_is_one_request_s_until_it_expires(desk: Desk) -> None:
    begun = await desk.keys.begin(KEY, HASH)
    assert isinstance(begun, int)
    assert await desk.keys.begin(KEY, HASH) == FormerRequest(HASH, None, old=False)
    for other in (KEY._replace(principal="token:bob"), KEY._replace(method="/x"), KEY._replace(key="k2")):
        assert isinstance(await desk.keys.begin(other, OTHER), int), "another one's key is another key"
    await desk.keys.end(KEY, begun, b"answer")
    assert await desk.keys.begin(KEY, OTHER) == FormerRequest(HASH, b"answer", old=False)
    await desk.ages("23 hours")
    assert await desk.keys.begin(KEY, HASH) == FormerRequest(HASH, b"answer", old=True)
    await desk.ages("1 hour")
    assert isinstance(await desk.keys.begin(KEY, OTHER), int), "after a day it may be used anew"
    assert await desk.keys.begin(KEY, OTHER) == FormerRequest(OTHER, None, old=False)


async def test_what_changed_nothing_is_forgotten_and_what_was_answered_is_not(desk: Desk) -> None:
    begun = await desk.keys.begin(KEY, HASH)
    assert isinstance(begun, int)
    await desk.keys.forget(KEY, begun)
    again = await desk.keys.begin(KEY, OTHER)
    assert isinstance(again, int)
    await desk.keys.end(KEY, again, b"")
    await desk.keys.forget(KEY, again)
    assert await desk.keys.begin(KEY, OTHER) == FormerRequest(OTHER, b"", old=False)


async def test_a_request_that_was_given_up_ends_no_later_one(desk: Desk) -> None:
    begun = await desk.keys.begin(KEY, HASH)
    await desk.ages("1 day")
    later = await desk.keys.begin(KEY, OTHER)
    assert isinstance(begun, int)
    assert isinstance(later, int)
    await desk.keys.end(KEY, begun, b"the first one's")
    await desk.keys.forget(KEY, begun)
    assert await desk.keys.begin(KEY, OTHER) == FormerRequest(OTHER, None, old=False)


async def test_of_many_at_once_one_begins(desk: Desk) -> None:
    for number in range(5):
        key = KEY._replace(key=f"k{number}")
        found = await asyncio.gather(*(desk.keys.begin(key, HASH) for _ in range(8)))
        assert sum(isinstance(each, int) for each in found) == 1
        await desk.ages("1 day")
        found = await asyncio.gather(*(desk.keys.begin(key, HASH) for _ in range(8)))
        assert sum(isinstance(each, int) for each in found) == 1, "of one that has expired, too"


async def test_expired_rows_go_with_maintenance(desk: Desk) -> None:
    await desk.keys.begin(KEY, HASH)
    await desk.sql.execute(*ForgetRequests())
    assert await desk.rows() == 1
    await desk.ages("1 day")
    await desk.sql.execute(*ForgetRequests())
    assert await desk.rows() == 0


async def test_nobody_keeps_more_than_so_many(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_keys, "KEYS_MAX", 2)
    for key in ("a", "b"):
        await desk.keys.begin(KEY._replace(key=key), HASH)
    with pytest.raises(TooMany, match="token:ann has used 2 idempotency keys"):
        await desk.keys.begin(KEY._replace(key="c"), HASH)
    assert isinstance(await desk.keys.begin(KEY._replace(principal="token:bob"), HASH), int)
