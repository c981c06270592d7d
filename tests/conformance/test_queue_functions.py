"""The functions of a queue's consumers: leases of lanes, order, fences, retries, dead letters. Played by their role."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Literal

import asyncpg
import pytest

from cronring.controller.store.connect import Connection, connect
from cronring.protos.admission import ANSWER_BYTES_MAX
from cronring.schema.queues import queue_fault, workspace_fault
from cronring.schema.recorded import KEEP_BYTES, read_recorded
from tests.conformance.queueing import FORGOTTEN, Consumer, Taken

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
NOW = timedelta()
AWAITED = """
INSERT INTO cron_queue (namespace, queue, workspace, job_id, execution_id, tick, run_at, payload, awaited)
SELECT 'default', 'q', 'a', 7, i, now(), now(), i::text, true FROM generate_series(1, $1) i
"""


@pytest.fixture
async def owner(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "owner")
    yield connection
    assert await connection.fetch(FORGOTTEN) == []
    await connection.close()


@pytest.fixture
async def consumers(database_url: str, owner: Connection) -> AsyncIterator[tuple[Consumer, Consumer]]:
    """Two of them."""
    role = f"consumer_{database_url.rpartition('/')[2].partition('?')[0]}"
    await owner.execute(
        f'CREATE ROLE "{role}"; GRANT USAGE ON SCHEMA cronring TO "{role}"; GRANT EXECUTE ON FUNCTION cron_queue_put, '
        "cron_queue_put_many, "
        "cron_queue_take, cron_queue_extend, cron_queue_done, cron_queue_retry, cron_queue_release, cron_queue_listen "
        f'TO "{role}"; CREATE TABLE work (message bigint); GRANT ALL ON work TO "{role}"'
    )
    connections = [await connect(database_url, name) for name in ("c1", "c2")]
    for connection in connections:
        await connection.execute(f'SET ROLE "{role}"')
    yield Consumer(connections[0], "c1"), Consumer(connections[1], "c2")
    for connection in connections:
        await connection.close()
    await owner.execute(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


@pytest.fixture
def one(consumers: tuple[Consumer, Consumer]) -> Consumer:
    return consumers[0]


@pytest.fixture
def other(consumers: tuple[Consumer, Consumer]) -> Consumer:
    return consumers[1]


async def pass_lease(owner: Connection) -> None:
    """Time passes: every lease runs out, and every retry comes due."""
    await owner.execute("UPDATE cron_queue_lanes SET ready_at = now() WHERE held")


async def test_messages_of_a_workspace_come_in_order_and_to_one_consumer(one: Consumer, other: Consumer) -> None:
    await one.put("a", 1, 2, 3)
    await one.put("b", 4)
    taken = await one.take(most=2)
    assert taken.seen == [("a", 1), ("a", 2)]
    rest = await other.take()
    assert rest.seen == [("b", 4)], "a is leased"
    assert await taken.done() == dict.fromkeys(taken.ids, "done")
    assert (await other.take()).seen == [("a", 3)]


async def test_who_waits_longest_is_served_first_whatever_others_have(one: Consumer) -> None:
    await one.put("big", *range(10))
    await one.put("small", 100)
    order = []
    while (taken := await one.take(most=3)).rows:
        order.append(taken.seen)
        await taken.done()
    assert order[0] == [("big", 0), ("big", 1), ("big", 2)]
    assert order[1][0] == ("small", 100), "big has had its turn"
    assert [each for some in order for each in some if each[0] == "big"] == [("big", i) for i in range(10)]


async def test_a_lease_goes_on_while_it_is_extended_and_is_given_on_when_it_ran_out(
    one: Consumer, other: Consumer, owner: Connection
) -> None:
    await one.put("a", 1, 2)
    taken = await one.take()
    assert await taken.extend() == dict.fromkeys(taken.ids, "held")
    await pass_lease(owner)
    assert await taken.extend() == dict.fromkeys(taken.ids, "held"), "nobody has it yet"
    assert not (await other.take()).rows
    await pass_lease(owner)
    second = await other.take()
    assert second.seen == [("a", 1)], "its consumer was lost: it comes alone"
    assert second.deliveries == [2]
    assert await taken.extend() == {}
    assert await taken.done() == dict.fromkeys(taken.ids, "refused")
    assert await taken.retry() == dict.fromkeys(taken.ids, "refused")
    assert await taken.release() == 0
    assert await second.done() == {second.ids[0]: "done"}
    last = await other.take()
    assert (last.seen, last.deliveries) == ([("a", 2)], [1]), "it was not begun"


async def test_a_consumer_that_is_late_but_alone_is_done_all_the_same(one: Consumer, owner: Connection) -> None:
    await one.put("a", 1)
    taken = await one.take()
    await pass_lease(owner)
    assert await taken.done() == {taken.ids[0]: "done"}
    assert not (await one.take()).rows


async def test_work_and_its_end_are_committed_together(one: Consumer, other: Consumer, owner: Connection) -> None:
    (message,) = await one.put("a", 1)
    taken = await one.take()
    transaction = one.connection.transaction()
    await transaction.start()
    await one.connection.execute("INSERT INTO work VALUES ($1)", message)
    assert await taken.done() == {message: "done"}
    assert not (await other.take()).rows, "who ends it has its lane until it commits"
    await transaction.rollback()
    assert await taken.extend() == {message: "held"}, "nothing of it has happened"
    async with one.connection.transaction():
        await one.connection.execute("INSERT INTO work VALUES ($1)", message)
        await taken.done(strict=True)
    assert [row[0] for row in await owner.fetch("SELECT message FROM work")] == [message]
    assert not (await other.take()).rows


async def test_whoever_lost_its_lease_commits_nothing(one: Consumer, other: Consumer, owner: Connection) -> None:
    (message,) = await one.put("a", 1)
    taken = await one.take()
    await pass_lease(owner)
    second = await other.take()
    transaction = one.connection.transaction()
    await transaction.start()
    await one.connection.execute("INSERT INTO work VALUES ($1)", message)
    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match=f"no longer holds message {message}, so noth"):
        await taken.done(strict=True)
    await transaction.rollback()
    assert await owner.fetch("SELECT message FROM work") == []
    assert await second.done() == {message: "done"}


async def test_a_failed_message_blocks_its_lane_until_its_retry(one: Consumer, owner: Connection) -> None:
    ids = await one.put("a", 1, 2, 3)
    await one.put("b", 4)
    taken = await one.take(most=3)
    assert await taken.retry(ids[:1], delay=timedelta(hours=1)) == {ids[0]: "waits"}
    assert await taken.done(ids[1:]) == dict.fromkeys(ids[1:], "refused"), "what came with it has gone back"
    other = await one.take()
    assert other.seen == [("b", 4)]
    await other.done()
    await one.put("a", 5)
    assert not (await one.take()).rows, "nor does what comes in unblock it"
    await pass_lease(owner)
    again = await one.take()
    assert (again.seen, again.deliveries) == ([("a", 1), ("a", 2), ("a", 3), ("a", 5)], [2, 1, 1, 1])


async def test_where_others_may_pass_they_do(one: Consumer, owner: Connection) -> None:
    await owner.execute("INSERT INTO cron_queues (namespace, queue, on_retry) VALUES ('default', 'q', 'pass')")
    ids = await one.put("a", 1, 2)
    taken = await one.take()
    assert await taken.retry(ids[:1], delay=timedelta(hours=1)) == {ids[0]: "waits"}
    assert await taken.done(ids[1:]) == {ids[1]: "done"}
    await one.put("a", 3)
    assert (await one.take()).seen == [("a", 3)]


async def test_delays_grow(one: Consumer, owner: Connection) -> None:
    await owner.execute("INSERT INTO cron_queues (namespace, queue, max_deliveries) VALUES ('default', 'q', 100)")
    await one.put("a", 1)
    delays = []
    for _ in range(14):
        await (await one.take()).retry()
        delays.append(await owner.fetchval("SELECT extract(epoch FROM ready_at - changed_at) FROM cron_queue_lanes"))
        await pass_lease(owner)
    assert [round(delay) for delay in delays] == [*(2**n for n in range(12)), 3600, 3600]


async def test_after_its_last_delivery_a_message_is_dead(one: Consumer, owner: Connection) -> None:
    ids = await one.put("a", 1, 2)
    for _ in range(4):
        assert await (await one.take(most=1)).retry(delay=NOW) == {ids[0]: "waits"}
        await pass_lease(owner)
    assert await (await one.take(most=1)).retry(error="it broke", error_type="ValueError") == {ids[0]: "dead"}
    (letter,) = await owner.fetch("SELECT id, failures, outcome, error_type, error_message FROM cron_dead_letters")
    assert tuple(letter) == (ids[0], 5, "failed", "ValueError", "it broke")
    assert (await one.take()).seen == [("a", 2)]


async def test_what_its_consumer_gives_up_is_dead_at_once(one: Consumer, owner: Connection) -> None:
    ids = await one.put("a", 1, 2)
    taken = await one.take()
    assert await taken.retry(ids[:1], last=True) == {ids[0]: "dead"}
    assert await taken.done(ids[1:]) == {ids[1]: "done"}, "it blocked nobody"


async def test_a_message_that_kills_its_consumers_dies_and_takes_no_other_along(
    one: Consumer, owner: Connection
) -> None:
    """Consumers end a batch at its end, and are killed by 3."""
    await owner.execute("INSERT INTO cron_queues (namespace, queue, max_deliveries) VALUES ('default', 'q', 2)")
    await one.put("a", 1, 2, 3, 4)
    await one.put("b", 5, 6)
    ended: list[int] = []
    for _ in range(20):
        taken = await one.take()
        if not taken.rows:
            break
        if 3 in (payloads := [payload for _, payload in taken.seen]):
            await pass_lease(owner)
            continue
        await taken.done()
        ended += payloads
    assert sorted(ended) == [1, 2, 4, 5, 6]
    assert [each for each in ended if each < 5] == [1, 2, 4]
    (letter,) = await owner.fetch("SELECT payload, outcome, error_message FROM cron_dead_letters")
    assert tuple(letter) == ("3", "lost", "the lease of consumer c1 ran out")


async def test_an_awaited_message_stays_until_its_execution_has_ended(one: Consumer, owner: Connection) -> None:
    await owner.execute("INSERT INTO cron_queues (namespace, queue, max_deliveries) VALUES ('default', 'q', 1)")
    await owner.execute(AWAITED, 3)
    taken = await one.take()
    assert [row["execution_id"] for row in taken.rows] == [1, 2, 3]
    done, failed, lost = taken.ids
    assert await taken.done([done], output="well") == {done: "done"}
    assert await taken.retry([failed], error="no", error_type="E") == {failed: "ended"}
    assert await taken.extend() == {lost: "held"}
    await pass_lease(owner)
    assert not (await one.take()).rows
    found = await owner.fetch("SELECT id, outcome, output, error_type, error_message FROM cron_queue ORDER BY id")
    assert [tuple(row) for row in found] == [
        (done, "completed", "well", None, None),
        (failed, "failed", None, "E", "no"),
        (lost, "lost", None, "LeaseExpired", "the lease of consumer c1 ran out"),
    ]
    await owner.execute(AWAITED, 1)
    assert len((await one.take()).rows) == 1, "what has ended blocks nobody"
    assert await owner.fetch("SELECT * FROM cron_dead_letters") == []


async def test_a_cancelled_message_is_gone_and_its_lane_goes_on(one: Consumer, owner: Connection) -> None:
    ids = await one.put("a", 1, 2, 3)
    taken = await one.take(most=2)
    await owner.execute("DELETE FROM cron_queue WHERE id = ANY($1::bigint[])", ids[:1])
    assert await taken.extend() == {ids[0]: "gone", ids[1]: "held"}
    assert await taken.done(ids[:2]) == {ids[0]: "gone", ids[1]: "done"}
    third = await one.take()
    await owner.execute("DELETE FROM cron_queue")
    assert await third.done() == {ids[2]: "gone"}
    assert not (await one.take()).rows


async def test_a_cancelled_message_that_its_consumer_leaves_out_holds_nothing_up(
    one: Consumer, owner: Connection
) -> None:
    ids = await one.put("a", 1, 2, 3)
    taken = await one.take(most=2)
    await owner.execute("DELETE FROM cron_queue WHERE id = $1", ids[0])
    await taken.done(ids[1:2])
    assert (await one.take()).seen == [("a", 3)]


async def test_released_messages_are_there_for_others_as_they_were(one: Consumer, other: Consumer) -> None:
    await one.put("a", 1, 2)
    taken = await one.take()
    await taken.done(taken.ids[:1])
    assert await taken.release() == 1
    again = await other.take()
    assert (again.seen, again.deliveries) == ([("a", 2)], [1])


async def test_a_message_is_not_taken_before_its_time_and_blocks_nobody_until_then(
    one: Consumer, owner: Connection
) -> None:
    await one.put("a", 1, delay_s=3600)
    assert not (await one.take()).rows
    await one.put("a", 2)
    taken = await one.take()
    assert taken.seen == [("a", 2)]
    await taken.done()
    assert not (await one.take()).rows
    await owner.execute("UPDATE cron_queue SET run_at = now()")
    await owner.execute("UPDATE cron_queue_lanes SET ready_at = now()")
    assert (await one.take()).seen == [("a", 1)]


async def test_an_uncommitted_message_is_not_there_and_a_committed_one_is(one: Consumer, other: Consumer) -> None:
    transaction = one.connection.transaction()
    await transaction.start()
    await one.put("a", 1)
    assert not (await other.take()).rows
    await transaction.rollback()
    assert not (await other.take()).rows
    async with one.connection.transaction():
        await one.put("a", 2)
    assert (await other.take()).seen == [("a", 2)]


async def test_a_take_that_is_not_committed_stops_nobody_else(one: Consumer, other: Consumer) -> None:
    """BEGIN; take; work; done; COMMIT is of no use, but common."""
    await one.put("a", 1)
    transaction = one.connection.transaction()
    await transaction.start()
    first = await one.take()
    await other.put("b", 2)
    await other.put("a", 3)
    second = await other.take()
    assert second.seen == [("b", 2)]
    await second.done()
    await first.done()
    await transaction.commit()
    assert (await other.take()).seen == [("a", 3)]


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_a_transaction_with_an_old_snapshot_forgets_no_lane(
    one: Consumer, other: Consumer, owner: Connection, isolation: Literal["repeatable_read", "serializable"]
) -> None:
    await one.put("a", 1)
    taken = await one.take()
    async with one.connection.transaction(isolation=isolation):
        await one.connection.fetch("SELECT FROM work")
        await other.put("a", 2)
        await other.take()  # which absorbs its wake
        await taken.done(strict=True)
    assert await owner.fetch(FORGOTTEN) == []
    assert (await other.take()).seen == [("a", 2)]


async def test_what_a_role_of_consumers_may(one: Consumer) -> None:
    for statement in (
        "SELECT * FROM cron_queue",
        "SELECT * FROM cron_dead_letters",
        "SELECT cron_queue_strike('{}', '', '', '', false)",
        "SELECT cron_queue_hold(1, '{}')",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await one.connection.fetch(statement)


NEVER = "1 second to 1 day|from 0 to 30 days|invalid input syntax"  # before PostgreSQL 17 there is no such interval
CENTURIES = "'100000 years -36000000 days 1 hour'"  # an hour to whoever compares, and 1,400 years to whoever adds


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("cron_queue_put('', '1')", "the queue's name '' is none"),
        ("cron_queue_put('a b', '1')", "the queue's name 'a b' is none"),
        ("cron_queue_put('q', '1', namespace => 'a/b')", "the namespace 'a/b' is none"),
        ("cron_queue_put('q', '1', workspace => repeat('x', 101))", "a workspace has letters, digits"),
        ("cron_queue_put('q', '1', not_before => 'infinity')", "an instant of the years 1 to 9999"),
        ("cron_queue_put('q', '1', not_before => '4000-01-01 BC')", "an instant of the years 1 to 9999"),
        ("cron_queue_put('q', to_json(repeat('x', 70000)))", "at most 65536 bytes"),
        ("cron_queue_put_many('q', ARRAY['1']::json[], '{}')", "there are 1 payloads and 0 workspaces"),
        ("cron_queue_put(NULL, '1')", "the queue's name NULL is none"),
        ("cron_queue_put(repeat('x', 100000), '1')", "the queue's name 'x{200}' is none"),
        ("cron_queue_put('q', '1', namespace => NULL)", "the namespace NULL is none"),
        ("cron_queue_put_many('q', NULL, '{a}')", "payloads is null"),
        ("cron_queue_put('q', '{')", "invalid input syntax for type json"),
        ("cron_queue_take('q', 'c', most => 0)", "take 1 to 1000 messages"),
        ("cron_queue_take('q', 'c', '0 s')", "hold them for 1 second to 1 day"),
        ("cron_queue_take('q', 'c', NULL)", "hold them for 1 second to 1 day"),
        ("cron_queue_take('q', 'c', 'infinity')", NEVER),
        (f"cron_queue_take('q', 'c', {CENTURIES})", "hold them for 1 second to 1 day"),
        ("cron_queue_take('q', 'c', most => NULL)", "take 1 to 1000 messages"),
        ("cron_queue_take('q', NULL)", "consumer is empty"),
        ("cron_queue_take('q', '')", "consumer is empty"),
        ("cron_queue_take(NULL, 'c')", "the queue's name NULL is none"),
        ("cron_queue_take('a b', 'c')", "the queue's name 'a b' is none"),
        ("cron_queue_take('q', 'c', namespace => NULL)", "the namespace NULL is none"),
        ("cron_queue_extend(1, '2 days')", "hold for 1 second to 1 day"),
        ("cron_queue_extend(1, '-1 s')", "hold for 1 second to 1 day"),
        ("cron_queue_extend(1, NULL)", "hold for 1 second to 1 day"),
        ("cron_queue_extend(1, 'infinity')", NEVER),
        (f"cron_queue_extend(1, {CENTURIES})", "hold for 1 second to 1 day"),
        ("cron_queue_retry(1, '{1}', 'e', '-1 s')", "a delay lasts from 0 to 30 days"),
        ("cron_queue_retry(1, '{1}', 'e', 'infinity')", NEVER),
        (f"cron_queue_retry(1, '{{1}}', 'e', {CENTURIES})", "a delay lasts from 0 to 30 days"),
        ("cron_queue_retry(1, NULL, 'e')", "ids is null"),
        ("cron_queue_done(1, NULL, strict => true)", "ids is null"),
        ("cron_queue_done(1, '{1, NULL}', strict => true)", "ids is null, or has a null in it"),
        ("cron_queue_release(1, '{NULL}')", "ids is null, or has a null in it"),
        ("cron_queue_listen(NULL)", "the queue's name NULL is none"),
        ("cron_queue_listen(repeat('x', 10000))", "the queue's name 'x{200}' is none"),
        ("cron_queue_listen('q', namespace => 'a/b')", "the namespace 'a/b' is none"),
        ("cron_queue_listen('q', NULL)", "listen for 1 second to 5 minutes"),
        ("cron_queue_listen('q', '-1 s')", "listen for 1 second to 5 minutes"),
        ("cron_queue_listen('q', '1 day')", "listen for 1 second to 5 minutes"),
        (f"cron_queue_listen('q', {CENTURIES})", "listen for 1 second to 5 minutes"),
    ],
)
async def test_what_is_wrong_is_said(one: Consumer, call: str, says: str) -> None:
    with pytest.raises(asyncpg.PostgresError, match=says):
        await one.connection.fetch(f"SELECT {call}")


async def test_what_is_null_is_as_if_it_were_left_out(one: Consumer, owner: Connection) -> None:
    ids = await one.put("a", 1)
    taken = await one.take()
    assert await taken.retry(error=None, delay=None, error_type=None, last=None) == {ids[0]: "waits"}
    assert [tuple(row) for row in await owner.fetch("SELECT error_type, error_message FROM cron_queue")] == [("", "")]
    await pass_lease(owner)
    again = await one.take()
    assert again.deliveries == [2]
    assert await again.done(output=None, strict=None) == {ids[0]: "done"}
    assert await one.connection.fetchval("SELECT cron_queue_put_many('q', ARRAY[NULL]::json[], ARRAY[NULL])") != []
    assert [(row["workspace"], row["payload"]) for row in (await one.take()).rows] == [("", "null")]
    assert await Taken(one, []).done() == {}


@pytest.mark.parametrize("letter", ["x", "\u00e9", "\u6f22", "\U0001f600"])
async def test_of_huge_texts_so_much_is_kept_as_of_runners(one: Consumer, owner: Connection, letter: str) -> None:
    await owner.execute("INSERT INTO cron_queues (namespace, queue, max_deliveries) VALUES ('default', 'q', 1)")
    await owner.execute(AWAITED, 3)
    one.name = letter * 5_000
    taken = await one.take()
    done, failed, _ = taken.ids
    said = f"begin {letter * 70_000} end"
    assert await taken.done([done], output=said) == {done: "done"}
    assert await taken.retry([failed], error=letter * 70_000, error_type=f"{letter * 70_000}Error") == {failed: "ended"}
    await pass_lease(owner)
    await one.take()
    rows = await owner.fetch("SELECT output, error_type, error_message FROM cron_queue ORDER BY id")
    (output, *_), (_, error_type, message), (*_, lost) = map(tuple, rows)
    assert KEEP_BYTES - 200 < len(output.encode()) <= KEEP_BYTES
    kept = read_recorded(output)
    assert said.encode()[kept.begins_at :] == kept.data
    assert kept.begins_at > 0
    assert (error_type, message) == (f"{letter * 195}Error", letter * 10_000)
    assert lost == f"the lease of consumer {letter * 200} ran out"


async def test_an_output_that_fits_is_kept_as_it_is(one: Consumer, owner: Connection) -> None:
    await owner.execute(AWAITED, 1)
    said = "\u00e9" * (KEEP_BYTES // 2)
    await (await one.take()).done(output=said)
    assert await owner.fetchval("SELECT output FROM cron_queue") == said


async def test_a_take_is_no_more_than_controllers_hand_on(one: Consumer) -> None:
    """Its answer would be lost, and all of its messages with it, time and again."""
    for workspace in ("a", "b"):
        put = "SELECT cron_queue_put_many('q', array_fill(to_json(repeat('x', 65000)), ARRAY[150]), "
        await one.connection.fetch(f"{put} array_fill($1::text, ARRAY[150]))", workspace)
    seen = 0
    while (taken := await one.take(most=1_000)).rows:
        assert sum(len(row["payload"]) for row in taken.rows) <= ANSWER_BYTES_MAX // 2
        seen += len(taken.rows)
        await taken.done()
    assert seen == 300


NAMES = ("a", "A-1", "_", "a.b", "-a", "a-", ".a", "a.", "a b", "a/b", "\u00e9", "a\n", "@a", "x" * 100, "x" * 101)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
async def test_names_are_those_of_the_api(one: Consumer, name: str) -> None:
    """A queue that has another name could be filled, and neither listed, replayed nor deleted."""

    async def is_taken(queue: str, workspace: str) -> bool:
        try:
            await one.connection.fetch("SELECT cron_queue_put($1, '1', $2)", queue, workspace)
        except asyncpg.InvalidParameterValueError:
            return False
        return True

    assert await is_taken(name, "") == (queue_fault(name) is None)
    assert await is_taken("q", name) == (workspace_fault(name) is None)
