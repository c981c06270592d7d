"""Windows: `Mon-Fri 08:00-18:00 Europe/Berlin`. A tick outside its job's window is skipped, with that reason.

The wall clock decides, whatever the offset. A time that the clocks skip never comes, so no window opens or closes then.
A time that they show twice counts twice. If a window spans midnight, the day on which it opens counts.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from cronring.schema.window_parse import OpenHours, Parsed, WindowError, read_window
from cronring.schema.zone import Zone, load_zone

__all__ = ["Window", "WindowError", "canonical_window", "parse_window"]

_SECOND_US: Final = 1_000_000
_DAY: Final = 86_400
_WEEK: Final = 7 * _DAY
_THURSDAY: Final = 3 * _DAY  # 1 January 1970, in a week that begins with Monday
_WINDOWS_CACHED: Final = 4_096


@dataclass(frozen=True, slots=True)
class Window:
    """Instants are microseconds since 1970, up to 2100. Made by `parse_window`."""

    text: str
    zone: Zone = field(repr=False)
    ends_open: bool = field(repr=False)
    """Whether it is open as a week ends, which is on Sunday, 24:00 on the wall."""
    edges: tuple[int, ...] = field(repr=False)
    """Where it opens or closes, in turns: seconds of the week. Empty: it is always open."""

    def contains(self, instant: int) -> bool:
        """From the instant at which it opens to just before the one at which it closes."""
        return self._is_open(instant // _SECOND_US)

    def next_open_after(self, instant: int) -> int | None:
        """The first instant after `instant` at which it opens; None when it is always open."""
        return self._next_flip(instant, opens=True)

    def next_close_after(self, instant: int) -> int | None:
        """The first instant after `instant` at which it closes; None when it is always open."""
        return self._next_flip(instant, opens=False)

    def _is_open(self, second: int) -> bool:
        week_second = (second + self.zone.offset_at(second) + _THURSDAY) % _WEEK
        return self.ends_open ^ bool(bisect_right(self.edges, week_second) & 1)

    def _next_flip(self, instant: int, *, opens: bool) -> int | None:
        if not self.edges:
            return None
        second = instant // _SECOND_US
        is_open = self._is_open(second)
        while True:
            second = self._next_turn(second)
            was_open, is_open = is_open, self._is_open(second)
            if is_open is opens and was_open is not opens:
                return second * _SECOND_US

    def _next_turn(self, second: int) -> int:
        """The first second after this one at which it may open or close: an edge, or a change of the zone's offset."""
        zone = self.zone
        week_second = (second + zone.offset_at(second) + _THURSDAY) % _WEEK
        index = bisect_right(self.edges, week_second)
        edge = self.edges[index] if index < len(self.edges) else self.edges[0] + _WEEK
        change = bisect_right(zone.starts, second)
        turn = second + edge - week_second
        # The first start of a zone is of no moment: its first offset holds before as well.
        return min(turn, zone.starts[change]) if 0 < change < len(zone.starts) else turn


def canonical_window(text: str) -> str:
    """The canonical spelling. Raises WindowError."""
    return read_window(text).text


@lru_cache(maxsize=_WINDOWS_CACHED)
def parse_window(text: str, timezone: str = "") -> Window:
    """The window that a text says, on the clocks of the zone that it names, or else of `timezone` ("": UTC).

    Raises WindowError, and ZoneError for an unknown `timezone`.
    """
    parsed: Parsed = read_window(text)
    ends_open, edges = _edges(parsed.entries)
    return Window(parsed.text, load_zone(parsed.zone or timezone or "UTC"), ends_open, edges)


def _edges(entries: tuple[OpenHours, ...]) -> tuple[bool, tuple[int, ...]]:
    """Whether it is open as a week ends, and every second of the week at which that changes."""
    depth = 0  # how many entries are open
    steps: dict[int, int] = {}
    for entry in entries:
        length = (entry.closes - entry.opens) % 1_440 or 1_440
        for day in range(7):
            if entry.days >> day & 1:
                opens = day * _DAY + entry.opens * 60
                closes = opens + length * 60
                steps[opens] = steps.get(opens, 0) + 1
                steps[closes % _WEEK] = steps.get(closes % _WEEK, 0) - 1
                depth += closes >= _WEEK  # still open as the week begins, were it only until then
    ends_open = depth > 0
    edges = []
    for second in sorted(steps):
        was_open = depth > 0
        depth += steps[second]
        if (depth > 0) != was_open:
            edges.append(second)
    return ends_open, tuple(edges)
