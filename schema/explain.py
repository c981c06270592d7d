"""What a schedule comes to: its next ticks on the wall and in UTC, how many a day has, and what changes of clocks do.

Instants are microseconds since 1970, wall-clock times seconds since 1970 on the zone's clocks.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from cronring.schema.duration import duration_words
from cronring.schema.instant import instants_of, parse_instant
from cronring.schema.jitter import parse_jitter
from cronring.schema.policy_model import Policy
from cronring.schema.schedule import BoundedSchedule, CronSchedule, IntervalSchedule, OnceSchedule, Schedule
from cronring.schema.search import count_ticks, next_tick
from cronring.schema.spread import most_us
from cronring.schema.zone import OffsetChange, Zone, load_zone, zone_data_version
from cronring.schema.zoned import ZonedPattern

YEAR_DAYS: Final = 366  # so that a yearly tick is in it, whatever the year
_SECOND_US: Final = 1_000_000
_DAY: Final = 86_400
_LAST_DAY: Final = 47_481  # 31 December 2099
_TIMES_SHOWN: Final = 3
_EPOCH: Final = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - of the wall clock, whatever zone it hangs in


class Tick(NamedTuple):
    """`wall` is ISO 8601 with the zone's offset; `note` what a change of the clocks did to it, else empty."""

    instant: int
    wall: str
    note: str


class PerDay(NamedTuple):
    """Ticks a day, of the zone's days; `days` of them were counted."""

    least: int
    average: float
    most: int
    days: int


class ClockChange(NamedTuple):
    """`moved_ms`: by so much the clock moves at `instant`, forward if that is positive.

    `times`: so many ticks have a wall-clock time that is skipped or repeated then.
    """

    instant: int
    moved_ms: int
    times: int
    happens: str


@dataclass(frozen=True, slots=True)
class Explanation:
    schedule: str
    words: str
    timezone: str
    kind: str  # fixed-time | interval-like | interval | once | manual
    ticks: tuple[Tick, ...]
    per_day: PerDay
    clock_changes: tuple[ClockChange, ...]
    zone_data: str  # the version of the zones' rules
    auto_jitter_ms: int  # by so much jitter="auto" would delay a run at most


def explain(schedule: Schedule, policy: Policy, now: int, count: int = 10) -> Explanation:
    """A schedule (as `parse_schedule` made it with this policy) from `now` on, for about a year."""
    zone = load_zone(policy.timezone or "UTC")
    pattern = zoned_pattern(schedule)
    days = range(max(now // _SECOND_US // _DAY + 1, 0), _LAST_DAY)[:YEAR_DAYS]
    until = (days[-1] if days else _LAST_DAY) * _DAY
    changes = zone.changes_between(now // _SECOND_US, until)
    return Explanation(
        schedule=schedule.text,
        words=schedule.words(),
        timezone=zone.name,
        kind=_kind(schedule),
        ticks=tuple(next_ticks(schedule, zone, now, count)),
        per_day=_per_day(schedule, zone, days),
        clock_changes=tuple(clock_change(pattern, change) for change in changes) if pattern is not None else (),
        zone_data=zone_data_version(),
        auto_jitter_ms=most_us(schedule.text, parse_jitter("auto")) // 1_000,
    )


def next_ticks(schedule: Schedule, zone: Zone, after: int, count: int) -> Iterator[Tick]:
    """Up to `count` ticks after an instant."""
    pattern = zoned_pattern(schedule)
    tick: int | None = after
    for _ in range(count):
        tick = None if tick is None else schedule.next_after(tick)
        if tick is None:
            return
        note = clock_note(pattern, tick // _SECOND_US) if pattern is not None else ""
        yield Tick(tick, wall_text(zone, tick), note)


def zoned_pattern(schedule: Schedule) -> ZonedPattern | None:
    """The pattern by a zone's clocks that a schedule is; None for other kinds, and for UTC."""
    if isinstance(schedule, BoundedSchedule):
        schedule = schedule.inner
    if isinstance(schedule, CronSchedule) and isinstance(schedule.ticks, ZonedPattern):
        return schedule.ticks
    return None


def wall_text(zone: Zone, instant: int) -> str:
    """`2027-03-28T03:00:00+02:00`."""
    offset = zone.offset_at(instant // _SECOND_US)
    moment = _EPOCH + datetime.timedelta(seconds=instant // _SECOND_US + offset)
    sign, size = ("-", -offset) if offset < 0 else ("+", offset)
    seconds = f":{size % 60:02}" if size % 60 else ""
    return f"{moment.isoformat()}{sign}{size // 3600:02}:{size % 3600 // 60:02}{seconds}"


def clock_note(pattern: ZonedPattern, second: int) -> str:
    """What a change of the clocks has to do with a tick; nothing for most."""
    zone = pattern.zone
    for change in zone.changes_between(second - 1, second):
        skipped = _matching(pattern, change) if change.after > change.before else []
        if skipped and pattern.fixed_time and pattern.dst_gap != "skip":
            times = _listed(skipped, second + change.after, _count(pattern, change))
            return f"makes up for {times}, which the clocks skip"
    wall = second + zone.offset_at(second)
    shown = instants_of(zone, wall)
    if len(shown) < 2:
        return ""
    which = ("first", "second", "third")[min(shown.index(second), 2)]
    return f"the {which} {_clock(wall)} of {len(shown)} on this day"


def clock_change(pattern: ZonedPattern, change: OffsetChange) -> ClockChange:
    """What a change of the clocks does to a pattern's ticks."""
    count = _count(pattern, change)
    moved_ms = (change.after - change.before) * 1_000
    by = duration_words(abs(moved_ms))
    by = by if by[0].isdigit() else f"1 {by}"
    before, after = _clock(change.at + change.before), _clock(change.at + change.after)
    start = f"{_day(change.at + change.before)}, {by} {'forward' if moved_ms > 0 else 'back'} ({before} -> {after})"
    happens = _in_gap(pattern, change, count) if moved_ms > 0 else _in_overlap(pattern, change, count)
    return ClockChange(change.at * _SECOND_US, moved_ms, count, f"{start}: {happens}")


def _in_gap(pattern: ZonedPattern, change: OffsetChange, count: int) -> str:
    if not count:
        return "no tick is skipped"
    end = change.at + change.after
    times = _listed(_matching(pattern, change), end, count)
    if not pattern.fixed_time:
        return (
            f"{times} {_does(count, 'does', 'do')} not exist; the rhythm goes on with the clock, nothing is made up for"
        )
    if pattern.dst_gap == "skip":
        return f"{times} {_does(count, 'does', 'do')} not exist and {_does(count, 'is', 'are')} skipped (dst_gap=skip)"
    once = "it runs" if count == 1 else "they run once, together,"
    return f"{times} {_does(count, 'does', 'do')} not exist; {once} at {_clock(end)}, the first instant after"


def _in_overlap(pattern: ZonedPattern, change: OffsetChange, count: int) -> str:
    if not count:
        return "no tick is repeated"
    times = _listed(_matching(pattern, change), change.at + change.before, count)
    come = f"{times} {_does(count, 'comes', 'come')} twice"
    match pattern.dst_overlap or ("first" if pattern.fixed_time else "both"):
        case "both":
            return f"{come} and {_does(count, 'runs', 'run')} twice"
        case "second":
            return f"{come} and {_does(count, 'runs', 'run')} once, the second time"
    return f"{come} and {_does(count, 'runs', 'run')} once, the first time"


def _span(change: OffsetChange) -> tuple[int, int]:
    """The wall-clock times [from, to) that a change skips, or repeats."""
    before, after = change.at + change.before, change.at + change.after
    return min(before, after), max(before, after)


def _count(pattern: ZonedPattern, change: OffsetChange) -> int:
    start, end = _span(change)
    return count_ticks(pattern.pattern.sets, start - 1, end - 1)


def _matching(pattern: ZonedPattern, change: OffsetChange) -> list[int]:
    """The first of a pattern's wall-clock times that a change skips or repeats."""
    start, end = _span(change)
    found: list[int] = []
    wall: int | None = start - 1
    while len(found) < _TIMES_SHOWN and wall is not None:
        wall = next_tick(pattern.pattern.sets, wall)
        if wall is None or wall >= end:
            break
        found.append(wall)
    return found


def _listed(walls: list[int], near: int, count: int = 0) -> str:
    """Times, with their date where it is another day than `near`'s, and how many more there are."""
    texts = [_clock(wall) if wall // _DAY == near // _DAY else f"{_day(wall)} {_clock(wall)}" for wall in walls]
    more = count - len(walls)
    if more > 0:
        return f"{', '.join(texts)} and {more} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _per_day(schedule: Schedule, zone: Zone, days: range) -> PerDay:
    """Of complete days of the zone; a day that a zone skips is none."""
    starts = [parse_instant(_day(day * _DAY), zone.name) for day in days]
    counts = [schedule.count_between(start - 1, end - 1) for start, end in pairwise(starts) if start < end]
    if not counts:
        return PerDay(0, 0.0, 0, 0)
    return PerDay(min(counts), sum(counts) / len(counts), max(counts), len(counts))


def _kind(schedule: Schedule) -> str:
    if isinstance(schedule, BoundedSchedule):
        schedule = schedule.inner
    match schedule:
        case CronSchedule():
            ticks = schedule.ticks
            zoned = ticks if isinstance(ticks, ZonedPattern) else ZonedPattern(ticks, load_zone("UTC"))
            return "fixed-time" if zoned.fixed_time else "interval-like"
        case IntervalSchedule():
            return "interval"
        case OnceSchedule():
            return "once"
    return "manual"


def _clock(wall: int) -> str:
    moment = _EPOCH + datetime.timedelta(seconds=wall)
    return moment.strftime("%H:%M:%S" if moment.second else "%H:%M")


def _day(wall: int) -> str:
    return f"{_EPOCH + datetime.timedelta(seconds=wall):%Y-%m-%d}"


def _does(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
