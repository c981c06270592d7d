from itertools import pairwise

import pytest
from hypothesis import given, settings

from cronring.schema.convert import interval_of, pattern_of
from cronring.schema.duration import parse_duration
from cronring.schema.instant import parse_instant
from cronring.schema.pattern import CronPattern
from tests.drawing import examples
from tests.unit.schema.strategies import PATTERNS

DAY = 86_400
START = 1_767_225_600  # 2026-01-01, a Thursday

EQUAL = [
    ("0 */6 * * *", "every 6h", "1970-01-01T00:00:00Z"),
    ("30 */6 * * *", "every 6h", "1970-01-01T00:30:00Z"),
    ("12h", "every 12h", "1970-01-01T00:00:00Z"),
    ("* * * * *", "every 1m", "1970-01-01T00:00:00Z"),
    ("5s", "every 5s", "1970-01-01T00:00:00Z"),
    ("5 4-20/8 * * *", "every 8h", "1970-01-01T04:05:00Z"),
    ("0 6 * * *", "every 1d", "1970-01-01T06:00:00Z"),
    ("0 6 */1 */1 0-6", "every 1d", "1970-01-01T06:00:00Z"),
    ("Mon", "every 7d", "1970-01-05T00:00:00Z"),
    ("30 10 0 * * 4", "every 7d", "1970-01-01T00:10:30Z"),
]


@pytest.mark.parametrize(("pattern", "interval", "anchor"), EQUAL)
def test_equal_intervals(pattern: str, interval: str, anchor: str):
    found = interval_of(CronPattern.parse(pattern))
    assert (found.equal, found.anchor) == (interval, anchor)


UNEQUAL = [
    ("*/25 * * * *", "mostly 25m apart, but 10m from 00:50 to 01:00", ("every 25m",)),
    ("7h", "mostly 7h apart, but 3h from 21:00 to 00:00", ("every 7h",)),
    ("0 9-17 * * *", "mostly 1h apart, but 16h from 17:00 to 09:00", ("every 1h",)),
    ("0 0 1 * *", "months have 28 to 31 days", ()),
    ("0 0 */2 * *", "months have 28 to 31 days", ()),
    ("0 0 1 * 1", "a month's days and weekdays together", ()),
    ("0 0 * * 1,4", "Monday and Thursday", ()),
    ("0 9 * * 1-5", "no even distance from week to week", ()),
    ("30 */2 * * 3", "several times on one day", ()),
    ("0 0 * 1 *", "leaves out months", ()),
    ("0 0 * * * 2030", "bound to years", ()),
]


@pytest.mark.parametrize(("pattern", "why", "nearest"), UNEQUAL)
def test_why_there_is_no_equal_interval(pattern: str, why: str, nearest: tuple[str, ...]):
    found = interval_of(CronPattern.parse(pattern))
    assert (found.equal, found.nearest) == ("", nearest)
    assert why in found.sense


@settings(max_examples=examples(300))
@given(PATTERNS)
def test_an_interval_is_equal_exactly_when_ticks_are_even(text: str):
    pattern = CronPattern.parse(text)
    found = interval_of(pattern)
    # A search for a year's ticks that stops at the first gap that is another.
    ticks: list[int] = []
    tick: int | None = START
    while len(ticks) < 1_500 and tick is not None and tick < START + 3 * 365 * DAY:
        tick = pattern.next_second(tick)
        if tick is not None:
            ticks.append(tick)
    gaps = {after - before for before, after in pairwise(ticks)}
    if found.equal:
        every = parse_duration(found.equal.removeprefix("every ")) // 1000
        anchor = parse_instant(found.anchor) // 1_000_000
        assert gaps == {every}
        assert (ticks[0] - anchor) % every == 0
        assert pattern.next_second(anchor - 1) == anchor
    elif len(gaps) == 1 and ticks[-1] - ticks[0] > 2 * 365 * DAY:  # long enough for what is left out to show
        assert "bound to years" in found.sense


def test_patterns_of_every_interval_of_a_day():
    """A pattern's times are every combination of its hours, minutes and seconds; nothing else has one."""
    divisors = [seconds for seconds in range(1, DAY + 1) if DAY % seconds == 0]
    for seconds in sorted({*divisors, *range(1, DAY, 997)}):
        found = pattern_of(seconds)
        times = range(0, DAY, seconds)
        hours, minutes = {each // 3600 for each in times}, {each % 3600 // 60 for each in times}
        product = len(hours) * len(minutes) * len({each % 60 for each in times})
        even = DAY % seconds == 0 and len(times) == product
        assert bool(found.equal) == even, seconds
        if even:
            pattern = CronPattern.parse(found.equal)
            assert pattern.count_seconds(START - 1, START + DAY - 1) == len(times)
            assert pattern.next_second(START) == START + seconds
            assert interval_of(pattern).equal
        else:
            assert found.sense
            assert all(CronPattern.parse(near) for near in found.nearest)
        if DAY % seconds:
            assert "doesn't divide the day" in found.sense


@pytest.mark.parametrize(
    ("seconds", "equal", "why"),
    [
        (7 * DAY, "0 0 * * 0", "of any Sunday"),
        (14 * DAY, "", "nothing even between a day and a week, or above"),
        (36 * 3600, "", "longer than a day"),
        (5400, "", "minutes differ from hour to hour"),
        (90, "", "seconds differ from minute to minute"),
    ],
)
def test_intervals(seconds: int, equal: str, why: str):
    found = pattern_of(seconds)
    assert found.equal == equal
    assert why in found.sense


def test_no_interval():
    with pytest.raises(ValueError, match="no interval"):
        pattern_of(0)
