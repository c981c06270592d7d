"""What was asked for beside the schedule is never lost: manual runs, backfills and retries of a world of faults."""

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cronring.controller.store.memory.rows import ActivationRow, StoredExecution
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.timetable import timetable
from tests.simulation.policy_ticks import ticks_between
from tests.simulation.year_books import Book, brief
from tests.simulation.year_history import Requested, YearStore

if TYPE_CHECKING:
    from tests.simulation.world import World

SECOND_US: Final = 1_000_000
PATIENCE_US: Final = 5 * SECOND_US  # what may start is tried every other second, at least


def check_requests(world: "World", store: YearStore, books: dict[int, Book], promised: list[int]) -> None:
    requested = {request.activation_id: request for request in store.requested}
    for activation_id in promised:
        assert activation_id in requested, f"lost: activation {activation_id}, of which the operator was told"
    for request in store.requested:
        _check_request(store, books[request.job.job_id], request)
    for row in store.activations.values():
        _check_not_stuck(world, books[row.job.job_id], row)


def _check_request(store: YearStore, book: Book, request: Requested) -> None:
    started = store.started_by.get(request.activation_id, [])
    ended = request.activation_id not in store.activations
    dropped = request.job.removed or request.activation_id in store.cancelled
    told = f"{request.trigger} {request.activation_id} of tick {request.tick}"
    if request.trigger is Trigger.BACKFILL:
        ran = [row.tick for row in started]
        assert all(before < after for before, after in pairwise(ran)), book.says(f"{told} ran {ran}")
        _check_backfill(store, book, request, ran, dropped=dropped)
        return
    assert len(started) <= 1, book.says(f"{told} ran {len(started)} times: {[brief(row) for row in started]}")
    assert ended or not started, book.says(f"{told} ran, and still waits")
    if ended and not started and not dropped:
        assert request.activation_id not in store.by_hand, book.says(f"{told} was asked for, is gone, and never ran")
        attempts = store.attempts.get((book.job.job_id, request.tick), [])
        of_schedule = request.trigger is Trigger.RETRY and any(row.of_schedule for row in attempts)
        overtaken = of_schedule and any(row.tick > request.tick for row in book.of_ticks)
        assert overtaken, book.says(f"{told} is gone, and never ran")


def _check_backfill(store: YearStore, book: Book, request: Requested, ran: list[int], *, dropped: bool) -> None:
    """Each of its ticks was run by it, or had completed; as far as it came, or was to come."""
    assert request.until_tick is not None
    if len(book.spans) > request.span + 1:
        return  # its ticks became others meanwhile
    span = book.spans[request.span]
    table = timetable(span.schedule, span.anchor, span.policy)
    wanted = ticks_between(span, request.tick - 1, request.until_tick)
    wanted = [tick for tick in wanted if table.next_within(tick - 1, tick) == tick]
    strange = [tick for tick in ran if tick not in wanted]
    assert not strange, book.says(f"backfill {request[2:]} ran {strange}, which are none of its ticks")
    waiting = store.activations.get(request.activation_id)
    if waiting is not None:
        wanted = [tick for tick in wanted if tick < waiting.tick]
    elif dropped:
        return
    for tick in wanted:
        done = tick in ran or (not request.again and _completed(store, book, tick))
        assert done, book.says(f"backfill {request.activation_id} {request[2:]} left {tick} out; it ran {ran}")


def _completed(store: YearStore, book: Book, tick: int) -> bool:
    rows: list[StoredExecution] = store.attempts.get((book.job.job_id, tick), [])
    return any(row.outcome is Outcome.COMPLETED for row in rows)


def _check_not_stuck(world: "World", book: Book, row: ActivationRow) -> None:
    """It is not due yet, or its job is paused or busy, or has been just now."""
    job, now_us = row.job, book.now_us
    if job.orphaned or (job.paused and not row.by_hand):
        return
    busy_until = max((now_us if each.report is None else each.report.ended_at for each in book.executions), default=0)
    since = max(row.run_at, busy_until, world.settled_us)
    assert since > now_us - PATIENCE_US, book.says(
        f"stuck: {row.trigger} {row.activation_id} of {row.tick} waits since {since}, now is {now_us}"
    )
