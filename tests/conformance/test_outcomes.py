"""What an end means to its job: retries, failures that pause, moved anchors; what a handler is told; merged skips."""

import pytest

from cronring.controller.core.ledger.books import Span
from cronring.controller.core.model import Execution, SkipRequest
from cronring.controller.core.orders.orders import SkipNext
from cronring.schema.execution import Outcome, Skipped, SkipReason, Trigger
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import GRACE_MS, SECOND, TIMEOUT_MS, World, claim_of, end_of

FAILED = Outcome.FAILED
HOUR = 3600 * SECOND


async def run_again(world: World, execution: Execution, trigger: Trigger = Trigger.SCHEDULE) -> Execution:
    """The next execution of its job, a second later than the one before."""
    tick = execution.tick + SECOND
    await world.scene.set_next_tick(execution.job.job_id, tick)
    job = await world.job(execution.job.job_id)
    request = claim_of(job)._replace(trigger=trigger)
    _, (result,) = await world.store.start_cron_jobs("c1", [request], GRACE_MS)
    assert result.execution_id is not None
    (found,) = await world.store.get_unfinished((result.execution_id,))
    return found


async def test_a_claim_tells_what_came_before(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.due_jobs("a", seconds_ago=100)
    (first,) = await world.claim("c1", job)
    assert (first.previous_tick, first.previous_success) == (None, None)
    assert first.execution_id is not None
    (execution,) = await world.store.get_unfinished((first.execution_id,))
    assert (execution.trigger, execution.missed, execution.previous_tick) == ("schedule", 0, None)
    await world.end(execution)
    second = await run_again(world, execution)
    assert (second.previous_tick, second.previous_success) == (execution.tick, execution.tick)
    await world.end(second, FAILED)
    third = await run_again(world, second)
    assert (third.previous_tick, third.previous_success) == (second.tick, execution.tick)


async def test_ticks_that_an_outage_cost_are_told_as_missed(world: World) -> None:
    await world.controller("c1")
    job = await world.due((await world.jobs("a", schedule="1s"))[0], 10)
    assert job.next_tick is not None
    run = job.next_tick + 9 * SECOND
    skipped = (
        Skipped(SkipReason.MISSED_POLICY, job.next_tick, job.next_tick + 2 * SECOND, 3),
        Skipped(SkipReason.OUTSIDE_WINDOW, job.next_tick + 3 * SECOND, job.next_tick + 4 * SECOND, 2),
        Skipped(SkipReason.SUPERSEDED, job.next_tick + 5 * SECOND, run - SECOND, 4),
    )
    request = claim_of(job, skipped=skipped)._replace(run_tick=run, run_at=run, trigger=Trigger.CATCH_UP)
    _, (result,) = await world.store.start_cron_jobs("c1", [request], GRACE_MS)
    assert result.execution_id is not None
    (execution,) = await world.store.get_unfinished((result.execution_id,))
    assert (execution.trigger, execution.missed) == (Trigger.CATCH_UP, 7)
    assert [skip[1:5] for skip in await world.scene.skips()] == [tuple(each) for each in skipped]


async def test_a_payload_goes_with_the_job_and_its_executions(world: World) -> None:
    await world.controller("c1")
    await world.runner("r1")
    module = Module("billing", (Verb("a", schedule="every 1h", payload='{"n": 1}'),))
    (job,) = (await world.store.create_deployment(module, "a" * 64, 1, TIMEOUT_MS, True)).jobs
    assert job.payload == '{"n": 1}'
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.execution_id is not None
    (adopted,) = await world.store.adopt_executions("c2", ("c1",))
    assert (adopted.payload, adopted.job.payload, adopted.holds_job) == ('{"n": 1}', '{"n": 1}', True)


async def test_a_wanted_retry_waits_beside_the_schedule(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    retry_at = await world.scene.now() + 10 * SECOND
    result = await world.end(execution, FAILED, retry_at=retry_at)
    assert (result.ended, result.next_tick) == (True, execution.tick + HOUR)
    (retry,) = await world.scene.activations()
    assert retry == (result.retry_id, execution.job.job_id, "retry", execution.tick, None, 2, retry_at, None, False)
    assert [row.retry_at for row in await world.scene.executions()] == [retry_at]
    booked = await world.scene.job(execution.job.job_id)
    assert (booked.failures, booked.last_success) == (0, None), "the tick's outcome is not known yet"
    # Repeated, as after a lost answer, it makes no second one.
    again = await world.end(execution, FAILED, retry_at=retry_at)
    assert (again.ended, again.retry_id) == (False, None)
    assert len(await world.scene.activations()) == 1


async def test_a_redeployment_loses_no_retry(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    module = Module("billing", (Verb("a", schedule="every 7m"),))
    await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)
    result = await world.end(execution, FAILED, retry_at=execution.claimed_at)
    assert result.retry_id is not None
    (waiting,) = await world.waiting()
    assert (waiting.tick, waiting.attempt, waiting.job.schedule) == (execution.tick, 2, "every 7m")


@pytest.mark.parametrize("why", ["removed", "paused"])
async def test_what_is_removed_or_paused_is_not_tried_again(world: World, why: str) -> None:
    (execution,) = await world.running("c1", "a")
    if why == "paused":
        await world.control.pause_job(execution.job.key, "me", "")
    else:
        module = Module("billing", (Verb("b", schedule="every 7m"),))
        await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)
    result = await world.end(execution, FAILED, retry_at=execution.claimed_at)
    assert (result.ended, result.retry_id, result.next_tick) == (True, None, None)
    assert await world.scene.activations() == []
    assert (await world.scene.job(execution.job.job_id)).failures == 1


async def test_failures_in_a_row_are_counted_and_a_success_ends_them(world: World) -> None:
    (execution,) = await world.running("c1", "a", seconds_ago=100)
    for outcome, failures in (
        (FAILED, 1), (Outcome.CANCELLED, 1), (Outcome.LOST, 2), (Outcome.TIMED_OUT, 3), (Outcome.OUT_OF_MEMORY, 4),
        (Outcome.OUT_OF_CPU, 5), (Outcome.COMPLETED, 0),
        (Outcome.CANCELLED, 0),
    ):  # fmt: skip
        await world.end(execution, outcome)
        assert (await world.scene.job(execution.job.job_id)).failures == failures
        execution = await run_again(world, execution)


async def test_a_job_without_success_for_too_long_is_paused(world: World) -> None:
    policy = Policy(pause_after_failures=2, jitter="off")
    (execution,) = await world.running("c1", "a", policy=policy, seconds_ago=100)
    assert not (await world.end(execution, FAILED)).paused
    second = await run_again(world, execution)
    result = await world.end(second, FAILED)
    assert (result.ended, result.paused, result.next_tick) == (True, True, None)
    assert result.revision == execution.job.revision + 1
    booked = await world.scene.job(execution.job.job_id)
    assert (booked.paused, booked.next_tick, booked.paused_by) == (True, None, "cronring")
    assert booked.paused_tick == second.tick + HOUR
    assert "2" in booked.paused_note
    # Resumed, it has as many failures before it as at first.
    await world.control.resume_job(execution.job.key, "me")
    assert (await world.scene.job(execution.job.job_id)).failures == 0
    third = await run_again(world, second)
    assert not (await world.end(third, FAILED)).paused


async def test_runs_that_their_own_policy_cuts_do_not_pause_the_job(world: World) -> None:
    policy = Policy(overlap="cancel_running", pause_after_failures=2, jitter="off")
    (execution,) = await world.running("c1", "a", policy=policy, seconds_ago=100)
    for _ in range(3):
        assert not (await world.end(execution, Outcome.CANCELLED)).paused
        execution = await run_again(world, execution)
    booked = await world.scene.job(execution.job.job_id)
    assert (booked.failures, booked.last_success, booked.paused) == (0, None, False)
    # Nor do they part two failures: between those there was no success.
    await world.end(execution, FAILED)
    execution = await run_again(world, execution)
    await world.end(execution, Outcome.CANCELLED)
    execution = await run_again(world, execution)
    assert (await world.end(execution, FAILED)).paused


async def test_of_several_that_end_at_once_cancelled_ones_are_no_failures(world: World) -> None:
    policy = Policy(overlap="allow", pause_after_failures=2, jitter="off")
    (first,) = await world.running("c1", "a", policy=policy, seconds_ago=100)
    second = await run_again(world, first)
    third = await run_again(world, second)
    ends = [(first, Outcome.CANCELLED), (second, FAILED), (third, Outcome.CANCELLED)]
    requests = [end_of(execution, outcome) for execution, outcome in ends]
    results = await world.store.end_cron_jobs("c1", requests)
    assert [result.paused for result in results] == [False, False, False]
    assert (await world.scene.job(first.job.job_id)).failures == 1


async def test_a_tick_that_is_to_be_tried_again_is_no_failure_yet(world: World) -> None:
    policy = Policy(pause_after_failures=1, retries=1, jitter="off")
    (execution,) = await world.running("c1", "a", policy=policy)
    assert not (await world.end(execution, FAILED, retry_at=execution.claimed_at)).paused
    (retry,) = await world.waiting()
    (started,) = await world.activate("c1", retry)
    assert started.execution is not None
    assert (await world.end(started.execution, FAILED)).paused


async def test_what_a_later_tick_has_superseded_is_not_to_be_tried_again(world: World) -> None:
    """Whoever ends it may know no more than the tick after that one."""
    policy = Policy(overlap="allow", retries=1, pause_after_failures=2, jitter="off")
    (first,) = await world.running("c1", "a", policy=policy, seconds_ago=100)
    second = await run_again(world, first)
    await world.end(first, FAILED, retry_at=first.claimed_at)
    await world.end(second, FAILED, retry_at=second.claimed_at)
    booked = await world.scene.executions()
    assert [row.retry_at for row in booked] == [None, second.claimed_at]
    assert [row.tick for row in await world.waiting()] == [second.tick]
    assert (await world.scene.job(first.job.job_id)).failures == 1


async def test_a_retry_that_succeeds_makes_its_tick_a_success(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    await world.end(execution, FAILED, retry_at=execution.claimed_at)
    (retry,) = await world.waiting()
    (started,) = await world.activate("c1", retry)
    assert started.execution is not None
    await world.end(started.execution)
    booked = await world.scene.job(execution.job.job_id)
    assert (booked.failures, booked.last_success) == (0, execution.tick)


async def test_a_moved_run_opens_new_books_behind_what_was_decided(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    job = execution.job
    (before,) = await world.scene.spans(job.job_id)
    anchor = execution.tick + 100 * SECOND
    moved = anchor + HOUR
    skipped = Skipped(SkipReason.OVERLAP, execution.tick + SECOND, execution.tick + 2 * SECOND, 2)
    closing = skipped.last_tick + 30 * SECOND
    result = await world.end(
        execution, anchor=anchor, next_tick=moved, next_run_at=moved, skipped=(skipped,), closes_at=closing
    )
    assert (result.next_tick, result.revision, result.moved) == (moved, job.revision + 1, True)
    booked = await world.scene.job(job.job_id)
    assert (booked.anchor, booked.next_tick) == (anchor, moved)
    closes_at = max(before.from_at, closing)
    assert await world.scene.spans(job.job_id) == [
        before._replace(until_at=closes_at), Span(job.schedule, anchor, closes_at, None, job.policy)
    ]  # fmt: skip


async def test_a_run_that_moves_its_schedule_past_its_end_leaves_it_without_ticks(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    job = execution.job
    (before,) = await world.scene.spans(job.job_id)
    result = await world.end(
        execution, anchor=execution.tick + HOUR, next_tick=None, next_run_at=None, closes_at=execution.tick
    )
    assert (result.next_tick, result.revision) == (None, job.revision + 1)
    closes_at = max(before.from_at, execution.tick)
    assert await world.scene.spans(job.job_id) == [
        before._replace(until_at=closes_at), Span(job.schedule, execution.tick + HOUR, closes_at, None, job.policy)
    ]  # fmt: skip


async def test_a_run_beyond_its_schedule_moves_it_from_before_the_next_tick_on(world: World) -> None:
    """A manual run at noon says `in 5 minutes`, and the job's next tick is tomorrow: that one is dropped."""
    await world.controller("c1")
    await world.runner("r1")
    (job,) = await world.jobs("a", schedule="every 24h")
    (started,) = await world.activate("c1", await world.control.trigger_job(job.key, "me", None))
    assert started.execution is not None
    moved = await world.scene.now() + 300 * SECOND
    await world.end(
        started.execution, anchor=moved - 24 * HOUR, next_tick=moved, next_run_at=moved, closes_at=moved - 24 * HOUR
    )
    old, new = await world.scene.spans(job.job_id)
    assert old.until_at == new.from_at
    assert old.from_at <= new.from_at < moved


async def test_a_tick_skipped_ahead_stays_in_the_books_that_a_move_ends(world: World) -> None:
    """Whatever comes after: a new schedule takes back only what its own predecessor has yet to decide."""
    await world.controller("c1")
    await world.runner("r1")
    (job,) = await world.jobs("a", schedule="every 24h")
    skipped = (await world.control.order_job(job.key, SkipNext(), "me")).job
    (started,) = await world.activate("c1", await world.control.trigger_job(job.key, "me", None))
    assert started.execution is not None
    assert job.next_tick is not None
    assert skipped.next_tick is not None
    moved = skipped.next_tick + HOUR
    await world.end(
        started.execution, anchor=moved - 24 * HOUR, next_tick=moved, next_run_at=moved, closes_at=job.next_tick
    )
    await world.control.order_job(job.key, SkipNext(), "me")
    module = Module("billing", (Verb("a", schedule="every 7m"),))
    await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)
    kept = SkipReason.CANCELLED, job.next_tick, job.next_tick, 1
    assert [skip[1:5] for skip in await world.scene.skips()] == [kept]


async def test_a_move_computed_with_an_old_schedule_is_ignored(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    module = Module("billing", (Verb("a", schedule="every 7m"),))
    (job,) = (await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)).jobs
    moved = execution.tick + HOUR
    result = await world.end(
        execution, anchor=execution.tick, next_tick=moved, next_run_at=moved, closes_at=execution.tick
    )
    assert (result.next_tick, result.revision, result.moved) == (job.next_tick, job.revision, False)
    assert len(await world.scene.spans(job.job_id)) == 2


async def test_a_move_to_before_the_present_books_is_ignored(world: World) -> None:
    """Seed 96766: the end waited for PostgreSQL, its runner's "in 2 s" passed, and a deployment had begun new books."""
    (execution,) = await world.running("c1", "a")
    job = await world.job(execution.job.job_id)
    (span,) = await world.scene.spans(job.job_id)
    moved = execution.tick
    assert moved <= span.from_at
    result = await world.end(
        execution, anchor=moved - HOUR, next_tick=moved, next_run_at=moved, closes_at=execution.tick
    )
    assert (result.ended, result.next_tick, result.revision) == (True, job.next_tick, job.revision)
    assert not result.moved
    booked = await world.scene.job(job.job_id)
    assert (booked.executing, booked.next_tick, booked.anchor) == (False, job.next_tick, job.anchor)
    assert await world.scene.spans(job.job_id) == [span]


def skip_of(job_id: int, revision: int, tick: int, reason: SkipReason) -> SkipRequest:
    return SkipRequest(job_id, tick, revision, (Skipped(reason, tick, tick, 1),), tick + SECOND, tick + SECOND)


async def test_ticks_skipped_one_after_the_other_for_one_reason_are_one_range(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.jobs("a", schedule="1s")
    first = (await world.scene.spans(job.job_id))[0].from_at // SECOND * SECOND + SECOND
    await world.scene.set_next_tick(job.job_id, first)
    outside, no_runner = SkipReason.OUTSIDE_WINDOW, SkipReason.NO_RUNNER
    reasons = [outside, outside, outside, no_runner, outside]
    for number, reason in enumerate(reasons):
        await world.store.skip_ticks("c1", [skip_of(job.job_id, job.revision, first + number * SECOND, reason)])
    assert [skip[1:5] for skip in await world.scene.skips()] == [
        ("outside_window", first, first + 2 * SECOND, 3),
        ("no_runner", first + 3 * SECOND, first + 3 * SECOND, 1),
        ("outside_window", first + 4 * SECOND, first + 4 * SECOND, 1),
    ]


async def test_of_several_ranges_at_once_the_first_goes_on(world: World) -> None:
    await world.controller("c1")
    (job,) = await world.jobs("a", schedule="1s")
    first = (await world.scene.spans(job.job_id))[0].from_at // SECOND * SECOND + SECOND
    await world.scene.set_next_tick(job.job_id, first)
    outside, missed = SkipReason.OUTSIDE_WINDOW, SkipReason.MISSED_POLICY
    await world.store.skip_ticks("c1", [skip_of(job.job_id, job.revision, first, outside)])
    second, third, fourth = (first + number * SECOND for number in (1, 2, 3))
    ranges = (Skipped(outside, second, second, 1), Skipped(missed, third, third, 1))
    await world.store.skip_ticks("c1", [SkipRequest(job.job_id, second, job.revision, ranges, fourth, fourth)])
    assert [skip[1:5] for skip in await world.scene.skips()] == [
        ("outside_window", first, second, 2),
        ("missed_policy", third, third, 1),
    ]


async def test_a_range_does_not_go_on_across_a_run_or_a_change_of_schedule(world: World) -> None:
    (execution,) = await world.running("c1", "a", seconds_ago=100)
    job_id, tick = execution.job.job_id, execution.tick
    await world.end(execution, next_tick=tick + SECOND, next_run_at=tick + SECOND)
    revision = execution.job.revision
    await world.store.skip_ticks("c1", [skip_of(job_id, revision, tick + SECOND, SkipReason.NO_RUNNER)])
    ran = await run_again(world, execution._replace(tick=tick + SECOND))
    await world.end(ran, next_tick=tick + 3 * SECOND, next_run_at=tick + 3 * SECOND)
    await world.store.skip_ticks("c1", [skip_of(job_id, revision, tick + 3 * SECOND, SkipReason.NO_RUNNER)])
    assert [skip.ticks for skip in await world.scene.skips()] == [1, 1]
    module = Module("billing", (Verb("a", schedule="every 7m"),))
    (job,) = (await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)).jobs
    assert job.next_tick is not None
    before = await world.scene.skips()
    await world.store.skip_ticks("c1", [skip_of(job_id, job.revision, job.next_tick, SkipReason.NO_RUNNER)])
    assert (await world.scene.skips())[: len(before)] == before
