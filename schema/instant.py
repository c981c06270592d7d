"""Instants in text: `2026-03-01T08:00:00Z`, `2026-03-01 08:00` in a zone, `2026-03-01`. Whole seconds, 1970 to 2099."""

import datetime
import re
from typing import Final, NamedTuple

from cronring.schema.zone import Zone, load_zone

# The years 1 to 9999, which Python and google.protobuf.Timestamp have. PostgreSQL has more.
FIRST_US: Final = -62_135_596_800_000_000
LAST_US: Final = 253_402_300_799_999_999
_INSTANT: Final = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<time>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?P<fraction>\.[0-9]+)?(?P<offset>Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    re.ASCII,
)
# Written otherwise, and still meant: `2026/3/1 8:00 UTC`. Day and month are never guessed.
_LOOSE: Final = re.compile(
    r"\s*([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})"
    r"(?:[T ]\s*([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?(?:\s*(Z|UTC))?)?\s*",
    re.ASCII | re.IGNORECASE,
)
_DIGIT: Final = "0123456789"
_SHAPE: Final = tuple({"0": _DIGIT, "T": "T "}.get(character, character) for character in "0000-00-00T00:00:00Z")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NAIVE_EPOCH: Final = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - wall clocks are counted from it, whatever their zone
_SECOND_US: Final = 1_000_000
_DAY: Final = 86_400
_NEAR: Final = 2 * _DAY  # no offset, and no change of one, is larger than a day and some hours
_TEXT_LIMIT: Final = 64
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2099
_END: Final = 4_102_444_800  # the first second of 2100, in UTC


class InstantError(ValueError):
    """A text that is no instant: `message`, `position` (0-based offset in the text), `suggestion` (or None)."""

    def __init__(self, message: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["InstantError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


class _Wall(NamedTuple):
    """What a text says: seconds since 1970 on a clock of this offset, or on the zone's own clock if it is None."""

    clock: int
    offset: int | None
    is_date: bool


def parse_instant(text: str, timezone: str = "", *, end_of_day: bool = False) -> int:
    """Microseconds since 1970. What names no offset is read on the clocks of `timezone` ("": UTC).

    A date alone is its first second, or its last one with `end_of_day`. A time that the clocks show twice is the first
    of the two; one that they skip is refused. Raises InstantError, and ZoneError for an unknown zone.
    """
    wall = _read(text)
    second = _second(wall, timezone, end_of_day=end_of_day)
    # What is canonical is written in UTC, where a zone's first and last hours belong to other years.
    if not 0 <= second < _END:
        raise InstantError(f"in UTC it is outside the years {_FIRST_YEAR} to {_LAST_YEAR}", 0)
    return second * _SECOND_US


def _second(wall: "_Wall", timezone: str, *, end_of_day: bool) -> int:
    if wall.offset is not None:
        return wall.clock - wall.offset
    zone = load_zone(timezone or "UTC")
    if not wall.is_date:
        return first_instant(zone, wall.clock)
    # A day may begin later than at 00:00, where the clocks skip midnight, and it ends where the next one begins.
    return _day_start(zone, wall.clock + _DAY) - 1 if end_of_day else _day_start(zone, wall.clock)


def format_instant(instant: int) -> str:
    """The canonical text of an instant in microseconds: `2026-03-01T08:00:00Z`. Fractions of a second are dropped."""
    return f"{(_NAIVE_EPOCH + datetime.timedelta(seconds=instant // _SECOND_US)).isoformat()}Z"


def from_us(instant: int) -> datetime.datetime:
    """In UTC. Python has the years 1 to 9999."""
    return _EPOCH + datetime.timedelta(microseconds=instant)


def to_us(moment: datetime.datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def first_instant(zone: Zone, clock: int) -> int:
    """The first UTC second at which the zone's clocks show `clock`. Raises InstantError when they never do."""
    instants = instants_of(zone, clock)
    if instants:
        return instants[0]
    end = next(
        change.at + change.after
        for change in zone.changes_between(clock - _NEAR, clock + _NEAR)
        if change.at + change.before <= clock < change.at + change.after
    )
    shown = _clock_text(end)
    raise InstantError(f"the clocks of {zone} skip this time: they go on at {shown.replace('T', ' ')}", 0, shown)


def instants_of(zone: Zone, clock: int) -> list[int]:
    """Every UTC second at which the zone's clocks show `clock` (seconds since 1970 on the wall), in order."""
    changes = zone.changes_between(clock - _NEAR, clock + _NEAR)
    offsets = [zone.offset_at(clock - _NEAR), *(change.after for change in changes)]
    return sorted({clock - offset for offset in offsets if zone.offset_at(clock - offset) == offset})


def _day_start(zone: Zone, clock: int) -> int:
    """The first UTC second of a day of the zone, or, if the zone skips the day, of the one after it."""
    instants = instants_of(zone, clock)
    if instants:
        return instants[0]
    return next(
        change.at
        for change in zone.changes_between(clock - _NEAR, clock + _NEAR)
        if change.at + change.before <= clock < change.at + change.after
    )


def _read(text: str) -> _Wall:
    match = _INSTANT.fullmatch(text)
    if match is None:
        raise _malformed(text)
    year = int(text[:4])
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise InstantError(f"the year {year} is outside {_FIRST_YEAR} to {_LAST_YEAR}", 0)
    fraction = match["fraction"]
    if fraction is not None and fraction.strip(".0"):
        whole = text[: match.start("fraction")] + text[match.end("fraction") :]
        raise InstantError("ticks are on whole seconds", match.start("fraction"), whole)
    try:
        moment = datetime.datetime.fromisoformat(f"{match['date']}T{match['time'] or '00:00'}")
        offset = _offset_seconds(match["offset"])
    except ValueError as error:
        raise InstantError(f"there is no such date or time: {error}", 0) from None
    return _Wall(int((moment - _NAIVE_EPOCH).total_seconds()), offset, match["time"] is None)


def _offset_seconds(text: str | None) -> int | None:
    """Raises ValueError for an offset of a day or more."""
    if text is None:
        return None
    if text == "Z":
        return 0
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours >= 24 or minutes >= 60:
        raise ValueError(f"the offset {text} is more than a day")
    seconds = hours * 3600 + minutes * 60
    return -seconds if text[0] == "-" else seconds


def _malformed(text: str) -> InstantError:
    message = "an instant is written like 2026-03-01T08:00:00Z, 2026-03-01 08:00 (in the job's time zone) or 2026-03-01"
    if len(text) > _TEXT_LIMIT:
        return InstantError(f"{len(text)} characters are too many for an instant; {message}", _TEXT_LIMIT)
    return InstantError(message, _matching(text), _mended(text))


def _matching(text: str) -> int:
    """How far the text looks like an instant."""
    position = 0
    for character, allowed in zip(text, _SHAPE, strict=False):
        if character not in allowed:
            break
        position += 1
    return position


def _mended(text: str) -> str | None:
    """The text with its digits filled up and other separators, where that is all that was wrong."""
    match = _LOOSE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, zone = match.groups()
    candidate = f"{year}-{int(month):02}-{int(day):02}"
    if hour is not None:
        candidate += f"T{int(hour):02}:{minute}:{second or '00'}{'Z' if zone else ''}"
    try:
        _read(candidate)
    except InstantError:
        return None
    return candidate


def _clock_text(clock: int) -> str:
    return f"{_NAIVE_EPOCH + datetime.timedelta(seconds=clock):%Y-%m-%dT%H:%M:%S}"
