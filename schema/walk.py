"""Along the ticks of a schedule, in and out of its window, and into skipped ranges of them, for the books."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.schedule import Schedule
from cronring.schema.window import Window

_OPENINGS_TRIED: Final = 1_000
_TRIED_FOR: Final = 2 * 366 * 86_400_000_000


class Stretch(NamedTuple):
    """Consecutive ticks on one side of the window's edge: all in it (`is_open`), or all outside."""

    is_open: bool
    first_tick: int
    last_tick: int
    ticks: int


def stretches(schedule: Schedule, window: Window | None, after: int, until: int) -> Iterator[Stretch]:
    """The ticks in (after, until], in order. Costs some searches for each time that the window opens or closes."""
    while after < until:
        first = schedule.next_after(after)
        if first is None or first > until:
            return
        is_open, stop = True, until
        if window is not None:
            is_open = window.contains(first)
            edge = window.next_close_after(first) if is_open else window.next_open_after(first)
            stop = until if edge is None else min(until, edge - 1)
        last = schedule.last_at_or_before(stop)
        assert last is not None, "the first tick is one"
        yield Stretch(is_open, first, last, schedule.count_between(after, last))
        after = stop


def first_open(schedule: Schedule, window: Window | None, after: int, until: int | None = None) -> int | None:
    """The first tick after `after` (and at or before `until`) that lies in the window.

    Without `until`, None may also mean: not found within two years and a thousand openings of the window. For patterns,
    that means never. A daily pattern has met every weekday and every offset of its zone in two years. A weekly one
    takes 19 years for a thousand openings, a monthly one 83. An interval that drifts through the week by seconds may
    still meet the window years later.
    """
    least = after + _TRIED_FOR
    tick, openings = schedule.next_after(after), 0
    while tick is not None and (openings <= _OPENINGS_TRIED or tick <= least if until is None else tick <= until):
        if window is None or window.contains(tick):
            return tick
        opens = window.next_open_after(tick)
        assert opens is not None, "there is no text for a window that never opens"
        tick, openings = schedule.next_after(opens - 1), openings + 1
    return None


def last_open(schedule: Schedule, window: Window | None, after: int, until: int) -> int | None:
    """The last tick in (after, until] that lies in the window."""
    if window is None:
        tick = schedule.last_at_or_before(until)
        return None if tick is None or tick <= after else tick
    found = [stretch.last_tick for stretch in stretches(schedule, window, after, until) if stretch.is_open]
    return found[-1] if found else None


class SkipCollector:
    """Collects ranges in ascending order. Neighbours of one reason become one."""

    def __init__(self, schedule: Schedule, window: Window | None) -> None:
        self._schedule = schedule
        self._window = window
        self._skipped: list[Skipped] = []

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(self._skipped)

    def add_tick(self, tick: int, reason: SkipReason) -> None:
        """One tick, which may be none of the schedule's (any more)."""
        is_open = self._window is None or self._window.contains(tick)
        self._add(reason if is_open else SkipReason.OUTSIDE_WINDOW, tick, tick, 1)

    def add_between(self, after: int, until: int, reason: SkipReason) -> None:
        """The ticks in (after, until]: for this reason, or because they lie outside the window."""
        for is_open, first_tick, last_tick, ticks in stretches(self._schedule, self._window, after, until):
            self._add(reason if is_open else SkipReason.OUTSIDE_WINDOW, first_tick, last_tick, ticks)

    def _add(self, reason: SkipReason, first_tick: int, last_tick: int, ticks: int) -> None:
        if self._skipped and self._skipped[-1].reason == reason:
            before = self._skipped.pop()
            first_tick, ticks = before.first_tick, before.ticks + ticks
        self._skipped.append(Skipped(reason, first_tick, last_tick, ticks))
