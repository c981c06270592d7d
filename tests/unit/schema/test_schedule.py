"""Schedules: texts, ticks of intervals, and that counting is arithmetic."""

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.duration import format_duration
from schema.schedule import (
    CronSchedule,
    IntervalSchedule,
    ScheduleError,
    check_interval,
    check_schedule,
    is_interval,
    parse_schedule,
)
from tests.unit.schema.strategies import SCHEDULES

S = 1_000_000
ANCHOR = 1_790_000_000 * S
YEAR = 365 * 86_400 * S


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0 6 1 * *", "0 6 1 * *"),
        ("  0\t6  1 * *", "0 6 1 * *"),
        ("25m", "25m"),
        ("every 30m", "every 30m"),
        (" every\t 90m ", "every 1h30m"),
        ("every 3600s", "every 1h"),
        ("every 1000ms", "every 1s"),
        ("every 36500d", "every 36500d"),
    ],
)
def test_canonical_texts(text: str, canonical: str):
    assert check_schedule(text) == canonical
    assert check_schedule(canonical) == canonical
    assert is_interval(canonical) == canonical.startswith("every")


def test_kinds():
    assert isinstance(parse_schedule("25m", ANCHOR), CronSchedule)
    assert parse_schedule("every 25m", ANCHOR) == IntervalSchedule(1500 * S, ANCHOR)
    assert parse_schedule("every 25m", ANCHOR + 999_999) == IntervalSchedule(1500 * S, ANCHOR)


@pytest.mark.parametrize(
    ("text", "position", "suggestion"),
    [
        ("", 0, None),
        ("0 6 ? * *", 4, "0 6 * * *"),
        ("@every 90s", 0, None),
        ("every", 5, None),
        ("every ", 6, None),
        ("every 5x", 7, None),
        ("every  5", 8, "every 5s"),
        ("every 5 minutes", 7, "every 5m"),
        ("Every 90m", 0, "every 1h30m"),
        (" EVERY 5 Min", 1, "every 5m"),
        ("every 0s", 6, None),
        ("every -5m", 6, None),
        ("every 1500ms", 6, None),
        ("every 1m1h", 9, None),
        ("every\n5m", 5, None),
        ("every5m", 0, None),
        ("every " + "1" * 10_000 + "s", 106, None),
        ("every" + " " * 10_000 + "x ", 10_005, None),
    ],
)
def test_refused(text: str, position: int, suggestion: str | None):
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(text, 0)
    assert (caught.value.position, caught.value.suggestion) == (position, suggestion)


def test_an_amount_alone():
    assert check_interval("90m") == "every 1h30m"
    with pytest.raises(ScheduleError) as caught:
        check_interval("5 min")
    assert (caught.value.position, caught.value.suggestion) == (1, "5m")


def test_interval_ticks():
    schedule = parse_schedule("every 30s", ANCHOR)
    assert schedule.next_after(0) == ANCHOR + 30 * S
    assert schedule.next_after(ANCHOR) == ANCHOR + 30 * S
    assert schedule.next_after(ANCHOR + 30 * S - 1) == ANCHOR + 30 * S
    assert schedule.next_after(ANCHOR + 30 * S) == ANCHOR + 60 * S
    assert schedule.last_at_or_before(ANCHOR + 30 * S - 1) is None
    assert schedule.last_at_or_before(ANCHOR - YEAR) is None
    assert schedule.last_at_or_before(ANCHOR + 30 * S) == ANCHOR + 30 * S
    assert schedule.last_at_or_before(ANCHOR + 89 * S) == ANCHOR + 60 * S
    assert schedule.count_between(ANCHOR - YEAR, ANCHOR) == 0
    assert schedule.count_between(ANCHOR - YEAR, ANCHOR + 60 * S) == 2
    assert schedule.count_between(ANCHOR + 30 * S, ANCHOR + 60 * S) == 1
    assert schedule.count_between(ANCHOR + 60 * S, ANCHOR + 30 * S) == 0


def test_intervals_do_not_drift_over_a_million_ticks():
    schedule = parse_schedule("every 7s", ANCHOR)
    tick: int | None = ANCHOR
    for _ in range(10_000):
        assert tick is not None
        tick = schedule.next_after(tick)
    assert tick == ANCHOR + 70_000 * S
    assert schedule.next_after(ANCHOR + 7_000_000 * S - 1) == ANCHOR + 7_000_000 * S
    assert schedule.count_between(ANCHOR, ANCHOR + 7_000_000 * S) == 1_000_000


@given(SCHEDULES, st.integers(0, 4_200_000_000 * S), st.integers(0, 3 * 86_400 * S))
def test_the_three_questions_agree(text: str, after: int, length: int):
    schedule = parse_schedule(text, ANCHOR)
    assert schedule.text == text
    until = after + length
    count = schedule.count_between(after, until)
    first, last = schedule.next_after(after), schedule.last_at_or_before(until)
    if count == 0:
        assert first is None or first > until
        assert last is None or last <= after
    else:
        assert first is not None
        assert last is not None
        assert after < first <= last <= until
        assert (count == 1) == (first == last)
        assert schedule.count_between(first, last) == count - 1
        assert first % S == 0


def test_counting_a_year_of_seconds_is_arithmetic():
    schedule = parse_schedule("* * * * * *", 0)
    start = perf_counter()
    assert schedule.count_between(ANCHOR, ANCHOR + YEAR) == 365 * 86_400
    assert schedule.count_between(0, 5_000_000_000 * S) == 4_102_444_800 - 1
    assert perf_counter() - start < 0.05


def test_texts_are_parsed_once():
    assert parse_schedule("*/7 3 * * *", 1) is parse_schedule("*/7 3 * * *", 2)


@given(st.integers(1, 10**9))
def test_interval_text_round_trip(seconds: int):
    text = f"every {format_duration(seconds * 1000)}"
    assert parse_schedule(text, 0) == IntervalSchedule(seconds * S, 0)
    assert parse_schedule(text, 0).text == text
