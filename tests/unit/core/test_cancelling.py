"""Cancelling executions; tests/golden/transcripts/cancel*.txt tell it as stories."""

from cronring.controller.core.model import CancelRequest
from cronring.controller.core.node import effects, events
from cronring.schema.execution import Outcome
from tests.unit.core.told import Told, job, report, runner


def request(execution_id: int, note: str = "", runner_id: str = "r1") -> CancelRequest:
    return CancelRequest(execution_id, runner_id, "ann", note)


def test_many_at_once_are_one_message_for_each_runner_and_reason() -> None:
    told = Told()
    told.running(job(1), job(2), job(3))
    told.tell(events.CancelsAsked([request(101), request(102), request(103, "that one")]))
    asked = [(each.execution_ids, each.reason, each.grace_ms) for each in told.take(effects.CancelRuns)]
    assert asked == [((101, 102), "cancelled by ann", 2_000), ((103,), "cancelled by ann: that one", 2_000)]


def test_a_run_is_asked_again_until_it_has_ended_and_then_no_more() -> None:
    told = Told(cancel_grace_ms=700)
    (execution,) = told.running(job())
    told.tell(events.CancelsAsked([request(101)]))
    told.wait_renewing(4_500)
    assert [each.grace_ms for each in told.take(effects.CancelRuns)] == [700, 700, 700]
    told.tell(events.ReportsReceived("r1", [report(execution, Outcome.CANCELLED)]))
    end = told.one(effects.End)
    told.tell(events.Ended(end.request_id, []))
    told.wait_renewing(10_000)
    assert not told.take(effects.CancelRuns)


def test_what_another_controller_holds_is_asked_for_once_if_its_runner_is_here() -> None:
    told = Told()
    told.ready()
    told.tell(events.CancelsAsked([request(7), request(8, runner_id="r2")]))
    assert told.one(effects.CancelRuns).execution_ids == (7,)
    told.wait_renewing(5_000)
    assert not told.take(effects.CancelRuns)


def test_a_renewal_names_what_is_marked_and_later_ones_say_what_is_known() -> None:
    told = Told()
    told.running(job(1), job(2))
    told.tell(events.CancelsNotified())
    told.renewed(cancels=(request(102),))
    assert told.one(effects.CancelRuns).execution_ids == (102,)
    told.wait(1_100)
    assert {renewal.cancelling for renewal in told.take(effects.RenewLease)} == {(102,)}


def test_a_notification_during_a_renewal_asks_once_more() -> None:
    told = Told()
    told.running(job())
    told.wait(1_100)
    renewal = told.take(effects.RenewLease)[-1]
    told.tell(events.CancelsNotified())
    assert not told.take(effects.RenewLease)
    told.effects.append(renewal)
    told.renewed()
    assert told.take(effects.RenewLease)


def test_a_runner_that_was_away_is_told_before_it_gets_its_runs_again() -> None:
    told = Told()
    told.running(job())
    told.tell(events.RunnerLeft("r1"))
    told.tell(events.CancelsAsked([request(101)]))
    assert not told.take(effects.CancelRuns)
    told.tell(events.RunnerJoined(runner()))
    assert told.one(effects.CancelRuns).execution_ids == (101,)


def test_the_first_reason_is_the_one_that_is_told() -> None:
    told = Told()
    told.running(job(policy='{"overlap":"cancel_running"}'))
    told.tell(events.CancelsAsked([request(101, "by hand")]))
    told.wait_renewing(10_500)
    assert {each.reason for each in told.take(effects.CancelRuns)} == {"cancelled by ann: by hand"}
