"""Runs beside the schedule, from where they wait to their claims: behaviour that every store has."""

import pytest

from cronring.controller.core.model import Activation, Execution, Job
from cronring.controller.ports.store import Backfill
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, SLOTS, World, end_of

FAILED = Outcome.FAILED
MINUTE = 60 * SECOND
OFF = Policy(jitter="off")
TWO = Policy(overlap="allow", max_concurrent=2, jitter="off")


async def idle(world: World, schedule: str = "* * * * *", policy: Policy = OFF) -> Job:
    """A job that may run, for a controller and a runner that are there."""
    await world.controller("c1")
    await world.runner("r1")
    (job,) = await world.jobs("a", schedule=schedule, policy=policy)
    return job


async def triggered(world: World, job: Job, payload: str | None = None) -> Activation:
    return await world.control.trigger_job(job.key, "me", payload)


async def started(world: World, waiting: Activation, next_tick: int | None = None) -> Execution:
    (result,) = await world.activate("c1", waiting, next_tick=next_tick)
    assert result.execution is not None, result
    assert (result.gone, result.next_tick) == (False, next_tick)
    return result.execution


async def backfill(world: World, job: Job, ticks: int, *, beside: bool = False, again: bool = False) -> Activation:
    """Of the latest so many ticks of a job that ticks each minute."""
    now = await world.scene.now()
    last = now - now % MINUTE - MINUTE
    wanted = Backfill(last - (ticks - 1) * MINUTE, last, beside, again)
    found = await world.control.backfill_job(job.key, "me", wanted)
    assert found is not None
    assert (found.tick, found.until_tick, found.trigger) == (last - (ticks - 1) * MINUTE, last, Trigger.BACKFILL)
    return found


async def test_a_manual_run_holds_its_job_and_leaves_its_ticks(world: World) -> None:
    job = await idle(world)
    execution = await started(world, await triggered(world, job, '"x"'))
    assert (execution.trigger, execution.attempt, execution.payload) == (Trigger.MANUAL, 1, '"x"')
    assert (execution.holds_job, execution.job.executing, execution.job.next_tick) == (True, True, job.next_tick)
    assert execution.tick % SECOND
    booked = await world.scene.job(job.job_id)
    assert (booked.executing, booked.next_tick, booked.last_tick) == (True, job.next_tick, None)
    assert await world.scene.activations() == []
    (found,) = await world.store.get_unfinished((execution.execution_id,))
    assert found == execution
    await world.end(execution, FAILED, next_tick=job.next_tick, next_run_at=job.next_run_at)
    booked = await world.scene.job(job.job_id)
    assert (booked.executing, booked.next_tick, booked.failures, booked.last_success) == (False, job.next_tick, 0, None)


async def test_its_payload_is_the_jobs_own_unless_it_brings_one(world: World) -> None:
    job = await idle(world)
    waiting = await triggered(world, job)
    assert waiting.payload == ""
    assert (await started(world, waiting)).payload == job.payload


async def test_what_waits_is_told_by_slot_and_instant(world: World) -> None:
    job = await idle(world)
    waiting = await triggered(world, job)
    now, found = await world.store.get_activations((job.slot,), 0)
    assert found == [waiting]
    assert now >= waiting.run_at
    others = tuple(slot for slot in SLOTS if slot != job.slot)
    assert (await world.store.get_activations(others, 0))[1] == []
    execution = await started(world, waiting)
    retry_at = await world.scene.now() + 100 * SECOND
    await world.end(execution, FAILED, retry_at=retry_at)
    assert (await world.store.get_activations(SLOTS, 10_000))[1] == []
    (retry,) = (await world.store.get_activations(SLOTS, 200_000))[1]
    assert (retry.run_at, retry.attempt, retry.tick) == (retry_at, 2, execution.tick)
    (early,) = await world.activate("c1", retry)
    assert (early.execution, early.gone) == (None, False)


async def test_nothing_is_claimed_twice(world: World) -> None:
    waiting = await triggered(world, await idle(world))
    await started(world, waiting)
    (again,) = await world.activate("c1", waiting)
    assert (again.execution, again.gone) == (None, True)
    assert len(await world.scene.executions()) == 1


async def test_without_a_valid_lease_nothing_starts(world: World) -> None:
    waiting = await triggered(world, await idle(world))
    await world.scene.expire_lease("c1", 0)
    (result,) = await world.activate("c1", waiting)
    assert (result.execution, result.gone) == (None, False)


async def test_a_runner_of_another_deployment_gets_nothing(world: World) -> None:
    waiting = await triggered(world, await idle(world))
    (result,) = await world.activate("c1", waiting._replace(job=waiting.job._replace(deployment="billing@other")))
    assert (result.execution, result.gone) == (None, False)


async def test_while_the_job_runs_it_waits(world: World) -> None:
    job = await idle(world)
    waiting = await triggered(world, job)
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.updated
    (busy,) = await world.activate("c1", waiting)
    assert (busy.execution, busy.gone, busy.next_tick) == (None, False, None)
    assert claimed.execution_id is not None
    (running,) = await world.store.get_unfinished((claimed.execution_id,))
    await world.end(running)
    await started(world, waiting)
    (refused,) = await world.claim("c1", await world.due(job, 0))
    assert (refused.updated, refused.executing) == (False, True)


async def test_several_of_one_job_start_one_by_one(world: World) -> None:
    job = await idle(world)
    first, second = await triggered(world, job), await triggered(world, job)
    results = await world.activate("c1", first, second)
    assert [result.execution is not None for result in results] == [True, False]
    assert [result.gone for result in results] == [False, False]


async def test_of_a_job_that_allows_several_as_many_start_as_there_is_room(world: World) -> None:
    job = await idle(world, policy=TWO)
    waiting = [await triggered(world, job) for _ in range(3)]
    results = await world.activate("c1", *waiting)
    executions = [result.execution for result in results if result.execution is not None]
    assert [execution.holds_job for execution in executions] == [False, False]
    assert executions[1].job.executing
    assert (await world.scene.job(job.job_id)).running == 2
    (refused,) = [await world.claim_next("c1", await world.due(job, 0))]
    assert (refused.updated, refused.executing) == (False, True)
    for execution in executions:
        await world.end(execution)
    booked = await world.scene.job(job.job_id)
    assert (booked.running, booked.executing) == (0, False)
    await started(world, waiting[2])


async def test_a_retry_is_the_ticks_next_attempt(world: World) -> None:
    (first,) = await world.running("c1", "a", seconds_ago=100)
    await world.end(first)
    await world.scene.set_next_tick(first.job.job_id, first.tick + SECOND)
    (claimed,) = await world.claim("c1", await world.job(first.job.job_id))
    assert claimed.execution_id is not None
    (second,) = await world.store.get_unfinished((claimed.execution_id,))
    await world.end(second, FAILED, retry_at=second.claimed_at)
    (waiting,) = await world.waiting()
    retry = await started(world, waiting)
    assert (retry.tick, retry.attempt, retry.trigger, retry.holds_job) == (second.tick, 2, Trigger.RETRY, True)
    assert (retry.previous_tick, retry.previous_success) == (first.tick, first.tick), "what the first attempt was told"
    await world.end(retry, FAILED, retry_at=retry.claimed_at)
    (third,) = await world.waiting()
    assert third.attempt == 3


async def test_the_next_tick_supersedes_a_waiting_retry(world: World) -> None:
    (first,) = await world.running("c1", "a", seconds_ago=100)
    await world.end(first, FAILED, retry_at=first.claimed_at)
    (waiting,) = await world.waiting()
    await world.scene.set_next_tick(first.job.job_id, first.tick + SECOND)
    assert (await world.claim("c1", await world.job(first.job.job_id)))[0].updated
    (result,) = await world.activate("c1", waiting)
    assert (result.execution, result.gone) == (None, True)
    assert await world.scene.activations() == []
    assert [row.retry_at for row in await world.scene.executions()] == [first.claimed_at, None]


async def superseded(world: World, first: Execution) -> Execution:
    """`first` fails, and its next tick is claimed before the retry is; that one's execution."""
    await world.end(first, FAILED, retry_at=first.claimed_at)
    (waiting,) = await world.waiting()
    await world.scene.set_next_tick(first.job.job_id, first.tick + SECOND)
    (claimed,) = await world.claim("c1", await world.job(first.job.job_id))
    assert claimed.execution_id is not None
    assert (await world.activate("c1", waiting))[0].gone
    (second,) = await world.store.get_unfinished((claimed.execution_id,))
    return second


async def test_a_tick_whose_retry_is_superseded_is_one_without_success(world: World) -> None:
    (first,) = await world.running("c1", "a", seconds_ago=100)
    second = await superseded(world, first)
    booked = await world.scene.job(first.job.job_id)
    assert (booked.failures, booked.executing) == (1, True)
    await world.end(second)
    assert (await world.scene.job(first.job.job_id)).failures == 0


async def test_ticks_whose_retries_are_superseded_pause_their_job(world: World) -> None:
    policy = Policy(retries=5, pause_after_failures=2, jitter="off")
    (execution,) = await world.running("c1", "a", policy=policy, seconds_ago=100)
    for _ in range(2):
        assert not (await world.scene.job(execution.job.job_id)).paused
        execution = await superseded(world, execution)
    upcoming = execution.tick + SECOND
    result = await world.end(execution, FAILED, retry_at=execution.claimed_at, next_tick=upcoming, next_run_at=upcoming)
    booked = await world.scene.job(execution.job.job_id)
    assert (result.paused, booked.paused, booked.failures, booked.paused_tick) == (True, True, 2, upcoming)


async def test_a_retry_that_a_success_has_overtaken_is_no_failure(world: World) -> None:
    (first,) = await world.running("c1", "a", seconds_ago=100)
    await world.end(first, FAILED, retry_at=first.claimed_at)
    (waiting,) = await world.waiting()
    await world.scene.set_next_tick(first.job.job_id, first.tick + SECOND)
    (claimed,) = await world.claim("c1", await world.job(first.job.job_id))
    assert claimed.execution_id is not None
    (second,) = await world.store.get_unfinished((claimed.execution_id,))
    await world.end(second)
    assert (await world.activate("c1", waiting))[0].gone
    assert (await world.scene.job(first.job.job_id)).failures == 0


async def test_beside_a_superseded_retry_another_run_of_its_job_starts_at_once(world: World) -> None:
    (first,) = await world.running("c1", "a", seconds_ago=100)
    await world.end(first, FAILED, retry_at=first.claimed_at)
    (retry,) = await world.waiting()
    await world.scene.set_next_tick(first.job.job_id, first.tick + SECOND)
    (claimed,) = await world.claim("c1", await world.job(first.job.job_id))
    assert claimed.execution_id is not None
    (second,) = await world.store.get_unfinished((claimed.execution_id,))
    await world.end(second, FAILED)
    manual = await triggered(world, first.job)
    gone, begun = await world.activate("c1", retry, manual)
    assert (gone.gone, begun.execution is not None) == (True, True)
    booked = await world.scene.job(first.job.job_id)
    assert (booked.failures, booked.executing) == (2, True)


@pytest.mark.parametrize("by_hand", [False, True])
async def test_retries_of_backfills_and_manual_runs_are_nobodys_but_theirs(world: World, by_hand: bool) -> None:
    job = await idle(world, policy=Policy(retries=3, pause_after_failures=1, jitter="off"))
    waiting = await triggered(world, job) if by_hand else await backfill(world, job, 1)
    own = await started(world, waiting)
    assert not own.of_schedule
    await world.end(own, FAILED, retry_at=own.claimed_at, next_tick=job.next_tick, next_run_at=job.next_run_at)
    (claimed,) = await world.claim("c1", await world.due(job, 0))  # a later tick, by the schedule
    assert claimed.execution_id is not None
    (later,) = await world.store.get_unfinished((claimed.execution_id,))
    await world.end(later, next_tick=job.next_tick, next_run_at=job.next_run_at)
    before = await world.scene.job(job.job_id)
    (retry,) = await world.waiting()
    again = await started(world, retry)
    assert (again.trigger, again.attempt, again.tick, again.of_schedule) == (Trigger.RETRY, 2, own.tick, False)
    assert await world.store.get_unfinished((again.execution_id,)) == [again]
    await world.end(again, FAILED, next_tick=job.next_tick, next_run_at=job.next_run_at)
    assert await world.scene.job(job.job_id) == before, "it is no tick of the schedule that failed"


async def test_a_retry_that_runs_makes_the_next_tick_wait(world: World) -> None:
    (first,) = await world.running("c1", "a", seconds_ago=100)
    await world.end(first, FAILED, retry_at=first.claimed_at)
    (waiting,) = await world.waiting()
    retry = await started(world, waiting)
    await world.scene.set_next_tick(first.job.job_id, first.tick + SECOND)
    (refused,) = await world.claim("c1", await world.job(first.job.job_id))
    assert (refused.updated, refused.executing) == (False, True)
    await world.end(retry, next_tick=first.tick + SECOND, next_run_at=first.tick + SECOND)
    assert (await world.claim("c1", await world.job(first.job.job_id)))[0].updated


async def test_a_backfill_goes_from_tick_to_tick_and_ends(world: World) -> None:
    job = await idle(world)
    waiting = await backfill(world, job, 3)
    assert waiting.until_tick is not None
    for tick in range(waiting.tick, waiting.until_tick + 1, MINUTE):
        following = tick + MINUTE if tick < waiting.until_tick else None
        execution = await started(world, waiting, following)
        assert (execution.tick, execution.attempt, execution.trigger) == (tick, 1, Trigger.BACKFILL)
        (busy,) = await world.activate("c1", waiting._replace(tick=following or 0), next_tick=None)
        assert (busy.execution, busy.gone, busy.next_tick) == (None, following is None, following)
        await world.end(execution, next_tick=job.next_tick, next_run_at=job.next_run_at)
        waiting = waiting._replace(tick=following or 0)
    assert await world.scene.activations() == []
    booked = await world.scene.job(job.job_id)
    assert (booked.next_tick, booked.last_tick, booked.last_success) == (job.next_tick, None, None)


async def test_whoever_comes_late_is_told_where_a_backfill_stands(world: World) -> None:
    waiting = await backfill(world, await idle(world), 3)
    await started(world, waiting, waiting.tick + MINUTE)
    (result,) = await world.activate("c1", waiting, next_tick=waiting.tick + MINUTE)
    assert (result.execution, result.gone, result.next_tick) == (None, False, waiting.tick + MINUTE)


@pytest.mark.parametrize("again", [False, True])
async def test_a_backfill_passes_over_what_completed_unless_it_is_to_run_again(world: World, again: bool) -> None:
    job = await idle(world)
    first = await backfill(world, job, 1)
    await world.end(await started(world, first), next_tick=job.next_tick, next_run_at=job.next_run_at)
    second = await backfill(world, job, 1, again=again)
    assert second.tick >= first.tick
    (result,) = await world.activate("c1", second._replace(tick=second.tick))
    if second.tick == first.tick:  # else the minute was over
        assert (result.execution is not None, result.gone) == (again, not again)
        if result.execution is not None:
            assert result.execution.attempt == 2


async def test_a_tick_that_failed_is_backfilled_as_another_attempt(world: World) -> None:
    job = await idle(world)
    waiting = await backfill(world, job, 2)
    following = waiting.tick + MINUTE
    await world.end(await started(world, waiting, following), FAILED)
    other = await world.control.backfill_job(job.key, "me", Backfill(waiting.tick, following, False, False))
    assert other is not None
    assert (await started(world, other)).attempt == 2


async def test_beside_its_job_a_backfill_neither_holds_nor_counts(world: World) -> None:
    job = await idle(world)
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.updated
    waiting = await backfill(world, job, 2, beside=True)
    execution = await started(world, waiting, waiting.tick + MINUTE)
    assert not execution.holds_job
    before = await world.scene.job(job.job_id)
    assert (before.executing, before.running) == (True, 0)
    result = await world.end(execution, FAILED, retry_at=execution.claimed_at)
    assert await world.scene.job(job.job_id) == before
    assert (result.ended, result.next_tick) == (True, None)
    retry = next(each for each in await world.scene.activations() if each.activation_id == result.retry_id)
    assert retry.beside


async def test_of_a_backfill_beside_its_job_ten_run_at_once(world: World) -> None:
    job = await idle(world)
    waiting = await backfill(world, job, 12, beside=True)
    running: list[Execution] = []
    for _ in range(10):
        running.append(await started(world, waiting, waiting.tick + MINUTE))
        (waiting,) = await world.waiting()
    (refused,) = await world.activate("c1", waiting)
    assert (refused.execution, refused.gone, refused.next_tick) == (None, False, waiting.tick)
    await world.end(running[1])  # in order: it waits for the first one of the ten
    assert (await world.activate("c1", waiting))[0].execution is None
    await world.end(running[0])
    running.append(await started(world, waiting, waiting.tick + MINUTE))
    (waiting,) = await world.waiting()
    await started(world, waiting)


async def test_a_run_and_those_beside_it_end_in_one_statement(world: World) -> None:
    job = await idle(world)
    (claimed,) = await world.claim("c1", await world.due(job))
    assert claimed.execution_id is not None
    (held,) = await world.store.get_unfinished((claimed.execution_id,))
    waiting = await backfill(world, job, 2, beside=True)
    first = await started(world, waiting, waiting.tick + MINUTE)
    (moved,) = await world.waiting()
    second = await started(world, moved)
    requests = [end_of(each, FAILED)._replace(retry_at=each.claimed_at + MINUTE) for each in (held, first, second)]
    results = await world.store.end_cron_jobs("c1", requests)
    assert [result.ended for result in results] == [True, True, True]
    assert None not in [result.retry_id for result in results]


async def test_a_backfill_leaves_alone_what_its_schedule_has_yet_to_run(world: World) -> None:
    job = await idle(world)
    now = await world.scene.now()
    last = now - now % MINUTE - MINUTE
    waiting = await backfill(world, job, 1)
    await world.scene.set_next_tick(job.job_id, last)  # as if nobody had claimed it yet
    (result,) = await world.activate("c1", waiting)
    assert (result.execution, result.gone) == (None, False)
    everything = Backfill(last - 10 * MINUTE, now + 10 * MINUTE, False, False)
    found = await world.control.backfill_job(job.key, "me", everything)
    assert found is not None
    assert found.until_tick is not None
    assert found.until_tick < last
    assert await world.control.backfill_job(job.key, "me", everything._replace(from_at=last)) is None


async def test_a_pause_keeps_all_but_manual_runs_waiting(world: World) -> None:
    (execution,) = await world.running("c1", "a", seconds_ago=100)
    await world.end(execution, FAILED, retry_at=execution.claimed_at)
    await world.control.pause_job(execution.job.key, "me", "")
    (retry,) = await world.control.list_activations(execution.job.key)
    manual = await triggered(world, execution.job)
    assert await world.waiting() == [manual]
    (result,) = await world.activate("c1", retry)
    assert (result.execution, result.gone) == (None, False)
    run = await started(world, manual)
    ended = await world.end(run)
    assert (ended.ended, ended.next_tick) == (True, None)
    await world.control.resume_job(execution.job.key, "me")
    await started(world, retry)


async def test_what_waits_for_a_removed_job_is_gone(world: World) -> None:
    job = await idle(world)
    waiting = await triggered(world, job)
    await world.store.kill_deployment(job.deployment)
    assert await world.scene.activations() == []
    (result,) = await world.activate("c1", waiting)
    assert (result.execution, result.gone) == (None, True)


async def test_a_cancelled_one_is_gone(world: World) -> None:
    job = await idle(world)
    waiting = await triggered(world, job)
    assert await world.control.list_activations(job.key) == [waiting]
    assert await world.control.cancel_activation(job.key, waiting.activation_id)
    assert not await world.control.cancel_activation(job.key, waiting.activation_id)
    assert await world.control.list_activations(job.key) == []
    assert (await world.activate("c1", waiting))[0].gone


async def test_every_attempted_one_is_answered_in_order(world: World) -> None:
    job = await idle(world)
    waiting = await triggered(world, job)
    unknown = waiting._replace(activation_id=999)
    results = await world.activate("c1", unknown, waiting)
    assert [result.activation_id for result in results] == [999, waiting.activation_id]
    assert [result.gone for result in results] == [True, False]
    assert (await world.store.start_activations("c1", [], 1))[1] == []


async def test_what_waits_is_listed_in_pages(world: World) -> None:
    job = await idle(world)
    all_of_them = [await triggered(world, job) for _ in range(4)]
    assert await world.control.list_activations(job.key) == all_of_them
    first = await world.control.list_activations(job.key, limit=3)
    after = (first[-1].run_at, first[-1].activation_id)
    assert await world.control.cancel_activation(job.key, first[-1].activation_id), "what a page ended with may go"
    assert first + await world.control.list_activations(job.key, after=after, limit=3) == all_of_them
