"""Overlap "allow": several executions of one job at once, in every store."""

from cronring.controller.core.model import Execution, Job, SkipRequest
from cronring.schema.execution import Outcome, Skipped, SkipReason
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, TIMEOUT_MS, World, end_of

TWO = Policy(overlap="allow", max_concurrent=2, jitter="off")


async def started(world: World, job: Job) -> Execution:
    result = await world.claim_next("c1", job)
    assert result.updated
    assert result.execution_id is not None
    (execution,) = await world.store.get_unfinished((result.execution_id,))
    return execution


async def two_running(world: World) -> tuple[Job, list[Execution]]:
    """A job that is full, and its executions."""
    await world.controller("c1")
    await world.runner("r1")
    (job,) = await world.jobs("a", policy=TWO)
    first = await started(world, await world.due(job, 120))
    second = await started(world, await world.job(job.job_id))
    return await world.job(job.job_id), [first, second]


async def test_a_claim_goes_on_to_the_next_tick_until_the_job_is_full(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.jobs("a", policy=TWO)
    due = await world.due(job, 120)
    assert due.next_tick is not None
    first = await world.claim_next("c1", due)
    assert (first.updated, first.executing) == (True, False)
    assert first.next_tick == first.next_run_at == due.next_tick + 60 * SECOND
    second = await world.claim_next("c1", await world.job(job.job_id))
    assert (second.updated, second.executing) == (True, True)
    full = await world.job(job.job_id)
    assert (full.executing, full.next_tick) == (True, due.next_tick + 120 * SECOND)
    third = await world.claim_next("c1", await world.due(full, 0))
    assert (third.updated, third.executing) == (False, True)
    booked = await world.scene.job(job.job_id)
    assert (booked.executing, booked.running, booked.last_tick) == (False, 2, due.next_tick + 60 * SECOND)
    assert [row.holds_job for row in await world.scene.executions()] == [False, False]
    assert (await world.store.get_overdue_jobs(tuple(range(4096)), -1_000, 10))[1] == []


async def test_it_is_claimed_only_by_whoever_knows_its_policy(world: World) -> None:
    """A claim by an older revision would leave it without a next tick."""
    await world.controller("c1")
    (job,) = await world.jobs("a", policy=TWO)
    due = await world.due(job)
    stale = due._replace(revision=due.revision - 1)
    (result,) = await world.claim("c1", stale)
    assert (result.updated, result.next_tick, result.revision) == (False, due.next_tick, due.revision)
    assert (await world.claim_next("c1", due)).updated


async def test_each_end_makes_room_for_one_and_leaves_the_next_tick(world: World) -> None:
    job, executions = await two_running(world)
    assert [execution.holds_job for execution in executions] == [False, False]
    result = await world.end(executions[0])
    assert (result.ended, result.next_tick, result.revision) == (True, job.next_tick, job.revision)
    assert not (await world.end(executions[0], Outcome.FAILED)).ended
    assert (await world.scene.job(job.job_id)).running == 1
    assert (await world.job(job.job_id)).executing is False
    await world.end(executions[1])
    booked = await world.scene.job(job.job_id)
    assert (booked.running, booked.next_tick, booked.last_success) == (0, job.next_tick, executions[1].tick)


async def test_several_ends_of_one_job_in_one_batch_all_count(world: World) -> None:
    job, executions = await two_running(world)
    results = await world.store.end_cron_jobs(
        "c1", [end_of(executions[0], Outcome.COMPLETED), end_of(executions[1], Outcome.FAILED)]
    )
    assert [result.ended for result in results] == [True, True]
    assert {result.next_tick for result in results} == {job.next_tick}
    booked = await world.scene.job(job.job_id)
    assert (booked.running, booked.failures, booked.last_success) == (0, 1, executions[0].tick)


async def test_a_run_of_when_only_one_might_stops_neither_ticks_nor_books(world: World) -> None:
    """Seed 91306: the policy changed to "allow" while a run held the job; its skips were refused until that ended."""
    (execution,) = await world.running("c1", "a")
    declared = Module("billing", (Verb("a", schedule="every 1h", policy=TWO),))
    await world.store.create_deployment(declared, "b" * 64, 1, TIMEOUT_MS, True)
    job = await world.due(await world.job(execution.job.job_id))
    assert (job.executing, (await world.claim_next("c1", job)).updated) == (True, False)
    assert job.next_tick is not None
    passed, moved = Skipped(SkipReason.OVERLAP, job.next_tick, job.next_tick, 1), job.next_tick + 60 * SECOND
    request = SkipRequest(job.job_id, job.next_tick, job.revision, (passed,), moved, moved)
    (after,) = await world.store.skip_ticks("c1", [request])
    assert (after.executing, after.next_tick) == (True, moved)
    # Whoever took the run over knows the new revision, but a tick of before the skip.
    late = end_of(execution, Outcome.COMPLETED)._replace(
        revision=job.revision, next_tick=job.next_tick, next_run_at=job.next_tick, skipped=(passed,)
    )
    (result,) = await world.store.end_cron_jobs("c1", [late])
    assert (result.ended, result.next_tick) == (True, moved)
    assert [skip.first_tick for skip in await world.scene.skips()].count(job.next_tick) == 1


async def test_while_it_is_full_its_ticks_are_skipped(world: World) -> None:
    job, _ = await two_running(world)
    assert job.next_tick is not None
    passed = Skipped(SkipReason.OVERLAP, job.next_tick, job.next_tick, 1)
    moved = job.next_tick + 60 * SECOND
    (after,) = await world.store.skip_ticks(
        "c1", [SkipRequest(job.job_id, job.next_tick, job.revision, (passed,), moved, moved)]
    )
    assert after == job._replace(next_tick=moved, next_run_at=moved)
    assert [skip.reason for skip in await world.scene.skips()] == ["overlap"]


async def test_there_is_no_overlap_any_more_once_one_has_ended(world: World) -> None:
    """Seed 5327 (with orders): the statement was carried out late, after its connection broke."""
    job, executions = await two_running(world)
    assert job.next_tick is not None
    await world.end(executions[0])
    passed = Skipped(SkipReason.OVERLAP, job.next_tick, job.next_tick, 1)
    moved = job.next_tick + 60 * SECOND
    request = SkipRequest(job.job_id, job.next_tick, job.revision, (passed,), moved, moved)
    (after,) = await world.store.skip_ticks("c1", [request])
    assert (after.executing, after.next_tick) == (False, job.next_tick)
    assert await world.scene.skips() == []
    missed = request._replace(skipped=(passed._replace(reason=SkipReason.MISSED_POLICY),))
    (after,) = await world.store.skip_ticks("c1", [missed])
    assert after.next_tick == moved


async def test_after_a_change_to_one_at_a_time_nothing_starts_until_all_have_ended(world: World) -> None:
    job, executions = await two_running(world)
    module = Module("billing", (Verb("a", schedule=job.schedule),))
    deployed = await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)
    assert deployed.carried_over == (job.key,)
    assert (await world.scene.job(job.job_id)).running == 2
    due = await world.due(deployed.jobs[0])
    for execution in executions:
        (refused,) = await world.claim("c1", due)
        assert (refused.updated, refused.executing) == (False, True)
        result = await world.end(execution)
        assert result.next_tick == (due.next_tick if execution is executions[1] else None)
    (claimed,) = await world.claim("c1", due)
    assert claimed.updated
    booked = await world.scene.job(job.job_id)
    assert (booked.executing, booked.running, booked.next_tick) == (True, 0, due.next_tick)


async def test_while_one_of_several_goes_on_where_only_one_may_its_end_decides_about_ticks(world: World) -> None:
    """Seed 37 of 180 s: the tick was skipped, and then by that end once more."""
    job, executions = await two_running(world)
    module = Module("billing", (Verb("a", schedule=job.schedule),))
    (changed,) = (await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)).jobs
    due = await world.due(changed)
    assert due.next_tick is not None
    passed = Skipped(SkipReason.MISSED_POLICY, due.next_tick, due.next_tick, 1)
    moved = due.next_tick + 60 * SECOND
    request = SkipRequest(due.job_id, due.next_tick, due.revision, (passed,), moved, moved)
    for execution in executions:
        (refused,) = await world.store.skip_ticks("c1", [request])
        assert (refused.executing, refused.next_tick) == (True, due.next_tick)
        await world.end(execution)
    (after,) = await world.store.skip_ticks("c1", [request])
    assert (after.executing, after.next_tick) == (False, moved)
    assert [(skip.reason, skip.ticks) for skip in await world.scene.skips()] == [("missed_policy", 1)]


async def test_after_a_change_to_several_nothing_starts_until_the_one_has_ended(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    module = Module("billing", (Verb("a", schedule="every 1h", policy=TWO),))
    (job,) = (await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)).jobs
    assert job.executing
    due = await world.due(job, 0)
    assert not (await world.claim_next("c1", due)).updated
    result = await world.end(execution)
    assert (result.ended, result.next_tick) == (True, due.next_tick)
    assert (await world.claim_next("c1", due)).updated
    assert (await world.scene.job(job.job_id)).running == 1
