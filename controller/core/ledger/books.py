"""What the books say about one job: which schedules it had when, how its row stands, and how many ticks were due."""

from bisect import bisect_left
from typing import NamedTuple

from cronring.schema.schedule import reads_schedule
from cronring.schema.timetable import Timetable, timetable


class Span(NamedTuple):
    """A job's schedule in force: ticks in (from_at, until_at] were due by it; `until_at` None: it still is."""

    schedule: str
    anchor: int
    from_at: int
    until_at: int | None
    policy: str = ""

    @property
    def timetable(self) -> Timetable:
        return timetable(self.schedule, self.anchor, self.policy)


class JobStanding(NamedTuple):
    """How a job's row stands.

    `undecided_tick`: its next tick; of a paused or orphaned job, the first tick that is kept from running. `kept` says
    why: "paused", "no_verb", or "" (the job is neither).
    """

    job_id: int
    key: str
    removed: bool
    kept: str
    executing: bool
    last_tick: int | None
    undecided_tick: int | None


class Closed(NamedTuple):
    """What became of a job's ticks up to `until_at`. Retention has removed their rows."""

    job_id: int
    until_at: int
    due: int
    executed: int
    caught_up: int
    late: int
    skipped: dict[str, int]
    outcomes: dict[str, int]


class TickTimeline:
    """The ticks of one job by all its schedules, each in its time. `spans` in order; a later one begins where the one
    before ended, or after it.
    """

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        self._ends = [span.until_at for span in spans if span.until_at is not None]

    @property
    def unread(self) -> bool:
        """Whether a newer release wrote one of the schedules, so that nobody here knows what was due."""
        return not all(reads_schedule(span.schedule) for span in self._spans)

    @property
    def opens_at(self) -> int | None:
        """The books know of no tick up to this instant; None: of none at all."""
        return self._spans[0].from_at if self._spans else None

    @property
    def early_us(self) -> int:
        """How long before its tick a run may begin, whichever schedule it was due by; see Timetable.early_us."""
        return min((span.timetable.early_us for span in self._spans), default=0)

    @property
    def zones(self) -> frozenset[str]:
        """The time zones by whose clocks the schedules tick, without UTC."""
        return frozenset(zone for span in self._spans if (zone := span.timetable.policy.timezone))

    def span_at(self, tick: int) -> Span | None:
        """The schedule by which a tick at this instant is (or would be) due."""
        index = bisect_left(self._ends, tick)
        if index == len(self._spans) or self._spans[index].from_at >= tick:
            return None
        return self._spans[index]

    def early_us_at(self, tick: int, *, cut: bool) -> int | None:
        """How long before this tick its run may begin. None: nobody knows.

        A change of policy alone keeps the planned tick, even one that is due already (orders/redeploy.py,
        `_same_planned`). The new span opens behind the last decided tick, so the kept tick is its first. That tick may
        begin as early as the policy before allowed. `cut`: there may have been spans before the first that is known.
        """
        early, following = 0, None
        for span in reversed(self._spans[: bisect_left(self._ends, tick) + 1]):
            table = span.timetable
            if following is not None and table.schedule != following:
                return early
            early = max(early, table.early_us)
            if table.schedule.next_after(span.from_at) != tick:
                return early
            following = table.schedule
        return None if cut else early

    def count(self, after: int, until: int) -> int:
        """How many ticks were due in (after, until]."""
        ticks = 0
        for index in range(bisect_left(self._ends, after + 1), len(self._spans)):
            span = self._spans[index]
            if span.from_at >= until:
                break
            start, end = max(after, span.from_at), until if span.until_at is None else min(until, span.until_at)
            if start < end:
                ticks += span.timetable.schedule.count_between(start, end)
        return ticks

    def is_due(self, tick: int) -> bool:
        return self.count(tick - 1, tick) == 1

    def next_after(self, instant: int, until: int | None = None) -> int | None:
        """The first tick after `instant` (and at or before `until`)."""
        for index in range(bisect_left(self._ends, instant + 1), len(self._spans)):
            span = self._spans[index]
            if until is not None and span.from_at >= until:
                return None
            tick = span.timetable.schedule.next_after(max(instant, span.from_at))
            if tick is not None and (span.until_at is None or tick <= span.until_at):
                return tick if until is None or tick <= until else None
        return None

    def last_at_or_before(self, instant: int) -> int | None:
        """The last tick at or before `instant`."""
        for index in range(min(bisect_left(self._ends, instant), len(self._spans) - 1), -1, -1):
            span = self._spans[index]
            end = instant if span.until_at is None else min(instant, span.until_at)
            tick = span.timetable.schedule.last_at_or_before(end)
            if tick is not None and tick > span.from_at:
                return tick
        return None


def decided_until(job: JobStanding, until: int) -> int:
    """The instant up to which every tick of a job must be in the books. Later ticks are still to be decided.

    While a job runs, the end of that run decides the ticks that pass meanwhile. But if the row's next tick lies beyond
    the tick that ran last, that next tick is the first undecided one (several runs at once).
    """
    if job.executing:
        return min(until, max(job.last_tick or 0, (job.undecided_tick or 0) - 1))
    return until if job.undecided_tick is None else min(until, job.undecided_tick - 1)
