"""The seven fields of a cron pattern: one field's text becomes a bit mask, or a fault that says what and where."""

import re
from typing import Final, NamedTuple

from cronring.schema.search import FIRST_YEAR, LAST_YEAR

WEEKDAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
MONTHS: Final = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


class Field(NamedTuple):
    """`top` is where `*` and `a/n` end: the maximum, but Saturday in day-of-week, where 7 is a second Sunday."""

    name: str
    minimum: int
    maximum: int
    top: int
    names: tuple[str, ...] = ()  # other dialects' names for the values, from the minimum on

    @property
    def full(self) -> int:
        """The mask of every value."""
        return (2 << self.top - self.minimum) - 1

    def values(self, mask: int) -> list[int]:
        """Those of a mask, in their order."""
        return [value for value in range(self.minimum, self.top + 1) if mask >> value - self.minimum & 1]


SECOND: Final = Field("second", 0, 59, 59)
MINUTE: Final = Field("minute", 0, 59, 59)
HOUR: Final = Field("hour", 0, 23, 23)
DAY: Final = Field("day-of-month", 1, 31, 31)
MONTH: Final = Field("month", 1, 12, 12, MONTHS)
WEEKDAY: Final = Field("day-of-week", 0, 7, 6, WEEKDAYS)
YEAR: Final = Field("year", FIRST_YEAR, LAST_YEAR, LAST_YEAR)
FIELDS: Final = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR)

# `*`, `a` or `a-b`, each with or without a step. [0-9], as \d and int() would take the digits of every script.
_TERM: Final = re.compile(r"(?:\*|([0-9]+)(?:-([0-9]+))?)(?:/([0-9]+))?")
_PLAIN: Final = frozenset("0123456789*-/")
_NO_EQUIVALENT: Final = {
    "L": "`L` (the last one) is not part of the dialect, and no pattern is equal to it",
    "W": "`W` (the nearest working day) is not part of the dialect, and no pattern is equal to it",
    "LW": "`LW` (the last working day) is not part of the dialect, and no pattern is equal to it",
    "H": "`H` (a hashed value) is not part of the dialect; write a number",
    "R": "`R` (a random value) is not part of the dialect; write a number",
}


class FieldFault(Exception):
    """What is wrong with a field, and at which character of it (0-based). The parser makes a PatternError of it.

    `remedy`: how to mend it in words, for where there is no text to write instead.
    """

    def __init__(self, what: str, offset: int, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset
        self.remedy = remedy


def field_mask(field: Field, text: str) -> int:
    """The field's values as a mask, bit 0 its minimum; in day-of-week 7 has become 0. Raises FieldFault."""
    if text == "*":
        return field.full
    mask = offset = 0
    for term in text.split(","):
        mask |= _term_mask(field, term, offset)
        offset += len(term) + 1
    if field is WEEKDAY:
        mask = (mask | mask >> 7) & field.full
    return mask


def _term_mask(field: Field, term: str, offset: int) -> int:
    match = _TERM.fullmatch(term)
    if match is None:
        what, inner = _malformed(field, term)
        raise FieldFault(what, offset + inner)
    first_text, last_text, step_text = match.groups()
    first, last, step = field.minimum, field.top, 1
    if first_text is not None:
        first = _number(field, first_text, offset)
        if last_text is not None:
            last = _number(field, last_text, offset + match.start(2))
            if last < first:
                remedy = f"write it as two, one up to {field.top} and one on from {field.minimum}"
                raise FieldFault(f"the range {first}-{last} runs backwards", offset, remedy)
        elif step_text is None:
            return 1 << first - field.minimum
        else:
            last = max(first, field.top)  # `7/2` in day-of-week starts on the second Sunday, so that is all
    if step_text is not None:
        step = _step(field, step_text, offset + match.start(3))
    if step == 1:
        return (2 << last - first) - 1 << first - field.minimum
    mask = 0
    for value in range(first - field.minimum, last - field.minimum + 1, step):
        mask |= 1 << value
    return mask


def _number(field: Field, digits: str, offset: int) -> int:
    value = int(digits)
    if not field.minimum <= value <= field.maximum:
        hint = "; midnight is 0" if field is HOUR and value == 24 else ""
        raise FieldFault(f"{shown(digits)} is outside {field.minimum} to {field.maximum}{hint}", offset)
    return value


def _step(field: Field, digits: str, offset: int) -> int:
    value = int(digits)
    if value == 0:
        raise FieldFault("a step of 0 never moves on", offset)
    if value > field.maximum:
        raise FieldFault(f"the step {shown(digits)} is larger than the field's maximum, {field.maximum}", offset)
    return value


def _malformed(field: Field, term: str) -> tuple[str, int]:
    """What is wrong with a term that isn't one, and at which character of it."""
    if not term:
        return "an item of the list is empty", 0
    for offset, character in enumerate(term):
        if character not in _PLAIN:
            return _foreign(field, term[offset:]), offset
    match = _TERM.match(term)
    return (
        f"{shown(term)} is not a value `a`, a range `a-b`, `*`, or one of them with a step, like `a-b/n`",
        match.end() if match else 0,
    )


def _foreign(field: Field, rest: str) -> str:
    """What is wrong with the character that `rest` starts with."""
    letters = re.match(r"[A-Za-z]+", rest)
    if letters is not None:
        word = letters[0]
        if value_of_name(field, word) is not None:
            return f"{shown(word)} is a name; fields are written in numbers"
        return _NO_EQUIVALENT.get(word.upper(), f"{shown(word)} is not a number")
    if rest[0] == "?":
        return "`?` is not part of the dialect; `*` says the same"
    if rest[0] == "#":
        return "`#` (the n-th weekday of a month) is not part of the dialect, and no pattern is equal to it"
    if rest[0].isdecimal():
        return f"{rest[0]!r} is a digit of another script; write 0 to 9"
    return f"{rest[0]!r} has no meaning here"


def value_of_name(field: Field, word: str) -> int | None:
    """The number of a month or weekday: three letters or the whole name, any case."""
    word = word.lower()
    for number, name in enumerate(field.names, field.minimum):
        if word in {name, name[:3]}:
            return number
    return None


def shown(text: str) -> str:
    """A piece of what was written, quoted, and short however long it was."""
    return f"`{text}`" if len(text) <= 24 else f"`{text[:20]}…`"
