"""What was due, by means that share nothing with `schema`: the brute-force calendar, and plain arithmetic."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from cronring.controller.core.ledger.books import Span
from tests.oracle.walk import clock_of
from tests.simulation.year_days import Pattern, ticks_of_pattern

SECOND_US: Final = 1_000_000
BACKFILLED_US: Final = 21 * 86_400 * SECOND_US  # further back than any that an operator asks for
_UNITS_US: Final = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW: Final = re.compile(r"(?:([A-Z][a-z]{2})(?:-([A-Z][a-z]{2}))? )?(\d\d):(\d\d)-(\d\d):(\d\d)")


@lru_cache(maxsize=4_096)
def policy_of(text: str) -> dict[str, Any]:
    """A policy's raw values, as its column has them."""
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def length_us(text: str) -> int:
    """Of `1h30m`."""
    return sum(int(number) * _UNITS_US[unit] for number, unit in re.findall(r"(\d+)(ms|[smhd])", text))


def instant_us(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND_US


class Oracle:
    """Every tick of every schedule between two instants, and of those that backfills reach back to."""

    def __init__(self, spans: Iterable[Span], start_us: int, end_us: int) -> None:
        wanted: dict[Pattern, tuple[int, int]] = {}
        for span in spans:
            pattern = _pattern(span)
            if pattern is not None:
                after, until = _bounds(span._replace(from_at=start_us - BACKFILLED_US), end_us)
                first, last = wanted.get(pattern, (after, until))
                wanted[pattern] = min(first, after), max(last, until)
        self._ticks: dict[Pattern, list[int]] = {}
        for pattern, (first, last) in wanted.items():
            seconds = ticks_of_pattern(pattern, first // SECOND_US, last // SECOND_US)
            self._ticks[pattern] = [second * SECOND_US for second in seconds]

    def ticks(self, span: Span, until_us: int) -> list[int]:
        """Those of the span, at most up to `until_us`."""
        after, until = _bounds(span, until_us)
        pattern = _pattern(span)
        if pattern is not None:
            ticks = self._ticks[pattern]
            return ticks[bisect_right(ticks, after) : bisect_right(ticks, until)]
        if span.schedule == "manual":
            return []
        word, _, value = span.schedule.partition(" ")
        if word == "at":
            return [tick for tick in (instant_us(value),) if after < tick <= until]
        return _multiples(span.anchor // SECOND_US * SECOND_US, length_us(value), after, until)


def _multiples(anchor: int, interval: int, after: int, until: int) -> list[int]:
    """Ticks of (after, until] at anchor + n x interval. The anchor itself is none, nor is anything before it."""
    return list(range(anchor + max((after - anchor) // interval + 1, 1) * interval, until + 1, interval))


def is_cron(schedule: str) -> bool:
    return schedule != "manual" and not schedule.startswith(("every ", "at "))


def _pattern(span: Span) -> Pattern | None:
    policy = policy_of(span.policy)
    if not is_cron(span.schedule):
        return None
    zone = policy.get("timezone", "UTC")
    return Pattern(zone, span.schedule, policy.get("dst_gap", ""), policy.get("dst_overlap", ""))


def _bounds(span: Span, until_us: int) -> tuple[int, int]:
    """Its ticks lie in (after, until]."""
    policy = policy_of(span.policy)
    after = max(span.from_at, instant_us(policy["start_at"]) - 1 if "start_at" in policy else 0)
    return after, min(until_us, instant_us(policy["end_at"]) if "end_at" in policy else until_us)


@lru_cache(maxsize=1_024)
def window_of(policy_text: str) -> Callable[[int], bool] | None:
    """Whether a tick lies in the policy's window; None: it has none."""
    policy = policy_of(policy_text)
    text, zone = str(policy.get("window", "")), str(policy.get("timezone", "UTC"))
    if not text:
        return None
    if "/" in text.rsplit(" ", 1)[-1]:
        text, zone = text.rsplit(" ", 1)
    clock = clock_of(zone)
    parts = [_part(part) for part in text.split(", ")]

    def contains(tick: int) -> bool:
        wall = clock(tick // SECOND_US)
        return any(part.contains(wall) for part in parts)

    return contains


class _Part(NamedTuple):
    days: tuple[int, ...]
    opens: tuple[int, int]
    closes: tuple[int, int]

    def contains(self, wall: datetime) -> bool:
        now = wall.hour, wall.minute
        today, yesterday = wall.weekday() in self.days, (wall.weekday() - 1) % 7 in self.days
        if self.opens < self.closes:
            return today and self.opens <= now < self.closes
        return (today and now >= self.opens) or (yesterday and now < self.closes)


def _part(text: str) -> _Part:
    match = _WINDOW.fullmatch(text)
    assert match is not None, f"the oracle does not understand the window {text!r}"
    first, last, *clock = match.groups()
    start = _DAYS.index(first) if first else 0
    end = _DAYS.index(last) if last else start if first else 6
    days = tuple((start + more) % 7 for more in range((end - start) % 7 + 1))
    hour, minute, until_hour, until_minute = map(int, clock)
    return _Part(days, (hour, minute), (until_hour, until_minute))


def slice_of(ticks: list[int], first: int, last: int) -> list[int]:
    """Those of [first, last]."""
    return ticks[bisect_left(ticks, first) : bisect_right(ticks, last)]
