"""Runs beside the schedule: when they are claimed, by whom, and what becomes of those that can't be."""

import pytest

from cronring.controller.core.model import (
    Activation,
    ActivationRequest,
    ActivationResult,
    ClaimResult,
    EndResult,
    Execution,
    Job,
)
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.window import Duty
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.keys import SLOTS
from tests.unit.core.told import S_US, T, Told, job, report, runner

DUE = T + 30 * S_US


def _activation(activation_id: int = 5, of: Job | None = None, **changes: object) -> Activation:
    base = Activation(activation_id, of or job(due=T + 600 * S_US), T, None, 2, Trigger.RETRY, DUE, "", False)
    return base._replace(**changes)  # type: ignore[arg-type]  # what a test names is of the field's type


def _fetched(told: Told, *activations: Activation) -> None:
    effect = told.one(effects.FetchActivations)
    told.tell(events.ActivationsFetched(effect.request_id, told.database_us, list(activations)))


def _execution(request: ActivationRequest, activation: Activation, at: int, holds_job: bool = True) -> Execution:
    return Execution(
        70 + request.activation_id, activation.job, request.tick, activation.run_at, at, activation.attempt,
        activation.trigger, activation.job.deployment, request.runner_id, holds_job=holds_job,
    )  # fmt: skip


def _won(told: Told, activation: Activation, next_tick: int | None = None) -> Execution:
    (effect,) = told.take(effects.Activate)
    (request,) = effect.requests
    execution = _execution(request, activation, told.database_us)
    result = ActivationResult(activation.activation_id, execution, False, next_tick)
    told.tell(events.Activated(effect.request_id, told.database_us, [result]))
    return execution


def test_it_is_read_with_the_window_and_claimed_when_it_is_due_and_dispatched() -> None:
    told = Told()
    told.ready()
    _fetched(told, _activation())
    told.wait_renewing(29_800)
    assert not told.take(effects.Activate)
    told.wait_renewing(400)
    execution = _won(told, _activation())
    (dispatch,) = told.take(effects.Dispatch)
    assert dispatch.executions == [execution]
    told.wait_renewing(5_000)
    assert not told.take(effects.Activate)


def test_what_waits_for_one_job_is_tried_again_together() -> None:
    """Each by itself, the retries of a backfill made hundreds of statements a second (seed 136 of a year)."""
    told = Told()
    told.ready()
    _fetched(told, *(_activation(number, run_at=T) for number in range(1, 61)))
    statements = 0
    for millisecond in range(2_000):
        told.wait(1)
        if millisecond % 100 == 0:
            told.renewed()
        for effect in told.take(effects.Activate):
            statements += 1
            refused = [ActivationResult(each.activation_id, None, False, None) for each in effect.requests]
            told.tell(events.Activated(effect.request_id, told.database_us, refused))
    assert 2 <= statements <= 20


def test_the_backup_claims_only_what_the_primary_has_left() -> None:
    told = Told()
    told.ready()
    told.node._parts.window.duties = [Duty.BACKUP] * SLOTS  # as the ring would say
    _fetched(told, _activation())
    told.wait_renewing(30_300)
    assert not told.take(effects.Activate)
    told.wait_renewing(400)
    assert [request.activation_id for request in told.one(effects.Activate).requests] == [5]


def test_one_that_this_controller_made_is_its_own_whatever_its_duty() -> None:
    told = Told()
    told.ready()
    told.node._parts.window.duties = [Duty.BACKUP] * SLOTS  # as the ring would say
    told.tell(events.ActivationsCreated([_activation(run_at=T + S_US)]))
    told.wait_renewing(1_100)
    assert told.one(effects.Activate)


@pytest.mark.parametrize("ended", [True, False], ids=["ended now", "ended by a batch whose answer was lost"])
def test_while_its_job_runs_it_is_tried_again_and_at_once_when_the_job_ends(ended: bool) -> None:
    told = Told()
    busy = job()
    (running,) = told.running(busy)
    told.tell(events.ActivationsCreated([_activation(of=busy, run_at=T)]))
    for _ in range(5):  # ever less often
        told.activated(ActivationResult(5, None, False, None))
        told.wait_renewing(2_100)
    told.activated(ActivationResult(5, None, False, None))
    told.effects = []
    told.tell(events.ReportsReceived("r1", [report(running)]))
    end = told.one(effects.End)
    tick = T + 20 * S_US
    told.tell(events.Ended(end.request_id, [EndResult(101, 1, ended, tick, tick, 1)]))
    assert [request.activation_id for request in told.one(effects.Activate).requests] == [5]


def _freed_with_a_tick_that_waits(asked_at: int) -> Told:
    """The job's run ends at T + 28 s. Its tick of T + 20 s has been waiting, and so has a run that was asked for."""
    told = Told()
    buffering = job(policy='{"overlap":"buffer_one"}')
    (running,) = told.running(buffering)
    told.wait_renewing(5_000)
    told.tell(events.ActivationsCreated([_activation(of=buffering, trigger=Trigger.MANUAL, run_at=asked_at)]))
    told.wait_renewing(13_000)
    while effect := told.take(effects.Activate):
        told.tell(events.Activated(effect[0].request_id, told.database_us, [ActivationResult(5, None, False, None)]))
    told.tell(events.ReportsReceived("r1", [report(running)]))
    end, tick = told.one(effects.End), T + 20 * S_US
    told.tell(events.Ended(end.request_id, [EndResult(101, 1, True, tick, tick, 1)]))
    return told


def test_it_goes_before_a_tick_that_waits_and_came_due_later() -> None:
    """A job that always runs longer than its period let nothing else in for minutes: its tick was tried first."""
    told = _freed_with_a_tick_that_waits(asked_at=T + 15 * S_US)
    assert not told.take(effects.Claim)
    _won(told, _activation(of=job(policy='{"overlap":"buffer_one"}'), trigger=Trigger.MANUAL))
    told.wait_renewing(5_000)
    assert not told.take(effects.Claim)


def test_when_it_is_refused_the_tick_that_waits_goes_at_once() -> None:
    told = _freed_with_a_tick_that_waits(asked_at=T + 15 * S_US)
    assert not told.take(effects.Claim)
    told.activated(ActivationResult(5, None, False, None))
    assert [request.run_tick for request in told.one(effects.Claim).requests] == [T + 20 * S_US]


def test_a_tick_that_came_due_before_it_goes_before_it() -> None:
    told = _freed_with_a_tick_that_waits(asked_at=T + 22 * S_US)
    assert [request.run_tick for request in told.one(effects.Claim).requests] == [T + 20 * S_US]


def test_one_that_is_gone_is_forgotten() -> None:
    told = Told()
    told.ready()
    told.tell(events.ActivationsCreated([_activation(run_at=T)]))
    told.activated(ActivationResult(5, None, True, None))
    assert told.node.stats().activations == 0
    told.wait_renewing(5_000)
    assert not told.take(effects.Activate)


def test_without_a_runner_it_waits_for_one() -> None:
    told = Told()
    told.ready()
    told.tell(events.ActivationsCreated([_activation(of=job(due=T + 600 * S_US, deployment="other"), run_at=T)]))
    told.wait_renewing(20_000)
    assert not told.take(effects.Activate)
    told.tell(events.RunnerJoined(runner("r2", "other")))
    told.wait_renewing(2_100)
    assert [request.runner_id for request in told.one(effects.Activate).requests] == ["r2"]


def test_a_backfill_goes_from_tick_to_tick() -> None:
    told = Told()
    told.ready()
    last = T - 60 * S_US
    backfill = _activation(
        of=job(due=T + 600 * S_US), tick=T - 80 * S_US, until_tick=last, trigger=Trigger.BACKFILL, run_at=T - S_US
    )
    told.tell(events.ActivationsCreated([backfill]))
    effect = told.take(effects.Activate)[0]
    assert [(request.tick, request.next_tick) for request in effect.requests] == [(T - 80 * S_US, T - 70 * S_US)]
    told.effects.append(effect)
    _won(told, backfill, T - 70 * S_US)
    told.wait(10)
    second = told.one(effects.Activate)
    assert [(request.tick, request.next_tick) for request in second.requests] == [(T - 70 * S_US, last)]


def test_a_failed_claim_is_repeated_and_looked_after() -> None:
    told = Told()
    told.ready()
    told.tell(events.ActivationsCreated([_activation(run_at=T)]))
    told.fail(told.one(effects.Activate), connection_lost=False)
    told.wait_renewing(3_000)
    assert told.take(effects.Activate)
    assert told.take(effects.Adopt)  # from itself: it may have been committed


def test_a_run_that_fails_is_tried_again_by_who_ended_it() -> None:
    told = Told()
    retried = job(policy='{"retries":1,"backoff":"3s"}')
    (running,) = told.running(retried)
    told.wait_renewing(1_500)
    failed = report(running, Outcome.FAILED, ended_at=running.claimed_at + S_US)
    told.tell(events.ReportsReceived("r1", [failed]))
    end = told.one(effects.End)
    (request,) = end.requests
    assert request.retry_at == failed.ended_at + 3 * S_US
    result = EndResult(101, 1, True, request.next_tick, request.next_run_at, 1, retry_id=9)
    told.tell(events.Ended(end.request_id, [result]))
    told.wait_renewing(4_200)
    (again,) = told.one(effects.Activate).requests
    assert (again.activation_id, again.job_id, again.tick) == (9, 1, running.tick)


def test_outside_its_window_a_tick_is_skipped_and_not_claimed() -> None:
    told = Told()  # T is 15 January 2027, 08:00 UTC
    told.ready(job(policy='{"window":"20:00-21:00"}'))
    told.wait_renewing(10_000)
    assert not told.take(effects.Claim)
    (request,) = told.one(effects.SkipTicks).requests
    assert [(part.reason.value, part.ticks) for part in request.skipped] == [("outside_window", 1)]
    assert request.next_tick == T + 20 * S_US


def test_a_job_that_says_what_becomes_of_missed_ticks_waits_longer_for_its_runner() -> None:
    told = Told()
    told.ready(job(deployment="away", policy='{"on_missed":"run_last"}'), job(2, deployment="away"))
    told.wait_renewing(21_000)
    (request,) = told.one(effects.SkipTicks).requests
    assert request.job_id == 2
    told.tell(events.RunnerJoined(runner("r2", "away")))
    claims = [each for effect in told.take(effects.Claim) for each in effect.requests if each.job_id == 1]
    assert [(each.trigger, each.run_tick) for each in claims] == [(Trigger.CATCH_UP, T + 20 * S_US)]


def test_with_overlap_allow_a_claim_goes_on_to_the_next_tick_at_once() -> None:
    told = Told()
    told.ready(job(policy='{"overlap":"allow","max_concurrent":2}'))
    told.wait_renewing(10_000)
    claim = told.one(effects.Claim)
    (request,) = claim.requests
    assert (request.run_tick, request.next_tick) == (T + 10 * S_US, T + 20 * S_US)
    told.effects.append(claim)
    told.tell(events.Claimed(claim.request_id, told.database_us, [
        ClaimResult(1, True, True, 101, told.database_us, False, T + 20 * S_US, T + 20 * S_US, 1)
    ]))  # fmt: skip
    told.effects = []
    told.wait_renewing(10_000)
    second = told.one(effects.Claim)
    assert [each.run_tick for each in second.requests] == [T + 20 * S_US]
    full = ClaimResult(1, False, True, None, told.database_us, True, T + 20 * S_US, T + 20 * S_US, 1)
    told.tell(events.Claimed(second.request_id, told.database_us, [full]))
    (skip,) = told.one(effects.SkipTicks).requests
    assert [(part.reason.value, part.first_tick) for part in skip.skipped] == [("overlap", T + 20 * S_US)]


def _followed(told: Told) -> Activation:
    """A run has completed, and its end, committed here, has made an activation of a job that is nobody's here."""
    (running,) = told.running(job())
    told.tell(events.ReportsReceived("r1", [report(running)]))
    end = told.one(effects.End)
    (request,) = end.requests
    result = EndResult(101, 1, True, request.next_tick, request.next_run_at, 1, followers=[5])
    told.tell(events.Ended(end.request_id, [result]))
    other = job(99, slot=4000, next_tick=None, next_run_at=None, schedule="manual", key="m.other")
    return _activation(of=other, trigger=Trigger.AFTER, tick=running.tick, attempt=1, run_at=told.database_us)


def test_what_an_end_has_made_is_read_and_claimed_at_once_whoevers_it_is() -> None:
    told = Told()
    waiting = _followed(told)
    fetch = told.one(effects.FetchFollowers)
    assert fetch.activation_ids == (5,)
    told.tell(events.ActivationsFetched(fetch.request_id, told.database_us, [waiting]))
    told.wait_renewing(10)
    execution = _won(told, waiting)
    (dispatch,) = told.take(effects.Dispatch)
    assert dispatch.executions == [execution]
    assert told.node.stats().activations == 0


def test_what_an_end_has_made_is_asked_for_again_where_the_answer_is_lost() -> None:
    told = Told()
    waiting = _followed(told)
    told.fail(told.one(effects.FetchFollowers), connection_lost=False)
    told.wait_renewing(3_000)
    fetch = told.one(effects.FetchFollowers)
    assert fetch.activation_ids == (5,)
    told.tell(events.ActivationsFetched(fetch.request_id, told.database_us, [waiting]))
    told.wait_renewing(10)
    _won(told, waiting)


def test_what_may_not_run_is_left_to_its_owners() -> None:
    told = Told()
    _followed(told)
    fetch = told.one(effects.FetchFollowers)
    told.tell(events.ActivationsFetched(fetch.request_id, told.database_us, []))
    told.wait_renewing(3_000)
    assert not told.take(effects.Activate)
    assert not told.take(effects.FetchFollowers)
