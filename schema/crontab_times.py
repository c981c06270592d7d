"""The times of a crontab's line, put into the dialect: names, wide steps, random values, and cron's rule for days.

What cron does is vixie-cron's and cronie's (crontab(5), and what their entry.c and cron.c do where that is silent):

- Days. In cron, if a day field *begins with* `*`, a day must match both fields. If neither does, one match suffices.
  Here only a field that is exactly `*` restricts nothing. So the same instants may need another text (`*/1` is `*`).
  If both fields restrict and both must match, they need a window.
- Steps may be larger than the field, and leave its first value. `7` is a second Sunday; `sat-sun` is `6-7`.
- `a~b` (cronie) is a value that cron picks at random when it reads the file: it is picked here, once for ever.
- Clock changes. To cron, a job follows the hours if its minute or hour field begins with `*`. Here it does if one of
  the two fields contains `*` or `/`. If there is a time zone, another spelling keeps the behaviour.
"""

import re
from hashlib import blake2b
from typing import Final, NamedTuple

from cronring.schema.fields import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    WEEKDAY,
    Field,
    FieldFault,
    field_mask,
    shown,
    value_of_name,
)
from cronring.schema.pattern import CronPattern, PatternError
from cronring.schema.pattern_repair import repair_field
from cronring.schema.window import canonical_window

_FIELDS: Final = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)
# `~` is a range too: of the values of which one is picked.
_TERM: Final = re.compile(r"(\*|[0-9A-Za-z]*)(?:([-~])([0-9A-Za-z]*))?(?:/([0-9]+))?")
_EVERY_WEEKDAY: Final = 0b1111111
_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every_minute": "* * * * *",  # FreeBSD's, as the next
    "@every_second": "* * * * * *",
}
_WINDOW_DAYS: Final = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


class TimesFault(ValueError):
    """Times that can't be put into the dialect: `message`, and what to write instead (`remedy`, empty for nothing)."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Times(NamedTuple):
    """`window` is a window's days and times, empty for none. `remarks` say what is written in another way, and why."""

    pattern: str
    window: str
    remarks: tuple[str, ...]


def translate_nickname(word: str) -> Times:
    """Of `@daily` and the like. Raises TimesFault."""
    pattern = _NICKNAMES.get(word)
    if pattern is not None:
        return Times(pattern, "", ())
    if word == "@reboot":
        message = "@reboot has no instant: nothing here ever boots"
        raise TimesFault(message, "start it with the service itself, or write a schedule")
    close = _NICKNAMES.get(word.lower())
    raise TimesFault(f"{shown(word)} is none of cron's names for times", f"write {word.lower()}" if close else "")


def translate_times(words: list[str], seed: str, *, zoned: bool) -> Times:
    """Of the five fields of a crontab's line. Raises TimesFault.

    `seed` decides the values that cron would pick at random. `zoned`: clocks may be changed, so what a change does to
    the job is kept, at the price of a longer text.
    """
    remarks: list[str] = []
    texts = [_field(field, word, f"{seed} {field.name}", remarks) for field, word in zip(_FIELDS, words, strict=True)]
    window = _join_days(words, texts, remarks)
    if zoned:
        _keep_kind(words, texts)
    pattern = " ".join(texts)
    try:
        CronPattern.parse(pattern)
    except PatternError as error:
        what = error.message.partition(": ")[2]
        raise TimesFault(f"{' '.join(words)}: {what}: cron would never run it either") from None
    return Times(pattern, window, tuple(remarks))


def _field(field: Field, word: str, seed: str, remarks: list[str]) -> str:
    """One field in the dialect, which matches what it matches in cron."""
    terms = [_term(field, term, f"{seed} {number}", remarks) for number, term in enumerate(word.split(","))]
    text = ",".join(terms)
    try:
        field_mask(field, text)
    except FieldFault as fault:
        raise TimesFault(f"{field.name} {shown(word)}: {fault.what}") from None
    return text


def _term(field: Field, term: str, seed: str, remarks: list[str]) -> str:
    match = _TERM.fullmatch(term)
    if match is None or not term or (match[1] == "*" and match[2]):
        raise TimesFault(f"{field.name} {shown(term)} is not what cron takes")
    first, sign, last, step_text = match.groups()
    step = int(step_text or 1)
    if step == 0:
        raise TimesFault(f"{field.name} {shown(term)}: cron refuses a step of 0")
    if first == "*":
        return _stepped(field, "*", field.minimum, step)
    if sign == "~":
        return _picked(field, term, seed, remarks)
    low = _number(field, first, term)
    if not sign:
        if step_text is not None:
            remedy = f"write {first}-{field.top}/{step_text}, if that is meant"
            raise TimesFault(f"{field.name} {shown(term)}: cron has no step without a range or `*` before it", remedy)
        return str(low)
    high = _number(field, last, term)
    if field is WEEKDAY and high == 0 < low and step_text is None:
        high = 7  # `sat-sun`, as cronie reads it
    if high < low:
        meant = repair_field(field, f"{low}-{high}" + (f"/{step}" if step > 1 else ""))
        remedy = f"write {meant}, if that is meant" if meant else ""
        raise TimesFault(f"{field.name} {shown(term)} runs backwards: cron would never run it", remedy)
    return _stepped(field, f"{low}-{high}", low, step)


def _stepped(field: Field, values: str, first: int, step: int) -> str:
    if step == 1:
        return values
    return f"{values}/{step}" if step <= field.maximum else str(first)


def _picked(field: Field, term: str, seed: str, remarks: list[str]) -> str:
    first, _, last = term.partition("~")
    low = _number(field, first, term) if first else field.minimum
    high = _number(field, last, term) if last else field.maximum
    if high < low:
        raise TimesFault(f"{field.name} {shown(term)} runs backwards: cron refuses it")
    digest = blake2b(seed.encode(), digest_size=8).digest()
    picked = low + int.from_bytes(digest, "big") % (high - low + 1)
    remarks.append(f"{field.name} {shown(term)}: cron picks a value whenever it reads the file; {picked} was picked")
    return str(picked)


def _number(field: Field, word: str, term: str) -> int:
    if word.isdecimal() and len(word) <= 4:
        value = int(word)
        if field.minimum <= value <= field.maximum:
            return value
        raise TimesFault(f"{field.name} {shown(term)}: {word} is outside {field.minimum} to {field.maximum}")
    named = value_of_name(field, word) if len(word) == 3 else None
    if named is None:
        named_whole = value_of_name(field, word) is not None
        remedy = f"write {word[:3]}" if named_whole else ""
        raise TimesFault(f"{field.name} {shown(term)}: {shown(word)} is neither a number nor a name of cron's", remedy)
    return named


def _join_days(words: list[str], texts: list[str], remarks: list[str]) -> str:
    """Cron's rule for days, by the texts of the day fields and, where both must match, a window over the weekdays."""
    if not (words[2].startswith("*") or words[4].startswith("*")):
        return ""  # either suffices, and neither is exactly `*`: as here
    days, weekdays = field_mask(DAY, texts[2]), field_mask(WEEKDAY, texts[4])
    if weekdays == _EVERY_WEEKDAY:
        texts[4] = "*"
    elif days == DAY.full:
        texts[2] = "*"
    else:
        texts[4] = "*"
        names = [_WINDOW_DAYS[day % 7] for day in range(1, 8) if weekdays >> day % 7 & 1]
        window = canonical_window(f"{','.join(names)} 00:00-24:00")
        which = "first" if words[2].startswith("*") else "second"
        remarks.append(
            f"both day fields restrict, and as the {which} begins with `*`, cron wants both to match: "
            f'the weekdays became window="{window}"'
        )
        return window
    return ""


def _keep_kind(words: list[str], texts: list[str]) -> None:
    """Make the job fixed-time exactly if cron takes it for one."""
    follows_hours = words[0].startswith("*") or words[1].startswith("*")
    signs = [any(sign in text for sign in "*/") for text in texts[:2]]
    if follows_hours and not any(signs):
        first, *others = MINUTE.values(field_mask(MINUTE, texts[0]))
        texts[0] = ",".join([f"{first}-{first}/1", *map(str, others)])
    elif not follows_hours and any(signs):
        for index, field in enumerate((MINUTE, HOUR)):
            if signs[index]:
                texts[index] = _plain(field.values(field_mask(field, texts[index])))


def _plain(values: list[int]) -> str:
    """Values as a list, or a range where they are consecutive."""
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{values[0]}-{values[-1]}"
    return ",".join(map(str, values))
