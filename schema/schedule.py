"""Schedules: when a job's ticks are. A schedule's text is a cron pattern, `every 30m` for an interval,
`at 2026-03-01T08:00:00Z` for one tick, or `manual` for none.

All instants are microseconds since 1970, as everywhere in the core; every tick is on a whole second.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from cronring.schema.duration import DurationError, duration_words, format_duration, parse_duration
from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.pattern import CronPattern, PatternError
from cronring.schema.policy_model import Policy
from cronring.schema.words import pattern_words
from cronring.schema.zone import load_zone
from cronring.schema.zoned import ZonedPattern

MANUAL: Final = "manual"
_EVERY: Final = "every"
_AT: Final = "at"
_INTERVAL: Final = re.compile(r"[ \t]*(every)(?![^ \t])[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_ONCE: Final = re.compile(r"[ \t]*(at)(?![^ \t])[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_DEFAULT_POLICY: Final = Policy()
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
    """Ticks by a pattern: in UTC, or by the clocks of a zone."""

    ticks: CronPattern | ZonedPattern

    @property
    def pattern(self) -> CronPattern:
        return self.ticks.pattern if isinstance(self.ticks, ZonedPattern) else self.ticks

    @property
    def text(self) -> str:
        return self.pattern.text

    def words(self) -> str:
        words = pattern_words(self.pattern.sets)
        return f"{words}, {self.ticks.zone.name} time" if isinstance(self.ticks, ZonedPattern) else words

    def next_after(self, instant: int) -> int | None:
        second = self.ticks.next_second(instant // _SECOND_US)
        return None if second is None else second * _SECOND_US

    def last_at_or_before(self, instant: int) -> int | None:
        second = self.ticks.last_second(instant // _SECOND_US)
        return None if second is None else second * _SECOND_US

    def count_between(self, after: int, until: int) -> int:
        return self.ticks.count_seconds(after // _SECOND_US, until // _SECOND_US)


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


@dataclass(frozen=True, slots=True)
class OnceSchedule:
    """One tick. It stays one however late the job was made: its policies say what becomes of a tick in the past."""

    tick: int

    @property
    def text(self) -> str:
        return f"{_AT} {format_instant(self.tick)}"

    def words(self) -> str:
        return f"once, at {format_instant(self.tick)}"

    def next_after(self, instant: int) -> int | None:
        return self.tick if instant < self.tick else None

    def last_at_or_before(self, instant: int) -> int | None:
        return self.tick if self.tick <= instant else None

    def count_between(self, after: int, until: int) -> int:
        return int(after < self.tick <= until)


@dataclass(frozen=True, slots=True)
class ManualSchedule:
    """No tick of its own: it runs when somebody triggers it, and for ticks of the job that it follows."""

    after: str = ""

    @property
    def text(self) -> str:
        return MANUAL

    def words(self) -> str:
        return f"after {self.after}" if self.after else "only when triggered"

    def next_after(self, instant: int) -> int | None:  # noqa: ARG002 - there is none after any
        return None

    def last_at_or_before(self, instant: int) -> int | None:  # noqa: ARG002 - nor before
        return None

    def count_between(self, after: int, until: int) -> int:  # noqa: ARG002 - nor in between
        return 0


@dataclass(frozen=True, slots=True)
class UnreadSchedule:
    """A stored text that is no schedule of this release: a newer one wrote it. Of its ticks nothing is known here."""

    text: str

    def words(self) -> str:
        return f"{self.text} (a schedule of a newer release)"

    def next_after(self, instant: int) -> int | None:  # noqa: ARG002 - nobody knows
        return None

    def last_at_or_before(self, instant: int) -> int | None:  # noqa: ARG002 - as above
        return None

    def count_between(self, after: int, until: int) -> int:  # noqa: ARG002 - as above
        return 0


@dataclass(frozen=True, slots=True)
class BoundedSchedule:
    """The ticks of another schedule from `start` to `end`, both included. None: no bound."""

    inner: Schedule
    start: int | None
    end: int | None

    @property
    def text(self) -> str:
        return self.inner.text

    def words(self) -> str:
        words = self.inner.words()
        if self.start is not None:
            words += f", from {format_instant(self.start)} on"
        return words if self.end is None else f"{words}, until {format_instant(self.end)}"

    def next_after(self, instant: int) -> int | None:
        tick = self.inner.next_after(instant if self.start is None else max(instant, self.start - 1))
        return None if tick is None or (self.end is not None and tick > self.end) else tick

    def last_at_or_before(self, instant: int) -> int | None:
        tick = self.inner.last_at_or_before(instant if self.end is None else min(instant, self.end))
        return None if tick is None or (self.start is not None and tick < self.start) else tick

    def count_between(self, after: int, until: int) -> int:
        after = after if self.start is None else max(after, self.start - 1)
        until = until if self.end is None else min(until, self.end)
        return self.inner.count_between(after, until) if after < until else 0


def parse_schedule(text: str, anchor: int, policy: Policy = _DEFAULT_POLICY) -> Schedule:
    """The schedule that a text says, in the zone and between the bounds of a policy.

    `anchor` is where intervals count from; its fraction of a second is dropped. Raises ScheduleError. Results for a
    text are cached, so that this may be called for every job at every tick.
    """
    parsed = _parse(text, policy.timezone, policy.dst_gap, policy.dst_overlap)
    if policy.after and isinstance(parsed, ManualSchedule):
        return ManualSchedule(policy.after)
    schedule: Schedule
    schedule = IntervalSchedule(parsed, anchor - anchor % _SECOND_US) if isinstance(parsed, int) else parsed
    if policy.start_at or policy.end_at:
        start = parse_instant(policy.start_at) if policy.start_at else None
        end = parse_instant(policy.end_at) if policy.end_at else None
        return BoundedSchedule(schedule, start, end)
    return schedule


# docs/decisions/0103: a row that a newer release wrote ends nobody
def stored_schedule(text: str, anchor: int, policy: Policy = _DEFAULT_POLICY) -> Schedule:
    """As parse_schedule, of what stands in a row. Raises nothing: what can't be read is an UnreadSchedule."""
    return parse_schedule(text, anchor, policy) if reads_schedule(text) else UnreadSchedule(text)


@lru_cache(maxsize=_TEXTS_CACHED)
def reads_schedule(text: str) -> bool:
    """Whether this release knows what a stored text says."""
    try:
        _parse(text, "", "", "")
    except ValueError:
        return False
    return True


def check_schedule(text: str, timezone: str = "") -> str:
    """The canonical text of a schedule. Raises ScheduleError, and ZoneError for an unknown zone.

    `timezone` is where an instant after `at` is read that names no offset ("": UTC).
    """
    parsed = _parse(text, timezone, "", "")
    return IntervalSchedule(parsed, 0).text if isinstance(parsed, int) else parsed.text


def check_interval(amount: str) -> str:
    """The canonical text of an interval given by its amount alone: `every 1h30m` for `90m`.

    Raises ScheduleError, whose position and suggestion are of the amount alone as well.
    """
    return IntervalSchedule(_amount_us(amount), 0).text


def is_interval(text: str) -> bool:
    """Whether a canonical text is that of an interval."""
    return text.startswith(f"{_EVERY} ")


@lru_cache(maxsize=_TEXTS_CACHED)
def _parse(
    text: str, timezone: str, dst_gap: str, dst_overlap: str
) -> CronSchedule | OnceSchedule | ManualSchedule | int:
    """A schedule, or the length of an interval in microseconds: it is one together with an anchor only."""
    interval = _INTERVAL.match(text)
    if interval is not None:
        return _interval_us(interval)
    once = _ONCE.match(text)
    if once is not None:
        return OnceSchedule(_once_us(once, timezone))
    if text.strip(" \t").lower() == MANUAL:
        if text.strip(" \t") != MANUAL:
            raise ScheduleError(f"`{MANUAL}` is written in small letters", text.lower().index(MANUAL), MANUAL)
        return ManualSchedule()
    try:
        pattern = CronPattern.parse(text)
    except PatternError as error:
        raise ScheduleError(error.message, error.position, error.suggestion) from None
    return CronSchedule(ZonedPattern(pattern, load_zone(timezone), dst_gap, dst_overlap) if timezone else pattern)


def _once_us(match: re.Match[str], timezone: str) -> int:
    word, instant = match[1], match[2].rstrip(" \t")
    try:
        tick = parse_instant(instant, timezone)
    except InstantError as error:
        position = match.start(2) + error.position
        suggestion = None if error.suggestion is None else f"{_AT} {error.suggestion}"
        raise ScheduleError(f"character {position + 1}: {error.message}", position, suggestion) from None
    if word != _AT:
        raise ScheduleError(f"`{word}` is written in small letters", match.start(1), f"{_AT} {format_instant(tick)}")
    return tick


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
