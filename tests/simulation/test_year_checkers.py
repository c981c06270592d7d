"""Each checker of a year bites: one thing in a finished year is made wrong, and it must be found, by its own words."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import pytest

from cronring.controller.store.memory.rows import ActivationRow
from cronring.schema.execution import Outcome, SkipReason, Trigger
from tests.simulation.tampered_year import Missing, TamperedYear, first, is_of, tampering
from tests.simulation.year_checkers import oracle_of
from tests.simulation.year_database import STATEMENTS_A_SECOND
from tests.simulation.year_oracle import Oracle
from tests.simulation.year_world import YearWorld

SEEDS, DAYS = (10, 11, 5, 12), 200  # what one has nothing of, the next one has
S_US = 1_000_000
Tamper = Callable[[TamperedYear], None]


@cache
def finished(seed: int) -> tuple[YearWorld, Oracle]:
    world = YearWorld(seed, days=DAYS)
    world.run()
    return world, oracle_of(world)


def _claim_early(year: TamperedYear) -> None:
    row = year.pair().after
    row.claimed_at = row.run_at - 1


def _run_at_before_its_tick(year: TamperedYear) -> None:
    row = year.pair(is_of()).after
    row.run_at = row.tick - 1


def _run_twice(year: TamperedYear) -> None:
    year.add(year.pair().after)


def _run_twice_as_another_attempt(year: TamperedYear) -> None:
    year.add(year.pair().after, attempt=2)


def _drop_a_run(year: TamperedYear) -> None:
    del year.store.executions[year.pair().after.execution_id]


def _drop_a_skip(year: TamperedYear) -> None:
    year.store.skips.remove(year.skipped(SkipReason.OVERLAP))


def _skip_twice(year: TamperedYear) -> None:
    year.store.skips.append(year.skipped(SkipReason.OVERLAP))


def _skip_what_ran(year: TamperedYear) -> None:
    row = year.pair().after
    year.skip(row, SkipReason.PAUSED, row.tick)
    year.store.executions[row.execution_id] = row


def _count_one_more(year: TamperedYear) -> None:
    row = year.skipped(SkipReason.OVERLAP)
    row.skipped = row.skipped._replace(ticks=2)


def _begin_a_range_too_early(year: TamperedYear) -> None:
    row = year.skipped(SkipReason.OVERLAP)
    row.skipped = row.skipped._replace(first_tick=row.skipped.first_tick - 1)


def _end_a_range_too_late(year: TamperedYear) -> None:
    row = year.skipped(SkipReason.OVERLAP)
    row.skipped = row.skipped._replace(last_tick=row.skipped.last_tick + 1)


def _shift_a_tick(year: TamperedYear) -> None:
    row = year.pair(is_of()).after
    year.add(row, tick=row.tick + S_US, run_at=row.run_at + S_US, claimed_at=row.claimed_at + S_US)


def _open_books_late(year: TamperedYear) -> None:
    spans = first(spans for spans in year.store.spans.values() if len(spans) > 1)
    spans[1] = spans[1]._replace(from_at=spans[1].from_at + 1)


def _claim_in_another_order(year: TamperedYear) -> None:
    _, before, after = year.pair(is_of())
    before.claimed_at = after.claimed_at + 1


def _run_outside_its_window(year: TamperedYear) -> None:
    outside = year.skipped(SkipReason.OUTSIDE_WINDOW)
    year.store.skips.remove(outside)
    some = first(year.store.executions.values())
    tick, job = outside.skipped.first_tick, year.store.jobs[outside.job_id]
    year.add(some, job=job, tick=tick, run_at=tick, claimed_at=tick + S_US, attempt=1, trigger=Trigger.SCHEDULE)


def _skip_inside_its_window(year: TamperedYear) -> None:
    row = year.pair(lambda span: '"window"' in span.policy).after
    year.skip(row, SkipReason.OUTSIDE_WINDOW, row.tick)


def _skip_outside_of_no_window(year: TamperedYear) -> None:
    row = year.pair(is_of(window="")).after
    year.skip(row, SkipReason.OUTSIDE_WINDOW, row.tick)


def _start_too_soon_after_a_late_one(year: TamperedYear) -> None:
    _, before, after = year.pair(is_of(overlap="", on_missed=""))
    before.claimed_at = after.claimed_at - 500_000


def _keep_nothing_for_after_the_run(year: TamperedYear) -> None:
    _, before, after = year.pair(is_of(overlap="buffer_one"))
    assert before.report is not None
    before.report = before.report._replace(ended_at=after.tick + S_US)
    year.skip(after, SkipReason.OVERLAP, after.tick + S_US)


def _skip_what_buffer_all_keeps(year: TamperedYear) -> None:
    _, before, after = year.pair(is_of(overlap="buffer_all"))
    assert before.report is not None
    before.report = before.report._replace(ended_at=after.tick + S_US)
    year.skip(after, SkipReason.OVERLAP, after.tick + S_US)


def _let_it_run_on(year: TamperedYear) -> None:
    book, before, after = year.pair(lambda span: '"cancel_running"' in span.policy)
    until = book.next_due(after.tick)
    assert before.report is not None
    assert until is not None
    before.report = before.report._replace(ended_at=until + 60 * S_US)


def _retry_at_once(year: TamperedYear) -> None:
    before, second = year.retried()
    assert before.report is not None
    before.retry_at = second.run_at = second.claimed_at = before.report.ended_at + S_US


def _retry_after_the_next_tick(year: TamperedYear) -> None:
    before, second = year.retried()
    book = first(book for book in year.books() if book.job is before.job)
    second.claimed_at = first(row for row in book.of_ticks if row.tick > before.tick).claimed_at + 1


def _retry_a_success(year: TamperedYear) -> None:
    before, _ = year.retried()
    before.outcome = Outcome.COMPLETED


def _retry_unasked(year: TamperedYear) -> None:
    before, _ = year.retried()
    before.retry_at = None


def _leave_an_attempt_out(year: TamperedYear) -> None:
    year.retried()[1].attempt = 9


def _drop_a_retry(year: TamperedYear) -> None:
    at = first(
        at
        for at, request in enumerate(year.store.requested)
        if request.trigger is Trigger.RETRY and not request.job.removed
    )
    request = year.store.requested[at]
    year.store.started_by.pop(request.activation_id, None)
    year.store.activations.pop(request.activation_id, None)
    year.store.requested[at] = request._replace(tick=year.world.end_us)  # no tick comes after it


def _forget_a_manual_run(year: TamperedYear) -> None:
    del year.store.started_by[year.requested(Trigger.MANUAL).activation_id]


def _run_by_hand_twice(year: TamperedYear) -> None:
    year.store.started_by[year.requested(Trigger.MANUAL).activation_id] *= 2


def _leave_a_tick_out_of_a_backfill(year: TamperedYear) -> None:
    started = year.store.started_by[year.requested(Trigger.BACKFILL, runs=2).activation_id]
    tick, job = started.pop().tick, started[0].job
    for row in [row for row in year.store.executions.values() if row.tick == tick and row.job is job]:
        row.outcome = Outcome.FAILED


def _backfill_what_is_no_tick(year: TamperedYear) -> None:
    started = year.store.started_by[year.requested(Trigger.BACKFILL).activation_id]
    started.append(replace(started[-1], tick=started[-1].tick + 1))


def _backfill_in_another_order(year: TamperedYear) -> None:
    year.store.started_by[year.requested(Trigger.BACKFILL, runs=2).activation_id].reverse()


def _leave_an_activation_lying(year: TamperedYear) -> None:
    job = first(job for job in year.store.jobs.values() if not job.removed and not job.full and not job.paused)
    since = year.world.end_us - 3_600 * S_US
    year.store.activations[0] = ActivationRow(
        0, job, Trigger.MANUAL, since, None, 1, since, None, beside=False, again=False, requested_by="me"
    )


def _lose_a_result(year: TamperedYear) -> None:
    year.result().outcome = Outcome.CANCELLED


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (_claim_early, "never early: .* was claimed before its run_at"),
        (_run_at_before_its_tick, "never early: execution"),
        (_run_twice, "once: .* are the same attempt"),
        (_run_twice_as_another_attempt, "once: .* have the same job and tick"),
        (_drop_a_run, "unaccounted"),
        (_drop_a_skip, "unaccounted"),
        (_skip_twice, "is skipped twice"),
        (_skip_what_ran, "executed and skipped"),
        (_count_one_more, "counts wrong"),
        (_begin_a_range_too_early, "begins at no tick"),
        (_end_a_range_too_late, "ends at no tick"),
        (_shift_a_tick, "not due by the oracle"),
        (_open_books_late, "its books have a hole"),
        (_claim_in_another_order, "ticks out of order"),
        (_run_outside_its_window, "ran outside its window"),
        (_skip_inside_its_window, "is in its window, and was skipped"),
        (_skip_outside_of_no_window, "is outside of no window"),
        (_start_too_soon_after_a_late_one, "us too soon"),
        (_keep_nothing_for_after_the_run, "nothing is kept for after the run"),
        (_skip_what_buffer_all_keeps, "was not kept by buffer_all"),
        (_let_it_run_on, "was not cut by"),
        (_retry_at_once, "no policy asks for"),
        (_retry_after_the_next_tick, "ran after the next tick"),
        (_retry_a_success, "was retried"),
        (_retry_unasked, "nobody wanted"),
        (_leave_an_attempt_out, r"attempts \[1, .*9\]"),
        (_drop_a_retry, "was dropped, and nothing came after it"),
        (_forget_a_manual_run, "was never run"),
        (_run_by_hand_twice, "ran 2 times"),
        (_leave_a_tick_out_of_a_backfill, "left .* out"),
        (_backfill_what_is_no_tick, "which are none of its ticks"),
        (_backfill_in_another_order, "ran \\["),
        (_leave_an_activation_lying, "still waits"),
        (_lose_a_result, "result lost"),
    ],
)
def test_it_is_found(tamper: Tamper, words: str) -> None:
    _judge_tampered(tamper, words)


@pytest.mark.parametrize("reason", [reason for reason in SkipReason if reason is not SkipReason.OUTSIDE_WINDOW])
def test_no_reason_is_believed_of_a_tick_that_could_run(reason: SkipReason) -> None:
    def skip(year: TamperedYear) -> None:
        row = year.pair(is_of(window="")).after
        year.skip(row, reason, row.tick + S_US)

    _judge_tampered(skip, "its verb was there" if reason is SkipReason.NO_VERB else "no reason for")


def _judge_tampered(tamper: Tamper, words: str) -> None:
    for seed in SEEDS:
        with tampering(*finished(seed)) as year:
            try:
                tamper(year)
            except Missing:
                continue
            with pytest.raises(AssertionError, match=words):
                year.judge()
            return
    pytest.fail("none of these years has what is to be tampered with: take other seeds")


def test_what_was_not_tampered_with_is_right() -> None:
    with tampering(*finished(SEEDS[0])) as year:
        year.judge()


def test_whoever_spins_is_found() -> None:
    ask = partial(finished(SEEDS[0])[0].database.ask, "me", lambda store: store.find_peers(), lambda _: None)
    for _ in range(STATEMENTS_A_SECOND):
        ask()
    with pytest.raises(AssertionError, match="work: me asks PostgreSQL without end"):
        ask()
