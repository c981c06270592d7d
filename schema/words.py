"""A pattern in plain English: `at 06:00 on day 1 of every month`.

The words are made from what matches, not from how it was written, and leave nothing out: two patterns of the same
words have the same ticks.

cron-descriptor 2.2.1 (maintained, for Python 3.10 to 3.14) was tried in its place, and doesn't fit the dialect:

- `*/25` is its "every 25 minutes", though it is 0, 25 and 50.
- `0 0 1 * 0-6` is "on day 1 of the month, Sunday through Saturday", though either field suffices and it is every day.
- `0 0 * * 0-6/2` is "every 2 days of the week".
- Steps in years, `25m` and `Mon` are errors to it, and `61 * * * *` and `0 0 30 2 *` are none.
"""

from collections.abc import Callable, Sequence
from typing import Final

from cronring.schema.fields import DAY, HOUR, MINUTE, MONTH, MONTHS, SECOND, WEEKDAYS, YEAR, Field
from cronring.schema.search import FieldSets

_CLOCK_TIMES_SHOWN: Final = 6  # more are said as minutes of hours
_RUN: Final = 3  # so many consecutive values are said as a range
_PROGRESSION: Final = 5  # so many values at one distance are said as a step
_EVERY_WEEKDAY: Final = 0b1111111


# docs/decisions/0031: cron-descriptor was tried, and is wrong for this dialect
def pattern_words(sets: FieldSets) -> str:
    """When it is due, to stand after "runs"."""
    times = _clock_times(sets)
    when = f"at {with_and(times)}" if times else _rhythm(sets)
    days = _day_words(sets) or ("every day" if times else "")
    parts = [when, days]
    if sets.months != MONTH.full and (_every_day(sets) or not sets.days or sets.weekdays):
        parts.append(f"in {_month_words(sets)}")
    if sets.years != YEAR.full:
        parts.append(f"in {_listed('year', YEAR.values(sets.years), str, named=False)}")
    return " ".join(part for part in parts if part)


def _clock_times(sets: FieldSets) -> list[str]:
    """The times of the day, if they are few."""
    count = sets.hours.bit_count() * sets.minutes.bit_count() * sets.seconds.bit_count()
    if count > _CLOCK_TIMES_SHOWN:
        return []
    return [
        f"{hour:02}:{minute:02}" if sets.seconds == 1 else f"{hour:02}:{minute:02}:{second:02}"
        for hour in HOUR.values(sets.hours)
        for minute in MINUTE.values(sets.minutes)
        for second in SECOND.values(sets.seconds)
    ]


def _rhythm(sets: FieldSets) -> str:
    """The times of the day, from the smallest unit that isn't just 0 to the largest that restricts."""
    units = [(SECOND, sets.seconds), (MINUTE, sets.minutes), (HOUR, sets.hours)]
    while len(units) > 1 and units[0][1] == 1 and (len(units) > 2 or _frequency(*units[1])):
        units.pop(0)
    field, mask = units[0]
    frequency = _frequency(field, mask)
    parts = [frequency or f"at {_listed(field.name, field.values(mask), str)}"]
    goes_on = bool(frequency)  # "every 5 minutes" says of every hour by itself; "at minute 5" does not
    for field, mask in units[1:]:
        if mask != field.full:
            parts.append(_listed(field.name, field.values(mask), str))
            goes_on = False
        elif not goes_on:
            parts.append(f"every {field.name}")
            goes_on = True
    return " of ".join(parts)


def _frequency(field: Field, mask: int) -> str:
    """`every 5 minutes`, if the values go on evenly into the next hour; else nothing."""
    values = field.values(mask)
    size = field.top + 1
    if size % len(values) or values != list(range(0, size, size // len(values))):
        return ""
    step = size // len(values)
    if step == 1:
        return f"every {field.name}"
    return f"every {step} {field.name}s" if step < size else ""


def _every_day(sets: FieldSets) -> bool:
    return sets.days == DAY.full or sets.weekdays == _EVERY_WEEKDAY


def _day_words(sets: FieldSets) -> str:
    """The days, of every month unless the months are said apart; nothing if every day matches."""
    if _every_day(sets):
        return ""
    parts = []
    if sets.days:
        days = f"on {_listed('day', DAY.values(sets.days), str)}"
        if sets.months == MONTH.full:
            days += " of every month"
        elif not sets.weekdays:
            days += f" of {_month_words(sets)}"
        parts.append(days)
    if sets.weekdays:
        parts.append(_weekday_words(sets.weekdays))
    return " or ".join(parts)


def _weekday_words(mask: int) -> str:
    # From Monday to Sunday, so that 5-7 reads as it was meant.
    numbers = [number for number in range(1, 8) if mask >> number % 7 & 1]
    if len(numbers) >= _RUN and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"from {_weekday(numbers[0])} to {_weekday(numbers[-1])}"
    return f"on {with_and([_weekday(number) for number in numbers])}"


def _weekday(number: int) -> str:
    return WEEKDAYS[number % 7].capitalize()


def _month_words(sets: FieldSets) -> str:
    values = MONTH.values(sets.months)
    return with_and(_ranges(values, lambda number: MONTHS[number - 1].capitalize()))


def _listed(unit: str, values: Sequence[int], show: Callable[[int], str], *, named: bool = True) -> str:
    """`second 30`, `seconds 0, 25 and 50` (the unit only if `named`), `every 7th second from 3 to 59`."""
    step = values[1] - values[0] if len(values) > 1 else 0
    if step > 1 and len(values) >= _PROGRESSION and list(values) == list(range(values[0], values[-1] + 1, step)):
        return f"every {_ordinal(step)} {unit} from {show(values[0])} to {show(values[-1])}"
    text = with_and(_ranges(values, show))
    if not named:
        return text
    return f"{unit} {text}" if len(values) == 1 else f"{unit}s {text}"


def _ranges(values: Sequence[int], show: Callable[[int], str]) -> list[str]:
    """Consecutive values as ranges, the rest one by one."""
    texts: list[str] = []
    start = 0
    for index in range(1, len(values) + 1):
        if index < len(values) and values[index] == values[index - 1] + 1:
            continue
        run = values[start:index]
        texts.extend([f"{show(run[0])} to {show(run[-1])}"] if len(run) >= _RUN else map(show, run))
        start = index
    return texts


def with_and(texts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
