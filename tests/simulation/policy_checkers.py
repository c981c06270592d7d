"""What policies and operators promise, held against what was committed, when a world of faults has come to rest.

Clocks are set in these worlds: where a checker compares instants, it allows for all the steps there were. What has an
order whatever the clock, is judged at the commit (history.py), or by the order of commits: execution ids ascend.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cronring.controller.core.ledger.books import Span
from cronring.controller.store.memory.rows import StoredExecution
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.policy import parse_policy
from cronring.schema.policy_model import Policy
from cronring.schema.retry import backoff_us
from cronring.schema.timetable import timetable
from tests.simulation.order_checkers import check_orders
from tests.simulation.orphaned import check_orphans
from tests.simulation.policy_reasons import check_reasons
from tests.simulation.policy_requests import check_requests
from tests.simulation.policy_ticks import Calendar, ticks_between
from tests.simulation.taken_over import check_taken_over
from tests.simulation.year_books import Book, brief
from tests.simulation.year_history import YearStore
from tests.simulation.year_oracle import is_cron
from tests.simulation.year_reasons import check_windows

if TYPE_CHECKING:
    from tests.simulation.world import World

SECOND_US: Final = 1_000_000
CLOCK_ERROR_US: Final = 100_000  # controllers estimate PostgreSQL's clock
SPREAD_US: Final = 6 * SECOND_US  # at most, of the intervals that are drawn
DISTANCE_US: Final = SECOND_US  # every pattern here has seconds


def check_policies(world: "World", promised: list[int]) -> None:
    store = world.database.store
    assert isinstance(store, YearStore)
    calendar = Calendar(world.start_us)
    now_us = store.now_us()
    books = {job.job_id: Book(store, job, calendar, now_us) for job in store.jobs.values()}
    for book in books.values():
        book.check_accounts()
        check_windows(book)
        _check_order(book)
        _check_distances(world, book)
        _check_attempts(world, book)
        _check_cuts(world, book)
        _check_overlaps(world, book)
        check_reasons(world, book)
        _check_pauses(world, store, book)
        check_orders(world, store, book)
    check_requests(world, store, books, promised)
    check_orphans(store, world.database.stepped_all_us + CLOCK_ERROR_US)
    check_taken_over(store, world.database.stepped_all_us + CLOCK_ERROR_US)


def policy_of(span: Span) -> Policy:
    return parse_policy(span.policy)


def _check_order(book: Book) -> None:
    """Ticks of the schedule are claimed in their order, and each is run no earlier than it says."""
    by_commit = sorted(book.of_ticks, key=lambda row: row.execution_id)
    assert by_commit == book.of_ticks, book.says(f"out of order: {[row.tick for row in by_commit]}")
    for row in book.of_ticks:
        if not any("±" in policy_of(span).jitter for span in book.came_due_by(row.tick)):
            assert row.run_at >= row.tick, book.says(f"never early: {brief(row)}")


def _check_distances(world: "World", book: Book) -> None:
    """The minimum interval between starts, within one schedule and policy."""
    for before, after in pairwise(book.of_ticks):
        span = book.span_of(after.tick)
        policy = policy_of(span)
        exempt = policy.overlap in {"allow", "buffer_all"} or policy.on_missed == "run_all"
        if exempt or not is_cron(span.schedule) or book.index_of(before.tick) != book.index_of(after.tick):
            continue
        begun = before.claimed_at if before.claimed_at - before.run_at > SECOND_US else before.tick
        soon_us = begun + DISTANCE_US - after.claimed_at - world.database.stepped_back_us
        assert soon_us <= 0, book.says(f"too soon by {soon_us} us: {brief(after)} after {brief(before)}")


# Retries


def _check_attempts(world: "World", book: Book) -> None:
    """Attempts follow each other; a retry follows a failure that its policy names, after the backoff."""
    of_tick: dict[int, list[StoredExecution]] = {}
    for row in book.executions:
        of_tick.setdefault(row.tick, []).append(row)
    for rows in of_tick.values():
        rows.sort(key=lambda row: row.attempt)
        attempts = [row.attempt for row in rows]
        assert attempts == list(range(1, len(rows) + 1)), book.says(f"attempts {attempts} of tick {rows[0].tick}")
        for row in rows:
            if row.trigger is Trigger.RETRY:
                _check_retry(world, book, row, rows)
            if row.outcome is not None and row.retry_at is None:
                _check_not_retried(world, book, row)


def _check_retry(world: "World", book: Book, row: StoredExecution, rows: list[StoredExecution]) -> None:
    store = world.database.store
    assert isinstance(store, YearStore)
    if store.activation_of[row.execution_id] in store.by_hand:
        return  # year_history.py judged it as it was asked for
    wanted = [other for other in rows if other.attempt < row.attempt and other.retry_at == row.run_at]
    assert wanted, book.says(f"nobody wanted {brief(row)}")
    before = wanted[-1]
    assert before.report is not None, book.says(f"{brief(row)} is a retry of what has not ended")
    # Who ends it estimates PostgreSQL's clock by statements, and those may be slow.
    error_us = CLOCK_ERROR_US + world.database.trouble.slowest_us
    earliest = before.report.ended_at - error_us - world.database.stepped_all_us
    policy = _policy_at_end(world, book, before)
    asked = _names(policy, before) and row.run_at >= earliest + backoff_us(policy, before.attempt)
    assert asked, book.says(f"{brief(row)} after {brief(before)}, {before.report.error_type}: {policy} wanted it not")


def _check_not_retried(world: "World", book: Book, row: StoredExecution) -> None:
    """A failure that its job's policy names is tried again, unless the next tick comes before.

    Or unless that tick has been claimed by the time that the end is committed; or somebody wanted the run cancelled.
    """
    assert row.report is not None
    committed_at = world.database.store.ended_us[row.execution_id] + world.database.stepped_all_us
    later = [other for other in book.of_ticks if other.tick > row.tick and other.claimed_at <= committed_at]
    policy = _policy_at_end(world, book, row)
    if row.cancel is not None or row.job.removed or (row.of_schedule and later) or not _names(policy, row):
        return
    ended_at = row.report.ended_at
    if row.outcome is Outcome.LOST:  # nobody knows when, only that it had ended by then
        ended_at = max(ended_at, world.database.store.ended_us[row.execution_id])
    until = ended_at + backoff_us(policy, row.attempt) + CLOCK_ERROR_US + world.database.stepped_all_us
    until += max(_spread_us(span) for span in book.spans)
    following = row.of_schedule and any(ticks_between(span, max(span.from_at, row.tick), until) for span in book.spans)
    assert following, book.says(f"{brief(row)}, {row.report.error_type}: was not to be tried again, by {policy}")


def _policy_at_end(world: "World", book: Book, row: StoredExecution) -> Policy:
    """Whoever ends it must know its job's row as it is when that is committed."""
    return policy_of(book.spans[world.database.store.ended_in[row.execution_id]])


def _names(policy: Policy, row: StoredExecution) -> bool:
    assert row.report is not None
    by_its_runner = row.outcome is Outcome.CANCELLED and row.report.error_type in {"Disconnected", "RunnerStopped"}
    outcome = Outcome.LOST if by_its_runner else row.outcome
    if outcome not in (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST) or row.attempt > policy.retries_by(0):
        return False
    return not policy.retry_on or str(outcome) in policy.retry_on or row.report.error_type in policy.retry_on


def _spread_us(span: Span) -> int:
    """How far jitter may move a tick of intervals this short."""
    return SPREAD_US if policy_of(span).jitter else 0


# Overlap, and pauses by failures


def _check_cuts(world: "World", book: Book) -> None:
    """Under cancel_running, once all is well again, no run outlives the next tick for long."""
    for row in book.of_ticks:
        at = book.index_of(row.tick)
        span = book.spans[at]
        if policy_of(span).overlap != "cancel_running" or row.claimed_at < world.settled_us or row.job.paused:
            continue
        if span.until_at is not None:
            continue
        following = timetable(span.schedule, span.anchor, span.policy).following_open(row.job.key, row.tick)
        ended = book.now_us if row.report is None else row.report.ended_at
        if following is not None and following.tick not in book.skips:
            late_us = ended - max(following.run_at, row.claimed_at)
            assert late_us < 3 * SECOND_US, book.says(f"{brief(row)} was not cut by {following}")


def _check_overlaps(world: "World", book: Book) -> None:
    """Under overlap skip no tick runs that came due while a run held its job, whatever was changed meanwhile.

    That is decided when the run ends, by the policy of then, and stays so by the next one.
    (Of several that went on when only one might any more, the one whose end is committed last decides.)
    """
    slack_us = world.database.stepped_all_us + CLOCK_ERROR_US
    for row in book.of_ticks:
        policy = policy_of(book.span_of(row.tick))
        if policy.overlap not in {"", "skip"} or policy.on_missed == "run_all":
            continue
        # Of ticks that had been missed before the run began, the latest stands for all.
        instead = [each.skipped.first_tick for each in book.ranges if each.decided_at == row.claimed_at]
        from_us, until_us = min(row.tick, row.run_at, *instead) - slack_us, max(row.tick, row.run_at) + slack_us
        for other in book.running_at(until_us, until_us):
            beneath = (
                other is not row
                and other.holds_job
                and other.claimed_at < from_us
                and other.outcome is not Outcome.LOST
                and (other.outcome is None or _policy_at_end(world, book, other).overlap in {"", "skip"})
            )
            assert not beneath, book.says(f"{brief(row)} ran, and came due during {brief(other)}")


def _check_pauses(world: "World", store: YearStore, book: Book) -> None:
    """A job that pauses itself had so many ticks in a row without success; one that had them is paused."""
    most = policy_of(book.spans[-1]).pause_after_failures
    job = book.job
    goes_on = job.next_tick is not None and not job.executing  # else it pauses when its run ends
    failing = most and job.failures >= most and goes_on and len(book.spans) == 1
    assert not failing, book.says(f"{job.failures} ticks without success, and not paused")
    for pause in book.pauses:
        if pause.by_hand:
            continue
        limits = [policy_of(span).pause_after_failures for span in book.spans]
        assert any(limits), book.says(f"paused itself, and no policy says so: {pause}")
        least = min(limit for limit in limits if limit)
        until = pause.since + world.database.stepped_all_us
        failed = [row for row in store.executions.values() if row.job is job and _failed_by(store, row, until)]
        assert len({row.tick for row in failed}) >= least, book.says(f"{pause} after {len(failed)} failures")


def _failed_by(store: YearStore, row: StoredExecution, until: int) -> bool:
    ended = row.outcome is not None and store.ended_us[row.execution_id] <= until
    return ended and row.outcome is not Outcome.COMPLETED and row.of_schedule
