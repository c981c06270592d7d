"""What must hold of a year, when it is over; see the modules of the single rules."""

from typing import TYPE_CHECKING

from tests.simulation.orphaned import check_orphans
from tests.simulation.taken_over import check_taken_over
from tests.simulation.year_activations import check_order, check_requests, check_retries
from tests.simulation.year_books import Book, brief
from tests.simulation.year_oracle import Oracle
from tests.simulation.year_reasons import check_buffers, check_cuts, check_distances, check_reasons, check_windows

if TYPE_CHECKING:
    from tests.simulation.year_world import YearWorld


def check_year(world: "YearWorld") -> None:
    check_books(world, oracle_of(world))


def oracle_of(world: "YearWorld") -> Oracle:
    spans = [span for job_id in world.store.jobs for span in world.store.spans[job_id]]
    return Oracle(spans, world.start_us, world.end_us)


def books_of(world: "YearWorld", oracle: Oracle) -> dict[int, Book]:
    now_us = world.store.now_us()
    return {job.job_id: Book(world.store, job, oracle, now_us) for job in world.store.jobs.values()}


def check_books(world: "YearWorld", oracle: Oracle) -> None:
    books = books_of(world, oracle)
    for book in books.values():
        book.check_accounts()
        _check_never_early(book)
        check_order(book)
        check_windows(book)
        check_distances(book)
        check_reasons(world, book)
        check_buffers(book)
        check_cuts(world, book)
        check_retries(book)
    check_requests(world, books)
    check_orphans(world.store, 0)
    check_taken_over(world.store, 0)


def _check_never_early(book: Book) -> None:
    """Ticks are delayed only; intervals that ask for it may start less than half an interval before."""
    for tick, row in book.of_tick.items():
        if "±" not in book.span_of(tick).policy:
            assert row.run_at >= tick, book.says(f"never early: {brief(row)}")
