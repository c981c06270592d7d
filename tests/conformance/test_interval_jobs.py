"""Jobs of the interval scheduler's contract: behaviour that every store has."""

import asyncio

import pytest

from cronring.controller.core.model import EndResult, Execution
from cronring.controller.core.node.ending import request_of
from cronring.controller.core.orders.interval_states import ALLOWED, IntervalOrder, IntervalStatus
from cronring.controller.core.ticks import RETRY_PATIENCE_US
from cronring.controller.errors import IllegalTransition, NotFound, Outdated
from cronring.controller.ports.interval_jobs import Changed, IntervalJobRow, Terms
from cronring.controller.ports.many import JobChange, NewJob
from cronring.schema.execution import Outcome
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.booked import BookedChange
from tests.conformance.harness import SECOND, TIMEOUT_MS, World, end_of
from tests.support.waiting import TIMEOUT_S

RETRIES = '{"retries":1,"backoff":"1s","pause_after_failures":1}'
HOURLY = JobSpec("every 1h", timeout_ms=1_000, on_disconnect="stop", policy=RETRIES)
ONCE = HOURLY._replace(schedule="manual")
TERMS = Terms('{"url":"https://a.example"}', "s1")
PAUSED, SCHEDULED, RUNNING = IntervalStatus.PAUSED, IntervalStatus.SCHEDULED, IntervalStatus.RUNNING
PENDING, FAILED, COMPLETED = IntervalStatus.PENDING, IntervalStatus.FAILED, IntervalStatus.COMPLETED
CANCELLED = IntervalStatus.CANCELLED
STRICT = tuple(order for order in IntervalOrder if order is not IntervalOrder.UPDATE)


async def made(world: World, spec: JobSpec = HOURLY, name: str = "j1", *, runs: bool = False) -> Changed:
    await world.controller("c1")
    await world.runner("r1")
    await world.store.create_deployment(Module("crawler", (Verb("fetch"),)), "a" * 64, 1, TIMEOUT_MS, True)
    return await world.interval_jobs.make_interval_job(
        NewJob("default", "crawler", "fetch", name, spec), TERMS, "ann", runs=runs
    )


async def seen(world: World, name: str = "j1") -> IntervalJobRow:
    return await world.interval_jobs.get_interval_job("default", name)


async def order(world: World, order: IntervalOrder, name: str = "j1") -> IntervalJobRow:
    await world.interval_jobs.order_interval_job("default", name, order, "ann")
    return await seen(world, name)


async def begin_waiting(world: World) -> Execution:
    """The one run that waits beside the schedule, once it is due."""
    (waiting,) = await world.waiting()
    deadline = await world.scene.now() + TIMEOUT_S * SECOND
    while await world.scene.now() < deadline:
        (started,) = await world.activate("c1", waiting)
        if started.execution is not None:
            return started.execution
        await asyncio.sleep(0.01 if world.is_real else 0)
    raise AssertionError(f"it never becomes due: {waiting}")


async def begin_tick(world: World, name: str = "j1") -> Execution:
    row = await seen(world, name)
    job = await world.due(await world.job(row.job_id), 30)
    (claimed,) = await world.claim("c1", job)
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    return execution


async def end(world: World, execution: Execution, outcome: Outcome) -> EndResult:
    """As a controller does: the job's policy says whether it is tried again."""
    (known,) = await world.store.get_unfinished((execution.execution_id,))
    request = request_of(known, end_of(known, outcome).report, await world.scene.now())
    (result,) = await world.store.end_cron_jobs("c1", [request])
    assert result.ended
    return result


async def failed(world: World, spec: JobSpec = HOURLY) -> None:
    """A new job that is out of retries."""
    await made(world, spec._replace(policy=RETRIES.replace('"retries":1,"backoff":"1s",', "")), runs=True)
    await end(world, await begin_waiting(world), Outcome.FAILED)


async def bring_to(world: World, status: IntervalStatus) -> None:
    if status is FAILED:
        await failed(world)
        return
    once = status in {PENDING, COMPLETED}
    await made(world, ONCE if once else HOURLY, runs=once)
    match status:
        case IntervalStatus.PAUSED:
            await order(world, IntervalOrder.PAUSE)
        case IntervalStatus.CANCELLED:
            await order(world, IntervalOrder.CANCEL)
        case IntervalStatus.RUNNING:
            await begin_tick(world)
        case IntervalStatus.COMPLETED:
            await end(world, await begin_waiting(world), Outcome.COMPLETED)


async def test_a_recurring_job_is_kept_as_it_was_made(world: World) -> None:
    before = await world.scene.now()
    changed = await made(world)
    row = await seen(world)
    assert (row.interval_id, row.job_id, row.key) == ("j1", changed.job.job_id, "crawler.fetch:j1")
    assert (row.terms, row.status, row.next_run_at) == (TERMS, SCHEDULED, changed.job.next_run_at)
    assert before <= row.created_at <= row.changed_at <= await world.scene.now()
    assert (changed.activation, row.waiting_attempt, row.latest.attempt) == (None, None, None)
    assert [change.subject for change in await audited(world)] == ["job crawler.fetch:j1"] * 2


async def test_a_job_that_runs_once_waits_with_its_creation(world: World) -> None:
    changed = await made(world, ONCE, runs=True)
    row = await seen(world)
    assert changed.activation is not None
    assert (row.status, row.waiting_attempt, row.next_run_at) == (PENDING, 1, changed.activation.run_at)
    execution = await begin_waiting(world)
    row = await seen(world)
    assert (row.status, row.latest.attempt, row.latest.claimed_at) == (RUNNING, 1, execution.claimed_at)
    await end(world, execution, Outcome.COMPLETED)
    row = await seen(world)
    assert (row.status, row.latest.outcome, row.next_run_at) == (COMPLETED, "completed", None)


@pytest.mark.parametrize("spec", [HOURLY, ONCE], ids=["recurring", "once"])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST])
async def test_out_of_retries_it_is_failed_and_stops(world: World, spec: JobSpec, outcome: Outcome) -> None:
    await made(world, spec, runs=True)
    await end(world, await begin_waiting(world), outcome)
    row = await seen(world)
    assert (row.status, row.waiting_attempt) == (SCHEDULED, 2)
    (waiting,) = await world.waiting()
    assert row.next_run_at == waiting.run_at
    await end(world, await begin_waiting(world), outcome)
    row = await seen(world)
    assert (row.status, row.next_run_at, row.paused_at) == (FAILED, None, None)
    assert (await world.scene.job(row.job_id)).next_tick is None
    assert await world.waiting() == []


@pytest.mark.parametrize("spec", [HOURLY, ONCE], ids=["recurring", "once"])
async def test_a_retry_begins_anew(world: World, spec: JobSpec) -> None:
    await failed(world, spec)
    assert (await seen(world)).status is FAILED
    row = await order(world, IntervalOrder.RETRY)
    assert (row.status, row.waiting_attempt) == (PENDING, 1)
    await end(world, await begin_waiting(world), Outcome.COMPLETED)
    row = await seen(world)
    assert row.status is (SCHEDULED if spec == HOURLY else COMPLETED)
    assert (await world.scene.job(row.job_id)).failures == 0


async def test_a_retry_that_fails_stops_the_job_again(world: World) -> None:
    await failed(world)
    await order(world, IntervalOrder.RETRY)
    assert (await end(world, await begin_waiting(world), Outcome.FAILED)).paused
    assert (await seen(world)).status is FAILED


async def test_a_tick_that_fails_stops_the_job(world: World) -> None:
    await made(world, HOURLY._replace(policy='{"pause_after_failures":1}'))
    assert (await end(world, await begin_tick(world), Outcome.FAILED)).paused
    assert (await seen(world)).status is FAILED


async def test_a_pause_and_its_end(world: World) -> None:
    await made(world)
    row = await order(world, IntervalOrder.PAUSE)
    assert (row.status, row.next_run_at) == (PAUSED, None)
    assert row.paused_at is not None
    row = await order(world, IntervalOrder.RESUME)
    assert (row.status, row.paused_at) == (SCHEDULED, None)
    assert row.next_run_at is not None
    assert row.next_run_at > await world.scene.now()


async def test_a_cancelled_job_ends_what_runs(world: World) -> None:
    await made(world)
    execution = await begin_tick(world)
    row = await order(world, IntervalOrder.CANCEL)
    assert (row.status, row.next_run_at) == (CANCELLED, None)
    assert row.cancelled_at is not None
    renewal = await world.renewed("c1")
    assert [cancel.execution_id for cancel in renewal.cancels] == [execution.execution_id]
    await end(world, execution, Outcome.CANCELLED)
    assert (await seen(world)).status is CANCELLED


async def test_a_trigger_runs_in_place_of_what_waits_to_be_tried_again(world: World) -> None:
    await made(world, runs=True)
    await end(world, await begin_waiting(world), Outcome.FAILED)
    assert (await seen(world)).waiting_attempt == 2
    row = await order(world, IntervalOrder.TRIGGER)
    assert row.waiting_attempt == 1
    assert [each.trigger for each in await world.waiting()] == ["manual"]


async def test_a_triggered_job_stays_scheduled_and_runs_once_more(world: World) -> None:
    await made(world)
    for _ in range(2):
        row = await order(world, IntervalOrder.TRIGGER)
        assert (row.status, row.waiting_attempt) == (SCHEDULED, 1)
        (waiting,) = await world.waiting()
        assert row.next_run_at == waiting.run_at
    await end(world, await begin_waiting(world), Outcome.COMPLETED)
    await order(world, IntervalOrder.TRIGGER)
    assert (await order(world, IntervalOrder.CANCEL)).status is CANCELLED
    assert await world.waiting() == []


async def test_triggering_what_is_pending_makes_no_second_run(world: World) -> None:
    await made(world, ONCE, runs=True)
    assert (await order(world, IntervalOrder.TRIGGER)).status is PENDING
    assert len(await world.waiting()) == 1


@pytest.mark.parametrize("status", list(IntervalStatus))
@pytest.mark.parametrize("wanted", STRICT)
async def test_what_a_state_does_not_allow_is_refused(
    world: World, status: IntervalStatus, wanted: IntervalOrder
) -> None:
    await bring_to(world, status)
    before = await seen(world)
    assert before.status is status
    if status in ALLOWED[wanted]:
        await order(world, wanted)
        return
    with pytest.raises(IllegalTransition, match=f"it is {status}, and has to be "):
        await order(world, wanted)
    assert await seen(world) == before


async def test_a_change_takes_its_terms_along(world: World) -> None:
    changed = await made(world)
    other = Terms('{"url":"https://b.example"}')
    change = JobChange.to(schedule="every 2h")
    await world.interval_jobs.change_interval_job("default", "j1", change, TERMS, other, "bob", runs=False)
    row = await seen(world)
    assert (row.terms, row.status) == (other, SCHEDULED)
    assert row.next_run_at is not None
    assert changed.job.next_run_at is not None
    assert row.next_run_at > changed.job.next_run_at
    with pytest.raises(Outdated):
        await world.interval_jobs.change_interval_job("default", "j1", change, TERMS, other, "bob", runs=False)


async def test_a_change_may_run_it_once(world: World) -> None:
    await made(world)
    change = JobChange.to(schedule="manual")
    await world.interval_jobs.change_interval_job("default", "j1", change, TERMS, TERMS, "bob", runs=True)
    assert (await seen(world)).status is PENDING


async def test_a_failed_job_stays_so_under_another_schedule(world: World) -> None:
    await failed(world, ONCE)
    change = JobChange.to(schedule="every 2h")
    await world.interval_jobs.change_interval_job("default", "j1", change, TERMS, TERMS, "bob", runs=False)
    assert (await seen(world)).status is FAILED
    await order(world, IntervalOrder.RETRY)
    await end(world, await begin_waiting(world), Outcome.COMPLETED)
    assert (await seen(world)).status is SCHEDULED


async def test_a_cancelled_job_is_not_changed(world: World) -> None:
    await bring_to(world, CANCELLED)
    change = JobChange.to(schedule="every 2h")
    with pytest.raises(IllegalTransition):
        await world.interval_jobs.change_interval_job("default", "j1", change, TERMS, TERMS, "bob", runs=False)


async def test_what_lost_its_verb_has_failed(world: World) -> None:
    await made(world)
    await world.store.create_deployment(Module("crawler", (Verb("other"),)), "b" * 64, 1, TIMEOUT_MS, True)
    row = await seen(world)
    assert (row.status, row.orphaned) == (FAILED, True)
    with pytest.raises(IllegalTransition):
        await order(world, IntervalOrder.RETRY)


async def test_a_job_is_of_its_namespace_and_gone_once_deleted(world: World) -> None:
    await made(world)
    with pytest.raises(NotFound):
        await world.interval_jobs.get_interval_job("other", "j1")
    await world.control.delete_job("crawler.fetch:j1", "ann")
    with pytest.raises(NotFound):
        await seen(world)
    with pytest.raises(NotFound):
        await order(world, IntervalOrder.PAUSE)


async def test_nothing_of_a_job_is_made_that_cannot_be_made(world: World) -> None:
    await made(world)
    with pytest.raises(Exception, match="another job"):
        await world.interval_jobs.make_interval_job(
            NewJob("default", "crawler", "fetch", "j1", ONCE), TERMS, "ann", runs=True
        )
    assert await world.waiting() == []
    assert (await seen(world)).status is SCHEDULED


async def audited(world: World) -> list[BookedChange]:
    return [change for change in await world.scene.changes() if change.subject.startswith("job ")]


async def test_ticks_wait_for_the_retries(world: World) -> None:
    """A job each second whose retry comes after 1 s: no tick runs in between."""
    await made(world, HOURLY._replace(schedule="* * * * * *"))
    execution = await begin_tick(world)
    result = await end(world, execution, Outcome.FAILED)
    (waiting,) = await world.waiting()
    assert result.next_run_at is not None
    assert result.next_run_at >= waiting.run_at + RETRY_PATIENCE_US
    assert (await seen(world)).next_run_at == waiting.run_at
