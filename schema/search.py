"""The search for ticks, on integers: bit masks of fields against months counted from January 1970.

Nothing here steps through seconds, minutes or days. A month's matching days are one mask, put together from the
day-of-month and the day-of-week field. So every search costs a few shifts, and at most one round for each month of the
years that a pattern names. `clock` is seconds since 1970 on a clock without jumps; in UTC that is the instant.
"""

from bisect import bisect_right
from typing import Final, NamedTuple

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2099
SECONDS_PER_DAY: Final = 86_400

_MONTH_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_THURSDAY: Final = 4  # 1 January 1970, with Sunday as 0
# A mask of weekdays times this is the same mask again for each of six weeks: enough for any month from any weekday.
_SIX_WEEKS: Final = sum(1 << 7 * week for week in range(6))


def _month_starts() -> tuple[int, ...]:
    """Days since 1970 of the first of every month up to and including January 2100."""
    starts = [0]
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        for month, length in enumerate(_MONTH_LENGTHS):
            leap = month == 1 and year % 4 == 0  # 2000 is one; 1900 and 2100 lie outside
            starts.append(starts[-1] + length + leap)
    return tuple(starts)


_STARTS: Final = _month_starts()
_MONTHS: Final = len(_STARTS) - 1
CLOCK_END: Final = _STARTS[-1] * SECONDS_PER_DAY  # 2100-01-01T00:00:00, the first second outside


class FieldSets(NamedTuple):
    """What matches, as bit masks. Bit 0 is second, minute, hour 0, the 1st, January, Sunday, 1970.

    A day matches when `days` or `weekdays` has it: the parser leaves out the one that doesn't restrict.
    """

    seconds: int
    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    years: int


def next_tick(sets: FieldSets, clock: int) -> int | None:
    """The first match after `clock`; None when there is none up to the end of 2099."""
    day, time = divmod(max(clock + 1, 0), SECONDS_PER_DAY)
    found = _next_day(sets, day)
    if found == day:
        later = _next_time(sets, time)
        if later is not None:
            return day * SECONDS_PER_DAY + later
        found = _next_day(sets, day + 1)
    if found is None:
        return None
    return found * SECONDS_PER_DAY + _low(sets.hours) * 3600 + _low(sets.minutes) * 60 + _low(sets.seconds)


def last_tick(sets: FieldSets, clock: int) -> int | None:
    """The last match at or before `clock`; None when there is none since 1970."""
    if clock < 0:
        return None
    day, time = divmod(min(clock, CLOCK_END - 1), SECONDS_PER_DAY)
    found = _last_day(sets, day)
    if found == day:
        earlier = _last_time(sets, time)
        if earlier is not None:
            return day * SECONDS_PER_DAY + earlier
        found = _last_day(sets, day - 1) if day > 0 else None
    if found is None:
        return None
    return found * SECONDS_PER_DAY + _high(sets.hours) * 3600 + _high(sets.minutes) * 60 + _high(sets.seconds)


def count_ticks(sets: FieldSets, after: int, until: int) -> int:
    """How many matches lie in (after, until]. Costs a few rounds for each month between them, however many ticks."""
    after = min(max(after, -1), CLOCK_END - 1)
    until = min(max(until, -1), CLOCK_END - 1)
    if until <= after:
        return 0
    first_day, first_time = divmod(after + 1, SECONDS_PER_DAY)
    last_day, last_time = divmod(until + 1, SECONDS_PER_DAY)
    per_day = sets.seconds.bit_count() * sets.minutes.bit_count() * sets.hours.bit_count()
    count = _count_days(sets, first_day, last_day) * per_day
    if first_time and _is_day(sets, first_day):
        count -= _count_times(sets, first_time)
    if last_time and _is_day(sets, last_day):
        count += _count_times(sets, last_time)
    return count


def _low(mask: int) -> int:
    """The lowest set bit's number. The mask must not be 0."""
    return (mask & -mask).bit_length() - 1


def _high(mask: int) -> int:
    """The highest set bit's number. The mask must not be 0."""
    return mask.bit_length() - 1


def _days_of(sets: FieldSets, month: int) -> int:
    """The matching days of a month (counted from January 1970) by their day alone. Bit 0 is the first."""
    start = _STARTS[month]
    days = sets.days
    if sets.weekdays:
        days |= sets.weekdays * _SIX_WEEKS >> (start + _THURSDAY) % 7
    return days & (1 << _STARTS[month + 1] - start) - 1


def _has_month(sets: FieldSets, month: int) -> bool:
    year, month_of_year = divmod(month, 12)
    return bool(sets.years >> year & sets.months >> month_of_year & 1)


def _is_day(sets: FieldSets, day: int) -> bool:
    month = bisect_right(_STARTS, day) - 1
    return _has_month(sets, month) and bool(_days_of(sets, month) >> day - _STARTS[month] & 1)


def _next_day(sets: FieldSets, day: int) -> int | None:
    """The first matching day at or after `day`."""
    month = bisect_right(_STARTS, day) - 1
    if _has_month(sets, month):
        rest = _days_of(sets, month) >> day - _STARTS[month]
        if rest:
            return day + _low(rest)
    month += 1
    while month < _MONTHS:
        year, month_of_year = divmod(month, 12)
        years = sets.years >> year
        months = sets.months >> month_of_year
        if not years:
            return None
        if not years & 1:
            month = (year + _low(years)) * 12
        elif not months:
            month = (year + 1) * 12
        else:
            month += _low(months)
            days = _days_of(sets, month)
            if days:
                return _STARTS[month] + _low(days)
            month += 1
    return None


def _last_day(sets: FieldSets, day: int) -> int | None:
    """The last matching day at or before `day`."""
    month = bisect_right(_STARTS, day) - 1
    if _has_month(sets, month):
        rest = _days_of(sets, month) & (2 << day - _STARTS[month]) - 1
        if rest:
            return _STARTS[month] + _high(rest)
    month -= 1
    while month >= 0:
        year, month_of_year = divmod(month, 12)
        years = sets.years & (2 << year) - 1
        months = sets.months & (2 << month_of_year) - 1
        if not years:
            return None
        if not years >> year:
            month = _high(years) * 12 + 11
        elif not months:
            month = year * 12 - 1
        else:
            month = year * 12 + _high(months)
            days = _days_of(sets, month)
            if days:
                return _STARTS[month] + _high(days)
            month -= 1
    return None


def _count_days(sets: FieldSets, first: int, end: int) -> int:
    """How many days match in [first, end)."""
    count = 0
    first_month = bisect_right(_STARTS, first) - 1
    end_month = bisect_right(_STARTS, end) - 1
    for month in range(first_month, min(end_month, _MONTHS - 1) + 1):
        if _has_month(sets, month):
            days = _days_of(sets, month)
            if month == end_month:
                days &= (1 << end - _STARTS[month]) - 1
            if month == first_month:
                days >>= first - _STARTS[month]
            count += days.bit_count()
    return count


def _next_time(sets: FieldSets, time: int) -> int | None:
    """The first matching second of a day at or after `time`; None when the day has no more."""
    hour, rest = divmod(time, 3600)
    minute, second = divmod(rest, 60)
    if sets.hours >> hour & 1:
        if sets.minutes >> minute & 1:
            seconds = sets.seconds >> second
            if seconds:
                return time + _low(seconds)
        minutes = sets.minutes >> minute + 1
        if minutes:
            return hour * 3600 + (minute + 1 + _low(minutes)) * 60 + _low(sets.seconds)
    hours = sets.hours >> hour + 1
    if not hours:
        return None
    return (hour + 1 + _low(hours)) * 3600 + _low(sets.minutes) * 60 + _low(sets.seconds)


def _last_time(sets: FieldSets, time: int) -> int | None:
    """The last matching second of a day at or before `time`; None when the day has none so early."""
    hour, rest = divmod(time, 3600)
    minute, second = divmod(rest, 60)
    if sets.hours >> hour & 1:
        if sets.minutes >> minute & 1:
            seconds = sets.seconds & (2 << second) - 1
            if seconds:
                return time - second + _high(seconds)
        minutes = sets.minutes & (1 << minute) - 1
        if minutes:
            return hour * 3600 + _high(minutes) * 60 + _high(sets.seconds)
    hours = sets.hours & (1 << hour) - 1
    if not hours:
        return None
    return _high(hours) * 3600 + _high(sets.minutes) * 60 + _high(sets.seconds)


def _count_times(sets: FieldSets, time: int) -> int:
    """How many seconds of a day match before `time`."""
    hour, rest = divmod(time, 3600)
    minute, second = divmod(rest, 60)
    per_minute = sets.seconds.bit_count()
    count = (sets.hours & (1 << hour) - 1).bit_count() * sets.minutes.bit_count() * per_minute
    if sets.hours >> hour & 1:
        count += (sets.minutes & (1 << minute) - 1).bit_count() * per_minute
        if sets.minutes >> minute & 1:
            count += (sets.seconds & (1 << second) - 1).bit_count()
    return count
