"""What was due, by the schedules alone, held against what the books say became of it.

A tick is accounted for when it ran, runs, or was skipped with a reason. It is pending while it still stands before its
job as the next one, or behind that: it waits for a runner, for its turn after an outage, or for a controller. One that
its job has gone past without a trace is unaccounted for. Ticks that nobody could have decided yet count as nothing:
those that pass while their job still runs or is paused, and those that came due less than `grace_us` ago.
Further attempts at a tick, manual runs and backfills are no ticks of their own.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from schema.schedule import Schedule
from schema.timetable import timetable

GRACE_US: Final = 2_000_000


class Span(NamedTuple):
    """A job's schedule in force: ticks in (from_at, until_at] were due by it; `until_at` None: it still is."""

    schedule: str
    anchor: int
    from_at: int
    until_at: int | None
    policy: str = ""


class Cut(NamedTuple):
    """A skipped range that reaches beyond the span of time asked for."""

    reason: str
    first_tick: int
    last_tick: int


class Books(NamedTuple):
    """One job's books over the span of time asked for. `skipped`: ticks by reason, of ranges wholly inside it.

    `undecided_tick`: the next one, with its run_at; or, of a paused job, the first that its pause keeps from running.
    """

    spans: list[Span]
    executing: bool
    last_tick: int | None
    undecided_tick: int | None
    executed: int
    running: int
    skipped: dict[str, int]
    cuts: list[Cut]
    next_run_at: int | None  # None while paused


class Totals(NamedTuple):
    """Counts of ticks. `due` = executed + running + skipped + unaccounted + pending."""

    due: int
    executed: int
    running: int
    skipped: dict[str, int]  # by reason, in order of the reasons' names
    unaccounted: int
    pending: int = 0


def total(jobs: Iterable[Books], since: int | None, until: int, now: int, grace_us: int = GRACE_US) -> Totals:
    """Add up the books of all jobs for ticks in [since, until]; `since` None: all. Instants in microseconds."""
    due = executed = running = unaccounted = pending = 0
    skipped: Counter[str] = Counter()
    for books in jobs:
        spans = [_clipped(span, books, since, until) for span in books.spans]
        of_job = Counter(books.skipped)
        for cut in books.cuts:
            of_job[cut.reason] += _ticks_of_cut(cut, spans)
        ticks = sum(_ticks(span) for span in spans)
        accounted = books.executed + books.running + of_job.total()
        missing = max(ticks - accounted, 0)
        waiting = _waiting(books, since, min(until, now - grace_us))
        due += accounted + missing + waiting
        pending += waiting
        executed += books.executed
        running += books.running
        unaccounted += missing
        skipped += of_job
    return Totals(due, executed, running, dict(sorted(skipped.items())), unaccounted, pending)


class _Clipped(NamedTuple):
    schedule: Schedule
    after: int
    until: int


def _clipped(span: Span, books: Books, since: int | None, until: int) -> _Clipped:
    """The part of the span that lies in the time asked for, and whose ticks have been decided, or should have been."""
    after = span.from_at if since is None else max(span.from_at, since - 1)
    end = span.until_at
    if end is None:
        end = _decided_until(books, until)
    return _Clipped(_schedule(span), after, max(after, min(end, until)))


def _schedule(span: Span) -> Schedule:
    return timetable(span.schedule, span.anchor, span.policy).schedule


def _decided_until(books: Books, until: int) -> int:
    """The instant up to which every tick of the present schedule ought to be in the books."""
    if books.executing:
        # Its end decides what passed meanwhile. A tick beyond the one that ran last is the first that is undecided.
        return max(books.last_tick or 0, (books.undecided_tick or 0) - 1)
    return until if books.undecided_tick is None else books.undecided_tick - 1


def _waiting(books: Books, since: int | None, settled: int) -> int:
    """How many ticks of an idle job came due by `settled`, and nobody has decided."""
    tick, span = books.undecided_tick, books.spans[-1]
    overdue = books.next_run_at is not None and books.next_run_at <= settled
    if books.executing or tick is None or span.until_at is not None or not overdue:
        return 0
    after = max(tick, since or 0, span.from_at + 1) - 1
    return _schedule(span).count_between(after, settled) if after < settled else 0


def _ticks(span: _Clipped) -> int:
    return span.schedule.count_between(span.after, span.until)


def _ticks_of_cut(cut: Cut, spans: list[_Clipped]) -> int:
    """How many ticks of the range lie in the time asked for. A range never crosses a change of schedule."""
    parts = (
        _Clipped(span.schedule, max(span.after, cut.first_tick - 1), min(span.until, cut.last_tick)) for span in spans
    )
    return sum(_ticks(part) for part in parts if part.until > part.after)
