"""Schedules: when a job's ticks are. A schedule's text is a cron pattern, or `every 30m` for an interval.

All instants are microseconds since 1970, as everywhere in the core; every tick is on a whole second.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from schema.duration import DurationError, duration_words, format_duration, parse_duration
from schema.pattern import CronPattern, PatternError
from schema.words import pattern_words

_EVERY: Final = "every"
_INTERVAL: Final = re.compile(r"[ \t]*(every)(?![^ \t])[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_SECOND_US: Final = 1_000_000
# A controller meets a job's schedule at every tick, and as many different texts as its users think of.
_TEXTS_CACHED: Final = 20_000


class ScheduleError(ValueError):
    """A text that is no schedule: `message`, `position` (0-based offset in the text), `suggestion` (or None)."""

    def __init__(self, message: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["ScheduleError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


class Schedule(Protocol):
    """What the core asks of a schedule, whatever its kind."""

    @property
    def text(self) -> str:
        """The canonical text: parsing it gives an equal schedule with the same text."""
        ...

    def words(self) -> str:
        """In plain English, to stand after "runs"."""
        ...

    def next_after(self, instant: int) -> int | None:
        """The first tick after `instant`; None when there is none."""
        ...

    def last_at_or_before(self, instant: int) -> int | None:
        """The last tick at or before `instant`; None when there is none."""
        ...

    def count_between(self, after: int, until: int) -> int:
        """How many ticks lie in (after, until]. Costs the same for a thousand as for a billion."""
        ...


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """Ticks by a pattern, in UTC."""

    pattern: CronPattern

    @property
    def text(self) -> str:
        return self.pattern.text

    def words(self) -> str:
        return pattern_words(self.pattern.sets)

    def next_after(self, instant: int) -> int | None:
        second = self.pattern.next_second(instant // _SECOND_US)
        return None if second is None else second * _SECOND_US

    def last_at_or_before(self, instant: int) -> int | None:
        second = self.pattern.last_second(instant // _SECOND_US)
        return None if second is None else second * _SECOND_US

    def count_between(self, after: int, until: int) -> int:
        return self.pattern.count_seconds(after // _SECOND_US, until // _SECOND_US)


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """Ticks at anchor + n x interval, n from 1 on: free of drift, as no tick is computed from another."""

    interval: int
    anchor: int

    @property
    def text(self) -> str:
        return f"{_EVERY} {format_duration(self.interval // 1000)}"

    def words(self) -> str:
        return f"{_EVERY} {duration_words(self.interval // 1000)}"

    def next_after(self, instant: int) -> int | None:
        return self.anchor + (max(instant - self.anchor, 0) // self.interval + 1) * self.interval

    def last_at_or_before(self, instant: int) -> int | None:
        ticks = (instant - self.anchor) // self.interval
        return self.anchor + ticks * self.interval if ticks > 0 else None

    def count_between(self, after: int, until: int) -> int:
        past = max((after - self.anchor) // self.interval, 0)
        return max((until - self.anchor) // self.interval - past, 0)


def parse_schedule(text: str, anchor: int) -> Schedule:
    """The schedule that a text says. `anchor` is where intervals count from; its fraction of a second is dropped.

    Raises ScheduleError. Results for a text are cached, so that this may be called for every job at every tick.
    """
    parsed = _parse(text)
    if isinstance(parsed, CronSchedule):
        return parsed
    return IntervalSchedule(parsed, anchor - anchor % _SECOND_US)


def check_schedule(text: str) -> str:
    """The canonical text of a schedule. Raises ScheduleError."""
    return parse_schedule(text, 0).text


def check_interval(amount: str) -> str:
    """The canonical text of an interval given by its amount alone: `every 1h30m` for `90m`.

    Raises ScheduleError, whose position and suggestion are of the amount alone as well.
    """
    return IntervalSchedule(_amount_us(amount), 0).text


def is_interval(text: str) -> bool:
    """Whether a canonical text is that of an interval, and not a pattern."""
    return text.startswith(f"{_EVERY} ")


@lru_cache(maxsize=_TEXTS_CACHED)
def _parse(text: str) -> CronSchedule | int:
    """A cron schedule, or the length of an interval in microseconds."""
    interval = _INTERVAL.match(text)
    if interval is not None:
        return _interval_us(interval)
    try:
        return CronSchedule(CronPattern.parse(text))
    except PatternError as error:
        raise ScheduleError(error.message, error.position, error.suggestion) from None


def _interval_us(match: re.Match[str]) -> int:
    word, amount = match[1], match[2].rstrip(" \t")
    if word != _EVERY:
        raise ScheduleError(f"`{word}` is written in small letters", match.start(1), _mended(amount))
    try:
        return _amount_us(amount)
    except ScheduleError as error:
        suggestion = None if error.suggestion is None else _mended(error.suggestion)
        position = match.start(2) + error.position
        raise ScheduleError(f"character {position + 1}: {error.message}", position, suggestion) from None


def _amount_us(amount: str) -> int:
    try:
        interval_ms = parse_duration(amount)
    except DurationError as error:
        raise ScheduleError(error.message, error.position, error.suggestion) from None
    if interval_ms % 1000:
        raise ScheduleError("ticks are on whole seconds, so an interval is of whole seconds too", 0)
    return interval_ms * 1000


def _mended(amount: str) -> str | None:
    """The schedule with this interval, or what it suggests itself."""
    try:
        return check_schedule(f"{_EVERY} {amount}")
    except ScheduleError as error:
        return error.suggestion
