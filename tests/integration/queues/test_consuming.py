"""`client.consume` against a real controller: leases that are extended, failures, cancellations, a graceful stop."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from cronring.client import AsyncClient, Invalid, JsonText
from cronring.client.consuming import Consumer
from cronring.controller.store.connect import Connection
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.usefixtures("cluster")
SHORT = timedelta(seconds=1)


def consumer_of(client: AsyncClient, queue: str, hold: timedelta = SHORT) -> Consumer:
    return client.consume(queue, consumer="c1", hold=hold)


async def states(client: AsyncClient, queue: str) -> list[str]:
    """Who has what."""
    return [message.consumer for message in await client.queues.messages(queue)]


async def test_messages_are_done_as_their_contexts_are_left(client: AsyncClient, queue: str) -> None:
    for number in range(5):
        await client.queues.put(queue, number, "a" if number % 2 else "b")
    (row,) = [each for each in await client.queues.list() if each.queue == queue]
    assert (row.depth, row.lanes, row.leased) == (5, 2, 0), "they are there before anybody has looked for them"
    seen = []
    async with asyncio.timeout(TIMEOUT_S):
        async for message in client.consume(queue, consumer="c1", until_empty=True):
            async with message:
                seen.append((message.workspace, message.value()))
    assert [value for workspace, value in seen if workspace == "a"] == [1, 3]
    assert [value for workspace, value in seen if workspace == "b"] == [0, 2, 4]
    assert await client.queues.messages(queue) == []
    (row,) = [each for each in await client.queues.list() if each.queue == queue]
    assert (row.depth, row.leased, row.dead) == (0, 0, 0)


async def test_who_waits_is_given_what_comes_in(client: AsyncClient, queue: str) -> None:
    consumer = consumer_of(client, queue)
    got: asyncio.Queue[int] = asyncio.Queue()

    async def consume() -> None:
        async for message in consumer:
            async with message:
                got.put_nowait(message.value())

    task = asyncio.ensure_future(consume())
    for number in range(3):
        await client.queues.put(queue, number)
        async with asyncio.timeout(TIMEOUT_S):
            assert await got.get() == number
    consumer.stop()
    async with asyncio.timeout(TIMEOUT_S):
        await task
    assert got.empty()


async def extended(client: AsyncClient, queue: str) -> bool:
    (message,) = await client.queues.messages(queue)
    assert message.leased_until is not None
    assert message.enqueued_at is not None
    return message.leased_until > message.enqueued_at + 4 * SHORT


async def test_work_that_lasts_longer_than_its_lease_keeps_it(client: AsyncClient, queue: str) -> None:
    await client.queues.put(queue, 1)
    async for message in consumer_of(client, queue):
        async with message:
            await wait_until(partial(extended, client, queue), "the lease is not extended")
            assert (await client.queues.take(queue, "other")).messages == ()
        assert (message.error, message.lost) == (None, False)
        break
    assert await client.queues.messages(queue) == []


async def test_what_fails_comes_again_in_order_and_dies_at_last(client: AsyncClient, queue: str) -> None:
    await client.queues.set(queue, max_deliveries=2, by="ada")
    for number in (1, 2):
        await client.queues.put(queue, number, "a")
    consumer, seen = consumer_of(client, queue), []
    async with asyncio.timeout(TIMEOUT_S):
        async for message in consumer:
            async with message:
                seen.append((message.value(), message.delivery))
                if message.value() == 1:
                    raise ValueError("one is wrong")
                consumer.stop()
    assert seen == [(1, 1), (1, 2), (2, 1)]
    (letter,) = await client.queues.dead_letters(queue)
    assert (letter.payload, letter.failures, letter.outcome) == ("1", 2, "failed")
    assert (letter.error_type, letter.error_message) == ("ValueError", "one is wrong")
    assert await client.queues.replay(queue, everything=True, dry_run=True) == [letter.id]
    assert await client.queues.replay(queue, everything=True, by="ada") == [letter.id]
    assert await client.queues.dead_letters(queue) == []
    again = await client.queues.take(queue, "c2")
    assert [(each.id, each.delivery) for each in again.messages] == [(letter.id, 1)]


async def test_a_stop_gives_back_what_is_not_begun(client: AsyncClient, queue: str) -> None:
    for number in range(3):
        await client.queues.put(queue, number)
    consumer = consumer_of(client, queue, hold=timedelta(hours=1))
    async for message in consumer:
        async with message:
            consumer.stop()
    lease = await client.queues.take(queue, "c2")
    assert [(each.payload, each.delivery) for each in lease.messages] == [("1", 1), ("2", 1)]


async def test_leaving_the_loop_gives_back_the_rest_as_well(client: AsyncClient, queue: str) -> None:
    for number in range(3):
        await client.queues.put(queue, number)
    async for message in consumer_of(client, queue, hold=timedelta(hours=1)):
        async with message:
            break

    async def given_back() -> bool:
        return await states(client, queue) == ["", ""] or await states(client, queue) == ["", "", ""]

    await wait_until(given_back, "nothing is given back")


async def test_the_work_of_a_cancelled_message_is_cancelled(
    client: AsyncClient, queue: str, database: Connection
) -> None:
    await client.queues.put(queue, 1)
    await client.queues.put(queue, 2)
    consumer = consumer_of(client, queue)
    async with asyncio.timeout(TIMEOUT_S):
        async for message in consumer:
            async with message:
                if message.value() == 1:
                    await database.execute("DELETE FROM cron_queue WHERE id = $1", message.id)
                    await asyncio.get_running_loop().create_future()
                consumer.stop()
            assert message.lost == (message.value() == 1)
    assert await client.queues.messages(queue) == []


async def test_a_lease_that_somebody_else_got_is_lost(client: AsyncClient, queue: str, database: Connection) -> None:
    await client.queues.put(queue, 1)
    async with asyncio.timeout(TIMEOUT_S):
        async for message in consumer_of(client, queue):
            async with message:
                await database.execute("UPDATE cron_queue_lanes SET ready_at = now() WHERE queue = $1", queue)
                second = await client.queues.take(queue, "c2")
                assert [each.delivery for each in second.messages] == [2]
                await asyncio.get_running_loop().create_future()
            assert message.lost
            break
    assert await client.queues.finish(second, [message.id]) == {message.id: "done"}


async def test_a_lease_of_another_namespace_is_none(client: AsyncClient, queue: str) -> None:
    await client.queues.put(queue, 1, namespace="billing")
    lease = await client.queues.take(queue, "c1", "billing")
    stolen = type(lease)(lease.number, "default", lease.messages)
    (message,) = lease.messages
    assert await client.queues.extend(stolen) == {}
    assert await client.queues.finish(stolen, [message.id]) == {message.id: "refused"}
    assert await client.queues.release(stolen) == 0
    assert await client.queues.finish(lease, [message.id]) == {message.id: "done"}


async def test_what_is_wrong_is_said_by_its_field(client: AsyncClient, queue: str) -> None:
    for call, field in (
        (client.queues.put("q q", 1), "queue"),
        (client.queues.put(queue, JsonText("{")), "payload"),
        (client.queues.put(queue, "x" * 70_000), "payload"),
        (client.queues.put(queue, 1, "w" * 201), "workspace"),
        (client.queues.take(queue, ""), "consumer"),
        (client.queues.take(queue, "c", most=1_001), "most"),
        (client.queues.take(queue, "c", hold=timedelta(days=2)), "hold_ms"),
        (client.queues.set(queue, on_retry="skip"), "on_retry"),
        (client.queues.set(queue), "max_deliveries"),
        (client.queues.list("a/b"), ""),
    ):
        if not field:
            assert await call == []
            continue
        with pytest.raises(Invalid) as refused:
            await call
        assert field in str(refused.value)


async def test_a_message_waits_for_its_time(client: AsyncClient, queue: str) -> None:
    await client.queues.put(queue, 1, not_before=datetime.now(UTC) + timedelta(hours=1))
    assert (await client.queues.take(queue, "c1")).messages == ()
    assert len(await client.queues.messages(queue)) == 1
