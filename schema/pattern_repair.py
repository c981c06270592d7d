"""What to write instead: other dialects' constructs that this one can say in another way.

A repair is a candidate. The parser reads it, and suggests it only when it is a pattern.
"""

import re
import unicodedata
from typing import Final

from cronring.schema.fields import DAY, HOUR, MINUTE, SECOND, WEEKDAY, WEEKDAYS, YEAR, Field, shown, value_of_name

_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@minutely": "* * * * *",
    "@secondly": "* * * * * *",
}
_UNITS: Final = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
}
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AMOUNT: Final = re.compile(r"([0-9]{1,9})([A-Za-z]+)")
_VALUES_LISTED: Final = 8  # more of them are unreadable as a list
_NAME: Final = re.compile(r"[A-Za-z]+")
_RANGE: Final = re.compile(r"([0-9]+)-([0-9]+)(?:/([0-9]+))?")
_DASHES: Final = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2212\u2217", "------*")


def nickname(text: str) -> tuple[str, str | None]:
    """What is wrong with a text that starts with `@`, and the pattern that says the same."""
    words = text.lower().split()
    if words[0] == "@every":
        message = "`@every` is an interval, not a pattern (a job takes intervals as well)"
        return message, _clock_aligned(words[1]) if len(words) == 2 else None
    if words[0] == "@reboot":
        return "`@reboot` has no instant: nothing here ever boots", None
    suggestion = _NICKNAMES.get(text.lower())
    if suggestion is None:
        return f"{shown(text)} is not part of the dialect", None
    return f"{shown(text)} is not part of the dialect, but it has a pattern", suggestion


def repair_word(word: str) -> str | None:
    """A pattern instead of a single word: `90s`, `5min`, `tues`, `mon-fri`."""
    aligned = _clock_aligned(word)
    if aligned is not None:
        return aligned
    lower = word.lower()
    matches = [name for name in WEEKDAYS if len(lower) >= 3 and name.startswith(lower)]
    if len(matches) == 1:
        return matches[0]
    if _NAME.search(word):
        days = repair_field(WEEKDAY, word)
        if days is not None and not _NAME.search(days):
            return f"0 0 * * {days}"
    return None


def _clock_aligned(word: str) -> str | None:
    """The pattern for an amount of time that divides the minute, the hour or the day evenly: there it is no guess."""
    match = _AMOUNT.fullmatch(word)
    if match is None:
        return None
    units = [unit for unit, spellings in _UNITS.items() if match[2].lower() in spellings]
    if not units:
        return None
    seconds = int(match[1]) * _SECONDS[units[0]]
    if seconds == 86_400:
        return "0 0 * * *"
    for unit, span in (("s", 60), ("m", 3600), ("h", 86_400)):
        size = _SECONDS[unit]
        if 0 < seconds < span and seconds % size == 0 and span % seconds == 0:
            return f"{seconds // size}{unit}"
    return None


def repair_field(field: Field, text: str) -> str | None:
    """The field with every construct replaced that has an equivalent here; None when nothing had one."""
    items = [_repair_item(field, item) for item in text.split(",")]
    repaired = ",".join(item for item in items if item)
    return repaired if repaired and repaired != text else None


def _repair_item(field: Field, item: str) -> str:
    if item == "?":
        return "*"
    item = "".join(_ascii(character) for character in item.translate(_DASHES))
    item = _NAME.sub(lambda word: _number(field, word[0]), item)
    if item.startswith("/"):
        item = f"*{item}"
    if item == f"*/{field.maximum + 1}" and field in {SECOND, MINUTE, HOUR}:
        return "0"  # the whole field as a step: other parsers take it, and it is the first value only
    backwards = _RANGE.fullmatch(item)
    return item if backwards is None else _wrapped(field, item, backwards)


def _ascii(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)


def _number(field: Field, word: str) -> str:
    value = value_of_name(field, word)
    return word if value is None else str(value)


def _wrapped(field: Field, item: str, match: re.Match[str]) -> str:
    """A range that runs backwards, as the two that it means: `22-2` is `22-23,0-2`."""
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    inside = first <= field.maximum and last >= field.minimum and 1 <= step <= field.maximum
    if first <= last or not inside:
        return item
    if field is YEAR:
        return f"{last}-{first}" if step == 1 else item
    if field is WEEKDAY:
        first %= 7
        if first == last:
            return str(last)
        if last == 0:
            last = 7
        if first <= last:
            return f"{first}-{last}" + (f"/{step}" if step > 1 else "")
    if step > 1 and field is not DAY:  # from month to month a step's rhythm has no single meaning
        size = field.top - field.minimum + 1
        values = sorted(value if value <= field.top else value - size for value in range(first, last + size + 1, step))
        if len(values) <= _VALUES_LISTED:
            return ",".join(map(str, values))
        around = [value for value in values if value <= last]  # the rest lies before the field's end
        return ",".join([_stepped(first, field.top, step), *([_stepped(around[0], last, step)] if around else [])])
    if step > 1:
        return item
    return f"{_span(first, field.top)},{_span(field.minimum, last)}"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _stepped(first: int, last: int, step: int) -> str:
    return str(first) if first + step > last else f"{first}-{last}/{step}"
