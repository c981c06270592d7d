from cronring.controller.core.model import ClaimResult, EndResult, Execution, Unseen
from cronring.controller.core.node import effects, events
from cronring.controller.core.swim.messages import Packet, Status, Sync, Update
from cronring.schema.execution import Outcome
from tests.unit.core.told import S_US, T, Told, job, report, runner

EXECUTION = Execution(7, job(), T - 60 * S_US, T - 60 * S_US, T - 60 * S_US, 1, "schedule", "d", "r9")


def _hears(told: Told, peer_id: str, status: Status) -> None:
    update = Update(peer_id, f"host:{peer_id}", status, 1, False)
    told.tell(events.PacketReceived(Packet("c8", "host:8", (update,), Sync(False, ()))))


def _renew(told: Told, **changes: object) -> None:
    while not any(isinstance(effect, effects.RenewLease) for effect in told.effects):
        told.wait(50)
    told.renewed(**changes)


def test_nobody_is_declared_lost_by_one_who_has_just_come() -> None:
    told = Told()
    told.ready()
    told.wait_renewing(7_000)
    _renew(told, lost_runners=("r9",))
    assert not told.take(effects.FetchLost)
    told.wait_renewing(2_000)
    _renew(told, lost_runners=("r9",))
    assert len(told.take(effects.FetchLost)) == 1


def test_nor_by_one_whose_lease_was_broken() -> None:
    told = Told()
    told.ready()
    told.wait_renewing(20_000)
    told.wait(5_000)
    told.renewed()
    told.wait_renewing(7_000)
    _renew(told, lost_runners=("r9",))
    assert not told.take(effects.FetchLost)


def test_a_lost_execution_is_ended_after_one_more_look_at_the_clock() -> None:
    told = Told()
    told.ready()
    told.wait_renewing(10_000)
    _renew(told, lost_runners=("r9",))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchLost).request_id, [EXECUTION]))
    assert not told.take(effects.End)
    told.renewed()
    end = told.one(effects.End)
    (request,) = end.requests
    report = request.report
    assert (report.outcome, report.error_type) == (Outcome.LOST, "RunnerLost")
    assert "r9" in report.error_message
    assert request.unseen == Unseen("r9", 8_750), "and only if it still is, when that is committed"
    back = EndResult(report.execution_id, report.job_id, False, None, None, request.revision, busy=True)
    told.tell(events.Ended(end.request_id, [back]))
    told.wait_renewing(5_000)
    assert not told.take(effects.End), "its runner is back"


def test_a_runner_that_left_is_looked_for_as_soon_as_it_may_be_lost() -> None:
    """Not up to a second later, with the next regular renewal: `lost` is promised within ten seconds."""
    told = Told(lease_ms=300_000, lease_renew_ms=120_000)
    told.running(job())
    told.tell(events.RunnerLeft("r1"))
    told.wait(8_700)
    assert not told.take(effects.RenewLease)
    told.wait(300)
    told.renewed(lost_runners=("r1",))
    assert told.one(effects.FetchLost)


def test_nobody_looks_for_one_that_is_back_or_had_nothing_to_do() -> None:
    told = Told(lease_ms=300_000, lease_renew_ms=120_000)
    told.running(job())
    told.tell(events.RunnerJoined(runner("r2")))
    told.tell(events.RunnerLeft("r2"))
    told.tell(events.RunnerLeft("r1"))
    told.wait(3_000)
    told.tell(events.RunnerJoined(runner("r1")))
    told.wait(20_000)
    assert not told.take(effects.RenewLease)


def test_postgresqls_clock_set_forward_makes_nobody_lost() -> None:
    told = Told()
    told.ready()
    told.wait_renewing(10_000)
    _renew(told, lost_runners=("r9",))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchLost).request_id, [EXECUTION]))
    told.stepped_us = 60 * S_US
    told.renewed(lost_runners=("r9",))
    assert not told.take(effects.End)
    assert not told.take(effects.FetchLost)
    told.wait_renewing(9_000)
    _renew(told, lost_runners=("r9",))
    assert len(told.take(effects.FetchLost)) == 1


def test_a_hard_timeout_is_ended_and_cancelled() -> None:
    told = Told()
    told.ready()
    told.tell(events.RunnerJoined(runner("r9")))
    _renew(told, overdue_executions=True)
    assert not told.take(effects.FetchOverdueExecutions)  # its runner may be on its way back, with the result
    told.wait_renewing(9_000)
    _renew(told, overdue_executions=True)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchOverdueExecutions).request_id, [EXECUTION]))
    assert told.one(effects.CancelRuns).execution_ids == (7,)
    report = told.one(effects.End).requests[0].report
    assert (report.outcome, report.error_type) == (Outcome.TIMED_OUT, "HardTimeout")


def test_a_hard_timeout_reckons_with_a_clock_that_was_set_forward() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.stepped_us = 60 * S_US
    _renew(told, overdue_executions=True)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchOverdueExecutions).request_id, [execution]))
    assert not told.take(effects.End)
    told.wait_renewing(35_100)
    told.take(effects.FetchOverdueExecutions)
    _renew(told, overdue_executions=True)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchOverdueExecutions).request_id, [execution]))
    assert len(told.take(effects.End)) == 1


def test_the_successor_of_a_dead_controller_adopts_at_once() -> None:
    told = Told()
    told.ready()
    _hears(told, "c0", Status.ALIVE)
    _hears(told, "c2", Status.ALIVE)
    _hears(told, "c0", Status.SUSPECT)
    assert not told.take(effects.Adopt)
    _hears(told, "c0", Status.DEAD)
    assert told.one(effects.Adopt).controller_ids == ("c0",)


def test_the_others_leave_it_to_the_successor_until_the_lease_is_over() -> None:
    told = Told()
    told.ready()
    for peer_id in ("c2", "c3"):
        _hears(told, peer_id, Status.ALIVE)
    _hears(told, "c2", Status.SUSPECT)
    _hears(told, "c2", Status.DEAD)
    assert not told.take(effects.Adopt)
    _renew(told, dead_controllers=("c2",))
    adopt = told.one(effects.Adopt)
    told.tell(events.RunnerJoined(runner("r9")))
    told.tell(events.Adopted(adopt.request_id, [EXECUTION]))
    assert told.one(effects.Dispatch).executions == [EXECUTION]
    assert told.node.stats().adopted == 1


def test_an_adoption_whose_answer_was_lost_is_repeated() -> None:
    told = Told()
    told.ready()
    _renew(told, dead_controllers=("c2",))
    told.fail(told.one(effects.Adopt))
    _renew(told)
    assert told.one(effects.Adopt).controller_ids == ("c1", "c2"), "it may have been committed: then they are its own"


def test_what_a_failed_adoption_took_over_all_the_same_is_found() -> None:
    """It was committed, and the answer was lost: the dead controller has nothing left, and this one doesn't know."""
    told = Told()
    told.ready()
    _renew(told, dead_controllers=("c2",))
    told.fail(told.one(effects.Adopt))
    _renew(told)
    again = told.one(effects.Adopt)
    assert again.controller_ids == ("c1", "c2")
    told.tell(events.RunnerJoined(runner("r9")))
    told.tell(events.Adopted(again.request_id, [EXECUTION]))
    assert told.one(effects.Dispatch).executions == [EXECUTION]
    # The statement may still be running on a connection that broke, and commit only now.
    told.wait_renewing(2_100)
    assert told.one(effects.Adopt).controller_ids == ("c1",)


def test_what_was_adopted_while_its_runner_is_away_waits_for_it() -> None:
    told = Told()
    told.ready()
    _renew(told, dead_controllers=("c2",))
    told.tell(events.Adopted(told.one(effects.Adopt).request_id, [EXECUTION]))
    assert not told.take(effects.Dispatch)
    told.tell(events.RunnerJoined(runner("r9")))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [EXECUTION]))
    assert told.one(effects.Dispatch).runner_id == "r9"


def test_what_a_runner_had_to_decline_is_looked_up_and_sent_again() -> None:
    told = Told()
    executions = told.running(job(1), job(2), job(3))
    first, second, third = (execution.execution_id for execution in executions)
    told.tell(events.RunsDeclined("r2", (first,)))  # not its own
    told.tell(events.RunsDeclined("r1", (second, third, 999)))
    looked_up = told.one(effects.FetchHeld)
    assert looked_up.execution_ids == (second, third)
    told.tell(events.ExecutionsFetched(looked_up.request_id, [executions[1]]))  # the other was declared lost
    assert told.one(effects.Dispatch).executions == [executions[1]]
    assert told.node.stats().held == 2


def test_what_is_adopted_while_it_is_looked_up_is_looked_up_again() -> None:
    """Of two statements under way at once the look-up may be the older one, though its answer comes later."""
    told = Told()
    told.ready()
    _renew(told, dead_controllers=("c2",))
    told.tell(events.Adopted(told.one(effects.Adopt).request_id, [EXECUTION]))
    told.tell(events.RunnerJoined(runner("r9")))
    looked_up = told.one(effects.FetchHeld)
    told.wait(1)
    _renew(told, dead_controllers=("c3",))
    told.tell(events.Adopted(told.one(effects.Adopt).request_id, [EXECUTION]))
    told.tell(events.ExecutionsFetched(looked_up.request_id, []))
    assert told.node.stats().held == 1
    told.wait(10)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, []))
    assert told.node.stats().held == 0


def test_what_an_adoption_under_way_may_give_back_is_looked_up_again_behind_it() -> None:
    """Another one had it when PostgreSQL looked it up. Then the adoption made it this controller's (seed 7000559)."""
    told = Told()
    (execution,) = told.running(job())
    _hears(told, "c1", Status.DEAD)
    looked_up = told.one(effects.FetchHeld)
    _renew(told, dead_controllers=("c2",))
    adopt = told.one(effects.Adopt)
    told.tell(events.ExecutionsFetched(looked_up.request_id, []))
    assert told.node.stats().held == 1
    assert not told.take(effects.FetchHeld), "its answer could be older than the adoption again"
    told.wait(1)
    told.tell(events.Adopted(adopt.request_id, [execution]))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [execution]))
    assert told.node.stats().held == 1


def test_what_an_adoption_under_way_did_not_give_back_is_let_go_behind_it() -> None:
    told = Told()
    told.running(job())
    _hears(told, "c1", Status.DEAD)
    looked_up = told.one(effects.FetchHeld)
    _renew(told, dead_controllers=("c2",))
    adopt = told.one(effects.Adopt)
    told.tell(events.ExecutionsFetched(looked_up.request_id, []))
    told.fail(adopt, connection_lost=False)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, []))
    assert told.node.stats().held == 0


def test_a_run_beside_its_job_that_is_looked_up_keeps_no_tick_of_it_waiting() -> None:
    told = Told()
    told.ready(job())
    told.tell(events.RunnerJoined(runner("r9")))
    _renew(told, dead_controllers=("c2",))
    beside = EXECUTION._replace(holds_job=False)
    told.tell(events.Adopted(told.one(effects.Adopt).request_id, [beside]))
    told.wait_renewing(5_000)
    for looked_up in told.take(effects.FetchHeld):
        told.tell(events.ExecutionsFetched(looked_up.request_id, [beside]))
    told.wait_renewing(5_000)
    assert [request.run_tick for request in told.one(effects.Claim).requests] == [T + 10 * S_US]


def test_a_sleeper_dispatches_nothing_before_it_has_looked() -> None:
    """Stopped for a minute in the middle of a claim: somebody else has adopted, and perhaps ended, what it won."""
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    claim = told.one(effects.Claim)
    told.now_ns += 60_000_000_000
    result = events.Claimed(claim.request_id, told.database_us - 60 * S_US, [_won(claim, told.database_us - 60 * S_US)])
    told.tell(result)
    assert not told.take(effects.Dispatch)
    told.renewed()  # asked before it slept
    told.wait(10)
    told.renewed()
    fetch = told.one(effects.FetchHeld)
    told.tell(events.ExecutionsFetched(fetch.request_id, []))
    assert not told.take(effects.Dispatch)
    assert told.node.stats().held == 0


def _won(claim: effects.Claim, claimed_at: int) -> ClaimResult:
    return ClaimResult(claim.requests[0].job_id, True, True, 9, claimed_at, True, None, None, 1)


def test_a_refused_adoption_is_not_repeated_at_once() -> None:
    told = Told()
    told.ready()
    _renew(told, dead_controllers=("c9",))
    told.fail(told.one(effects.Adopt), connection_lost=False)
    assert not told.take(effects.Adopt)
    told.wait(1_000)
    assert told.one(effects.Adopt).controller_ids == ("c9",)


def test_a_refused_lookup_of_what_is_held_is_not_repeated_at_once() -> None:
    told = Told()
    told.running(job())
    told.tell(events.RunnerLeft("r1"))
    told.tell(events.RunnerJoined(runner()))
    told.fail(told.one(effects.FetchHeld), connection_lost=False)
    assert not told.take(effects.FetchHeld)
    told.wait(1_000)
    assert len(told.take(effects.FetchHeld)) == 1


def test_one_that_was_taken_for_dead_lets_go_of_what_others_have_adopted() -> None:
    """Its runs are reported to whoever adopted them, and their jobs' next ticks must not wait for those reports."""
    told = Told()
    (execution,) = told.running(job())
    _hears(told, "c8", Status.ALIVE)
    assert not told.take(effects.FetchHeld)
    _hears(told, "c1", Status.DEAD)
    looked_up = told.one(effects.FetchHeld)
    assert looked_up.execution_ids == (execution.execution_id,)
    told.tell(events.ExecutionsFetched(looked_up.request_id, []))
    assert told.node.stats().held == 0
    told.wait_renewing(10_000)
    assert [request.run_tick for request in told.one(effects.Claim).requests] == [T + 20 * S_US]


def test_it_looks_again_as_adoptions_take_their_time() -> None:
    told = Told()
    (execution,) = told.running(job())
    _hears(told, "c1", Status.DEAD)
    for wait_ms in (2_000, 8_000):
        told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [execution]))
        assert told.node.stats().held == 1
        told.wait_renewing(wait_ms)
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, []))
    assert told.node.stats().held == 0
    told.wait_renewing(20_000)
    assert not told.take(effects.FetchHeld)


def test_a_suspicion_lets_nobody_adopt() -> None:
    told = Told()
    told.running(job())
    _hears(told, "c1", Status.SUSPECT)
    assert not told.take(effects.FetchHeld)


def test_what_a_controller_had_for_runners_that_have_lost_it_is_taken_over() -> None:
    """By one statement for all of them: after a controller's end thousands ask."""
    told = Told()
    told.ready()
    told.tell(events.RunnerJoined(runner("r9")))
    told.tell(events.RunnerBeat("r1", 1, True, False, 0, ("c2", "c1")))
    first = told.one(effects.Adopt)
    assert (first.controller_ids, first.runner_ids) == (("c2",), ("r1",))
    told.tell(events.RunnerBeat("r9", 1, True, False, 0, ("c2",)))
    told.tell(events.RunnerBeat("r1", 2, True, False, 0, ("c3",)))
    told.tell(events.RunnerBeat("r1", 3, True, False, 0, ("c1",)))
    assert not told.take(effects.Adopt)
    told.tell(events.Adopted(first.request_id, [EXECUTION]))
    assert told.one(effects.Dispatch).executions == [EXECUTION]
    both = told.one(effects.Adopt)
    assert (both.controller_ids, both.runner_ids) == (("c2", "c3"), ("r1", "r9"))
    told.fail(both)
    told.renewed()
    again = told.one(effects.Adopt)
    assert (again.controller_ids, again.runner_ids) == (("c1",), ()), "it may have been committed; runners ask again"


def test_what_was_ended_while_it_was_adopted_is_not_held_again() -> None:
    """PostgreSQL adopted it, then ended it; the answers came the other way round."""
    told = Told()
    told.ready(job())
    told.tell(events.RunnerJoined(runner("r9")))
    _renew(told, dead_controllers=("c9",))
    adopt = told.one(effects.Adopt)
    told.tell(events.ReportsReceived("r9", [report(EXECUTION)]))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchExecutions).request_id, [EXECUTION]))
    next_us = T + 10 * S_US
    told.tell(events.Ended(told.one(effects.End).request_id, [EndResult(7, 1, True, next_us, next_us, 1)]))
    told.tell(events.Adopted(adopt.request_id, [EXECUTION]))
    assert not told.take(effects.Dispatch)
    assert told.node.stats().held == 0
    told.wait_renewing(10_000)
    assert [request.expected_tick for request in told.one(effects.Claim).requests] == [next_us]
