"""What verbs change through their runners: each call once, and none after the end of its execution."""

import asyncio

import pytest

from cronring.controller.core.model import Execution
from cronring.controller.core.orders.orders import Pause
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.many import NewJob
from cronring.controller.ports.verb_calls import CallDone, RunOver, VerbCall
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from tests.conformance.harness import World, end_of

CUSTOMER = NewJob("default", "billing", "a", "customer-7", JobSpec("every 1h", timeout_ms=1_000, on_disconnect="stop"))


async def asking(world: World) -> tuple[Execution, VerbCall]:
    (execution,) = await world.running("c1", "a")
    return execution, VerbCall(execution.execution_id, 1, "r1")


async def trigger(world: World, execution: Execution) -> None:
    await world.control.trigger_job(execution.job.key, "me", None)


async def test_a_call_is_kept_with_its_change_and_done_once(world: World) -> None:
    execution, call = await asking(world)
    calls = world.verb_calls
    assert await calls.standing(call) == ("billing.a", False)
    with calls.keeping(call):
        await trigger(world, execution)
    assert await calls.standing(call) == ("billing.a", True)
    for _ in range(2):
        with pytest.raises(CallDone), calls.keeping(call):
            await trigger(world, execution)
    assert len(await world.scene.activations()) == 1
    assert [each.action for each in await world.scene.actions()] == ["deploy", "trigger"]
    following = call._replace(number=2)
    with calls.keeping(following):
        await trigger(world, execution)
    assert len(await world.scene.activations()) == 2


async def test_what_changes_nothing_is_a_call_too(world: World) -> None:
    _, call = await asking(world)
    for number in (1, 2):
        with world.verb_calls.keeping(call._replace(number=number)):
            await world.control.make_job(CUSTOMER, "me")
    assert (await world.verb_calls.standing(call._replace(number=2)))[1]
    for number in (3, 4):
        with world.verb_calls.keeping(call._replace(number=number)):
            await world.control.order_job("billing.a:customer-7", Pause(""), "me")
    assert (await world.verb_calls.standing(call._replace(number=4)))[1]


async def test_what_is_refused_is_not_kept(world: World) -> None:
    _, call = await asking(world)
    with pytest.raises(NotFound), world.verb_calls.keeping(call):
        await world.control.delete_job("billing.a:never", "me")
    with pytest.raises(Conflict), world.verb_calls.keeping(call):
        await world.control.delete_job("billing.a", "me")
    assert await world.verb_calls.standing(call) == ("billing.a", False)


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.LOST, Outcome.TIMED_OUT])
async def test_an_execution_that_has_ended_changes_nothing(world: World, outcome: Outcome) -> None:
    execution, call = await asking(world)
    with world.verb_calls.keeping(call):
        await world.control.make_job(CUSTOMER, "me")
    assert (await world.end(execution, outcome)).ended
    late = call._replace(number=2)
    with pytest.raises(RunOver, match=f"execution {execution.execution_id} has ended"):
        await world.verb_calls.standing(late)
    for change in (
        world.control.delete_job("billing.a:customer-7", "me"),
        world.control.trigger_job("billing.a:customer-7", "me", None),
        world.control.order_job("billing.a:customer-7", Pause(""), "me"),
        world.control.make_job(CUSTOMER._replace(name="other"), "me"),
    ):
        try:
            with pytest.raises(RunOver), world.verb_calls.keeping(late):
                await change
        finally:
            change.close()
    assert await world.verb_calls.standing(call) == ("billing.a", True), "what was done before is still known"
    assert await world.scene.activations() == []
    assert [each.action for each in await world.scene.actions()] == ["deploy", "create"]


async def test_another_runner_has_no_say_in_it_and_nobody_in_what_never_was(world: World) -> None:
    execution, call = await asking(world)
    for stranger in (call._replace(runner_id="r2"), call._replace(execution_id=execution.execution_id + 1_000)):
        with pytest.raises(RunOver):
            await world.verb_calls.standing(stranger)
        with pytest.raises(RunOver), world.verb_calls.keeping(stranger):
            await world.control.make_job(CUSTOMER, "me")
    with pytest.raises(NotFound):
        await world.control.trigger_job("billing.a:customer-7", "me", None)


async def test_of_two_who_do_it_at_once_one_does(world: World) -> None:
    execution, call = await asking(world)

    async def once() -> bool:
        try:
            with world.verb_calls.keeping(call):
                await trigger(world, execution)
        except CallDone:
            return False
        return True

    done = await asyncio.gather(*(once() for _ in range(4)))
    assert sorted(done) == [False, False, False, True]
    assert len(await world.scene.activations()) == 1
    assert await world.verb_calls.standing(call) == ("billing.a", True)


async def test_the_end_and_a_call_come_one_after_the_other(world: World) -> None:
    """Whichever is first: never is something changed after the end."""
    execution, call = await asking(world)

    async def change() -> bool:
        try:
            with world.verb_calls.keeping(call):
                await trigger(world, execution)
        except RunOver:
            return False
        return True

    done, ended = await asyncio.gather(change(), world.end(execution))
    assert ended.ended
    assert len(await world.scene.activations()) == done


async def test_many_ends_and_calls_about_the_same_jobs_never_wait_for_each_other_in_a_circle(world: World) -> None:
    """Ends are batches that lock jobs and then executions. So do calls; a deadlock would be StoreUnavailable."""
    names = [f"v{number}" for number in range(12)]
    executions = await world.running("c1", *names)
    calls = {each.execution_id: VerbCall(each.execution_id, 1, "r1") for each in executions}

    async def change(own: Execution, other: Execution) -> bool:
        try:
            with world.verb_calls.keeping(calls[own.execution_id]):
                await trigger(world, other)
        except RunOver:
            return False
        return True

    async def end(batch: list[Execution]) -> None:
        results = await world.store.end_cron_jobs("c1", [end_of(each) for each in batch])
        assert all(result.ended for result in results)

    neighbours = zip(executions, [*executions[1:], executions[0]], strict=True)
    done, *_ = await asyncio.gather(
        asyncio.gather(*(change(own, other) for own, other in neighbours)), end(executions[:6]), end(executions[6:])
    )
    assert len(await world.scene.actions()) == 1 + sum(done), "what was not refused was done, and no more"
