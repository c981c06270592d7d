"""Lint of one pattern by itself: what its fields come to, and probably weren't meant to."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from cronring.schema.duration import format_duration
from cronring.schema.fields import (
    DAY,
    FIELDS,
    HOUR,
    MINUTE,
    MONTH,
    MONTHS,
    SECOND,
    WEEKDAY,
    WEEKDAYS,
    Field,
    field_mask,
)
from cronring.schema.lint_finding import Fault
from cronring.schema.pattern import CronPattern
from cronring.schema.search import FieldSets, next_tick
from cronring.schema.words import with_and

_SECONDS: Final = {SECOND: 1, MINUTE: 60, HOUR: 3600, DAY: 86_400, WEEKDAY: 86_400}
_LONGEST: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY: Final = 2
_DAY_STEPS: Final = 64  # days looked at for the shortest distance between two
_CLOSE: Final = 3  # values listed of a step


def pattern_faults(pattern: CronPattern) -> Iterator[Fault]:
    yield from _skipped_months(pattern.sets)
    yield from _uneven_steps(pattern)
    yield from _either_day(pattern)
    yield from _every_minute(pattern)


def shortest_gap(sets: FieldSets) -> int:
    """Seconds between the two ticks that are closest, by a clock that isn't changed."""
    hours, minutes, seconds = (
        field.values(mask) for field, mask in ((HOUR, sets.hours), (MINUTE, sets.minutes), (SECOND, sets.seconds))
    )
    times = [hour * 60 + minute for hour in hours for minute in minutes]
    next_day = _day_gap(sets) * 1440 - times[-1] + times[0]
    between_minutes = min([next_day, *(after - before for before, after in pairwise(times))]) * 60
    return min([between_minutes - seconds[-1] + seconds[0], *(after - before for before, after in pairwise(seconds))])


def _day_gap(sets: FieldSets) -> int:
    """Days between the two matching ones that are closest."""
    midnights = sets._replace(seconds=1, minutes=1, hours=1)
    day, least = next_tick(midnights, -1), 1_000_000
    for _ in range(_DAY_STEPS):
        following = None if day is None else next_tick(midnights, day)
        if day is None or following is None:
            break
        least = min(least, (following - day) // 86_400)
        day = following
        if least == 1:
            break
    return least


def _skipped_months(sets: FieldSets) -> Iterator[Fault]:
    """A day that its months don't all have."""
    if sets.weekdays or not sets.days:
        return
    earliest = (sets.days & -sets.days).bit_length()
    months = MONTH.values(sets.months)
    without = [month for month in months if _LONGEST[month] < earliest]
    if earliest == 29 and _FEBRUARY in months:
        only = months == [_FEBRUARY]
        message = "it ticks in leap years only" if only else "it skips February but in leap years"
        remedy = "write day 28, or day 1 of March, to tick each year" if only else "write day 28 to tick each month"
        yield Fault("skips-months", f"on day 29 {message}", remedy)
    elif without:
        names = with_and([MONTHS[month - 1].capitalize() for month in without])
        message = f"day {earliest} is missing in {names}, so it skips {len(without)} of its {len(months)} months"
        yield Fault("skips-months", message, "write day 28, or day 1 for the end of the month before")


def _uneven_steps(pattern: CronPattern) -> Iterator[Fault]:
    sets = pattern.sets
    goes_on = {
        SECOND: sets.minutes & sets.minutes >> 1,
        MINUTE: sets.hours & sets.hours >> 1,
        HOUR: _day_gap(sets) == 1,
    }
    for field, text in zip(FIELDS, pattern.fields, strict=True):
        star, _, step_text = text.partition("/")
        if (
            star != "*"
            or not step_text.isdecimal()
            or int(step_text) == 1
            or field not in {*goes_on, DAY, MONTH, WEEKDAY}
        ):
            continue
        step = int(step_text)
        values = field.values(field_mask(field, text))
        if field is DAY:
            yield _uneven_days(step, values)
        elif (field.top - field.minimum + 1) % step and goes_on.get(field, True):
            yield _uneven(field, step, values)


def _uneven(field: Field, step: int, values: list[int]) -> Fault:
    size = field.top - field.minimum + 1
    last = size - values[-1] + values[0]
    even = [each for each in range(2, size) if size % each == 0]
    below, above = [each for each in even if each < step], [each for each in even if each > step]
    close = [*below[-1:], *above[:1]]
    listed = ", ".join(str(value) for value in values[:_CLOSE])
    listed = f"{listed} ... {values[-1]}" if len(values) > _CLOSE + 1 else ", ".join(map(str, values))
    message = f"*/{step} in the {field.name} field is {listed}: then {last} to the next, and not {step}"
    remedies = [f"a step that divides {size}, like {with_and([f'*/{each}' for each in close])}"] if close else []
    if field in _SECONDS:
        remedies.append(f'an even interval: @every("{format_duration(step * _SECONDS[field] * 1000)}")')
    return Fault("uneven-step", message, f"write {', or '.join(remedies)}")


def _uneven_days(step: int, values: list[int]) -> Fault:
    next_month = {31 - values[-1] + 1, 30 - values[-1] + 1, 28 - values[-1] + 1}
    shortest = min(gap for gap in next_month if gap > 0)
    message = (
        f"*/{step} in the day-of-month field is day {values[0]}, {values[1]}, ... {values[-1]}, and starts again with "
        f"each month: the last and the first are {shortest} day{'s' if shortest > 1 else ''} apart, or more"
    )
    return Fault("uneven-step", message, f'write an even interval: @every("{step}d")')


def _either_day(pattern: CronPattern) -> Iterator[Fault]:
    second, minute, hour, days, month, weekdays, year = pattern.fields
    if days == "*" or weekdays == "*":
        return
    sets = pattern.sets
    head = [minute, hour] if second == "0" else [second, minute, hour]
    tail = [] if year == "*" else [year]
    by_day = " ".join([*head, days, month, "*", *tail])
    names = ",".join(WEEKDAYS[number % 7][:3].capitalize() for number in range(1, 8) if sets.weekdays >> number % 7 & 1)
    every = sets.weekdays == WEEKDAY.full or sets.days == DAY.full
    what = "which is every day" if every else "and not only where both do"
    yield Fault(
        "either-day",
        f"both day fields restrict, so a day matches where either does, {what}",
        f'where both should: "{by_day}" with window="{names} 00:00-24:00"; else leave one of them `*`',
    )


def _every_minute(pattern: CronPattern) -> Iterator[Fault]:
    second, minute, hour, *days = pattern.fields
    sets = pattern.sets
    if minute == "*" and second.isdecimal() and sets.hours.bit_count() == 1:
        at = HOUR.values(sets.hours)[0]
        once = " ".join(["0", hour, *days[:3]]) if second == "0" and days[3] == "*" else "0 in the minute field"
        yield Fault(
            "every-minute",
            f"it ticks 60 times on its days, each minute from {at:02}:00 to {at:02}:59",
            f"for once, write {once}",
        )
    elif second == "*" and sets.minutes.bit_count() == 1:
        times = 60 * sets.hours.bit_count()
        message = f"it ticks in each second of its minute{'s' if times > 60 else ''}, {times} times on its days"
        yield Fault("every-minute", message, "for once a minute, write 0 in the second field, or leave it out")
