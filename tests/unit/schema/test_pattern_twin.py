"""CronPattern held against the dumb twin, and against croniter where croniter is right."""

from datetime import UTC, datetime, timedelta

from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.schema.pattern import CronPattern
from cronring.schema.search import CLOCK_END
from tests.drawing import examples
from tests.unit.schema.strategies import BOUNDS, INSTANTS, PATTERNS, fields, fires
from tests.unit.schema.twin import Twin, instant

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


def check_window(text: str, start: datetime, length: timedelta, step: timedelta) -> None:
    """Every search, from every tick and from the window's ends, against the list of the window's ticks."""
    pattern = CronPattern.parse(text)
    expected = list(Twin(text).ticks(start, start + length, step))
    found = []
    moment = pattern.next_after(start)
    while moment is not None and moment <= start + length:
        found.append(moment)
        moment = pattern.next_after(moment)
    assert found == expected
    first, last = int(start.timestamp()), int((start + length).timestamp())
    assert pattern.count_seconds(first, last) == len(expected)
    back = []
    second = pattern.last_second(last)
    while second is not None and second > first:
        back.append(instant(second))
        second = pattern.last_second(second - 1)
    assert back == expected[::-1]
    if expected:
        middle = int(expected[len(expected) // 2].timestamp())
        assert pattern.count_seconds(first, middle) + pattern.count_seconds(middle, last) == len(expected)


@settings(max_examples=examples(150))
@given(PATTERNS, INSTANTS)
def test_second_by_second(text: str, start: int):
    check_window(text, instant(start), timedelta(seconds=900), SECOND)


@settings(max_examples=examples(150))
@given(PATTERNS, INSTANTS, st.integers(0, 6))
def test_second_by_second_around_a_tick(text: str, start: int, ticks: int):
    """Random windows of sparse patterns are empty: this one has a tick in its middle."""
    pattern = CronPattern.parse(text)
    tick = None
    for _ in range(ticks + 1):
        tick = pattern.next_second(start)
        start = start if tick is None else tick
    if tick is not None:
        check_window(text, instant(tick) - timedelta(seconds=300), timedelta(seconds=600), SECOND)


WHOLE_MINUTES = st.tuples(*[fields(*bounds) for bounds in BOUNDS[1:6]]).map(" ".join).filter(fires)
WHOLE_DAYS = st.tuples(
    st.integers(0, 59).map(str),
    st.integers(0, 23).map(str),
    *[fields(*bounds, wild=2) for bounds in BOUNDS[3:6]],
)


@settings(max_examples=examples(60))
@given(WHOLE_MINUTES, INSTANTS)
def test_minute_by_minute(text: str, start: int):
    check_window(text, instant(start), timedelta(hours=30), MINUTE)


@settings(max_examples=examples(60))
@given(WHOLE_DAYS.map(" ".join).filter(fires), INSTANTS)
def test_day_by_day(text: str, start: int):
    minute, hour, rest = text.split(" ", 2)
    at_midnight = f"0 0 {rest}"
    check_window(at_midnight, instant(start), timedelta(days=800), DAY)
    shift = int(hour) * 3600 + int(minute) * 60
    before, after = (
        CronPattern.parse(at_midnight).next_second(start),
        CronPattern.parse(text).next_second(start + shift),
    )
    assert after == (None if before is None else before + shift)


@settings(max_examples=examples(200))
@given(PATTERNS, INSTANTS)
def test_next_and_last_are_inverse(text: str, start: int):
    pattern = CronPattern.parse(text)
    tick = pattern.next_second(start)
    if tick is not None:
        assert pattern.last_second(tick) == tick
        assert pattern.count_seconds(start, tick) == 1
        assert pattern.count_seconds(start, tick - 1) == 0
        assert pattern.next_second(tick - 1) == tick
        earlier = pattern.last_second(tick - 1)
        assert earlier is None or earlier <= max(start, 0)
    assert pattern.count_seconds(-1, CLOCK_END) > 0
    assert pattern.next_second(CLOCK_END) is None
    assert pattern.last_second(-1) is None


def plain(low: int, high: int) -> st.SearchStrategy[str]:
    """Fields that croniter reads rightly: no `a-a`, no range that runs backwards, no restriction to everything."""
    number = st.integers(low, high)
    some = st.lists(number.map(str), min_size=1, max_size=3, unique=True).map(",".join)
    spans = st.tuples(number, number).filter(lambda pair: pair[0] + 1 < pair[1] < pair[0] + high - low)
    ranges = spans.map(lambda pair: f"{pair[0]}-{pair[1]}")
    return st.just("*") | some | ranges


CLOCK = st.sampled_from(["*/2", "*/5", "*/7", "*/15", "3/4"])
COMMON = st.tuples(
    plain(0, 59) | CLOCK, plain(0, 23) | CLOCK, plain(1, 31), plain(1, 12) | st.just("*/3"), plain(0, 6)
).map(" ".join)


@settings(max_examples=examples(150))
@given(COMMON.filter(fires), st.integers(0, 4_000_000_000))
def test_croniter_agrees_on_the_common_subset(text: str, start: int):
    pattern = CronPattern.parse(text)
    if text.split()[2:4] == ["29", "2"]:
        return  # nothing wrong there, only slow: croniter looks for it by the minute
    theirs = croniter(text, datetime.fromtimestamp(start, UTC))
    moment = instant(start)
    for _ in range(3):
        found = pattern.next_after(moment)
        if found is None:
            return  # croniter knows no end in 2099
        assert found == theirs.get_next(datetime)
        moment = found
