"""Patterns by the clocks of a time zone, with what is done when these are changed. The rules: docs/schedules.md.

A pattern is *fixed-time* when neither its minute nor its hour field has a `*` or a `/` in it. Lists and ranges are
fixed-time, even `0-23`. Others are *interval-like*. The distinction and the default rules are cronie's (cron(8),
"Daylight Saving Time and other time changes"), without its limit of three hours.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

from cronring.schema.pattern import CronPattern
from cronring.schema.policy_model import DST_GAP, DST_OVERLAP
from cronring.schema.search import CLOCK_END, FieldSets, count_ticks, last_tick, next_tick
from cronring.schema.zone import Zone
from cronring.schema.zone_timeline import ZoneTimeline, timeline

_FAR: Final = 2 * CLOCK_END  # beyond every time of every clock


@dataclass(frozen=True, slots=True)
class ZonedPattern:
    """Ticks where the zone's clock shows what the pattern says, in UTC seconds from 1970 to the end of 2099.

    Two of the same arguments are equal. Raises ValueError when `dst_gap` or `dst_overlap` is none of their values.
    """

    pattern: CronPattern
    zone: Zone
    dst_gap: str = ""
    """When wall-clock times are skipped. "" or "run_after": a fixed-time pattern with any number of ticks in a gap has
    one at the first instant after it, merged with one that is due there anyway. "skip": none. Interval-like patterns
    never catch up."""
    dst_overlap: str = ""
    """When wall-clock times are repeated, which of them tick: "first", "second" or "both". "": the first ones of a
    fixed-time pattern, both of an interval-like one."""
    _line: ZoneTimeline = field(init=False, repr=False, compare=False)
    _catches_up: bool = field(init=False, repr=False, compare=False)
    _is_utc: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.dst_gap not in {"", *DST_GAP}:
            raise ValueError(f"dst_gap is {' or '.join(DST_GAP)}, not {self.dst_gap!r}")
        overlap = self.dst_overlap or ("first" if self.fixed_time else "both")
        if overlap not in DST_OVERLAP:
            raise ValueError(f"dst_overlap is {' or '.join(DST_OVERLAP)}, not {self.dst_overlap!r}")
        line = timeline(self.zone, overlap)
        object.__setattr__(self, "_line", line)
        object.__setattr__(self, "_catches_up", self.fixed_time and self.dst_gap != "skip" and bool(line.gap_ats))
        object.__setattr__(self, "_is_utc", line.offsets == (0,))

    @property
    def fixed_time(self) -> bool:
        """Whether it names times of the day, and not a rhythm: `25m` and `12h` are rhythms, `Mon` is a midnight."""
        _, minute, hour, *_ = self.pattern.fields
        return not any(sign in minute + hour for sign in "*/")

    def next_second(self, after: int) -> int | None:
        """The first tick after `after`; None when there is none up to the end of 2099."""
        if self._is_utc:
            return next_tick(self.pattern.sets, after)
        tick = _next_shown(self.pattern.sets, self._line, after)
        return _next_missed(self.pattern.sets, self._line, after, tick) if self._catches_up else tick

    def last_second(self, until: int) -> int | None:
        """The last tick at or before `until`; None when there is none since 1970."""
        if self._is_utc:
            return last_tick(self.pattern.sets, until)
        tick = _last_shown(self.pattern.sets, self._line, until)
        return _last_missed(self.pattern.sets, self._line, until, tick) if self._catches_up else tick

    def count_seconds(self, after: int, until: int) -> int:
        """How many ticks lie in (after, until]. Costs some rounds for each month and change between them."""
        count = _count_shown(self.pattern.sets, self._line, after, until)
        return count + _count_missed(self.pattern.sets, self._line, after, until) if self._catches_up else count


def _next_shown(sets: FieldSets, line: ZoneTimeline, after: int) -> int | None:
    """The first tick by what the clock shows.

    A piece that continues the one before (or lies beyond a gap) needs no search of its own while the match found
    lies behind it: so a pattern of far years costs one search, and a comparison for each change until then.
    """
    starts, ends, offsets, *_ = line
    searched = match = None
    for piece in range(bisect_right(ends, after + 1), len(ends)):
        offset = offsets[piece]
        clock = max(after + 1, starts[piece]) + offset
        if searched is None or clock < searched or (match is not None and clock > match):
            match = next_tick(sets, clock - 1)
            searched = clock
        if match is not None and match < ends[piece] + offset:
            return match - offset
    return None


def _last_shown(sets: FieldSets, line: ZoneTimeline, until: int) -> int | None:
    """As _next_shown, backwards."""
    starts, ends, offsets, *_ = line
    searched = match = None
    for piece in range(bisect_right(starts, until) - 1, -1, -1):
        offset = offsets[piece]
        clock = min(until, ends[piece] - 1) + offset
        if searched is None or clock > searched or (match is not None and clock < match):
            match = last_tick(sets, clock)
            searched = clock
        if match is not None and match >= starts[piece] + offset:
            return match - offset
    return None


def _count_shown(sets: FieldSets, line: ZoneTimeline, after: int, until: int) -> int:
    starts, ends, offsets, *_ = line
    count = 0
    for piece in range(bisect_right(ends, after + 1), bisect_right(starts, until)):
        first, last = max(after + 1, starts[piece]), min(until, ends[piece] - 1)
        count += count_ticks(sets, first - 1 + offsets[piece], last + offsets[piece])
    return count


def _next_missed(sets: FieldSets, line: ZoneTimeline, after: int, before: int | None) -> int | None:
    """The first instant after `after` at which a tick is made up for; `before` when there is none earlier.

    Gaps follow each other on the wall clock as they do in time, so a match found is good until a gap lies beyond it.
    """
    ats, starts, ends = line.gap_ats, line.gap_starts, line.gap_ends
    match = -_FAR
    for gap in range(bisect_right(ats, after), len(ats)):
        if before is not None and ats[gap] >= before:
            break
        if match < starts[gap]:
            found = next_tick(sets, starts[gap] - 1)
            if found is None:
                break
            match = found
        if match < ends[gap]:
            return ats[gap]
    return before


def _last_missed(sets: FieldSets, line: ZoneTimeline, until: int, after: int | None) -> int | None:
    """The last instant at or before `until` at which a tick is made up for; `after` when there is none later."""
    ats, starts, ends = line.gap_ats, line.gap_starts, line.gap_ends
    match = _FAR
    for gap in range(bisect_right(ats, until) - 1, -1, -1):
        if after is not None and ats[gap] <= after:
            break
        if match >= ends[gap]:
            found = last_tick(sets, ends[gap] - 1)
            if found is None:
                break
            match = found
        if match >= starts[gap]:
            return ats[gap]
    return after


def _count_missed(sets: FieldSets, line: ZoneTimeline, after: int, until: int) -> int:
    """How many instants of (after, until] have a tick only because one is made up for there."""
    ats = line.gap_ats
    instants = {
        ats[gap]
        for gap in range(bisect_right(ats, after), bisect_right(ats, until))
        if count_ticks(sets, line.gap_starts[gap] - 1, line.gap_ends[gap] - 1)
    }
    return sum(_next_shown(sets, line, at - 1) != at for at in instants)
