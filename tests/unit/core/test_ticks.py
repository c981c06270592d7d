from cronring.controller.core import ticks
from cronring.controller.core.model import Execution, Job
from cronring.controller.core.node.ending import request_of
from cronring.controller.core.ticks import Moved
from cronring.schema.execution import Outcome, Report, Skipped, SkipReason, Trigger
from cronring.schema.instant import format_instant
from cronring.schema.timetable import PlannedTick

S = 1_000_000
T = 1_800_000_000 * S  # a full minute


def _job(schedule: str = "*/10 * * * * *") -> Job:
    return Job(1, "m.v", 1, "d", "v", schedule, T, 1, 5_000, "stop", False, T, T)


def _run(outcome: Outcome, ended_at: int) -> tuple[Execution, Report]:
    execution = Execution(7, _job(), T, T, T + 1_000, 1, Trigger.SCHEDULE, "d", "r1")
    return execution, Report(7, 1, T + 1_000, outcome, T + 1_000, ended_at, "", "", "")


def test_a_run_within_its_tick_skips_nothing() -> None:
    assert ticks.after_run(*_run(Outcome.COMPLETED, T + S), T + 2 * S) == ((T + 10 * S, T + 10 * S), ())


def test_ticks_that_pass_during_a_run_overlap() -> None:
    following, skipped = ticks.after_run(*_run(Outcome.COMPLETED, T + 25 * S), T + 25 * S)
    assert following == (T + 30 * S, T + 30 * S)
    assert skipped == (Skipped(SkipReason.OVERLAP, T + 10 * S, T + 20 * S, 2),)


def test_ticks_that_pass_after_a_run_while_its_end_waits_do_not() -> None:
    """They are left to the missed policy: the next tick is in the past, and is claimed at once."""
    following, skipped = ticks.after_run(*_run(Outcome.COMPLETED, T + 5 * S), T + 60 * S)
    assert following == (T + 10 * S, T + 10 * S)
    assert skipped == ()


def test_a_lost_run_may_have_lasted_until_now() -> None:
    following, skipped = ticks.after_run(*_run(Outcome.LOST, T + 5 * S), T + 25 * S)
    assert following == (T + 30 * S, T + 30 * S)
    assert [part.ticks for part in skipped] == [2]


def test_a_job_that_was_removed_while_it_ran_stays_without_ticks() -> None:
    execution, report = _run(Outcome.COMPLETED, T + 25 * S)
    removed = execution._replace(job=execution.job._replace(revision=2, next_tick=None, next_run_at=None))
    assert ticks.after_run(removed, report, T + 25 * S) == (None, ())


def test_a_job_that_was_rescheduled_while_it_ran_owes_its_new_ticks_from_then_on() -> None:
    execution, report = _run(Outcome.COMPLETED, T + 25 * S)
    job = execution.job._replace(revision=2, schedule="*/5 * * * * *", anchor=T + 12 * S)
    job = job._replace(next_tick=T + 15 * S, next_run_at=T + 15 * S)
    following, skipped = ticks.after_run(execution._replace(job=job), report, T + 25 * S)
    assert following == (T + 30 * S, T + 30 * S)
    assert skipped == (Skipped(SkipReason.OVERLAP, T + 15 * S, T + 25 * S, 3),)


def test_a_runner_whose_clock_is_ahead_cannot_skip_the_future() -> None:
    following, _ = ticks.after_run(*_run(Outcome.COMPLETED, T + 500 * S), T + 2 * S)
    assert following == (T + 10 * S, T + 10 * S)


def test_the_latest_due_tick_runs_and_the_others_are_superseded() -> None:
    assert ticks.due(_job(), PlannedTick(T, T), T + 9 * S) == (PlannedTick(T, T), (), None, False)
    decision = ticks.due(_job(), PlannedTick(T, T), T + 35 * S)
    assert decision.run == (T + 30 * S, T + 30 * S)
    assert decision.skipped == (Skipped(SkipReason.SUPERSEDED, T, T + 20 * S, 3),)
    assert decision.caught_up


def test_passed_ticks_are_a_range_with_its_count() -> None:
    following, skipped = ticks.passed(_job(), PlannedTick(T, T), T + 35 * S, SkipReason.NO_RUNNER)
    assert skipped == (Skipped(SkipReason.NO_RUNNER, T, T + 30 * S, 4),)
    assert following == (T + 40 * S, T + 40 * S)
    (alone,) = ticks.passed(_job("0 0 1 1 * 2030"), PlannedTick(T, T), T, SkipReason.NO_RUNNER).skipped
    assert alone.ticks == 1


def test_a_run_that_is_none_of_the_schedules_leaves_its_next_tick_alone() -> None:
    """A retry of T ends at T + 4; the next tick is T + 10. Another lasts until T + 25."""
    execution, report = _run(Outcome.COMPLETED, T + 4 * S)
    retry = execution._replace(trigger=Trigger.RETRY, job=_job()._replace(next_tick=T + 10 * S, next_run_at=T + 10 * S))
    assert ticks.after_run(retry, report, T + 5 * S) == ((T + 10 * S, T + 10 * S), ())
    following, skipped = ticks.after_run(retry, report._replace(ended_at=T + 25 * S), T + 25 * S)
    assert following == (T + 30 * S, T + 30 * S)
    assert skipped == (Skipped(SkipReason.OVERLAP, T + 10 * S, T + 20 * S, 2),)


def test_a_retry_is_planned_unless_the_next_tick_comes_first() -> None:
    execution, report = _run(Outcome.FAILED, T + S)
    assert ticks.retry(execution, report, T + S, T + 10 * S) is None
    retried = execution._replace(job=_job()._replace(policy='{"retries":1,"backoff":"5s"}'))
    assert ticks.retry(retried, report, T + S, T + 10 * S) == T + 6 * S
    assert ticks.retry(retried, report, T + 5 * S, T + 10 * S) is None
    assert ticks.retry(retried._replace(attempt=2), report, T + S, T + 10 * S) is None


def test_a_job_that_says_no_retries_has_the_clusters() -> None:
    execution, report = _run(Outcome.FAILED, T + S)

    def planned(policy: str, default: int, attempt: int = 1) -> bool:
        job = _job()._replace(policy=policy, default_retries=default)
        return ticks.retry(execution._replace(job=job, attempt=attempt), report, T + S, None) is not None

    assert [planned("", 0), planned("", 2), planned("", 2, 2), planned("", 2, 3)] == [False, True, True, False]
    assert [planned('{"backoff":"5s"}', 2), planned('{"retries":0}', 2)] == [True, False]
    assert [planned('{"retries":1}', 2, 2), planned('{"retries":3}', 0, 3)] == [False, True]


def test_a_run_beside_others_is_retried_before_its_own_next_tick_or_not_at_all() -> None:
    """With overlap "allow" the end says no next tick. A retry beyond T + 10 would be superseded, and never be told."""
    execution, report = _run(Outcome.FAILED, T + S)
    job = _job()._replace(policy='{"overlap":"allow","retries":3,"backoff":"5s"}')
    beside = execution._replace(job=job, holds_job=False)
    assert ticks.retry(beside, report, T + S, None) == T + 6 * S
    assert ticks.retry(beside, report, T + 5 * S, None) is None


def test_ticks_of_a_schedule_that_was_not_in_force_supersede_no_retry() -> None:
    """A run of T, beside others, ends at T + 13. Its job has had another schedule since T + 12: the next is T + 15."""
    execution, report = _run(Outcome.FAILED, T + 13 * S)
    job = _job("*/5 * * * * *")._replace(policy='{"overlap":"allow","retries":3,"backoff":"1s"}', revision=2)
    beside = execution._replace(job=job._replace(next_tick=T + 15 * S, next_run_at=T + 15 * S), holds_job=False)
    assert ticks.retry(beside, report, T + 13 * S, None) == T + 14 * S
    assert ticks.retry(beside, report, T + 14 * S, None) is None


def test_a_backfill_is_retried_whatever_ticks_come() -> None:
    execution, report = _run(Outcome.FAILED, T + S)
    job = _job()._replace(policy='{"retries":3,"backoff":"5s"}')
    for trigger in (Trigger.BACKFILL, Trigger.RETRY, Trigger.MANUAL):
        own = execution._replace(job=job, trigger=trigger, of_schedule=False)
        assert ticks.retry(own, report, T + 8 * S, T + 10 * S) == T + 13 * S


def test_a_run_that_jitter_began_before_its_tick_does_not_move_the_next_one_to_it() -> None:
    """The tick would be claimed by nobody: it has been run."""
    execution, report = _run(Outcome.COMPLETED, T - S // 2)
    report = report._replace(next_in_ms=100)
    undecided = PlannedTick(T + 60 * S, T + 60 * S)
    early = execution._replace(job=_job("every 60s"), claimed_at=T - S, run_at=T - S)
    assert ticks.moved(early, report, undecided) == Moved(T - 59 * S, PlannedTick(T + S, T + S), T)
    job = _job("every 60s")._replace(next_tick=T + 60 * S, next_run_at=T + 60 * S)
    by_hand = early._replace(trigger=Trigger.MANUAL, tick=T - S + 1, job=job._replace(anchor=T - 60 * S))
    assert ticks.moved(by_hand, report, undecided) == Moved(T - 59 * S, PlannedTick(T + S, T + S), T)


def test_ticks_that_were_missed_before_a_manual_run_are_caught_up_after_it() -> None:
    execution, report = _run(Outcome.COMPLETED, T + 25 * S)
    by_hand = execution._replace(trigger=Trigger.MANUAL, tick=T + 1, claimed_at=T + 14 * S, run_at=T + 14 * S)
    missed = by_hand._replace(job=_job()._replace(next_tick=T + 10 * S, next_run_at=T + 10 * S))
    assert ticks.after_run(missed, report, T + 25 * S) == ((T + 10 * S, T + 10 * S), ())
    meanwhile = by_hand._replace(job=_job()._replace(next_tick=T + 20 * S, next_run_at=T + 20 * S))
    following, skipped = ticks.after_run(meanwhile, report, T + 25 * S)
    assert following == (T + 30 * S, T + 30 * S)
    assert skipped == (Skipped(SkipReason.OVERLAP, T + 20 * S, T + 20 * S, 1),)


def test_a_verb_moves_the_next_run_of_an_interval_only() -> None:
    execution, report = _run(Outcome.COMPLETED, T + S + 1)
    report = report._replace(next_in_ms=300_000)
    undecided = PlannedTick(T + 60 * S, T + 60 * S)
    assert ticks.moved(execution, report, undecided) is None
    job = _job("every 60s")
    tick = T + 302 * S  # on a whole second
    there = Moved(tick - 60 * S, PlannedTick(tick, tick), T)  # ticks up to 302 s are nobody's: year, seed 3
    assert ticks.moved(execution._replace(job=job), report, undecided) == there
    failed = report._replace(outcome=Outcome.FAILED)
    assert ticks.moved(execution._replace(job=job), failed, undecided) is None


def test_a_moved_run_comes_after_every_tick_that_has_been_decided() -> None:
    """An interval's jitter lets ticks be due, and be skipped, before their instants (seed 5 of the year)."""
    execution, report = _run(Outcome.COMPLETED, T + S)
    undecided = PlannedTick(T + 7_200 * S, T + 7_000 * S)
    moved = ticks.moved(execution._replace(job=_job("every 1h")), report._replace(next_in_ms=60_000), undecided)
    tick = T + 3_601 * S
    assert moved == Moved(T + S, PlannedTick(tick, tick), T + 3_600 * S)


def test_a_run_that_is_moved_past_the_end_is_the_last_one() -> None:
    """Seed 3 of the year: it ran after `end_at`. Nor is one moved to before `start_at`."""
    execution, report = _run(Outcome.COMPLETED, T + S)
    report = report._replace(next_in_ms=300_000)
    undecided = PlannedTick(T + 60 * S, T + 60 * S)
    ends = _job("every 60s")._replace(policy=f'{{"end_at":"{format_instant(T + 200 * S)}"}}')
    tick = T + 301 * S
    assert ticks.moved(execution._replace(job=ends), report, undecided) == Moved(tick - 60 * S, None, T)
    starts = _job("every 60s")._replace(policy=f'{{"start_at":"{format_instant(T + 400 * S)}"}}')
    later = T + 421 * S
    assert ticks.moved(execution._replace(job=starts), report, undecided) == Moved(
        tick - 60 * S, PlannedTick(later, later), T
    )


def test_a_run_moved_twice_is_in_the_books_though_the_second_move_is_to_an_earlier_tick() -> None:
    """Two backfilled runs of an interval, one after the other (seed 426650010)."""
    execution, report = _run(Outcome.COMPLETED, T + S)
    job = _job("every 7s")._replace(next_tick=T + 35 * S, next_run_at=T + 35 * S)
    by_hand = execution._replace(job=job, trigger=Trigger.BACKFILL)
    first = ticks.moved(by_hand, report._replace(next_in_ms=31_000), PlannedTick(T + 35 * S, T + 35 * S))
    assert first == Moved(T + 25 * S, PlannedTick(T + 32 * S, T + 32 * S), T + 28 * S)
    assert first.next is not None
    by_hand = by_hand._replace(job=job._replace(anchor=first.anchor))
    second = ticks.moved(by_hand, report._replace(next_in_ms=30_000), first.next)
    assert second == Moved(T + 24 * S, PlannedTick(T + 31 * S, T + 31 * S), 0)  # no tick since the books were opened


def test_what_is_told_to_be_next_lies_in_the_window() -> None:
    """T is 2026-01-15, 09:00 UTC or whatever; each minute, between 20:00 and 21:00."""
    minute, policy = 60 * S, '{"window":"20:00-21:00"}'
    tick = T - T % (86_400 * S) + 9 * 3_600 * S
    opens = tick + 11 * 3_600 * S
    timing = ("* * * * *", 0, policy)
    assert ticks.upcoming("m.a", timing, tick, tick) == PlannedTick(opens, opens)
    assert ticks.upcoming("m.a", timing, opens + minute, opens + minute + 7) == PlannedTick(
        opens + minute, opens + minute + 7
    )
    assert ticks.upcoming("m.a", ("0 9 * * *", 0, policy), tick, tick) is None, "it never opens for that one"
    assert ticks.upcoming("m.a", ("* * * * *", 0, ""), tick, tick + 3) == PlannedTick(tick, tick + 3)
    assert ticks.upcoming("m.a", timing, None, None) is None


STOPS = '{"retries":3,"backoff":"30s","pause_after_failures":1}'


def test_a_tick_does_not_supersede_the_retry_that_keeps_its_job_from_being_paused() -> None:
    execution, report = _run(Outcome.FAILED, T + S)
    stopping = execution._replace(job=_job()._replace(policy=STOPS))
    request = request_of(stopping, report, T + S)
    assert request.retry_at == T + 31 * S
    assert request.next_tick == T + 10 * S
    assert request.next_run_at == T + 31 * S + ticks.RETRY_PATIENCE_US
    assert request.skipped == ()


def test_ticks_that_came_due_during_all_attempts_overlap() -> None:
    """The row's next tick had been put off behind the retry; once that is over, it is where its schedule has it."""
    execution, report = _run(Outcome.COMPLETED, T + 35 * S)
    waiting = _job()._replace(policy=STOPS, next_tick=T + 10 * S, next_run_at=T + 91 * S)
    retry = execution._replace(job=waiting, attempt=2, trigger=Trigger.RETRY, claimed_at=T + 31 * S)
    request = request_of(retry, report._replace(claimed_at=T + 31 * S), T + 35 * S)
    assert (request.next_tick, request.next_run_at, request.retry_at) == (T + 40 * S, T + 40 * S, None)
    assert request.skipped == (Skipped(SkipReason.OVERLAP, T + 10 * S, T + 30 * S, 3),)
    again = request_of(retry, report._replace(claimed_at=T + 31 * S, outcome=Outcome.FAILED), T + 35 * S)
    assert (again.retry_at, again.next_tick) == (T + 95 * S, T + 40 * S)
    assert again.next_run_at == T + 95 * S + ticks.RETRY_PATIENCE_US


def test_no_tick_waits_for_the_retry_of_a_run_by_hand() -> None:
    """It pauses nothing, and no tick supersedes it."""
    execution, report = _run(Outcome.FAILED, T + S)
    job = _job()._replace(policy=STOPS, next_tick=T + 10 * S, next_run_at=T + 10 * S)
    by_hand = execution._replace(job=job, trigger=Trigger.MANUAL, of_schedule=False)
    request = request_of(by_hand, report, T + S)
    assert (request.retry_at, request.next_tick, request.next_run_at) == (T + 31 * S, T + 10 * S, T + 10 * S)


def test_the_tick_that_waits_for_a_retry_keeps_its_distance_from_a_late_start() -> None:
    """Of */2 with seconds: T starts 1.9 s late and fails, so that T + 2 may start a second after that, not before."""
    claimed_at = T + 19 * S // 10
    execution, report = _run(Outcome.FAILED, claimed_at + S // 100)
    policy = '{"retries":3,"backoff":"50ms","pause_after_failures":1}'
    late = execution._replace(job=_job("*/2 * * * * *")._replace(policy=policy), claimed_at=claimed_at)
    first = request_of(late, report._replace(claimed_at=claimed_at), claimed_at + S // 100)
    assert (first.next_tick, first.retry_at) == (T + 2 * S, claimed_at + 6 * S // 100)
    assert first.next_run_at is not None
    waiting = late.job._replace(next_tick=first.next_tick, next_run_at=first.next_run_at)
    run_at = first.retry_at
    assert run_at is not None
    retry = late._replace(job=waiting, attempt=2, trigger=Trigger.RETRY, run_at=run_at, claimed_at=run_at)
    done = report._replace(claimed_at=run_at, outcome=Outcome.COMPLETED, ended_at=run_at + S // 100)
    request = request_of(retry, done, run_at + S // 100)
    assert (request.next_tick, request.next_run_at) == (T + 2 * S, claimed_at + S)
    # Nor sooner where the policy lets a tick run that came due during the retry.
    cutting = waiting._replace(policy=policy.replace("{", '{"overlap":"cancel_running",', 1))
    request = request_of(retry._replace(job=cutting), done._replace(ended_at=T + 22 * S // 10), T + 22 * S // 10)
    assert (request.next_tick, request.next_run_at) == (T + 2 * S, claimed_at + S)


def test_a_buffered_tick_waits_for_a_retry_for_no_longer_than_others() -> None:
    """It came due during a run of 25 s. That says nothing of how long it waits, should the retry not begin."""
    execution, report = _run(Outcome.FAILED, T + 25 * S)
    buffering = execution._replace(job=_job()._replace(policy=STOPS.replace("{", '{"overlap":"buffer_one",', 1)))
    request = request_of(buffering, report, T + 25 * S)
    assert (request.next_tick, request.retry_at) == (T + 20 * S, T + 55 * S)
    assert request.next_run_at is not None
    assert 0 <= request.next_run_at - (T + 55 * S + ticks.RETRY_PATIENCE_US) <= S


def test_beside_others_no_tick_waits_for_a_retry() -> None:
    allowing = _job()._replace(policy='{"overlap":"allow","retries":3,"pause_after_failures":1}')
    assert not ticks.retries_first(allowing)
    assert not ticks.retries_first(_job()._replace(policy='{"retries":3,"pause_after_failures":2}'))
    assert not ticks.retries_first(_job())
