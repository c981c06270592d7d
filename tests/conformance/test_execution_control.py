"""Cancelling and retrying single executions: behaviour that every store has."""

import pytest

from cronring.controller.core.model import CancelRequest, Execution, LeaseRenewal
from cronring.controller.core.orders import orders
from cronring.controller.errors import IllegalTransition, NotFound
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import ControllerInfo
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import LEASE_MS, LOST_AFTER_MS, SECOND, TIMEOUT_MS, World, end_of

RETRIED = Policy(retries=3, jitter="off")


async def renewed(world: World, controller_id: str, *cancelling: int) -> LeaseRenewal:
    info = ControllerInfo(controller_id, "127.0.0.1:1", "127.0.0.1:2", 7, "0.1.0")
    return await world.store.renew_lease(info, False, LEASE_MS, (), LOST_AFTER_MS, cancelling)


async def failed(world: World, outcome: Outcome = Outcome.FAILED, policy: Policy = RETRIED) -> Execution:
    (execution,) = await world.running("c1", "a", policy=policy, seconds_ago=10)
    assert (await world.end(execution, outcome)).ended
    return execution


async def test_a_marked_execution_is_named_to_whoever_answers_for_it(world: World) -> None:
    first, second = await world.running("c1", "a", "b")
    await world.controller("c2")
    assert await world.execution_control.cancel_execution(first.execution_id, "ann", "wrong month")
    wanted = CancelRequest(first.execution_id, "r1", "ann", "wrong month")
    assert wanted.reason == "cancelled by ann: wrong month"
    assert (await renewed(world, "c1")).cancels == (wanted,)
    assert (await renewed(world, "c1", first.execution_id, second.execution_id)).cancels == ()
    assert (await renewed(world, "c2")).cancels == ()
    await world.store.adopt_executions("c2", ("c1",))
    assert (await renewed(world, "c1")).cancels == ()
    assert (await renewed(world, "c2")).cancels == (wanted,)


async def test_a_mark_is_made_once_and_of_what_runs_only(world: World) -> None:
    first, second = await world.running("c1", "a", "b")
    cancel = world.execution_control.cancel_execution
    assert await cancel(first.execution_id, "ann", "")
    assert not await cancel(first.execution_id, "bob", "me too")
    (named,) = (await renewed(world, "c1")).cancels
    assert (named.by, named.reason) == ("ann", "cancelled by ann")
    await world.end(first, Outcome.CANCELLED)
    await world.end(second)
    assert (await renewed(world, "c1")).cancels == ()
    assert not await cancel(second.execution_id, "ann", "")
    assert not await cancel(10**9, "ann", "")


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.FAILED, Outcome.LOST, Outcome.TIMED_OUT])
async def test_what_was_to_be_cancelled_is_not_tried_again_however_it_ended(world: World, outcome: Outcome) -> None:
    (execution,) = await world.running("c1", "a", policy=RETRIED)
    await world.execution_control.cancel_execution(execution.execution_id, "ann", "")
    ended = await world.end(execution, outcome, retry_at=await world.scene.now() + SECOND)
    assert (ended.ended, ended.retry_id) == (True, None)
    assert await world.scene.activations() == []
    (booked,) = await world.scene.executions()
    assert (booked.outcome, booked.retry_at) == (outcome, None)


@pytest.mark.parametrize(
    "outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.LOST, Outcome.OUT_OF_MEMORY]
)
async def test_a_retry_by_hand_is_the_next_attempt_at_its_tick(world: World, outcome: Outcome) -> None:
    execution = await failed(world, outcome)
    waiting = await world.execution_control.retry_execution(execution.execution_id, "ann")
    assert (waiting.trigger, waiting.tick, waiting.attempt) == (Trigger.RETRY, execution.tick, 2)
    assert not waiting.beside
    assert await world.execution_control.retry_execution(execution.execution_id, "bob") == waiting
    (result,) = await world.activate("c1", waiting)
    assert result.execution is not None
    assert (result.execution.tick, result.execution.attempt) == (execution.tick, 2)
    assert result.execution.execution_id > execution.execution_id


async def test_a_retry_by_hand_is_superseded_by_no_later_tick(world: World) -> None:
    execution = await failed(world)
    job = await world.due(execution.job)
    (claim,) = await world.claim("c1", job)
    assert claim.execution_id is not None
    (later,) = await world.store.get_unfinished((claim.execution_id,))
    waiting = await world.execution_control.retry_execution(execution.execution_id, "ann")
    (refused,) = await world.activate("c1", waiting)  # the job is busy
    assert (refused.execution, refused.gone) == (None, False)
    await world.end(later)
    (result,) = await world.activate("c1", waiting)
    assert result.execution is not None
    assert (result.execution.tick, result.execution.attempt) == (execution.tick, 2)


async def test_a_retry_by_hand_is_its_schedules_as_far_as_what_it_retries(world: World) -> None:
    """So the success of a tick's counts as that tick's, and that of a manual run as nothing."""
    execution = await failed(world)
    assert (await world.scene.job(execution.job.job_id)).failures == 1
    manual = await world.control.trigger_job(execution.job.key, "ann", None)
    (begun,) = await world.activate("c1", manual)
    assert begun.execution is not None
    await world.end(begun.execution, Outcome.FAILED)
    for retried, failures in ((begun.execution, 1), (execution, 0)):
        waiting = await world.execution_control.retry_execution(retried.execution_id, "ann")
        (again,) = await world.activate("c1", waiting)
        assert again.execution is not None
        assert again.execution.of_schedule == retried.of_schedule
        await world.end(again.execution)
        assert (await world.scene.job(execution.job.job_id)).failures == failures


async def test_a_retry_by_hand_runs_though_its_job_is_paused(world: World) -> None:
    execution = await failed(world)
    await world.control.pause_job(execution.job.key, "bob", "")
    waiting = await world.execution_control.retry_execution(execution.execution_id, "ann")
    assert await world.waiting() == [waiting._replace(job=waiting.job)]
    (result,) = await world.activate("c1", waiting)
    assert result.execution is not None


async def test_a_retry_that_waits_for_its_backoff_waits_no_more(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=RETRIED)
    later = await world.scene.now() + 3600 * SECOND
    ended = await world.end(execution, Outcome.FAILED, retry_at=later)
    assert ended.retry_id is not None
    waiting = await world.execution_control.retry_execution(execution.execution_id, "ann")
    assert waiting.activation_id == ended.retry_id
    assert waiting.run_at < later
    (result,) = await world.activate("c1", waiting)
    assert result.execution is not None


@pytest.mark.parametrize("given", [None, '{"v":9}'])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_retry_by_hand_runs_with_what_the_execution_ran_with(
    world: World, waits: bool, given: str | None
) -> None:
    """Also one that its policy had made, and whatever its job's payload is by now."""
    await world.store.create_deployment(Module("billing", (Verb("a"),)), "a" * 64, 1, TIMEOUT_MS, True)
    await world.controller("c1")
    await world.runner("r1")
    spec = JobSpec("every 1h", timeout_ms=1_000, on_disconnect="stop", payload='{"v":1}')
    key = (await world.control.make_job(NewJob("default", "billing", "a", "nightly", spec), "ann")).job.key
    (begun,) = await world.activate("c1", await world.control.trigger_job(key, "ann", given))
    assert begun.execution is not None
    later = await world.scene.now() + 3600 * SECOND
    await world.end(begun.execution, Outcome.FAILED, retry_at=later if waits else None)
    await world.control.update_job(key, JobChange.to(payload='{"v":2}'), "ann")
    retry = await world.execution_control.retry_execution(begun.execution.execution_id, "ann")
    assert retry.payload == (given or '{"v":1}')
    await world.control.update_job(key, JobChange.to(payload='{"v":3}'), "ann")
    (again,) = await world.activate("c1", retry)
    assert again.execution is not None
    assert again.execution.payload == (given or '{"v":1}')


async def test_what_runs_or_has_completed_is_not_retried(world: World) -> None:
    retry = world.execution_control.retry_execution
    with pytest.raises(NotFound):
        await retry(10**9, "ann")
    (running,) = await world.running("c1", "a", policy=RETRIED)
    with pytest.raises(IllegalTransition, match="running"):
        await retry(running.execution_id, "ann")
    await world.end(running)
    with pytest.raises(IllegalTransition, match="completed") as refused:
        await retry(running.execution_id, "ann")
    error = refused.value
    told = (error.job, error.state, error.target, error.action)
    assert told == ("billing.a", "completed", "running", "retry_execution")


async def test_a_tick_whose_later_attempt_has_completed_is_not_retried(world: World) -> None:
    execution = await failed(world)
    waiting = await world.execution_control.retry_execution(execution.execution_id, "ann")
    (result,) = await world.activate("c1", waiting)
    second = result.execution
    assert second is not None
    with pytest.raises(IllegalTransition, match="running"):
        await world.execution_control.retry_execution(execution.execution_id, "ann")
    await world.store.end_cron_jobs("c1", [end_of(second)])
    with pytest.raises(IllegalTransition, match="completed"):
        await world.execution_control.retry_execution(execution.execution_id, "ann")


async def test_a_removed_job_is_not_retried(world: World) -> None:
    execution = await failed(world)
    await world.store.kill_deployment(execution.deployment)
    with pytest.raises(IllegalTransition, match="removed"):
        await world.execution_control.retry_execution(execution.execution_id, "ann")


async def test_a_cancelled_job_is_not_retried(world: World) -> None:
    execution = await failed(world)
    await world.control.order_job(execution.job.key, orders.Cancel("over"), "bob")
    with pytest.raises(IllegalTransition, match="cancelled"):
        await world.execution_control.retry_execution(execution.execution_id, "ann")


async def test_fences_grow_with_every_claim_of_a_job_whatever_asked_for_it(world: World) -> None:
    """An execution's id is its fence: handlers are told it as ctx.fence."""
    execution = await failed(world)
    fences = [execution.execution_id]
    (claim,) = await world.claim("c1", await world.due(execution.job))
    assert claim.execution_id is not None
    fences.append(claim.execution_id)
    await world.store.adopt_executions("c2", ("c1",))
    (adopted,) = await world.store.get_unfinished((claim.execution_id,))
    await world.end(adopted)
    retry = await world.execution_control.retry_execution(execution.execution_id, "ann")
    manual = await world.control.trigger_job(execution.job.key, "ann", None)
    for waiting in (retry, manual):
        (result,) = await world.activate("c1", waiting)
        assert result.execution is not None
        fences.append(result.execution.execution_id)
        await world.end(result.execution)
    assert fences == sorted(set(fences))
