"""A year of a schedule, day by day, on the clocks of its zone."""

from datetime import date, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from cronring.schema.explain import ClockChange, clock_change, wall_text, zoned_pattern
from cronring.schema.instant import parse_instant
from cronring.schema.schedule import Schedule
from cronring.schema.walk import stretches
from cronring.schema.window import Window
from cronring.schema.zone import Zone

FIRST_YEAR: Final = 1971  # so that its first and last moments are instants in every zone
LAST_YEAR: Final = 2098
_SECOND_US: Final = 1_000_000
_DAY: Final = timedelta(days=1)


class DayChange(NamedTuple):
    """`day`: on which the clocks change, `2027-03-28`."""

    day: str
    change: ClockChange


class Year(NamedTuple):
    """`days`: ticks that run on each day, from 1 January on."""

    days: tuple[int, ...]
    clock_changes: tuple[DayChange, ...]


def year_of(schedule: Schedule, window: Window | None, zone: Zone, year: int) -> Year:
    """Of a year from FIRST_YEAR to LAST_YEAR. What its window leaves out doesn't run. A day that a zone skips has none.

    Costs some searches for each day, and for each time that the window opens or closes.
    """
    starts = day_starts(date(year, 1, 1), date(year + 1, 1, 1), zone.name)
    counts = tuple(_counted(schedule, window, start - 1, end - 1) for start, end in pairwise(starts))
    return Year(counts, day_changes(schedule, zone, starts[0], starts[-1]))


def day_starts(first: date, last: date, timezone: str) -> list[int]:
    """Where each day from `first` to `last` begins, microseconds since 1970."""
    return [parse_instant((first + day * _DAY).isoformat(), timezone) for day in range((last - first).days + 1)]


def day_changes(schedule: Schedule, zone: Zone, after: int, until: int) -> tuple[DayChange, ...]:
    """Changes of the clocks from one instant to another, for a schedule that goes by them."""
    pattern = zoned_pattern(schedule)
    if pattern is None:
        return ()
    changes = zone.changes_between(after // _SECOND_US, until // _SECOND_US)
    return tuple(
        DayChange(wall_text(zone, change.at * _SECOND_US)[:10], clock_change(pattern, change)) for change in changes
    )


def _counted(schedule: Schedule, window: Window | None, after: int, until: int) -> int:
    return sum(each.ticks for each in stretches(schedule, window, after, until) if each.is_open)
