"""Every order in every state, in memory and on PostgreSQL: where the table says, or refused."""

import itertools
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cronring.controller.core.model import Execution, Job
from cronring.controller.core.orders.orders import Cancel, Pause, Restore, Resume, SkipNext
from cronring.controller.core.orders.states import ORDERS, Order, State
from cronring.controller.errors import IllegalTransition
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.store import Backfill
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.harness import SECOND, TIMEOUT_MS, World

HOUR: Final = 3600 * SECOND
MANUAL: Final = NewJob("default", "m", "a", "x", JobSpec("manual", timeout_ms=60_000, on_disconnect="stop"))
HOURLY: Final = MANUAL._replace(spec=MANUAL.spec._replace(schedule="every 1h"))


async def new_job(world: World, made: NewJob, name: str = "x") -> Job:
    await world.store.create_deployment(Module("m", (Verb("a"),)), "a" * 64, 1, TIMEOUT_MS, True)
    await world.controller("c1")
    await world.runner("r1")
    return (await world.control.make_job(made._replace(name=name), "me")).job


async def by_hand(world: World, job: Job) -> Execution:
    """A run of it that goes on."""
    activation = await world.control.trigger_job(job.key, "me", None)
    (result,) = await world.activate("c1", activation)
    assert result.execution is not None
    return result.execution


async def by_schedule(world: World, job: Job) -> Execution:
    (result,) = await world.claim("c1", await world.due(job))
    assert result.execution_id is not None
    (execution,) = await world.store.get_unfinished((result.execution_id,))
    return execution


async def in_state(world: World, state: State, name: str = "x") -> Job:
    """A job that is so."""
    match state:
        case State.PENDING:
            return await new_job(world, MANUAL, name)
        case State.SCHEDULED:
            return await new_job(world, HOURLY, name)
        case State.RUNNING:
            job = await new_job(world, HOURLY, name)
            (claimed,) = await world.claim("c1", await world.due(job))
            assert claimed.updated
        case State.PAUSED:
            job = await new_job(world, HOURLY, name)
            await world.control.order_job(job.key, Pause("x"), "me")
        case State.COMPLETED | State.FAILED:
            job = await new_job(world, HOURLY, name)
            execution = await by_schedule(world, job)
            outcome = Outcome.COMPLETED if state is State.COMPLETED else Outcome.FAILED
            await world.end(execution, outcome, next_tick=None, next_run_at=None)
        case State.CANCELLED:
            job = await new_job(world, HOURLY, name)
            await world.control.order_job(job.key, Cancel(), "me")
        case State.ORPHANED:
            job = await new_job(world, HOURLY, name)
            await world.store.create_deployment(Module("m", (Verb("b"),)), "b" * 64, 1, TIMEOUT_MS, True)
    return job


async def give(world: World, order: Order, key: str) -> None:
    control, now = world.control, await world.scene.now()
    match order:
        case Order.PAUSE:
            await control.order_job(key, Pause(until=now + HOUR), "me")
        case Order.RESUME:
            await control.order_job(key, Resume(), "me")
        case Order.SKIP_NEXT:
            await control.order_job(key, SkipNext(), "me")
        case Order.CANCEL:
            await control.order_job(key, Cancel(), "me")
        case Order.RESTORE:
            await control.order_job(key, Restore(), "me")
        case Order.TRIGGER:
            await control.trigger_job(key, "me", None)
        case Order.BACKFILL:
            await control.backfill_job(key, "me", Backfill(now - HOUR, now, beside=False, again=False))
        case Order.UPDATE:
            await control.update_job(key, JobChange.to(schedule="every 2h"), "me")
        case Order.DELETE:
            await control.delete_job(key, "me")


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("order", list(Order))
async def test_every_order_in_every_state(world: World, state: State, order: Order) -> None:
    job = await in_state(world, state)
    assert await world.scene.state(job.job_id) == state
    revision = (await world.scene.job(job.job_id)).revision
    allowed = ORDERS[order].get(state)
    if allowed is None:
        with pytest.raises(IllegalTransition) as refused:
            await give(world, order, job.key)
        told = refused.value
        assert (told.job, told.state, told.action) == (job.key, state.value, order.value)
        assert told.state in str(told)
        assert told.target in str(told)
        assert await world.scene.state(job.job_id) == state
        assert (await world.scene.job(job.job_id)).revision == revision
        return
    await give(world, order, job.key)
    assert await world.scene.state(job.job_id) in allowed


NUMBERS: Final = itertools.count()  # examples share a world
WALK: Final = st.lists(st.sampled_from([*Order, "run"]), min_size=1, max_size=12)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(walk=WALK, start=st.sampled_from([State.PENDING, State.SCHEDULED, State.ORPHANED]))
async def test_along_any_walk_memory_and_postgresql_follow_the_table(
    world: World, walk: list[Order | str], start: State
) -> None:
    job = await in_state(world, start, f"n{next(NUMBERS)}")
    state = start
    for step in walk:
        if step == "run":
            if state is State.PENDING:
                execution = await by_hand(world, job)
                assert await world.scene.state(job.job_id) == State.RUNNING
                await world.end(execution, Outcome.COMPLETED, next_tick=None, next_run_at=None)
                assert await world.scene.state(job.job_id) == State.PENDING, "it waits to be triggered again"
            continue
        order = Order(step)
        allowed = ORDERS[order].get(state)
        try:
            await give(world, order, job.key)
        except IllegalTransition:
            assert allowed is None, (state, order)
        else:
            assert allowed is not None, (state, order)
            after = State(await world.scene.state(job.job_id))
            assert after in allowed, (state, order, after)
            state = after
        if order is Order.DELETE:
            return


async def test_what_the_cluster_does_by_itself_follows_the_table(world: World) -> None:
    job = await in_state(world, State.SCHEDULED)
    (claimed,) = await world.claim("c1", await world.due(job))
    assert await world.scene.state(job.job_id) == State.RUNNING
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    await world.control.order_job(job.key, Pause(), "me")
    await world.end(execution)
    assert await world.scene.state(job.job_id) == State.PAUSED, "an end leaves a paused job paused"
    await world.control.order_job(job.key, Resume(), "me")
    assert await world.scene.state(job.job_id) == State.SCHEDULED
    now = await world.scene.now()
    await world.control.order_job(job.key, Pause("", now + 100_000), "me")
    assert await world.scene.state(job.job_id) == State.PAUSED
    while await world.scene.now() <= now + 100_000:
        pass  # the store's clock is what ends it
    assert await world.scene.state(job.job_id) == State.SCHEDULED


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
async def test_what_runs_by_hand_waits_for_the_next_one_until_it_has_a_schedule(world: World, outcome: Outcome) -> None:
    """It was `completed`, or `failed`, for ever."""
    job = await in_state(world, State.PENDING)
    await world.end(await by_hand(world, job), outcome, next_tick=None, next_run_at=None)
    assert await world.scene.state(job.job_id) == State.PENDING
    changed = await world.control.update_job(job.key, JobChange.to(schedule="every 2h"), "me")
    execution = await by_schedule(world, changed)
    await world.end(execution, outcome, next_tick=None, next_run_at=None)
    assert await world.scene.state(job.job_id) == outcome.value
    await world.control.update_job(job.key, JobChange.to(schedule="manual"), "me")
    assert await world.scene.state(job.job_id) == State.PENDING
