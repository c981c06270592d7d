"""Jobs whose policies a newer release wrote: left alone, told of once, and no reason to stop."""

import pytest

from cronring.controller.core.model import Activation, EndResult, Execution, Job
from cronring.controller.core.node import effects, events
from cronring.controller.core.orders.orders import Cancel, OrderRefusal, Pause, SkipNext, carry_out
from cronring.schema.execution import Trigger
from tests.unit.core.test_orders import standing
from tests.unit.core.told import S_US, T, Told, job, report

SCHEDULE = "sunset 30m before"
NEWER = '{"retries":2,"overlap":"cancel_running","blackout":"Dec 24"}'
OTHER = '{"blackout":"Dec 25"}'
DUE = T + 10 * S_US


def _newer(job_id: int = 2, **changes: object) -> Job:
    return job(job_id, policy=NEWER)._replace(**changes)  # type: ignore[arg-type]  # of the fields' types


def _told_of(told: Told) -> list[tuple[object, object]]:
    lines = [line for line in told.take(effects.LogLine) if line.event == "job_unread"]
    assert all("upgrade this controller" in str(line.values["remedy"]) for line in lines)
    return [(line.values["job"], line.values["fields"]) for line in lines]


def test_others_tick_and_this_one_is_named_once() -> None:
    told = Told()
    told.ready(job(1), _newer())
    assert told.node.stats().jobs_unread == 1
    told.wait_renewing(10_100)
    assert [request.job_id for request in told.one(effects.Claim).requests] == [1]
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched(job(1), _newer())
    assert _told_of(told) == [("m.j2", "blackout")]
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched(job(1), _newer(policy=OTHER), _newer(3))
    assert _told_of(told) == [("m.j2", "blackout"), ("m.j3", "blackout")]
    assert told.node.stats().jobs_unread == 2


def test_a_schedule_of_a_newer_release_is_left_as_well() -> None:
    told = Told()
    told.ready(job(1), job(2, schedule=SCHEDULE), job(3, schedule=SCHEDULE, policy=NEWER))
    assert told.node.stats().jobs_unread == 2
    told.wait_renewing(10_100)
    assert [request.job_id for request in told.one(effects.Claim).requests] == [1]
    assert _told_of(told) == [("m.j2", "schedule"), ("m.j3", "blackout, schedule")]
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched(job(1), job(2, schedule="*/20 * * * * *", revision=2))
    assert told.node.stats().jobs_unread == 0


def test_a_run_of_it_is_not_ended_here() -> None:
    told = Told()
    told.ready()
    told.wait_renewing(10_000)
    told.tell(events.Woke())
    told.wait(1_000)
    known, newer = _execution(71, job(1, executing=True)), _execution(72, job(2, schedule=SCHEDULE, executing=True))
    _adopted(told, known, newer)
    told.tell(events.ReportsReceived("r1", [report(newer), report(known)]))
    assert [request.report.execution_id for request in told.one(effects.End).requests] == [71]


def test_once_its_policy_is_of_this_release_it_ticks() -> None:
    told = Told()
    told.ready(_newer())
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched(job(2, policy='{"retries":2}', revision=2))
    assert told.node.stats().jobs_unread == 0
    told.wait_renewing(10_100)
    assert [request.job_id for request in told.one(effects.Claim).requests] == [2]


def test_one_that_becomes_newer_is_let_go() -> None:
    told = Told()
    told.ready(job(1), job(2))
    told.tell(events.JobsNotified())
    told.wait(30)
    told.fetched(job(1), _newer(revision=2))
    told.wait_renewing(10_100)
    assert [request.job_id for request in told.one(effects.Claim).requests] == [1]


def test_one_that_was_made_here_or_was_left_lying_is_left_as_well() -> None:
    told = Told()
    told.ready(job(1))
    told.tell(events.JobsCreated([_newer(2)]))
    activation = Activation(5, _newer(3), T, None, 1, Trigger.MANUAL, DUE, "", True)
    told.tell(events.ActivationsCreated([activation, activation._replace(activation_id=6, job=job(4))]))
    told.wait_renewing(10_100)
    assert [request.job_id for request in told.one(effects.Claim).requests] == [1]
    assert [request.activation_id for request in told.one(effects.Activate).requests] == [6]
    assert [key for key, _ in _told_of(told)] == ["m.j2", "m.j3"]


def _adopted(told: Told, *executions: Execution) -> None:
    told.renewed(dead_controllers=("c9",))
    effect = told.one(effects.Adopt)
    told.tell(events.Adopted(effect.request_id, list(executions)))


def _execution(number: int, of: Job) -> Execution:
    return Execution(number, of, DUE, DUE, DUE, 1, Trigger.SCHEDULE, "d", "r1")


def test_its_run_is_not_ended_here_and_the_runner_may_tell_another_controller() -> None:
    """An end decides the next tick. What is not acknowledged is offered to others."""
    told = Told()
    told.ready()
    told.wait_renewing(10_000)
    told.tell(events.Woke())
    told.wait(1_000)
    known, newer = _execution(71, job(1, executing=True)), _execution(72, _newer(executing=True))
    _adopted(told, known, newer)
    told.take(effects.AckReports)
    told.tell(events.ReportsReceived("r1", [report(newer), report(known)]))
    end = told.one(effects.End)
    assert [request.report.execution_id for request in end.requests] == [71]
    told.tell(events.Ended(end.request_id, [EndResult(71, 1, True, DUE + 10 * S_US, DUE + 10 * S_US, 1)]))
    assert [ack.execution_ids for ack in told.take(effects.AckReports)] == [(71,)]
    assert _told_of(told) == [("m.j2", "blackout")]
    told.wait_renewing(60_000)  # and nothing cuts it, though the fields that are known say so
    assert not told.take(effects.CancelRuns)
    told.tell(events.ReportsReceived("r1", [report(newer)]))
    assert not told.take(effects.End)


def test_what_became_newer_while_it_ran_is_not_ended_here() -> None:
    told = Told()
    (running,) = told.running(job(2, policy='{"retries":2}'))
    told.tell(events.ReportsReceived("r1", [report(running)]))
    end = told.one(effects.End)
    told.tell(events.Ended(end.request_id, [EndResult(running.execution_id, 2, False, None, None, 2, stale=True)]))
    fetch = told.one(effects.FetchExecutions)
    changed = running._replace(job=_newer(revision=2, executing=True))
    told.tell(events.ExecutionsFetched(fetch.request_id, [changed]))
    assert not told.take(effects.End)
    assert not told.take(effects.AckReports)


def test_past_its_hard_deadline_it_is_for_others_too() -> None:
    """Renewals name it each second: nothing is said of it, or done, each second."""
    told = Told()
    told.ready()
    told.wait_renewing(12_000)
    told.renewed(overdue_executions=True)
    for _ in range(3):
        told.wait(1_000)
        told.renewed(overdue_executions=True)
        fetch = told.one(effects.FetchOverdueExecutions)
        overdue = _execution(72, _newer(executing=True, timeout_ms=1))._replace(claimed_at=T - 600 * S_US)
        told.tell(events.ExecutionsFetched(fetch.request_id, [overdue]))
    assert not told.take(effects.End)
    assert not told.take(effects.CancelRuns)
    lines = [line.event for line in told.take(effects.LogLine)]
    assert (lines.count("job_unread"), lines.count("hard_timeout")) == (1, 0)


@pytest.mark.parametrize("order", [Pause("for a while"), SkipNext(), Cancel()])
def test_orders_are_for_who_reads_it(order: Pause | SkipNext | Cancel) -> None:
    answer = carry_out(standing(None, policy=NEWER), order, "ann", T)
    assert isinstance(answer, OrderRefusal), answer
    assert "says blackout, which this release doesn't read: ask a controller of a newer release" in answer.message
