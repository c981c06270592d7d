"""Many writers and many consumers at once, of few lanes: nothing is forgotten, done twice, or out of order."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Final, Literal

import asyncpg
import pytest

from cronring.controller.store.connect import Connection, connect
from tests.conformance.queueing import FORGOTTEN, Consumer
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
WRITERS: Final = 6
CONSUMERS: Final = 5
TRANSACTIONS: Final = 50
LANES: Final = "abcdefgh"
ISOLATIONS: Final[list[Literal["read_committed", "repeatable_read"]]] = ["read_committed", "repeatable_read"]
JOURNAL: Final = (
    "CREATE TABLE journal (place bigserial, workspace text, writer integer, message integer, id bigint UNIQUE)"
)
# Of one writer, messages are committed in order.
ORDERED: Final = """
SELECT workspace, writer, array_agg(message ORDER BY place) AS found, array_agg(message ORDER BY message) AS written
FROM journal GROUP BY workspace, writer
"""
Connecting = Callable[[str], Awaitable[Connection]]


@pytest.fixture
async def connecting(database_url: str) -> AsyncIterator[Connecting]:
    async with AsyncExitStack() as stack:

        async def make(name: str) -> Connection:
            connection = await connect(database_url, name)
            stack.push_async_callback(connection.close)
            return connection

        yield make


async def write(connection: Connection, number: int, chance: random.Random) -> int:
    """Transactions that put into lanes in any order, and now and then think better of it. How many are committed."""
    written = 0
    for at in range(TRANSACTIONS):
        transaction = connection.transaction()
        await transaction.start()
        puts = chance.randint(1, 4)
        for each in range(puts):
            await connection.execute(
                "SELECT cron_queue_put('q', json_build_array($1::int, $2::int), $3)",
                number, 10 * at + each, chance.choice(LANES),
            )  # fmt: skip
        if chance.random() < 0.2:
            await transaction.rollback()
        else:
            await transaction.commit()
            written += puts
    return written


async def consume(consumer: Consumer, chance: random.Random, stop: asyncio.Event) -> None:
    """Work is a row of the journal. Some is given back, fails, or is left lying; some leases run out unnoticed."""
    while not stop.is_set():
        taken = await consumer.take(most=chance.randint(1, 12), hold_s=1)
        if not taken.rows:
            await asyncio.sleep(0)
            continue
        doing = chance.random()
        if doing < 0.1:
            await taken.release()
        elif doing < 0.2:
            await taken.retry(taken.ids[:1], delay=timedelta())
        elif doing < 0.25:
            continue  # as if it had died
        else:
            isolation = chance.choice(ISOLATIONS)
            try:
                async with consumer.connection.transaction(isolation=isolation):
                    await consumer.connection.execute(
                        "INSERT INTO journal (workspace, writer, message, id) "
                        "SELECT w, (p::json->>0)::int, (p::json->>1)::int, i "
                        "FROM unnest($1::text[], $2::text[], $3::bigint[]) u (w, p, i)",
                        [row["workspace"] for row in taken.rows], [row["payload"] for row in taken.rows], taken.ids,
                    )  # fmt: skip
                    await taken.done(strict=True)
            except (asyncpg.ObjectNotInPrerequisiteStateError, asyncpg.SerializationError):
                continue  # somebody else has it, or has changed it
            except asyncpg.UniqueViolationError:  # somebody else has done it already
                held = [each for each, state in (await taken.extend(1)).items() if state == "held"]
                assert len(held) < len(taken.ids), "it was done, and is still given out"


async def expire(owner: Connection, chance: random.Random, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await owner.execute(
            "UPDATE cron_queue_lanes SET ready_at = now() WHERE id IN (SELECT id FROM cron_queue_lanes WHERE held "
            "AND random() < $1 FOR UPDATE SKIP LOCKED)",
            chance.random() / 4,
        )
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_message_is_done_once_and_in_order(connecting: Connecting, seed: int) -> None:
    owner = await connecting("owner")
    await owner.execute(JOURNAL)
    await owner.execute("INSERT INTO cron_queues (namespace, queue, max_deliveries) VALUES ('default', 'q', 1000)")
    stop = asyncio.Event()
    async with asyncio.timeout(2 * TIMEOUT_S), asyncio.TaskGroup() as group:
        for number in range(CONSUMERS):
            consumer = Consumer(await connecting(f"consumer {number}"), f"c{number}")
            group.create_task(consume(consumer, random.Random(100 * seed + number), stop))
        group.create_task(expire(await connecting("expirer"), random.Random(seed), stop))
        writers = [
            group.create_task(write(await connecting(f"writer {number}"), number, random.Random(1000 * seed + number)))
            for number in range(WRITERS)
        ]
        await asyncio.wait(writers)
        written = sum(each.result() for each in writers)

        async def drained() -> bool:
            assert await owner.fetch(FORGOTTEN) == []
            return bool(await owner.fetchval("SELECT NOT EXISTS (SELECT FROM cron_queue)"))

        await wait_until(drained, "messages are left lying")
        stop.set()
    assert await owner.fetchval("SELECT count(*) FROM journal") == written
    for row in await owner.fetch(ORDERED):
        assert row["found"] == row["written"], row["workspace"]
    assert await owner.fetchval("SELECT count(*) FROM cron_dead_letters") == 0


async def test_writers_of_new_lanes_do_not_wait_for_each_other(connecting: Connecting) -> None:
    """Two transactions that make the same lanes in opposite order, with a consumer between them."""
    first, second, third = [await connecting(name) for name in ("first", "second", "third")]
    transactions = [each.transaction() for each in (first, second)]
    for each in transactions:
        await each.start()
    async with asyncio.timeout(TIMEOUT_S):
        await Consumer(first).put("a", 1)
        await Consumer(second).put("b", 2)
        await Consumer(first).put("b", 3)
        await Consumer(second).put("a", 4)
        assert not (await Consumer(third).take()).rows
        await transactions[0].commit()
        taken = await Consumer(third).take()
        assert sorted(taken.seen) == [("a", 1), ("b", 3)]
        await transactions[1].commit()
        assert not (await Consumer(second).take()).rows, "their lanes are leased"
        await taken.done()
        assert sorted((await Consumer(second).take()).seen) == [("a", 4), ("b", 2)]


async def test_a_claim_never_waits_for_a_consumer(connecting: Connecting) -> None:
    """Who holds a lane, in a transaction that idles, stops no insertion into it."""
    consumer, writer = Consumer(await connecting("consumer")), Consumer(await connecting("writer"))
    await writer.put("a", 1, 2)
    transaction = consumer.connection.transaction()
    await transaction.start()
    taken = await consumer.take()
    await taken.done(taken.ids[:1])
    async with asyncio.timeout(TIMEOUT_S):
        await writer.put("a", 3)
    await taken.done(taken.ids[1:])
    await transaction.commit()
    assert (await consumer.take()).seen == [("a", 3)]
