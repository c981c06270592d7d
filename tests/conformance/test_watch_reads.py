"""What watches and `cronring top` ask of PostgreSQL."""

import tracemalloc
from collections.abc import AsyncIterator

import pytest

from cronring.controller.core.model import Execution
from cronring.controller.ports.reads import ExecutionChange, ExecutionFilter, ExecutionSort
from cronring.controller.ports.webhooks import BooksReading, NewWebhook
from cronring.controller.store.connect import connect
from cronring.controller.store.keys import page_key
from cronring.controller.store.migrate import migrate
from cronring.controller.store.notices import PostgresNotifier
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.controller.store.webhooks import PostgresWebhooks
from cronring.schema.execution import Outcome
from tests.conformance.harness import CONSOLE, LOST_AFTER_MS, SECOND, PostgresScene, World
from tests.support.databases import PostgresServer

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])


class Shop:
    """A store, and what is read from it."""

    def __init__(self, world: World, reads: PostgresReads) -> None:
        self.world = world
        self.reads = reads

    async def running(self, *names: str) -> list[Execution]:
        return await self.world.running("c1", *names, seconds_ago=10)


@pytest.fixture
async def shop(database_url: str) -> AsyncIterator[Shop]:
    database = await Database.open(database_url, "cronring test")
    connection = await connect(database_url, "scene")
    yield Shop(World(PostgresScene(database, connection)), PostgresReads(database, LOST_AFTER_MS))
    await connection.close()
    await database.close()


def told(changes: list[ExecutionChange] | tuple[ExecutionChange, ...]) -> list[tuple[int, bool, str | None]]:
    return [(change.row.execution_id, change.started, change.row.outcome) for change in changes]


async def test_starts_and_ends_are_told_once_from_a_position_on(shop: Shop) -> None:
    before, running = await shop.running("a", "b")
    await shop.world.end(before)
    position = await shop.reads.execution_position()
    position, changes = await shop.reads.execution_changes(position)
    assert told(list(changes)) == []
    await shop.world.end(running, Outcome.FAILED)
    (claim,) = await shop.world.claim("c1", await shop.world.due(before.job))
    assert claim.execution_id is not None
    then = position
    position, changes = await shop.reads.execution_changes(position)
    assert told(list(changes)) == [(running.execution_id, False, "failed"), (claim.execution_id, True, None)]
    assert changes[0].row.job == "billing.b"
    assert [shop.reads.news(position, change) for change in changes] == [None, None]
    assert [shop.reads.news(then, change) for change in changes] == list(changes)
    _, changes = await shop.reads.execution_changes(position)
    assert told(list(changes)) == []
    # From the token of before, everything again.
    token = shop.reads.encode_position(then)
    _, changes = await shop.reads.execution_changes(shop.reads.decode_position(token))
    assert told(list(changes)) == [(running.execution_id, False, "failed"), (claim.execution_id, True, None)]


async def test_who_was_told_of_a_start_is_told_of_the_end_alone(shop: Shop) -> None:
    before = await shop.reads.execution_position()
    (run,) = await shop.running("a")
    position, changes = await shop.reads.execution_changes(before)
    assert told(list(changes)) == [(run.execution_id, True, None)]
    await shop.world.end(run)
    _, (both,) = await shop.reads.execution_changes(before)
    assert told([both]) == [(run.execution_id, True, "completed")]
    assert shop.reads.news(position, both) == both._replace(started=False)


async def test_an_id_that_is_committed_late_is_told_of_all_the_same(shop: Shop, database_url: str) -> None:
    (first,) = await shop.running("a")
    position = await shop.reads.execution_position()
    late = await connect(database_url, "late")
    transaction = late.transaction()
    await transaction.start()
    late_id = await late.fetchval("SELECT nextval('cron_execution_ids')")
    await shop.world.end(first)
    (claim,) = await shop.world.claim("c1", await shop.world.due(first.job))
    assert claim.execution_id is not None
    position, changes = await shop.reads.execution_changes(position)
    assert told(list(changes)) == [(first.execution_id, False, "completed"), (claim.execution_id, True, None)]
    await late.execute(
        "INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, "
        "hard_deadline) SELECT $1, job_id, deployment_id, tick + interval '1 us', run_at, claimed_at, 'c1', 'r1', "
        "hard_deadline FROM cron_executions WHERE id = $2",
        late_id,
        claim.execution_id,
    )
    await transaction.commit()
    await late.close()
    assert late_id < claim.execution_id
    _, changes = await shop.reads.execution_changes(position)
    assert told(list(changes)) == [(late_id, True, None)]


JUMP = 10**9  # by which docs/operations.md has sequences moved on after a restore


async def test_ids_that_jump_by_a_thousand_million_cost_no_more_than_one(shop: Shop, database_url: str) -> None:
    first, second = await shop.running("a", "b")
    of_jobs, of_executions = await shop.reads.job_position(), await shop.reads.execution_position()
    restored = await connect(database_url, "restored")
    late = await restored.fetchval("SELECT nextval('cron_execution_ids')")  # and it is committed after the jump
    await restored.execute(f"SELECT setval('cron_execution_ids', nextval('cron_execution_ids') + {JUMP})")
    await restored.execute(f"SELECT setval(pg_get_serial_sequence('cron_skips', 'id'), {JUMP})")
    await restored.execute(
        "INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id) "
        "VALUES ($1, 'paused', now(), now(), 1, 'c1')",
        first.job.job_id,
    )
    await shop.world.end(first)
    (claim,) = await shop.world.claim("c1", await shop.world.due(first.job))
    assert claim.execution_id is not None
    assert claim.execution_id > JUMP
    tracemalloc.start()
    for _ in range(3):  # with what is missing asked for, too
        of_jobs, _ = await shop.reads.job_changes(of_jobs)
        of_executions, changes = await shop.reads.execution_changes(of_executions)
        assert len(shop.reads.encode_position(of_jobs) + shop.reads.encode_position(of_executions)) < 1_000
        if claim.execution_id is not None:
            assert told(list(changes)) == [
                (first.execution_id, False, "completed"), (claim.execution_id, True, None)
            ]  # fmt: skip
            claim = claim._replace(execution_id=None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000
    await restored.execute(
        "INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, "
        "hard_deadline) SELECT $1, job_id, deployment_id, tick + interval '1 us', run_at, claimed_at, 'c1', 'r1', "
        "hard_deadline FROM cron_executions WHERE id = $2",
        late,
        second.execution_id,
    )
    await restored.close()
    _, changes = await shop.reads.execution_changes(of_executions)
    assert told(list(changes)) == [(late, True, None)]
    _, rows = await shop.reads.job_changes(of_jobs)
    assert [row.key for row in rows] == [second.job.key]


async def test_who_tells_webhooks_reads_over_such_a_jump_as_well(shop: Shop, database_url: str) -> None:
    database, scene = await Database.open(database_url, "notifier"), await connect(database_url, "jump")
    notifier = PostgresNotifier(database, "c1", 30_000, CONSOLE)
    await PostgresWebhooks(database).add(
        NewWebhook("pager", "http://127.0.0.1:9", "cronring1$plain$$", (), (), "", "", "", {}, "")
    )
    assert await notifier.read() == BooksReading(ours=True)
    first, second = await shop.running("a", "b")
    await shop.world.end(first, Outcome.FAILED)
    await scene.execute(f"SELECT setval('cron_execution_ids', nextval('cron_execution_ids') + {JUMP})")
    (claim,) = await shop.world.claim("c1", await shop.world.due(first.job))
    assert claim.execution_id is not None
    assert claim.execution_id > JUMP
    await shop.world.end(second, Outcome.FAILED)
    tracemalloc.start()
    assert (await notifier.read()).added == 2
    assert (await notifier.read()).added == 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000
    assert len(await scene.fetchval("SELECT position FROM cron_notifier")) < 1_000
    await scene.close()
    await database.close()


async def test_the_key_of_page_tokens_is_the_installations_own(
    shop: Shop, postgres: PostgresServer, database_url: str
) -> None:
    """The same for every controller; another one in each database."""
    database, again = await Database.open(database_url, "one"), await Database.open(database_url, "two")
    name = postgres.create_database(template="template1")
    try:
        await migrate(postgres.url(name))
        other = await Database.open(postgres.url(name), "other")
        keys = [await page_key(each) for each in (database, again, other)]
        await other.close()
    finally:
        postgres.drop_database(name)
    await again.close()
    await database.close()
    assert keys[0] == keys[1] != keys[2]
    assert {len(key) for key in keys} == {32}


async def test_what_is_due_comes_in_order_from_all_slots(shop: Shop) -> None:
    jobs = await shop.world.jobs("a", "b", "c", "d")
    now = await shop.world.scene.now()
    for job, seconds in zip(jobs, (30, -5, 10, 7_200), strict=True):
        await shop.world.scene.set_next_tick(job.job_id, now // SECOND * SECOND + seconds * SECOND)
    due = await shop.reads.list_due(60_000, 10)
    assert [row.job for row in due] == [jobs[1].key, jobs[2].key, jobs[0].key]
    assert due[0].tick == due[0].run_at
    assert [row.job for row in await shop.reads.list_due(60_000, 1)] == [jobs[1].key]


async def test_executions_of_a_tick_are_found_by_it(shop: Shop) -> None:
    (execution,) = await shop.running("a")
    await shop.world.end(execution)
    await shop.world.claim("c1", await shop.world.due(execution.job))
    at = execution.tick
    for since, until, count in ((at, at, 1), (at, None, 2), (None, at - 1, 0), (at + 1, None, 1)):
        where = ExecutionFilter(job="billing.a", since=since, until=until)
        rows = (await shop.reads.list_executions(where, ExecutionSort.NEWEST, (), 10)).rows
        assert len(rows) == count, (since, until)
