"""What watches and `cronring top` ask of PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from controller.core.model import Execution, Outcome
from controller.reads import ExecutionChange, ExecutionFilter
from controller.store.connect import connect
from controller.store.pool import Database
from controller.store.reads import PostgresReads
from tests.conformance.harness import LOST_AFTER_MS, SECOND, PostgresScene, World

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
    assert all(shop.reads.has_told(position, change) for change in changes)
    assert not any(shop.reads.has_told(then, change) for change in changes)
    _, changes = await shop.reads.execution_changes(position)
    assert told(list(changes)) == []
    # From the token of before, everything again.
    token = shop.reads.encode_position(then)
    _, changes = await shop.reads.execution_changes(shop.reads.decode_position(token, "executions"))
    assert told(list(changes)) == [(running.execution_id, False, "failed"), (claim.execution_id, True, None)]


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


async def test_tokens_of_jobs_and_of_executions_are_kept_apart(shop: Shop) -> None:
    jobs = shop.reads.encode_position(await shop.reads.job_position())
    executions = shop.reads.encode_position(await shop.reads.execution_position())
    shop.reads.decode_position(jobs, "jobs")
    shop.reads.decode_position(executions, "executions")
    for token, kind in ((jobs, "executions"), (executions, "jobs"), ("x", "jobs")):
        with pytest.raises(ValueError, match=r"\w"):
            shop.reads.decode_position(token, kind)  # type: ignore[arg-type]  # a literal


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
        rows = await shop.reads.list_executions(ExecutionFilter(job="billing.a", since=since, until=until), 0, 10)
        assert len(rows) == count, (since, until)
