"""Retries, manual runs and backfills of a year."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cronring.controller.store.memory.rows import StoredExecution
from cronring.schema.execution import OF_A_TICK, Outcome, Trigger
from tests.simulation.year_books import Book, brief
from tests.simulation.year_history import Requested, YearStore
from tests.simulation.year_oracle import length_us, policy_of, slice_of, window_of

if TYPE_CHECKING:
    from tests.simulation.year_world import YearWorld

BACKOFF_US: Final = 10_000_000
BACKOFF_MOST_US: Final = 3_600_000_000
STUCK_US: Final = 900_000_000  # a controller that didn't end its job's run hears of that when it tries again
CLOCK_ERROR_US: Final = 100_000  # of controllers: which instant it is, they estimate


def check_retries(book: Book) -> None:
    """Attempts follow each other, after the backoff, and a tick's never after a later tick's claim."""
    of_tick: dict[int, list[StoredExecution]] = {}
    for row in book.executions:
        of_tick.setdefault(row.tick, []).append(row)
    for rows in of_tick.values():
        rows.sort(key=lambda row: row.attempt)
        attempts = [row.attempt for row in rows]
        assert attempts == list(range(1, len(rows) + 1)), book.says(f"attempts {attempts} of tick {rows[0].tick}")
        for row in rows:
            if row.trigger is Trigger.RETRY:
                _check_retry(book, row, rows)


def _check_retry(book: Book, row: StoredExecution, rows: list[StoredExecution]) -> None:
    failed = [other for other in rows if other.attempt < row.attempt and other.retry_at == row.run_at]
    assert len(failed) == 1, book.says(f"nobody wanted {brief(row)}")
    before = failed[0]
    assert before.report is not None, book.says(f"{brief(row)} is a retry of what has not ended")
    outcome = _retried_as(before)
    assert outcome in (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST), book.says(f"{brief(before)} was retried")
    # Its end was reckoned by the job's row as that stood by then.
    policies = [policy_of(span.policy) for span in book.spans if span.from_at <= row.claimed_at or len(book.spans) == 1]
    assert any(_asks(policy, before, row.run_at) for policy in policies), book.says(
        f"no policy asks for {brief(row)} after {brief(before)}"
    )
    if not row.of_schedule:
        return  # nothing supersedes what was asked for by hand
    late = [later for later in book.of_ticks if later.tick > row.tick and later.claimed_at < row.claimed_at]
    assert not late, book.says(f"{brief(row)} ran after the next tick, {brief(late[0])}")


def _retried_as(row: StoredExecution) -> Outcome | None:
    """What its runner stopped, as it was cut off or left, is as good as lost."""
    assert row.report is not None
    by_its_runner = row.outcome is Outcome.CANCELLED and row.report.error_type in {"Disconnected", "RunnerStopped"}
    return Outcome.LOST if by_its_runner else row.outcome


def _asks(policy: dict[str, object], before: StoredExecution, at: int) -> bool:
    """Whether this policy wanted that retry, then."""
    report = before.report
    assert report is not None
    base_us = length_us(str(policy["backoff"])) if "backoff" in policy else BACKOFF_US
    wait_us = min(base_us * 2 ** (before.attempt - 1), BACKOFF_MOST_US)
    listed = policy.get("retry_on", [])
    named = not listed or str(_retried_as(before)) in str(listed) or report.error_type in str(listed)
    return (
        named
        and before.attempt <= int(str(policy.get("retries", 0)))
        and at >= report.ended_at + wait_us - CLOCK_ERROR_US
    )


def check_requests(world: "YearWorld", books: dict[int, Book]) -> None:
    """Manual runs run, once; backfills run each tick of theirs once, in order; what is left waits for its job."""
    store = world.store
    for request in store.requested:
        started = store.started_by.get(request.activation_id, [])
        book = books[request.job.job_id]
        waits = request.activation_id in store.activations
        assert request.trigger is Trigger.BACKFILL or len(started) <= 1, book.says(
            f"{request[2:]} ran {len(started)} times"
        )
        if request.trigger is Trigger.MANUAL:
            done = bool(started) or request.job.removed or (waits and (_is_busy(request) or request.job.orphaned))
            assert done, book.says(f"{request[2:]} was never run")
        elif request.trigger is Trigger.BACKFILL:
            _check_backfill(store, book, request, started, waits=waits)
        elif not started and not waits:
            _check_retry_dropped(book, request)
    for row in store.activations.values():
        stuck = row.run_at < store.now_us() - STUCK_US and not row.job.paused and not row.job.orphaned
        stuck = stuck and not row.job.full
        stuck = stuck and not (row.beside and store.beside_is_full(row))
        assert not stuck, books[row.job.job_id].says(f"{row.activation_id} {row.trigger} of {row.tick} still waits")


def _is_busy(request: Requested) -> bool:
    return request.job.full


def _check_retry_dropped(book: Book, request: Requested) -> None:
    """It gave way to a later tick."""
    later = request.of_schedule and any(row.tick > request.tick for row in book.of_ticks)
    assert later or request.job.removed, book.says(f"the retry {request[2:]} was dropped, and nothing came after it")


def _check_backfill(
    store: YearStore, book: Book, request: Requested, started: list[StoredExecution], *, waits: bool
) -> None:
    assert request.until_tick is not None
    ran = [row.tick for row in started]
    assert all(before < after for before, after in pairwise(ran)), book.says(f"{request[2:]} ran {ran}")
    span = book.spans[request.span]
    last = started[-1].claimed_at if started else request.at
    if request.job.removed or (span.until_at is not None and span.until_at <= max(last, store.now_us() - 1)):
        return  # its ticks became others meanwhile
    contains = window_of(span.policy)
    wanted = [
        tick
        for tick in slice_of(
            book.oracle.ticks(span._replace(from_at=0), request.until_tick), request.tick, request.until_tick
        )
        if contains is None or contains(tick)
    ]
    if waits:
        wanted = [tick for tick in wanted if tick < store.activations[request.activation_id].tick]
    for tick in wanted:
        rows = [row for row in book.executions if row.tick == tick and row.outcome is Outcome.COMPLETED]
        done = tick in ran or (not request.again and bool(rows))
        assert done, book.says(f"{request[2:]} left {tick} out; it ran {ran}")
    strange = [tick for tick in ran if tick not in wanted]
    assert not strange, book.says(f"{request[2:]} ran {strange}, which are none of its ticks")


def check_order(book: Book) -> None:
    """Ticks of the schedule are claimed in their order."""
    by_claim = sorted(book.of_ticks, key=lambda row: (row.claimed_at, row.tick))
    assert [row.tick for row in by_claim] == [row.tick for row in book.of_ticks], book.says("ticks out of order")
    assert all(row.trigger in OF_A_TICK for row in by_claim)
