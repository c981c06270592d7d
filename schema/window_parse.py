"""The text of a window, read: `Mon-Fri 08:00-18:00, Sat 09:00-24:00 Europe/Berlin`."""

import re
from typing import Final, NamedTuple

from cronring.schema.fields import WEEKDAYS, shown
from cronring.schema.nearest import nearest
from cronring.schema.zone import ZoneError, load_zone

_DAYS: Final = (*WEEKDAYS[1:], WEEKDAYS[0])  # bit 0 is Monday
_DAY_NAMES: Final = {spelling: n for n, day in enumerate(_DAYS) for spelling in (day, day[:3])}
EVERY_DAY: Final = 0b1111111
MINUTES_PER_DAY: Final = 1_440
_TEXT_LIMIT: Final = 500

_TOKEN: Final = re.compile(r",|[^\s,]+")
_DAY_ITEM: Final = re.compile(r"([A-Za-z]+)(?:-([A-Za-z]+))?", re.ASCII)
_TIMES: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})", re.ASCII)
# `8-18`, `0800-1800`, `8am-6pm`, `8.00-18.00`
_LOOSE_TIME: Final = r"([0-9]{1,2})[:.h]?([0-9]{2})?(?::00)?(?: ?([ap]m))?"
_LOOSE_TIMES: Final = re.compile(rf"(?<![0-9:]){_LOOSE_TIME}-{_LOOSE_TIME}(?![0-9:])", re.ASCII)
_DASHES: Final = re.compile(r"(?:(?<!\s)\s+)?(?:[-\u2010-\u2014\u2212]|\bto\b|\btill\b|\buntil\b)\s*", re.IGNORECASE)
_WORD: Final = re.compile(r"(?<![\w/])[A-Za-z]{2,}(?![\w/])", re.ASCII)  # not a part of a zone's name
_REPAIR_ROUNDS: Final = 4
_DAY_SETS: Final = {
    "weekdays": "Mon-Fri",
    "workdays": "Mon-Fri",
    "weekends": "Sat-Sun",
    "weekend": "Sat-Sun",
    "daily": "Mon-Sun",
    "everyday": "Mon-Sun",
}


class WindowError(ValueError):
    """A text that is no window: `message`, `position` (0-based offset in the text), `suggestion` (or None)."""

    def __init__(self, message: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["WindowError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


class OpenHours(NamedTuple):
    """Open from `opens` to `closes`, minutes of the day; at or before `opens` it is on the next day.

    `days`: on which days it opens, as a mask, bit 0 Monday.
    """

    days: int
    opens: int
    closes: int


class Parsed(NamedTuple):
    """`zone` is empty where the text names none."""

    entries: tuple[OpenHours, ...]
    zone: str

    @property
    def text(self) -> str:
        """The canonical spelling."""
        everyday = all(entry.days == EVERY_DAY for entry in self.entries)
        texts = [_times_text(entry) if everyday else _entry_text(entry) for entry in self.entries]
        return ", ".join(texts) + (f" {self.zone}" if self.zone else "")


def read_window(text: str) -> Parsed:
    """Raises WindowError. Whatever it suggests is a window."""
    try:
        return _Reader(text).read()
    except WindowError as error:
        suggestion = error.suggestion if error.suggestion is not None else _mended(text)
        raise WindowError(error.message, error.position, _readable(suggestion)) from None


class _Token(NamedTuple):
    text: str
    start: int


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > _TEXT_LIMIT:
            raise WindowError(f"{len(text)} characters are too many for a window", _TEXT_LIMIT)
        self._text = text
        self._tokens = [_Token(match[0], match.start()) for match in _TOKEN.finditer(text)]
        self._index = 0

    def read(self) -> Parsed:
        if not self._tokens:
            raise WindowError("the window is empty; `Mon-Fri 08:00-18:00` is one", 0)
        entries: list[OpenHours] = []
        days = EVERY_DAY
        while True:
            days = self._days(days)
            entry = self._times(days)
            if entry not in entries:
                entries.append(entry)
            token = self._peek()
            if token is None:
                return Parsed(tuple(entries), "")
            if token.text != ",":
                return Parsed(tuple(entries), self._zone(token))
            self._index += 1

    def _peek(self, ahead: int = 0) -> _Token | None:
        index = self._index + ahead
        return self._tokens[index] if index < len(self._tokens) else None

    def _days(self, before: int) -> int:
        """The days that are named here; those of the part before where there are none."""
        token = self._peek()
        if token is None or token.text[0].isdigit():
            return before
        mask = 0
        while token is not None:
            mask |= _day_item(token)
            self._index += 1
            comma, following = self._peek(), self._peek(1)
            if comma is None or comma.text != "," or following is None or following.text[0].isdigit():
                break
            self._index += 1
            token = following
        return mask

    def _times(self, days: int) -> OpenHours:
        token = self._peek()
        if token is None or not token.text[0].isdigit():
            position = len(self._text) if token is None else token.start
            whole = f"{self._text.rstrip(' ,')} 00:00-24:00" if token is None else None
            raise WindowError("times are missing here, like 08:00-18:00", position, whole)
        self._index += 1
        match = _TIMES.fullmatch(token.text)
        if match is None:
            raise WindowError(f"{shown(token.text)} is not a span of time, like 08:00-18:00", token.start)
        opens = _minute(match, 1, token)
        closes = _minute(match, 3, token)
        if opens == MINUTES_PER_DAY:
            raise WindowError("24:00 ends a day; a window opens at 00:00 of the next one", token.start)
        if opens == closes:
            raise WindowError(
                f"{shown(token.text)} is empty, or a whole day? The whole day is 00:00-24:00", token.start
            )
        return OpenHours(days, opens, closes or MINUTES_PER_DAY)

    def _zone(self, token: _Token) -> str:
        self._index += 1
        following = self._peek()
        if following is not None:
            what = "parts are joined by commas, and a zone stands once, at the end"
            raise WindowError(f"nothing follows {shown(token.text)}: {what}", following.start)
        try:
            return load_zone(token.text).name
        except ZoneError as error:
            suggestion = None
            if error.suggestion is not None:
                suggestion = f"{self._text[: token.start]}{error.suggestion}"
            raise WindowError(error.message, token.start, suggestion) from None


def _day_item(token: _Token) -> int:
    """The days of `Mon`, `Mon-Fri` or `Sat-Mon`."""
    match = _DAY_ITEM.fullmatch(token.text)
    if match is None:
        raise WindowError(f"{shown(token.text)} is no day of the week, nor a range of them", token.start)
    first = _day(match[1], token.start)
    last = first if match[2] is None else _day(match[2], token.start + match.start(2))
    return sum(1 << (first + n) % 7 for n in range((last - first) % 7 + 1))


def _day(word: str, position: int) -> int:
    number = _DAY_NAMES.get(word.lower())
    if number is None:
        raise WindowError(f"{shown(word)} is no day of the week; they are Mon, Tue, ..., Sun", position)
    return number


def _minute(match: re.Match[str], group: int, token: _Token) -> int:
    hour, minute = int(match[group]), int(match[group + 1])
    if minute > 59 or hour * 60 + minute > MINUTES_PER_DAY:
        position = token.start + match.start(group)
        raise WindowError(f"{match[group]}:{match[group + 1]} is no time of a day", position)
    return hour * 60 + minute


def _entry_text(entry: OpenHours) -> str:
    return f"{_days_text(entry.days)} {_times_text(entry)}"


def _times_text(entry: OpenHours) -> str:
    return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in (entry.opens, entry.closes))


def _days_text(mask: int) -> str:
    names = [day[:3].capitalize() for day in _DAYS]
    texts = []
    day = 0
    while day < 7:
        last = day
        while mask >> last & 1:
            last += 1
        if last > day:
            texts.append(names[day] if last == day + 1 else f"{names[day]}-{names[last - 1]}")
        day = last + 1
    return ",".join(texts)


def _readable(candidate: str | None) -> str | None:
    """The canonical spelling of a candidate, mended until it is a window; None if that leads nowhere."""
    for _ in range(_REPAIR_ROUNDS):
        if candidate is None:
            return None
        try:
            return _Reader(candidate).read().text
        except WindowError as error:
            mended = _mended(candidate)
            candidate = error.suggestion if mended == candidate else mended
    return None


def _mended(text: str) -> str:
    """The text with other spellings of days, dashes and times put right, as far as they are understood."""
    text = _DASHES.sub("-", text[:_TEXT_LIMIT])
    text = text.replace(";", ",").replace(" and ", ", ")
    text = _LOOSE_TIMES.sub(_strict_times, text)
    days_end = max((match.end() for match in _TIMES.finditer(text)), default=len(text))  # a zone may come after
    return _WORD.sub(lambda word: _spelled_day(word[0]), text[:days_end]) + text[days_end:]


def _spelled_day(word: str) -> str:
    lower = word.lower()
    if lower in _DAY_NAMES:
        return word
    if lower in _DAY_SETS:
        return _DAY_SETS[lower]
    matches = [day for day in _DAYS if day.startswith((lower, lower.rstrip("s")))]
    close = matches[0] if len(matches) == 1 else nearest(lower, _DAY_NAMES)
    return close[:3].capitalize() if close else word


def _strict_times(match: re.Match[str]) -> str:
    return "-".join(_strict_time(*match.group(n, n + 1, n + 2)) for n in (1, 4))


def _strict_time(hour_text: str, minute_text: str | None, half: str | None) -> str:
    hour = int(hour_text)
    if half is not None:
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    return f"{hour:02}:{minute_text or '00'}"
