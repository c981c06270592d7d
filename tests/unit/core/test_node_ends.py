from cronring.controller.core.model import ClaimResult, EndResult, Execution
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.window import Duty
from cronring.schema.execution import Outcome, Skipped, SkipReason
from cronring.schema.keys import SLOTS
from tests.unit.core.told import S_US, T, Told, job, report, runner

NEXT = T + 20 * S_US


def _ended(told: Told, end: effects.End) -> None:
    results = [
        EndResult(each.report.execution_id, each.report.job_id, True, each.next_tick, each.next_run_at, 1)
        for each in end.requests
    ]
    told.tell(events.Ended(end.request_id, results))


def _reports(execution: Execution, **changes: object) -> events.ReportsReceived:
    return events.ReportsReceived("r1", [report(execution, **changes)])  # type: ignore[arg-type]  # fields by name


def test_a_report_is_acknowledged_only_when_it_is_committed() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.tell(_reports(execution))
    end = told.one(effects.End)
    assert (end.requests[0].next_tick, end.requests[0].skipped) == (NEXT, ())
    assert not told.take(effects.AckReports)
    _ended(told, end)
    assert told.one(effects.AckReports) == effects.AckReports("r1", (execution.execution_id,))
    assert told.node.stats().held == 0
    told.wait_renewing(10_000)
    assert told.one(effects.Claim).requests[0].expected_tick == NEXT


def test_a_runner_that_lies_about_anothers_run_is_not_believed_though_it_speaks_first() -> None:
    """Its report says the true claim; only the execution's row says whose run it is."""
    told = Told()
    told.ready()
    execution = Execution(7, job(), T, T, T, 1, "schedule", "d", "r1")
    lie = report(execution, Outcome.FAILED)
    told.tell(events.ReportsReceived("r7", [lie]))
    fetch = told.one(effects.FetchExecutions)
    told.tell(_reports(execution))
    told.tell(events.ExecutionsFetched(fetch.request_id, [execution]))
    end = told.one(effects.End)
    assert [request.report for request in end.requests] == [report(execution)]
    told.tell(events.ReportsReceived("r7", [lie]))
    _ended(told, end)
    acknowledged = [ack.runner_id for ack in told.take(effects.AckReports)]
    assert acknowledged == ["r7", "r7", "r1"], "refused each time, so that it stops coming; then what is true"


def test_the_same_report_twice_is_ended_once() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.tell(_reports(execution))
    told.tell(_reports(execution))
    _ended(told, told.one(effects.End))
    assert len(told.take(effects.AckReports)) == 1
    assert not told.take(effects.End)


def test_an_end_that_came_too_late_leaves_the_job_to_be_watched() -> None:
    """Another controller ended it, and has claimed the next tick: nobody will report that run here."""
    told = Told()
    (execution,) = told.running(job())
    told.tell(_reports(execution))
    too_late = EndResult(execution.execution_id, 1, False, None, None, 1)
    told.tell(events.Ended(told.one(effects.End).request_id, [too_late]))
    told.wait_renewing(10_000)
    assert told.one(effects.Claim).requests[0].expected_tick == NEXT


def test_so_does_one_that_is_found_to_be_decided() -> None:
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    told.claimed(ClaimResult(1, True, True, 101, told.database_us, True, T + 10 * S_US, None, revision=2))
    (execution,) = told.one(effects.Dispatch).executions
    told.tell(_reports(execution))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchExecutions).request_id, []))
    assert told.one(effects.AckReports).execution_ids == (101,)
    told.wait_renewing(10_000)
    assert told.one(effects.Claim).requests[0].expected_tick == NEXT


def test_an_end_that_failed_is_repeated() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.tell(_reports(execution))
    told.fail(told.one(effects.End))
    assert not told.take(effects.AckReports)
    told.wait(200)
    told.renewed()
    told.wait(200)
    _ended(told, told.one(effects.End))
    assert len(told.take(effects.AckReports)) == 1


def test_a_report_of_something_unknown_is_looked_up() -> None:
    told = Told()
    told.ready(job())
    known = Execution(77, job(), T, T, T, 1, "schedule", "d", "r1")
    gone = known._replace(execution_id=78)
    told.tell(events.ReportsReceived("r1", [report(known), report(gone)]))
    fetch = told.one(effects.FetchExecutions)
    assert fetch.execution_ids == (77, 78)
    told.tell(events.ExecutionsFetched(fetch.request_id, [known]))
    assert told.one(effects.AckReports).execution_ids == (78,)  # decided otherwise before
    end = told.one(effects.End)
    assert end.requests[0].report.execution_id == 77
    _ended(told, end)
    assert told.one(effects.AckReports).execution_ids == (77,)


def test_what_an_end_leaves_due_is_claimed_at_once_though_others_own_the_job() -> None:
    """They foresee the tick after it, or read the job again in a minute (seed 30234)."""
    told = Told()
    told.ready()
    told.node._parts.window.duties = [Duty.NONE] * SLOTS
    buffered = job(policy='{"overlap":"buffer_one"}', due=T - 20 * S_US)
    execution = Execution(9, buffered, T - 20 * S_US, T - 20 * S_US, T - 20 * S_US, 1, "schedule", "d", "r1")
    told.tell(_reports(execution, ended_at=T - S_US))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchExecutions).request_id, [execution]))
    end = told.one(effects.End)
    assert end.requests[0].next_tick == T - 10 * S_US
    _ended(told, end)
    told.wait(10)
    assert [request.expected_tick for request in told.one(effects.Claim).requests] == [T - 10 * S_US]


def test_nor_does_it_matter_that_it_had_been_claimed_in_their_stead_before() -> None:
    """Seed 40081."""
    told = Told()
    (execution,) = told.running(job(policy='{"overlap":"buffer_one"}'))
    told.wait_renewing(25_000)
    told.node._parts.window.duties = [Duty.NONE] * SLOTS
    told.tell(_reports(execution, ended_at=told.database_us - 1_000))
    _ended(told, told.one(effects.End))
    told.wait(10)
    assert [request.expected_tick for request in told.one(effects.Claim).requests] == [T + 30 * S_US]


def _ended_by_none_of_its_owners() -> Told:
    """A run of a minute's interval has said `in 2 s`; what becomes of its end is to be told."""
    told = Told()
    told.ready()
    told.node._parts.window.duties = [Duty.NONE] * SLOTS
    of_activity = job(schedule="every 60s", due=T - 50 * S_US)
    execution = Execution(9, of_activity, T - 50 * S_US, T - 50 * S_US, T - 50 * S_US, 1, "schedule", "d", "r1")
    told.tell(_reports(execution, ended_at=T, next_in_ms=2_000))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchExecutions).request_id, [execution]))
    return told


def test_so_is_a_run_that_its_verb_has_moved_to_before_what_the_owners_foresee() -> None:
    """Seed 50060."""
    told = _ended_by_none_of_its_owners()
    (request,) = (end := told.one(effects.End)).requests
    assert (request.next_tick, request.anchor) == (T + 2 * S_US, T - 58 * S_US)
    result = EndResult(9, 1, True, request.next_tick, request.next_run_at, 2, moved=True)
    told.tell(events.Ended(end.request_id, [result]))
    told.wait_renewing(2_000)
    (claim,) = told.one(effects.Claim).requests
    assert (claim.expected_tick, claim.revision) == (T + 2 * S_US, 2)


def test_a_move_that_postgresql_ignored_is_forgotten_though_the_revision_is_as_if_it_had_not() -> None:
    """The job was paused and resumed while it ran, which counts its revision on as a move does (seed 644324651)."""
    told = _ended_by_none_of_its_owners()
    due = told.database_us - S_US
    told.tell(events.Ended(told.one(effects.End).request_id, [EndResult(9, 1, True, due, due, 2)]))
    assert not told.take(effects.Claim)
    told.wait_renewing(600)
    assert told.one(effects.FetchOverdue).slots == (1,)


def test_a_job_that_was_rescheduled_while_it_ran_is_read_by_who_ends_its_run_if_that_leaves_a_tick_due() -> None:
    """Its owners know of the change, but not of the end (seed 60135)."""
    told = Told()
    (execution,) = told.running(job())
    told.node._parts.window.duties = [Duty.NONE] * SLOTS
    told.node._parts.window.forget(1)
    told.tell(_reports(execution))
    end = told.one(effects.End)
    due = told.database_us - S_US
    told.tell(events.Ended(end.request_id, [EndResult(execution.execution_id, 1, True, due, due, 2)]))
    told.wait_renewing(600)
    look = told.one(effects.FetchOverdue)
    assert look.slots == (1,)
    told.tell(events.OverdueFetched(look.request_id, told.database_us, [job(due=due, revision=2)]))
    (claim,) = told.one(effects.Claim).requests
    assert (claim.expected_tick, claim.revision) == (due, 2)


def test_a_job_that_was_forgotten_while_its_ticks_were_skipped_is_not_tried_again() -> None:
    """Another run's end paused it meanwhile, and the skip failed: the controller broke down (seed 50018)."""
    told = Told()
    told.ready(job(policy='{"overlap":"allow","window":"00:00-01:00"}'))
    told.wait_renewing(10_000)
    skip = told.one(effects.SkipTicks)
    told.node._parts.window.forget(1)
    told.fail(skip)
    told.wait_renewing(5_000)
    assert not told.take(effects.Claim)


def test_before_it_knows_what_time_it_is_a_controller_ends_nothing() -> None:
    """A runner may come with its results before the first renewal is answered: a retry would not wait its backoff."""
    told = Told()
    (execution,) = Told().running(job(policy='{"retries":1,"backoff":"2s"}'))
    told.stepped_us = 60 * S_US
    told.tell(events.Woke())
    told.tell(events.RunnerJoined(runner()))
    told.tell(_reports(execution, outcome=Outcome.FAILED))
    assert not told.take(effects.FetchExecutions)
    told.renewed()
    told.tell(events.ExecutionsFetched(told.one(effects.FetchExecutions).request_id, [execution]))
    (request,) = told.one(effects.End).requests
    assert request.retry_at is not None
    assert request.retry_at >= request.report.claimed_at


def test_a_runner_cannot_end_what_is_not_its_own() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.tell(events.RunnerJoined(runner("liar")))
    told.tell(events.ReportsReceived("liar", [report(execution)]))
    refusal = effects.AckReports("liar", (execution.execution_id,), effects.ReportRefusal.FOREIGN)
    assert told.one(effects.AckReports) == refusal
    assert told.node.stats().reports_foreign == 1
    assert not told.take(effects.End)
    told.tell(_reports(execution, claimed_at=execution.claimed_at + 1))
    assert not told.take(effects.End)
    assert told.node.stats().held == 1


def test_what_a_liar_said_before_it_was_claimed_does_not_hide_its_own_runners_result() -> None:
    """The true result was acknowledged beside the lie, and lost; the execution was let go, and hung."""
    told = Told()
    told.ready(job())
    guessed = Execution(101, job(), T, T, T, 1, "schedule", "d", "liar")
    told.tell(events.ReportsReceived("liar", [report(guessed)]))
    fetch = told.one(effects.FetchExecutions)
    told.wait_renewing(10_000)
    told.claimed()
    (execution,) = told.one(effects.Dispatch).executions
    assert execution.execution_id == 101
    told.tell(_reports(execution))
    told.tell(events.ExecutionsFetched(fetch.request_id, [execution]))
    refusal = effects.AckReports("liar", (101,), effects.ReportRefusal.FOREIGN)
    assert told.take(effects.AckReports) == [refusal]
    end = told.one(effects.End)
    assert end.requests[0].report == report(execution)
    _ended(told, end)
    assert told.one(effects.AckReports) == effects.AckReports("r1", (101,))
    assert told.node.stats().held == 0


def test_what_a_liar_said_of_a_run_does_not_let_it_go() -> None:
    """The lookup's answer was older than the claim."""
    told = Told()
    told.ready(job())
    guessed = Execution(101, job(), T, T, T, 1, "schedule", "d", "liar")
    told.tell(events.ReportsReceived("liar", [report(guessed)]))
    fetch = told.one(effects.FetchExecutions)
    told.wait_renewing(10_000)
    told.claimed()
    told.tell(events.ExecutionsFetched(fetch.request_id, []))
    assert told.one(effects.AckReports) == effects.AckReports("liar", (101,), effects.ReportRefusal.FOREIGN)
    assert told.node.stats().held == 1


def test_what_nobody_ever_claimed_is_refused_and_counted() -> None:
    told = Told()
    told.ready()
    never = Execution(7, job(), T, T, T, 1, "schedule", "d", "r1")
    told.tell(_reports(never))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchExecutions).request_id, []))
    assert told.one(effects.AckReports) == effects.AckReports("r1", (7,), effects.ReportRefusal.DECIDED)
    assert told.node.stats().reports_decided == 1


def test_texts_beyond_what_memory_allows_are_left_to_the_runner() -> None:
    told = Told()
    told.ready()
    base = Execution(0, job(), T, T, T, 1, "schedule", "d", "r1")
    told.wait(1_200)
    told.fail(told.one(effects.RenewLease))
    text = "x" * 65_536  # one object, however many reports have it
    many = [report(base._replace(execution_id=number))._replace(output=text) for number in range(1, 6_000)]
    told.tell(events.ReportsReceived("r1", many))
    assert told.node.stats().ends_pending == 4_096
    assert not told.take(effects.AckReports)


def test_a_claim_on_a_newer_row_is_looked_up_before_it_is_ended() -> None:
    """Its schedule may have changed: the next tick must come of the new one."""
    told = Told()
    told.ready(job())
    told.wait_renewing(10_000)
    claim = told.one(effects.Claim)
    result = ClaimResult(1, True, True, 50, told.database_us, True, None, None, 2)
    told.tell(events.Claimed(claim.request_id, told.database_us, [result]))
    (execution,) = told.one(effects.Dispatch).executions
    told.tell(_reports(execution))
    fetch = told.one(effects.FetchExecutions)
    newer = execution._replace(job=job(schedule="*/7 * * * * *", revision=2))
    told.tell(events.ExecutionsFetched(fetch.request_id, [newer]))
    request = told.one(effects.End).requests[0]
    assert (request.revision, request.next_tick) == (2, T + 14 * S_US)


def test_reports_beyond_what_memory_allows_are_left_to_the_runner() -> None:
    told = Told()
    told.ready()
    base = Execution(0, job(), T, T, T, 1, "schedule", "d", "r1")
    told.wait(1_200)
    told.fail(told.one(effects.RenewLease))
    many = [report(base._replace(execution_id=number)) for number in range(1, 50_101)]
    told.tell(events.ReportsReceived("r1", many))
    assert told.node.stats().ends_pending == 20_000
    for runner_id in ("r2", "r3"):
        told.tell(
            events.ReportsReceived(
                runner_id, [each._replace(execution_id=each.execution_id + 60_000 * int(runner_id[1])) for each in many]
            )
        )
    assert told.node.stats().ends_pending == 50_000
    assert not told.take(effects.AckReports)


def test_a_flood_of_what_never_was_does_not_keep_anybody_from_ending_what_is_held() -> None:
    """Honest reports were dropped, and their jobs stood still until those were sent again, 10 s later."""
    told = Told()
    (execution,) = told.running(job())
    made_up = [report(execution)._replace(execution_id=number) for number in range(1_000, 51_100)]
    for runner_id in ("liar1", "liar2", "liar3"):
        told.tell(events.ReportsReceived(runner_id, made_up))
        made_up = [each._replace(execution_id=each.execution_id + 60_000) for each in made_up]
    told.tell(_reports(execution))
    assert [each.report.execution_id for each in told.one(effects.End).requests] == [execution.execution_id]


def test_lost_and_found_again_the_ended_execution_is_let_go() -> None:
    """Its runner came back after it had reported to another controller."""
    told = Told()
    (execution,) = told.running(job())
    told.tell(events.RunnerLeft("r1"))
    told.tell(events.RunnerJoined(runner()))
    assert not told.take(effects.Dispatch)
    fetch = told.one(effects.FetchHeld)
    assert fetch.execution_ids == (execution.execution_id,)
    told.tell(events.ExecutionsFetched(fetch.request_id, []))
    assert told.node.stats().held == 0
    assert not told.take(effects.Dispatch)


def test_what_is_still_unfinished_is_dispatched_again() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.tell(events.RunnerLeft("r1"))
    told.tell(events.RunnerJoined(runner()))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchHeld).request_id, [execution]))
    assert told.one(effects.Dispatch).executions == [execution]


def test_without_its_runner_the_next_tick_is_tried_all_the_same() -> None:
    """The runner may have reported to another controller, and the job be idle again."""
    told = Told()
    told.running(job())
    told.tell(events.RunnerLeft("r1"))
    told.tell(events.RunnerJoined(runner("r2")))
    told.wait_renewing(10_000)
    assert told.one(effects.Claim).requests[0].expected_tick == NEXT


def test_outcomes_are_passed_on() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.tell(_reports(execution, outcome=Outcome.FAILED))
    assert told.one(effects.End).requests[0].report.outcome is Outcome.FAILED


def _changed(execution: Execution, next_tick: int) -> Execution:
    later = execution.job._replace(revision=2, executing=True, next_tick=next_tick, next_run_at=next_tick)
    return execution._replace(job=later)


def test_an_end_by_an_older_row_is_looked_up_and_made_anew() -> None:
    """Its priority was changed at T + 15 s; ticks passed until the end that the new row knows nothing of."""
    told = Told()
    (execution,) = told.running(job())
    told.wait_renewing(35_000)
    told.tell(_reports(execution, ended_at=T + 42 * S_US))
    end = told.one(effects.End)
    told.tell(events.Ended(end.request_id, [EndResult(execution.execution_id, 1, False, None, None, 2, stale=True)]))
    assert not told.take(effects.AckReports), "nothing is decided yet"
    fetch = told.one(effects.FetchExecutions)
    assert fetch.execution_ids == (execution.execution_id,)
    told.tell(events.ExecutionsFetched(fetch.request_id, [_changed(execution, T + 20 * S_US)]))
    end = told.one(effects.End)
    assert (end.requests[0].revision, end.requests[0].next_tick) == (2, T + 50 * S_US)
    assert end.requests[0].skipped == (Skipped(SkipReason.OVERLAP, T + 20 * S_US, T + 40 * S_US, 3),)
    _ended(told, end)
    assert told.one(effects.AckReports) == effects.AckReports("r1", (execution.execution_id,))


def test_so_is_the_end_of_a_lost_run_which_nobody_reports() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.wait_renewing(10_000)
    told.wait(1_000)
    told.renewed(lost_runners=("r1",))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchLost).request_id, [execution]))
    told.wait(1_000)
    told.renewed()
    end = told.one(effects.End)
    assert end.requests[0].report.outcome is Outcome.LOST
    told.tell(events.Ended(end.request_id, [EndResult(execution.execution_id, 1, False, None, None, 2, stale=True)]))
    fetched = told.one(effects.FetchExecutions)
    told.tell(events.ExecutionsFetched(fetched.request_id, [_changed(execution, T + 20 * S_US)]))
    again = told.one(effects.End)
    assert (again.requests[0].revision, again.requests[0].report.outcome) == (2, Outcome.LOST)


def test_one_that_was_ended_elsewhere_since_is_let_go() -> None:
    told = Told()
    (execution,) = told.running(job())
    told.tell(_reports(execution))
    end = told.one(effects.End)
    told.tell(events.Ended(end.request_id, [EndResult(execution.execution_id, 1, False, None, None, 2, stale=True)]))
    told.tell(events.ExecutionsFetched(told.one(effects.FetchExecutions).request_id, []))
    assert told.one(effects.AckReports) == effects.AckReports(
        "r1", (execution.execution_id,), effects.ReportRefusal.DECIDED
    )
    assert told.node.stats().held == 0
