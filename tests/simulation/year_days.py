"""A pattern's ticks over a year, by brute force: day by day while a zone's clocks run evenly, else minute by minute.

Where clocks are moved, or were or will be within a day, it is the walk of tests/oracle that counts. Elsewhere each wall
clock time is one instant, so the twin's fields are listed, which costs a hundredth.
"""

from bisect import bisect_left
from datetime import timedelta
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from tests.oracle.walk import EPOCH, MARGIN, SECOND, Reading, Walk, clock_of

HOUR: Final = 3_600
DAY: Final = 86_400


class Pattern(NamedTuple):
    """What decides about a pattern's ticks."""

    zone: str
    text: str
    gap: str
    overlap: str


class Stretch(NamedTuple):
    """Days on end, by UTC, from `start` until before `end`. `offset`: that of clocks there; None: it changes."""

    start: int
    end: int
    offset: int | None


@lru_cache(maxsize=512)
def stretches(zone: str, start: int, end: int) -> list[Stretch]:
    """Of all days from that of `start` to that of `end`."""
    clock = clock_of(zone)
    first, last = start // DAY * DAY, (end // DAY + 1) * DAY
    margin = MARGIN // HOUR * HOUR + 2 * HOUR
    hours = range(first - margin, last + margin, HOUR)
    offsets = [(clock(hour) - EPOCH) // SECOND - hour for hour in hours]
    moves = [hour for hour, before, after in zip(hours, offsets, offsets[1:], strict=False) if before != after]

    def offset_of(day: int) -> int | None:
        near = bisect_left(moves, day - margin + HOUR)
        moved = near < len(moves) and moves[near] < day + DAY + margin
        return None if moved else offsets[(day - hours.start) // HOUR]

    groups = groupby(range(first, last, DAY), offset_of)
    listed = [(list(days), offset) for offset, days in groups]
    return [Stretch(days[0], days[-1] + DAY, offset) for days, offset in listed]


@lru_cache(maxsize=64)
def _walked(zone: str, start: int, end: int) -> Walk:
    return Walk(clock_of(zone), start, end - 60)


def ticks_of_pattern(pattern: Pattern, start: int, end: int) -> list[int]:
    """Those of all days from that of `start` to that of `end`, in UTC seconds."""
    reading = Reading(pattern.text)
    found: list[int] = []
    for stretch in stretches(pattern.zone, start, end):
        if stretch.offset is None:
            walk = _walked(pattern.zone, stretch.start, stretch.end)
            found += walk.match(pattern.text).ticks(pattern.gap, pattern.overlap)
        else:
            found += _listed(reading, stretch, stretch.offset)
    return found


def _listed(reading: Reading, stretch: Stretch, offset: int) -> list[int]:
    of_day = [
        hour * HOUR + minute * 60 + second
        for hour in sorted(reading.hours)
        for minute in sorted(reading.minutes)
        for second in sorted(reading.seconds)
    ]
    found: list[int] = []
    for midnight in range((stretch.start + offset) // DAY * DAY, stretch.end + offset, DAY):
        if reading.twin.is_day(EPOCH + timedelta(seconds=midnight)):
            found += [midnight - offset + more for more in of_day]
    return found[bisect_left(found, stretch.start) : bisect_left(found, stretch.end)]
