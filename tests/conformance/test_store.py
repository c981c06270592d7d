"""Claims, ends and skips: behaviour that every store has."""

import pytest

from cronring.controller.core.model import EndRequest, SkipRequest
from cronring.schema.execution import Outcome, Skipped, SkipReason
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import GRACE_MS, SECOND, TIMEOUT_MS, World, claim_of, end_of


async def test_a_due_idle_job_is_claimed_once(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.due_jobs("a")
    (first,) = await world.claim("c1", job)
    assert first.updated
    assert first.active
    assert first.executing
    assert first.execution_id is not None
    assert job.next_run_at is not None
    assert first.claimed_at >= job.next_run_at
    (second,) = await world.claim("c1", job)
    assert not second.updated
    assert second.executing
    assert second.execution_id is None
    (execution,) = await world.scene.executions()
    assert (execution.execution_id, execution.tick, execution.outcome) == (first.execution_id, job.next_tick, None)


async def test_every_attempted_row_is_answered_in_order(world: World) -> None:
    await world.controller("c1")
    early, late, running = await world.jobs("early", "late", "running")
    late, running = await world.due(late), await world.due(running)
    assert (await world.claim("c1", running))[0].updated
    unknown = late._replace(job_id=999_999)
    results = await world.claim("c1", early, late, running, unknown)
    assert [result.job_id for result in results] == [early.job_id, late.job_id, running.job_id, 999_999]
    assert [result.updated for result in results] == [False, True, False, False]
    assert [result.executing for result in results] == [False, True, True, False]
    assert [result.next_tick for result in results] == [early.next_tick, late.next_tick, running.next_tick, None]
    assert [result.active for result in results] == [True, True, True, False]


async def test_nothing_is_claimed_before_its_time(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.jobs("a")
    tick = await world.scene.now() + 5 * SECOND
    await world.scene.set_next_tick(job.job_id, tick)
    (result,) = await world.claim("c1", job._replace(next_tick=tick, next_run_at=tick))
    assert (result.updated, result.next_tick, result.executing) == (False, tick, False)
    # Nor is a later tick than the due one, when it isn't due itself.
    due = await world.due(job)
    request = claim_of(due)._replace(run_tick=tick, run_at=tick)
    _, (result,) = await world.store.start_cron_jobs("c1", [request], GRACE_MS)
    assert not result.updated
    assert await world.scene.executions() == []


async def test_a_claim_of_another_tick_than_the_next_one_is_refused_and_told(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.due_jobs("a")
    assert job.next_tick is not None
    stale = job._replace(next_tick=job.next_tick - SECOND, next_run_at=job.next_tick - SECOND)
    (result,) = await world.claim("c1", stale)
    assert (result.updated, result.next_tick, result.next_run_at) == (False, job.next_tick, job.next_run_at)


async def test_ticks_are_passed_over_only_by_whoever_knows_the_schedule(world: World) -> None:
    """A verb may have moved its interval: the tick that an older anchor names as the latest is none of the new one's.

    The next tick itself may be claimed all the same, as nobody had to ask the schedule for it.
    """
    await world.controller("c1")
    (job,) = await world.due_jobs("a")
    due = await world.due(job)
    assert due.next_tick is not None
    skipped = Skipped(SkipReason.SUPERSEDED, due.next_tick, due.next_tick, 1)
    stale = claim_of(due, skipped=(skipped,))._replace(
        revision=due.revision - 1, run_tick=due.next_tick + SECOND, run_at=due.next_tick
    )
    _, (refused,) = await world.store.start_cron_jobs("c1", [stale], GRACE_MS)
    assert (refused.updated, refused.next_tick, refused.revision) == (False, due.next_tick, due.revision)
    _, (known,) = await world.store.start_cron_jobs("c1", [stale._replace(revision=due.revision)], GRACE_MS)
    assert known.updated


async def test_a_job_with_a_policy_is_claimed_only_by_whoever_knows_it(world: World) -> None:
    """Its window may have closed meanwhile."""
    await world.controller("c1")
    (job,) = await world.due_jobs("a", policy=Policy(window="00:00-12:00, 12:00-00:00"))
    stale = claim_of(await world.due(job))._replace(revision=job.revision - 1)
    _, (refused,) = await world.store.start_cron_jobs("c1", [stale], GRACE_MS)
    assert (refused.updated, refused.revision) == (False, job.revision)


@pytest.mark.parametrize("expired", [True, False])
async def test_without_a_valid_lease_nothing_is_claimed_or_skipped(world: World, expired: bool) -> None:
    (job,) = await world.due_jobs("a")
    if expired:
        await world.controller("c1")
        await world.scene.expire_lease("c1", 0)
    (result,) = await world.claim("c1", job)
    assert (result.updated, result.executing, result.next_tick) == (False, False, job.next_tick)
    assert job.next_tick is not None
    skipped = Skipped(SkipReason.NO_RUNNER, job.next_tick, job.next_tick, 1)
    request = SkipRequest(
        job.job_id, job.next_tick, job.revision, (skipped,), job.next_tick + SECOND, job.next_tick + SECOND
    )
    assert await world.store.skip_ticks("c1", [request]) == [job]
    assert await world.scene.skips() == []
    await world.controller("c1")
    assert (await world.claim("c1", job))[0].updated


async def test_ticks_missed_before_a_claim_are_recorded_with_it(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.jobs("a")
    job = await world.due(job, 10)
    assert job.next_tick is not None
    last = job.next_tick + 9 * SECOND
    skipped = Skipped(SkipReason.SUPERSEDED, job.next_tick, last - SECOND, 9)
    request = claim_of(job)._replace(run_tick=last, run_at=last, skipped=(skipped,))
    _, (result,) = await world.store.start_cron_jobs("c1", [request], GRACE_MS)
    assert result.updated
    assert [execution.tick for execution in await world.scene.executions()] == [last]
    assert await world.scene.skips() == [(job.job_id, "superseded", job.next_tick, last - SECOND, 9, "c1")]
    # Had it not been claimed, nothing would have been skipped.
    await world.store.start_cron_jobs("c1", [request], GRACE_MS)
    assert len(await world.scene.skips()) == 1


async def test_a_tick_that_ran_is_never_claimed_again(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    await world.store.end_cron_jobs("c1", [end_of(execution)])
    await world.scene.set_next_tick(execution.job.job_id, execution.tick)  # as if the clock had been set back
    (result,) = await world.claim("c1", execution.job)
    assert not result.updated
    assert len(await world.scene.executions()) == 1


async def test_an_end_frees_the_job_and_sets_its_next_tick(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    (result,) = await world.store.end_cron_jobs("c1", [end_of(execution)])
    next_tick = execution.tick + 3600 * SECOND
    assert result[:3] == (execution.execution_id, execution.job.job_id, True)
    assert (result.next_tick, result.next_run_at, result.revision) == (next_tick, next_tick, execution.job.revision)
    job = await world.job(execution.job.job_id)
    assert (job.executing, job.next_tick) == (False, next_tick)
    assert [row.outcome for row in await world.scene.executions()] == ["completed"]
    assert await world.store.get_unfinished((execution.execution_id,)) == []


async def test_an_end_is_counted_once_whoever_repeats_it(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    skipped = Skipped(SkipReason.OVERLAP, execution.tick + SECOND, execution.tick + 2 * SECOND, 2)
    await world.store.end_cron_jobs("c1", [end_of(execution, skipped=skipped)])
    (again,) = await world.store.end_cron_jobs("c2", [end_of(execution, Outcome.FAILED, skipped, 7200 * SECOND)])
    assert not again.ended
    assert again.next_tick == execution.tick + 3600 * SECOND
    assert [row.outcome for row in await world.scene.executions()] == ["completed"]
    assert [skip.ticks for skip in await world.scene.skips()] == [2]


async def test_an_end_must_match_the_claim(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    wrong = end_of(execution._replace(claimed_at=execution.claimed_at - 1))
    (result,) = await world.store.end_cron_jobs("c1", [wrong])
    assert (result.ended, result.next_tick) == (False, None)
    assert (await world.job(execution.job.job_id)).executing
    (result,) = await world.store.end_cron_jobs("c1", [end_of(execution)])
    assert result.ended


async def test_every_end_is_answered_in_order(world: World) -> None:
    executions = await world.running("c1", "a", "b", "c")
    unknown = executions[2]._replace(execution_id=999_999)
    requests = [end_of(executions[0]), end_of(executions[1], Outcome.FAILED), end_of(unknown)]
    results = await world.store.end_cron_jobs("c1", requests)
    assert [result.ended for result in results] == [True, True, False]
    assert [result.execution_id for result in results] == [request.report.execution_id for request in requests]
    assert [row.outcome for row in await world.scene.executions()] == ["completed", "failed", None]


async def test_a_controller_whose_lease_ran_out_may_still_end(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    await world.scene.expire_lease("c1", 10)
    (result,) = await world.store.end_cron_jobs("c1", [end_of(execution)])
    assert result.ended


async def test_an_end_without_a_further_tick_leaves_none(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    last = end_of(execution)._replace(next_tick=None, next_run_at=None)
    (result,) = await world.store.end_cron_jobs("c1", [last])
    assert (result.ended, result.next_tick, result.next_run_at) == (True, None, None)
    with pytest.raises(KeyError):
        await world.job(execution.job.job_id)


async def test_an_end_computed_with_an_old_schedule_is_refused(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    module = Module("billing", (Verb("a", schedule="every 7m"),))
    deployed = await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)
    (job,) = deployed.jobs
    assert job.executing
    assert job.revision == execution.job.revision + 1
    skipped = Skipped(SkipReason.OVERLAP, execution.tick + SECOND, execution.tick + SECOND, 1)
    before = await world.scene.skips()
    (result,) = await world.store.end_cron_jobs("c1", [end_of(execution, skipped=skipped)])
    assert (result.ended, result.stale, result.revision) == (False, True, job.revision)
    assert await world.scene.skips() == before
    (known,) = await world.store.get_unfinished((execution.execution_id,))
    assert known.job == job
    (result,) = await world.store.end_cron_jobs("c1", [end_of(known, skipped=skipped)])
    assert (result.ended, result.stale) == (True, False)
    assert len(await world.scene.skips()) == len(before) + 1


@pytest.mark.parametrize("text", ["nul \x00 within", "half a pair \ud83d", "\x00", "grüße 😀"])
async def test_no_output_is_too_strange_to_be_stored(world: World, text: str) -> None:
    executions = await world.running("c1", "a", "b")
    requests = [end_of(executions[0], output=text), end_of(executions[1])]
    strange = requests[0].report._replace(error_type=text, error_message=text)
    results = await world.store.end_cron_jobs("c1", [requests[0]._replace(report=strange), requests[1]])
    assert [result.ended for result in results] == [True, True]


@pytest.mark.parametrize("instant", [-(2**63), -1, 0, 2**63 - 1])
async def test_no_report_of_a_runner_with_a_mad_clock_fails_its_batch(world: World, instant: int) -> None:
    executions = await world.running("c1", "a", "b")
    mad = end_of(executions[0])
    mad = mad._replace(report=mad.report._replace(started_at=instant, ended_at=instant))
    requests: list[EndRequest] = [mad, end_of(executions[1])]
    assert [result.ended for result in await world.store.end_cron_jobs("c1", requests)] == [True, True]
    claim = end_of(executions[0])
    claim = claim._replace(report=claim.report._replace(claimed_at=instant))
    assert [result.ended for result in await world.store.end_cron_jobs("c1", [claim])] == [False]


async def test_skipping_moves_an_idle_job_on(world: World) -> None:
    await world.controller("c1")
    first, second = await world.due_jobs("a", "b")
    assert first.next_tick is not None
    assert second.next_tick is not None
    skipped = Skipped(SkipReason.NO_RUNNER, first.next_tick, first.next_tick, 1)
    moved = first.next_tick + 60 * SECOND
    requests = [
        SkipRequest(first.job_id, first.next_tick, first.revision, (skipped,), moved, moved),
        SkipRequest(second.job_id, second.next_tick - SECOND, second.revision, (skipped,), moved, moved),
    ]
    jobs = await world.store.skip_ticks("c1", requests)
    assert jobs == [first._replace(next_tick=moved, next_run_at=moved), second]
    assert await world.scene.skips() == [(first.job_id, "no_runner", first.next_tick, first.next_tick, 1, "c1")]
    assert await world.store.skip_ticks("c1", requests) == jobs
    assert len(await world.scene.skips()) == 1


async def test_a_run_is_told_of_all_ticks_missed_since_the_one_before(world: World) -> None:
    """Also of those that were decided in statements before its claim; a pause or a window keeps none for it."""
    await world.controller("c1")
    (job,) = await world.due_jobs("a")
    for reason, ticks in ((SkipReason.NO_RUNNER, 22), (SkipReason.OUTSIDE_WINDOW, 5)):
        assert job.next_tick is not None
        skipped = Skipped(reason, job.next_tick, job.next_tick, ticks)
        request = SkipRequest(job.job_id, job.next_tick, job.revision, (skipped,), job.next_tick + 1, job.next_tick + 1)
        (job,) = await world.store.skip_ticks("c1", [request])
    assert job.next_tick is not None
    late = Skipped(SkipReason.SUPERSEDED, job.next_tick, job.next_tick, 3)
    claim = claim_of(job)._replace(run_tick=job.next_tick + 1, run_at=job.next_tick + 1, skipped=(late,))
    _, (claimed,) = await world.store.start_cron_jobs("c1", [claim], GRACE_MS)
    assert claimed.missed == 25
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    assert execution.missed == 25

    passed = Skipped(SkipReason.MISSED_POLICY, job.next_tick + 2, job.next_tick + 2, 2)
    over = Skipped(SkipReason.OVERLAP, job.next_tick + 3, job.next_tick + 3, 1)
    following = job.next_tick + 4
    end = end_of(execution)._replace(skipped=(passed, over), next_tick=following, next_run_at=following)
    await world.store.end_cron_jobs("c1", [end])
    (again,) = await world.claim("c1", job._replace(next_tick=following, next_run_at=following))
    assert again.missed == 2
    assert [row.missed for row in await world.scene.executions()] == [25, 2]


@pytest.mark.parametrize("stale", ["revision", "executing"])
async def test_skipping_leaves_a_job_that_moved_on(world: World, stale: str) -> None:
    await world.controller("c1")
    (job,) = await world.due_jobs("a")
    assert job.next_tick is not None
    revision = job.revision - 1 if stale == "revision" else job.revision
    if stale == "executing":
        assert (await world.claim("c1", job))[0].updated
    skipped = Skipped(SkipReason.NO_RUNNER, job.next_tick, job.next_tick, 1)
    request = SkipRequest(job.job_id, job.next_tick, revision, (skipped,), None, None)
    (found,) = await world.store.skip_ticks("c1", [request])
    assert found == job._replace(executing=stale == "executing")
    assert await world.scene.skips() == []


async def test_the_window_holds_the_slots_jobs_that_are_due_before_its_end(world: World) -> None:
    await world.controller("c1")
    soon, later, running = await world.jobs("soon", "later", "running")
    soon = await world.due(soon, -30)
    later = await world.due(later, -300)
    running = await world.due(running)
    await world.claim("c1", running)
    slots = tuple(range(4096))
    before = await world.scene.now()
    now, jobs = await world.store.get_cron_jobs(slots, 90_000)
    assert before <= now <= await world.scene.now()
    assert sorted(jobs) == [soon, running._replace(executing=True)]
    _, jobs = await world.store.get_cron_jobs(tuple(slot for slot in slots if slot != soon.slot), 90_000)
    assert [job.job_id for job in jobs] == [running.job_id]
    assert (await world.store.get_cron_jobs((), 90_000))[1] == []


async def test_overdue_jobs_are_idle_and_have_been_due_for_a_while(world: World) -> None:
    await world.controller("c1")
    overdue, fresh, running = await world.jobs("overdue", "fresh", "running")
    overdue, fresh, running = await world.due(overdue, 60), await world.due(fresh, 10), await world.due(running, 60)
    await world.claim("c1", running)
    _, jobs = await world.store.get_overdue_jobs(tuple(range(4096)), 30_000, 10)
    assert jobs == [overdue]
    _, jobs = await world.store.get_overdue_jobs(tuple(range(4096)), 500, 10)
    assert jobs == [overdue, fresh]
    _, jobs = await world.store.get_overdue_jobs(tuple(range(4096)), 500, 1)
    assert jobs == [overdue]  # the first of its primary's herd


async def test_empty_batches_are_answered(world: World) -> None:
    await world.controller("c1")
    now, results = await world.store.start_cron_jobs("c1", [], GRACE_MS)
    assert results == []
    assert now > 0
    assert await world.store.end_cron_jobs("c1", []) == []
    assert await world.store.skip_ticks("c1", []) == []
