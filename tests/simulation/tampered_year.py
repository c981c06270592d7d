"""A finished year whose rows are copies, to be tampered with: wrong books show what a checker is worth."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from cronring.controller.core.ledger.books import Span
from cronring.controller.store.memory.rows import SkipRow, StoredExecution
from cronring.schema.execution import Outcome, Skipped, SkipReason, Trigger
from tests.simulation.checkers import check_once, check_results
from tests.simulation.year_books import Book
from tests.simulation.year_checkers import books_of, check_books
from tests.simulation.year_history import Requested
from tests.simulation.year_oracle import Oracle, is_cron, policy_of
from tests.simulation.year_world import YearWorld

HOUR_US = 3_600_000_000
Row = TypeVar("Row")
TABLES = ("executions", "skips", "started_by", "requested", "spans", "activations")


class Missing(LookupError):
    """A year has nothing of this kind: take another seed."""


class Pair(NamedTuple):
    """Two ticks of one job, one right after the other, of which each ran on its own in a calm time."""

    book: Book
    before: StoredExecution
    after: StoredExecution


class TamperedYear:
    """Finds what there is to tamper with. `judge` is what `YearWorld.run` ends with."""

    def __init__(self, world: YearWorld, oracle: Oracle) -> None:
        self.world = world
        self.store = world.store
        self.oracle = oracle

    def judge(self) -> None:
        check_once(self.store)
        check_books(self.world, self.oracle)
        check_results(self.world)

    def books(self) -> list[Book]:
        return list(books_of(self.world, self.oracle).values())

    def pair(self, fits: Callable[[Span], bool] = lambda _: True) -> Pair:
        """The first whose schedule and policy fit."""
        for book in self.books():
            for before, after in pairwise(book.of_ticks):
                span = book.span_of(before.tick)
                if span == book.span_of(after.tick) and fits(span) and self._is_calm(book, before, after):
                    return Pair(book, before, after)
        raise Missing("a pair")

    def _is_calm(self, book: Book, before: StoredExecution, after: StoredExecution) -> bool:
        if after.report is None or before.report is None or book.due_before(after.tick) != before.tick:
            return False
        from_us, until_us = before.claimed_at - HOUR_US, after.report.ended_at + HOUR_US
        alone = len(book.running_at(before.claimed_at - HOUR_US, after.claimed_at + HOUR_US)) == 2
        paused = any(pause.since <= until_us and (pause.until or until_us) >= from_us for pause in book.pauses)
        quiet = not any(
            request.job is book.job and from_us <= request.at <= until_us for request in self.store.requested
        )
        on_time = after.claimed_at - after.tick < HOUR_US and before.report.ended_at < after.run_at
        return alone and quiet and on_time and not paused and not self.world.troubled(from_us, until_us)

    def skip(self, row: StoredExecution, reason: SkipReason, decided_at: int) -> None:
        """As if this run had been skipped instead."""
        del self.store.executions[row.execution_id]
        self.store.skips.append(SkipRow(row.job.job_id, Skipped(reason, row.tick, row.tick, 1), "c1", decided_at))

    def add(self, row: StoredExecution, **changes: Any) -> StoredExecution:
        """One more of the same."""
        added = replace(row, execution_id=1_000_000 + len(self.store.executions), **changes)
        self.store.executions[added.execution_id] = added
        return added

    def skipped(self, reason: SkipReason) -> SkipRow:
        """A single tick."""
        return first(row for row in self.store.skips if row.skipped.reason is reason and row.skipped.ticks == 1)

    def retried(self) -> tuple[StoredExecution, StoredExecution]:
        """A tick's first attempt, and its second."""
        rows = self.store.executions.values()
        retry = first(row for row in rows if row.trigger is Trigger.RETRY and row.of_schedule and row.attempt == 2)
        before = first(row for row in rows if row.job is retry.job and row.tick == retry.tick and row.attempt == 1)
        return before, retry

    def requested(self, trigger: Trigger, runs: int = 1) -> Requested:
        """What was asked for, of a job that is still there, and had so many runs."""
        return first(
            request
            for request in self.store.requested
            if request.trigger is trigger
            and not request.job.removed
            and len(self.store.started_by.get(request.activation_id, ())) >= runs
            and self.store.spans[request.job.job_id][-1] is self.store.spans[request.job.job_id][request.span]
        )

    def result(self) -> StoredExecution:
        """Of a runner that is still there."""
        living = [runner.name for runner in self.world.runners if runner.alive]
        return first(
            row
            for row in self.store.executions.values()
            if row.runner_id in living
            and row.outcome is Outcome.COMPLETED
            and row.execution_id in self.world.journal.finished
            and row.trigger is Trigger.SCHEDULE
        )


def first(rows: Iterable[Row]) -> Row:
    for row in rows:
        return row
    raise Missing("a row")


@contextmanager
def tampering(world: YearWorld, oracle: Oracle) -> Iterator[TamperedYear]:
    """Rows are copied, and put back."""
    store = world.store
    kept = {name: getattr(store, name) for name in TABLES}
    store.executions = {row.execution_id: replace(row) for row in store.executions.values()}
    store.skips = [replace(row) for row in store.skips]
    store.started_by = {
        activation_id: [store.executions[row.execution_id] for row in rows]
        for activation_id, rows in store.started_by.items()
    }
    store.requested = list(store.requested)
    store.spans = {job_id: list(spans) for job_id, spans in store.spans.items()}
    store.activations = dict(store.activations)
    try:
        yield TamperedYear(world, oracle)
    finally:
        for name, table in kept.items():
            setattr(store, name, table)


def is_of(**wanted: str) -> Callable[[Span], bool]:
    """Patterns whose policy says this; "": nothing."""

    def fits(span: Span) -> bool:
        policy = policy_of(span.policy)
        return is_cron(span.schedule) and all(policy.get(name, "") == value for name, value in wanted.items())

    return fits
