"""What operators ordered of jobs, and were told is so, is in the books when a world has come to rest.

That no tick of a paused or cancelled job is claimed, whoever claims it, is judged at the commit (history.py).
"""

from typing import TYPE_CHECKING, Final

from cronring.controller.core.orders.orders import Cancel, Pause, Restore, SkipNext
from cronring.schema.execution import SkipReason
from tests.simulation.year_books import Book, brief
from tests.simulation.year_history import Written, YearStore
from tests.simulation.year_oracle import slice_of

if TYPE_CHECKING:
    from tests.simulation.world import World

_KEPT: Final = (SkipReason.PAUSED, SkipReason.OUTSIDE_WINDOW)


def check_orders(world: "World", store: YearStore, book: Book) -> None:
    for at, order in enumerate(book.orders):
        match order.given:
            case SkipNext():
                _check_skipped(book, order)
            case Pause(until=until) if until is not None:
                _check_kept(book, order, until, book.orders[at + 1 :])
            case Cancel():
                _check_cancelled(store, book, order, book.orders[at + 1 :])
    _check_stands(world, book)


def _check_skipped(book: Book, order: Written) -> None:
    """The tick doesn't run, and its reason says so; unless its schedule ended before it came."""
    assert order.tick is not None, book.says(f"{order} names no tick")
    span = book.spans[order.span]
    if span.until_at is not None and span.until_at < order.tick:
        return
    skip = book.skips.get(order.tick)
    told = skip is not None and skip.skipped.reason is SkipReason.CANCELLED and skip.decided_at == order.at
    assert told, book.says(f"{order} is in the books as {skip}, ran as {book.of_tick.get(order.tick)}")


def _check_kept(book: Book, order: Written, until: int, later: list[Written]) -> None:
    """Each tick before the pause's end has that reason, as far as nobody ordered otherwise before."""
    if order.paused_tick is None:
        return
    other = min((each.at for each in later if not isinstance(each.given, SkipNext)), default=until)
    span = book.spans[order.span]
    ends = min(until - 1, other, until if span.until_at is None else span.until_at)
    for tick in slice_of(book.due, order.paused_tick, ends):
        skip = book.skips.get(tick)
        kept = skip is not None and skip.skipped.reason in _KEPT
        assert kept, book.says(f"{order} kept {tick}, which is {skip}, ran as {book.of_tick.get(tick)}")


def _check_cancelled(store: YearStore, book: Book, order: Written, later: list[Written]) -> None:
    """What ran was told to stop, and nothing began until the job was restored."""
    until = next((each.executions for each in later if isinstance(each.given, Restore)), len(store.executions))
    begun = [row for row in book.executions if order.executions < row.execution_id <= until]
    assert not begun, book.says(f"{order}, and then began {[brief(row) for row in begun]}")
    for row in book.executions:
        if row.execution_id <= order.executions and store.ended.get(row.execution_id, order.ends + 1) > order.ends:
            assert row.cancel is not None, book.says(f"{order}, and {brief(row)} wasn't told")


def _check_stands(world: "World", book: Book) -> None:
    """A pause ends by itself when its time has come; a cancelled job has neither ticks nor anything that waits."""
    job = book.job
    if job.paused_until is not None:
        assert not job.paused or job.paused_until > book.now_us, book.says("its pause did not end")
    if job.cancelled_at is not None:
        assert job.next_tick is None, book.says("cancelled, and goes on")
        waiting = [row for row in world.database.store.activations.values() if row.job is job]
        assert not waiting, book.says(f"cancelled, and has waiting {waiting}")
