"""From a pattern's text to its field sets, in FTL's dialect, and to errors that say what, where and what instead."""

import re
from typing import Final, NamedTuple

from cronring.schema.fields import DAY, FIELDS, MONTHS, WEEKDAYS, YEAR, FieldFault, field_mask, shown
from cronring.schema.pattern_repair import nickname, repair_field, repair_word
from cronring.schema.search import FieldSets, next_tick

TEXT_LIMIT: Final = 2_000  # the longest list of every value of all seven fields has 1,300 characters

_WORD: Final = re.compile(r"[^ \t]+")
_BAD_SPACE: Final = re.compile(r"[^\S \t]|[\x00-\x08\x0e-\x1f\x7f]")
_SHORT_FORM: Final = re.compile(r"([0-9]+)([smh])")
_SHORT_FIELDS: Final = {"s": ("*/{} * * * * * *", 59), "m": ("0 */{} * * * * *", 59), "h": ("0 0 */{} * * * *", 23)}
# Four digits or more that aren't a step's: with six fields they make the last one a year. Digits count, not the
# number: `0000` is a year that there isn't, and not a Sunday.
_YEAR: Final = re.compile(r"(?<![0-9/])[0-9]{4,}")
# A pattern may have as many kinds of faults as fields, each mended in a round of its own.
_REPAIR_ROUNDS: Final = 8
_SUGGESTION_LENGTH: Final = 60  # a longer one, unless what was written is long itself, helps nobody

Parsed = tuple[str, tuple[str, ...], FieldSets]


class _Layout(NamedTuple):
    """The words of a text, and the seven fields that they stand for, `shift` of them implied before the first."""

    text: str
    words: list[str]
    fields: tuple[str, ...]
    shift: int

    def place(self, number: int) -> tuple[str, int]:
        """One of the seven fields as it was written, and where."""
        index = number - self.shift
        return self.words[index], _starts(self.text)[index]


class PatternError(ValueError):
    """A text that is no pattern.

    `message` says what and where in words. `position` is the 0-based offset of the offending character in the text
    as it was given (its length when something is missing at the end). `suggestion` is a pattern that says the same
    in this dialect, or None when there is none.
    """

    def __init__(self, message: str, position: int, suggestion: str | None = None) -> None:
        super().__init__(message if suggestion is None else f"{message}; write {suggestion!r}")
        self.message = message
        self.position = position
        self.suggestion = suggestion

    def __reduce__(self) -> tuple[type["PatternError"], tuple[str, int, str | None]]:
        return type(self), (self.message, self.position, self.suggestion)


def parse_pattern(text: str) -> Parsed:
    """The text without spare spaces, the seven fields it stands for, and their sets. Raises PatternError."""
    try:
        return _read(text)
    except PatternError as error:
        raise PatternError(error.message, error.position, _settled(error.suggestion)) from None


def _settled(candidate: str | None) -> str | None:
    """A suggestion, mended until it parses; None if that leads nowhere. So whatever is suggested is a pattern."""
    for _ in range(_REPAIR_ROUNDS):
        if candidate is None:
            return None
        try:
            _read(candidate)
        except PatternError as error:
            candidate = error.suggestion
        else:
            return candidate
    return None


def _read(text: str) -> Parsed:
    """As parse_pattern, but suggestions are only candidates: one fault of possibly several is mended in them."""
    if len(text) > TEXT_LIMIT:
        raise PatternError(f"the pattern has {len(text)} characters; at most {TEXT_LIMIT} are allowed", TEXT_LIMIT)
    bad = _BAD_SPACE.search(text)
    if bad is not None:
        what = "a newline" if bad[0] in "\r\n" else f"the character {bad[0]!r}"
        message = f"character {bad.start() + 1} is {what}; fields are separated by spaces or tabs"
        raise PatternError(message, bad.start(), _BAD_SPACE.sub(" ", text).strip())
    words = text.split()
    layout = _Layout(text, words, _expand_word(text, words[0]), 0) if len(words) == 1 else _seven(text, words)
    return " ".join(words), layout.fields, _field_sets(layout)


def _expand_word(text: str, word: str) -> tuple[str, ...]:
    """The seven fields of a short form like `25m`, or of a weekday's name."""
    position = text.index(word)
    short = _SHORT_FORM.fullmatch(word)
    if short is not None:
        fields, maximum = _SHORT_FIELDS[short[2]]
        if 1 <= int(short[1]) <= maximum:
            return tuple(fields.format(int(short[1])).split(" "))
        message = (
            f"{shown(word)}: a clock-aligned `{short[2]}` counts from 1 to {maximum}; an interval takes any amount"
        )
        raise PatternError(message, position, repair_word(word))
    for number, name in enumerate(WEEKDAYS):
        if word.lower() in {name, name[:3]}:
            return ("0", "0", "0", "*", "*", str(number), "*")
    if word.startswith("@"):
        message, suggestion = nickname(word)
        raise PatternError(message, position, suggestion)
    message = f"{shown(word)} is neither five to seven fields, nor a short form like `25m`, nor a weekday's name"
    raise PatternError(message, position, repair_word(word))


def _seven(text: str, words: list[str]) -> _Layout:
    """The seven fields of five, six or seven."""
    match len(words):
        case 5:
            return _Layout(text, words, ("0", *words, "*"), 1)
        case 6 if _YEAR.search(words[5]):
            return _Layout(text, words, ("0", *words), 1)
        case 6:
            return _Layout(text, words, (*words, "*"), 0)
        case 7:
            return _Layout(text, words, tuple(words), 0)
        case 0:
            raise PatternError("the pattern is empty; `0 6 * * *`, for example, is every day at 06:00", len(text))
    if words[0].startswith("@"):
        message, suggestion = nickname(" ".join(words))
        raise PatternError(message, text.index("@"), suggestion)
    position = len(text) if len(words) < 5 else _starts(text)[7]
    raise PatternError(
        f"{len(words)} fields; a pattern has 5 (minute hour day-of-month month day-of-week), "
        "6 (second first, or year last) or 7 (both)",
        position,
    )


def _starts(text: str) -> list[int]:
    return [match.start() for match in _WORD.finditer(text)]


def _field_sets(layout: _Layout) -> FieldSets:
    fields = layout.fields
    masks = []
    for number, field in enumerate(FIELDS):
        try:
            masks.append(field_mask(field, fields[number]))
        except FieldFault as fault:
            raise _located(layout, number, fault) from None
    # A day field that is exactly `*` doesn't restrict: the other one alone decides. Two that do are joined by "or".
    days, weekdays = masks[3], masks[5]
    if fields[5] == "*":
        weekdays = 0
    elif fields[3] == "*":
        days = 0
    sets = FieldSets(masks[0], masks[1], masks[2], days, masks[4], weekdays, masks[6])
    if next_tick(sets, -1) is None:
        raise _never_fires(layout, sets)
    return sets


def _located(layout: _Layout, number: int, fault: FieldFault) -> PatternError:
    """The fault of one field as an error of the whole text."""
    word, start = layout.place(number)
    position = start + fault.offset
    repaired = repair_field(FIELDS[number], word)
    suggestion = None
    if repaired is not None:
        suggestion = (layout.text[:start] + repaired + layout.text[start + len(word) :]).strip()
        if len(suggestion) > max(_SUGGESTION_LENGTH, 2 * len(layout.text)):
            suggestion = None
    message = f"{FIELDS[number].name} field, character {position + 1}: {fault.what}"
    if suggestion is None and fault.remedy:
        message += f"; {fault.remedy}"
    if FIELDS[number] is YEAR and len(layout.words) == 6:
        message += "; of six fields the last is a year if a number in it has four digits, and else a day of the week"
    return PatternError(message, position, suggestion)


def _never_fires(layout: _Layout, sets: FieldSets) -> PatternError:
    """Only the day-of-month field can do that: days that its months never have, or 29 February without a leap year."""
    _, position = layout.place(FIELDS.index(DAY))
    earliest = (sets.days & -sets.days).bit_length()
    months = [name.capitalize() for number, name in enumerate(MONTHS) if sets.months >> number & 1]
    if earliest == 29:
        what = "none of the years has a 29 February"
    else:
        what = f"{' and '.join(months)} never reach{'es' if len(months) == 1 else ''} day {earliest}"
    return PatternError(f"{DAY.name} field, character {position + 1}: it can never fire, as {what}", position)
