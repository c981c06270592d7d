"""Who asked and why, kept with every order; and a tick that counts once, however often somebody has it tried again."""

import pytest

from cronring.controller.core.model import Execution
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SECOND, TIMEOUT_MS, World

JOB = NewJob(
    "default",
    "billing",
    "a",
    "x",
    JobSpec("every 1m", timeout_ms=1_000, on_disconnect="stop", policy=Policy(jitter="off").text),
)
RETRIED = Policy(retries=3, backoff="1s", jitter="off")


async def failed(world: World, policy: Policy = RETRIED) -> Execution:
    """A tick whose one attempt has failed, and isn't tried again by policy."""
    (execution,) = await world.running("c1", "a", policy=policy)
    await world.end(execution, Outcome.FAILED)
    return execution


async def again(world: World, execution: Execution) -> Execution:
    """Its retry by hand, running."""
    waiting = await world.execution_control.retry_execution(execution.execution_id, "ann", "once more")
    (result,) = await world.activate("c1", waiting)
    assert result.execution is not None
    return result.execution


async def failures(world: World, execution: Execution) -> int:
    return (await world.scene.job(execution.job.job_id)).failures


async def test_every_order_to_a_job_keeps_its_note(world: World) -> None:
    await world.store.create_deployment(Module("billing", (Verb("a"),)), "a" * 64, 1, TIMEOUT_MS, True)
    now = await world.scene.now()
    job = (
        await world.control.make_job(
            JOB._replace(spec=JOB.spec._replace(anchor=now - now % SECOND - 86_400 * SECOND)), "ann", "why create"
        )
    ).job
    await world.control.update_job(job.key, JobChange.to(timeout_ms=7), "bob", "why update")
    waiting = await world.control.trigger_job(job.key, "cid", None, "why trigger")
    assert await world.control.cancel_activation(job.key, waiting.activation_id, "dan", "why cancel_activation")
    wanted = Backfill(now - 3_600 * SECOND, now, beside=False, again=False)
    await world.control.backfill_job(job.key, "eve", wanted, "why backfill")
    await world.control.delete_job(job.key, "fay", "why delete")
    told = {each.action: (each.actor, each.note) for each in await world.scene.actions()}
    for action, actor in (
        ("create", "ann"), ("update", "bob"), ("trigger", "cid"), ("cancel_activation", "dan"), ("backfill", "eve"),
        ("delete", "fay"),
    ):  # fmt: skip
        assert told[action] == (actor, f"why {action}")


async def test_orders_to_executions_keep_their_notes(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    await world.execution_control.cancel_execution(execution.execution_id, "ann", "why cancel")
    await world.end(execution, Outcome.CANCELLED)
    await world.execution_control.retry_execution(execution.execution_id, "bob", "why retry")
    told = [(each.action, each.actor, each.note) for each in await world.scene.actions()]
    assert told[-2:] == [("cancel_execution", "ann", "why cancel"), ("retry_execution", "bob", "why retry")]


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST])
async def test_a_retry_by_hand_that_fails_counts_its_tick_no_second_time(world: World, outcome: Outcome) -> None:
    execution = await failed(world)
    assert await failures(world, execution) == 1
    for _ in range(2):
        await world.end(await again(world, execution), outcome)
        assert await failures(world, execution) == 1
    await world.end(await again(world, execution))
    assert await failures(world, execution) == 0


async def test_nor_do_the_retries_of_its_policy_after_it(world: World) -> None:
    execution = await failed(world)
    second = await again(world, execution)
    ended = await world.end(second, Outcome.FAILED, retry_at=await world.scene.now())
    (waiting,) = await world.waiting()
    assert waiting.activation_id == ended.retry_id
    (result,) = await world.activate("c1", waiting)
    assert result.execution is not None
    assert result.execution.attempt == 3
    await world.end(result.execution, Outcome.FAILED)
    assert await failures(world, execution) == 1


async def test_it_does_not_pause_a_job_that_its_tick_alone_would_not(world: World) -> None:
    execution = await failed(world, Policy(pause_after_failures=2, jitter="off"))
    await world.end(await again(world, execution), Outcome.FAILED)
    job = await world.scene.job(execution.job.job_id)
    assert (job.failures, job.paused) == (1, False)


async def test_a_tick_that_was_cancelled_counts_when_its_retry_fails(world: World) -> None:
    (execution,) = await world.running("c1", "a", policy=RETRIED)
    await world.execution_control.cancel_execution(execution.execution_id, "ann", "")
    await world.end(execution, Outcome.CANCELLED)
    assert await failures(world, execution) == 0
    second = await again(world, execution)
    await world.end(second, Outcome.FAILED)
    assert await failures(world, execution) == 1
    third = await again(world, execution)
    await world.end(third, Outcome.CANCELLED)
    fourth = await again(world, execution)
    await world.end(fourth, Outcome.FAILED)
    assert await failures(world, execution) == 1
