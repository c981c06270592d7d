"""Keys of requests: in PostgreSQL, by its own clock, and in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from cronring.controller.errors import TooManyKeys
from cronring.controller.ports.request_keys import FormerRequest, RequestKey, RequestKeys
from cronring.controller.store import request_keys
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.controller.store.request_keys import PostgresRequestKeys
from cronring.sql.parameters import ForgetRequests
from tests.support import request_keys as memory
from tests.support.databases import PostgresServer
from tests.support.request_keys import MemoryRequestKeys

KEY = RequestKey("token:ann", "/cronring.v1.Jobs/TriggerJob", "k")
HASH, OTHER = b"h" * 32, b"o" * 32


class Desk:
    """`ages`: all rows are older by so much."""

    def __init__(self, keys: RequestKeys, ages: Callable[[timedelta], Awaitable[object]]) -> None:
        self.keys = keys
        self.ages = ages


@pytest.fixture(params=["memory", "postgres18", "postgres15"])
async def desk(
    request: pytest.FixtureRequest, postgres_servers: Callable[[str], PostgresServer]
) -> AsyncIterator[Desk]:
    if request.param == "memory":
        yield desk_of_memory()
        return
    server = postgres_servers(request.param)
    name = server.create_database()
    database = await Database.open(server.url(name), "cronring test keys", 8)
    sql = await connect(server.url(name), "cronring test keys sql")

    async def ages(length: timedelta) -> None:
        await sql.execute(
            "UPDATE cron_request_keys SET begun_at = begun_at - $1::interval, expires_at = expires_at - $1", length
        )

    yield Desk(PostgresRequestKeys(database), ages)
    await sql.close()
    await database.close()
    server.drop_database(name)


def desk_of_memory() -> Desk:
    now_us = 1_795_219_200_000_000

    def now() -> int:
        nonlocal now_us
        now_us += 1
        return now_us

    async def ages(length: timedelta) -> None:
        nonlocal now_us
        now_us += length // timedelta(microseconds=1)

    return Desk(MemoryRequestKeys(now), ages)


async def test_a_key_is_one_request_s_until_it_expires(desk: Desk) -> None:
    begun = await desk.keys.begin(KEY, HASH)
    assert isinstance(begun, int)
    assert await desk.keys.begin(KEY, HASH) == FormerRequest(HASH, None, old=False)
    for other in (KEY._replace(principal="token:bob"), KEY._replace(method="/x"), KEY._replace(key="k2")):
        assert isinstance(await desk.keys.begin(other, OTHER), int), "another one's key is another key"
    await desk.keys.end(KEY, begun, b"answer")
    assert await desk.keys.begin(KEY, OTHER) == FormerRequest(HASH, b"answer", old=False)
    await desk.ages(timedelta(hours=23))
    assert await desk.keys.begin(KEY, HASH) == FormerRequest(HASH, b"answer", old=True)
    await desk.ages(timedelta(hours=1))
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
    await desk.ages(timedelta(days=1))
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
        await desk.ages(timedelta(days=1))
        found = await asyncio.gather(*(desk.keys.begin(key, HASH) for _ in range(8)))
        assert sum(isinstance(each, int) for each in found) == 1, "of one that has expired, too"


async def test_expired_rows_go_with_maintenance(database_url: str) -> None:
    database = await Database.open(database_url, "cronring test keys")
    await PostgresRequestKeys(database).begin(KEY, HASH)
    sql = await connect(database_url, "cronring test keys sql")
    await sql.execute(*ForgetRequests())
    assert await sql.fetchval("SELECT count(*) FROM cron_request_keys") == 1
    await sql.execute("UPDATE cron_request_keys SET begun_at = now() - interval '1 day', expires_at = now()")
    await sql.execute(*ForgetRequests())
    assert await sql.fetchval("SELECT count(*) FROM cron_request_keys") == 0
    await sql.close()
    await database.close()


async def test_nobody_keeps_more_than_so_many(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for adapter in (request_keys, memory):
        monkeypatch.setattr(adapter, "KEYS_MAX", 2)
    for key in ("a", "b"):
        await desk.keys.begin(KEY._replace(key=key), HASH)
    with pytest.raises(TooManyKeys, match="token:ann has used 2 idempotency keys"):
        await desk.keys.begin(KEY._replace(key="c"), HASH)
    assert isinstance(await desk.keys.begin(KEY._replace(principal="token:bob"), HASH), int)
    former = await desk.keys.begin(KEY._replace(key="b"), HASH)
    assert former == FormerRequest(HASH, None, old=False), "what is repeated needs no new one"
