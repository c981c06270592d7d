"""Which tick runs when several have come due, and which are passed over: the policy `run_last`.

A tick never vanishes: whatever doesn't run is named here as a range, first and last tick and how many, for the books.
All instants are microseconds since 1970.
"""

from dataclasses import dataclass

from schema.schedule import Schedule


@dataclass(frozen=True, slots=True)
class DueTick:
    """`run_tick` runs; `count` earlier ticks don't. Without any, the first and the last are 0."""

    run_tick: int
    first_skipped: int
    last_skipped: int
    count: int


@dataclass(frozen=True, slots=True)
class NextTick:
    """`next_tick` comes next (None: never again); `count` ticks passed. Without any, the first and the last are 0."""

    next_tick: int | None
    first_skipped: int
    last_skipped: int
    count: int


def latest_due(schedule: Schedule, expected_tick: int, now: int) -> DueTick:
    """At a claim: the latest tick that is due by `now` runs, the ones from `expected_tick` on before it don't.

    `expected_tick` is the tick that was to come next. Before it is due, it is the answer itself. It counts as a tick
    even if the schedule no longer has it.
    """
    last = schedule.last_at_or_before(now)
    if last is None or last <= expected_tick:
        return DueTick(expected_tick, 0, 0, 0)
    count = 1 + schedule.count_between(expected_tick, last - 1)
    before = schedule.last_at_or_before(last - 1)
    last_skipped = expected_tick if before is None else max(expected_tick, before)
    return DueTick(last, expected_tick, last_skipped, count)


def after_run(schedule: Schedule, tick: int, now: int) -> NextTick:
    """At a run's end: the first tick after both `tick` and `now`; the ticks in between have passed."""
    next_tick = schedule.next_after(max(tick, now))
    count = schedule.count_between(tick, now)
    if count == 0:
        return NextTick(next_tick, 0, 0, 0)
    first = schedule.next_after(tick)
    last = schedule.last_at_or_before(now)
    assert first is not None
    assert last is not None
    return NextTick(next_tick, first, last, count)
