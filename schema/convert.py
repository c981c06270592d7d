"""From a pattern to the interval that is equal to it, and back; or why there is none.

An interval counts from its anchor, the instant at which its job is created, or the one that `anchor=` names. A pattern
is equal to `every N` when its ticks, in UTC, are exactly anchor + n x N for an anchor that the clock shows. So its
ticks have to be evenly spaced for ever. This holds if the times of a day are evenly spaced, into the next day, and no
day is left out. It also holds for one time on evenly spaced days: in a calendar, only every day and every week are.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from cronring.schema.duration import format_duration
from cronring.schema.fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAYS, YEAR
from cronring.schema.pattern import CronPattern
from cronring.schema.search import FieldSets

_DAY: Final = 86_400
_WEEK: Final = 7 * _DAY
_UNITS: Final = (("s", 1, 60), ("m", 60, 3600), ("h", 3600, _DAY))
# Every interval that has a pattern, in seconds.
_EVEN: Final = (
    *(size * amount for _, size, span in _UNITS for amount in range(1, span // size) if span // size % amount == 0),
    _DAY,
    _WEEK,
)
_EVERY_WEEKDAY: Final = 0b1111111
_FIRST_SUNDAY: Final = 3 * _DAY  # 4 January 1970


@dataclass(frozen=True, slots=True)
class Conversion:
    """`equal` is what says the same, empty where nothing does; `sense` in which sense, or why nothing does."""

    equal: str
    anchor: str  # of an equal interval: an instant that it has to count from, as ISO 8601 in UTC
    sense: str
    nearest: tuple[str, ...] = ()  # what is close, where nothing is equal


def interval_of(pattern: CronPattern) -> Conversion:
    """The interval with a pattern's ticks in UTC."""
    sets = pattern.sets
    gap = _even_gap(sets)
    if isinstance(gap, str):
        return Conversion("", "", gap, _nearest_intervals(sets))
    seconds, first = gap
    text = f"every {format_duration(seconds * 1000)}"
    anchor = _instant(first)
    sense = (
        f"the same ticks in UTC if it counts from {_phase(seconds, first)}; without an anchor it counts from its "
        "job's creation. Where clocks are changed, an interval keeps its distance"
    )
    return Conversion(text, anchor, sense)


def pattern_of(seconds: int) -> Conversion:
    """The pattern with the ticks of an interval that counts from a midnight in UTC (weeks: from a Sunday's).

    Raises ValueError unless `seconds` is above zero.
    """
    if seconds <= 0:
        raise ValueError(f"{seconds} seconds are no interval")
    text = _even_pattern(seconds)
    interval = f"every {format_duration(seconds * 1000)}"
    if text:
        start = _phase(seconds, _FIRST_SUNDAY if seconds == _WEEK else 0)
        sense = (
            f"the same ticks in UTC as {interval} if that counts from {start}; from another anchor, it is out of phase"
        )
        return Conversion(text, "", sense)
    return Conversion("", "", _why_no_pattern(seconds), _nearest_patterns(seconds))


def _even_gap(sets: FieldSets) -> tuple[int, int] | str:
    """Seconds between ticks, and the first tick of an even pattern; or why its ticks are uneven."""
    if sets.years != YEAR.full:
        return "an interval goes on for ever, and the pattern is bound to years (end_at= ends an interval)"
    times = _times(sets)
    if sets.months != MONTH.full:
        return "it leaves out months, and an interval leaves out nothing"
    every_day = sets.days == DAY.full or sets.weekdays == _EVERY_WEEKDAY
    if not every_day:
        return _weekly_gap(sets, times)
    if len(times) == 1:
        return _DAY, times[0]
    gaps = [after - before for before, after in pairwise([*times, times[0] + _DAY])]
    if len(set(gaps)) > 1:
        return _uneven(sets, times, gaps)
    return gaps[0], times[0]


def _weekly_gap(sets: FieldSets, times: list[int]) -> tuple[int, int] | str:
    if sets.days:
        what = "the days of a month are" if not sets.weekdays else "a month's days and weekdays together are"
        return f"months have 28 to 31 days, so {what} at no even distance"
    if sets.weekdays.bit_count() > 1:
        names = [WEEKDAYS[number].capitalize() for number in range(7) if sets.weekdays >> number & 1]
        return f"{' and '.join(names) if len(names) == 2 else 'its weekdays'} are at no even distance from week to week"
    if len(times) > 1:
        return "it ticks several times on one day of the week, and then not for days"
    weekday = sets.weekdays.bit_length() - 1
    return _WEEK, (_FIRST_SUNDAY + weekday * _DAY) % _WEEK + times[0]


def _times(sets: FieldSets) -> list[int]:
    """The seconds of a day."""
    return [
        hour * 3600 + minute * 60 + second
        for hour in HOUR.values(sets.hours)
        for minute in MINUTE.values(sets.minutes)
        for second in SECOND.values(sets.seconds)
    ]


def _uneven(sets: FieldSets, times: list[int], gaps: list[int]) -> str:
    """The most common distance, and the first that is another."""
    common = max(set(gaps), key=lambda gap: (gaps.count(gap), gap))
    index = next(number for number, gap in enumerate(gaps) if gap != common)
    start, end = times[index], times[(index + 1) % len(times)]
    seconds = sets.seconds != 1
    return (
        f"its ticks are uneven: mostly {format_duration(common * 1000)} apart, but "
        f"{format_duration(gaps[index] * 1000)} from {_clock(start, seconds)} to {_clock(end, seconds)}"
    )


def _nearest_intervals(sets: FieldSets) -> tuple[str, ...]:
    """Intervals by the most common distances within a day, if the pattern ticks on every day."""
    if sets.years != YEAR.full or sets.months != MONTH.full or (sets.days and sets.days != DAY.full):
        return ()
    times = _times(sets)
    if len(times) < 3 or (sets.weekdays and sets.weekdays != _EVERY_WEEKDAY):
        return ()
    gaps = [after - before for before, after in pairwise(times)]
    common = max(set(gaps), key=lambda gap: (gaps.count(gap), gap))
    return (f"every {format_duration(common * 1000)}",)


def _even_pattern(seconds: int) -> str:
    """Where the interval divides the minute, the hour or the day, or is a day or a week."""
    if seconds == _WEEK:
        return "0 0 * * 0"
    if seconds == _DAY:
        return "0 0 * * *"
    for unit, size, span in _UNITS:
        amount, rest = divmod(seconds, size)
        if rest == 0 and 0 < seconds < span and span % seconds == 0:
            return f"{amount}{unit}"
    return (
        ""  # of times at one distance, only these are the same minutes in each hour and the same seconds in each minute
    )


def _why_no_pattern(seconds: int) -> str:
    amount = format_duration(seconds * 1000)
    if seconds > _DAY:
        rest = "" if seconds % _DAY else ", and a calendar has nothing even between a day and a week, or above"
        return f"{amount} is longer than a day{rest}: a pattern's days follow the calendar"
    if _DAY % seconds:
        return f"{amount} doesn't divide the day: its times differ from day to day, and a pattern's are the same"
    if 3600 % seconds == 0:
        return f"{amount} divides the hour, but its seconds differ from minute to minute, and a pattern's are the same"
    return f"{amount} divides the day, but its minutes differ from hour to hour, and a pattern's are the same"


def _nearest_patterns(seconds: int) -> tuple[str, ...]:
    """The closest intervals below and above that have a pattern."""
    if seconds > _WEEK:
        return ()
    below = max((each for each in _EVEN if each < seconds), default=None)
    above = min((each for each in _EVEN if each > seconds), default=None)
    return tuple(_even_pattern(each) for each in (below, above) if each is not None)


def _clock(time: int, seconds: bool) -> str:
    text = f"{time // 3600:02}:{time % 3600 // 60:02}"
    return f"{text}:{time % 60:02}" if seconds else text


def _phase(seconds: int, first: int) -> str:
    """Instants that an interval may count from, to tick at `first` as well."""
    if seconds <= _DAY:
        return f"{_clock(first, bool(first % 60))} UTC of any day"
    weekday = WEEKDAYS[(first // _DAY + 4) % 7].capitalize()  # 1 January 1970 was a Thursday
    return f"{_clock(first % _DAY, bool(first % 60))} UTC of any {weekday}"


def _instant(second: int) -> str:
    """Of the first days of 1970."""
    return f"1970-01-{second // _DAY + 1:02}T{_clock(second % _DAY, True)}Z"
