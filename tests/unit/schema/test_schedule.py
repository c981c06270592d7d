"""Schedules: texts, ticks of intervals, and that counting is arithmetic."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.duration import format_duration
from cronring.schema.instant import parse_instant
from cronring.schema.policy import Policy, read_policy
from cronring.schema.schedule import (
    CronSchedule,
    IntervalSchedule,
    ManualSchedule,
    OnceSchedule,
    ScheduleError,
    check_interval,
    check_schedule,
    is_interval,
    parse_schedule,
)
from tests.support.costs import cpu_s
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
        ("at 2026-03-01T08:00:00Z", "at 2026-03-01T08:00:00Z"),
        (" at\t2026-03-01 08:00+02:00 ", "at 2026-03-01T06:00:00Z"),
        ("at 2026-03-01", "at 2026-03-01T00:00:00Z"),
        (" manual ", "manual"),
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
    assert parse_schedule("at 2026-03-01", ANCHOR) == OnceSchedule(parse_instant("2026-03-01"))
    assert parse_schedule("manual", ANCHOR) == ManualSchedule()


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
        ("at", 2, None),
        ("at noon", 3, None),
        ("at  2026-3-1 8:00", 10, "at 2026-03-01T08:00:00"),
        ("At 2026-03-01", 0, "at 2026-03-01T00:00:00Z"),
        ("at 2026-02-30", 3, None),
        (" Manual", 1, "manual"),
        ("manually", 0, None),
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
    assert schedule.count_between(ANCHOR, ANCHOR + YEAR) == 365 * 86_400
    assert schedule.count_between(0, 5_000_000_000 * S) == 4_102_444_800 - 1
    assert cpu_s(lambda: schedule.count_between(0, 5_000_000_000 * S)) < 0.05


def test_texts_are_parsed_once():
    assert parse_schedule("*/7 3 * * *", 1) is parse_schedule("*/7 3 * * *", 2)


@given(st.integers(1, 10**9))
def test_interval_text_round_trip(seconds: int):
    text = f"every {format_duration(seconds * 1000)}"
    assert parse_schedule(text, 0) == IntervalSchedule(seconds * S, 0)
    assert parse_schedule(text, 0).text == text


def test_once_and_manual():
    once, manual = parse_schedule("at 2026-03-01T08:00:00Z", 0), parse_schedule("manual", 0)
    tick = parse_instant("2026-03-01T08:00")
    assert (once.next_after(tick - 1), once.next_after(tick)) == (tick, None)
    assert (once.last_at_or_before(tick - 1), once.last_at_or_before(tick)) == (None, tick)
    assert [
        once.count_between(tick - 1, tick),
        once.count_between(tick, tick + 1),
        once.count_between(0, tick - 1),
    ] == [1, 0, 0]
    assert (manual.next_after(0), manual.last_at_or_before(tick), manual.count_between(0, tick)) == (None, None, 0)
    assert once.words() == "once, at 2026-03-01T08:00:00Z"
    assert manual.words() == "only when triggered"


def test_an_instant_without_a_zone_is_read_in_that_of_the_job():
    assert check_schedule("at 2026-07-01 08:00", "Europe/Berlin") == "at 2026-07-01T06:00:00Z"
    assert parse_schedule("at 2026-07-01 08:00", 0, Policy(timezone="Europe/Berlin")).text == "at 2026-07-01T06:00:00Z"
    with pytest.raises(ScheduleError) as caught:
        check_schedule("at 2026-03-29 02:30", "Europe/Berlin")
    assert (caught.value.position, caught.value.suggestion) == (3, "at 2026-03-29T03:00:00")


def test_a_zone_and_its_rules():
    nine = parse_schedule("0 9 * * *", 0, Policy(timezone="Europe/Berlin"))
    assert nine.next_after(parse_instant("2026-03-28T12:00")) == parse_instant("2026-03-29T07:00")
    assert nine.count_between(parse_instant("2026-03-28"), parse_instant("2026-03-31")) == 3
    assert nine.words() == "at 09:00 every day, Europe/Berlin time"
    assert nine.text == "0 9 * * *"
    skipped = parse_schedule("30 2 * * *", 0, Policy(timezone="Europe/Berlin", dst_gap="skip"))
    assert skipped.count_between(parse_instant("2026-03-28T12:00"), parse_instant("2026-03-29T12:00")) == 0
    assert parse_schedule("0 9 * * *", 0, Policy(retries=3)) is parse_schedule("0 9 * * *", 0)


@pytest.mark.parametrize(
    ("text", "raw", "first", "last", "count"),
    [
        ("0 * * * *", {"start_at": "2026-03-01T08:00"}, "2026-03-01T08:00", "2099-12-31T23:00", None),
        ("0 * * * *", {"start_at": "2026-03-01T08:00:01"}, "2026-03-01T09:00", "2099-12-31T23:00", None),
        ("0 * * * *", {"start_at": "2026-03-01", "end_at": "2026-03-01"}, "2026-03-01T00:00", "2026-03-01T23:00", 24),
        ("0 * * * *", {"start_at": "2026-03-01", "end_at": "2026-03-02T00:00"},
            "2026-03-01T00:00", "2026-03-02T00:00", 25),
        ("every 1h", {"start_at": "2026-03-01T08:30", "end_at": "2026-03-01T10:29:59"},
            "2026-03-01T09:00", "2026-03-01T10:00", 2),
        ("at 2026-03-01T08:00:00Z", {"end_at": "2026-02-28"}, None, None, 0),
    ],
)  # fmt: skip
def test_bounds(text: str, raw: dict[str, str], first: str | None, last: str | None, count: int | None):
    schedule = parse_schedule(text, parse_instant("2026-01-01"), read_policy(raw))
    end = parse_instant("2099-12-31T23:59:59")
    assert schedule.next_after(0) == (None if first is None else parse_instant(first))
    assert schedule.last_at_or_before(end) == (None if last is None else parse_instant(last))
    assert count is None or schedule.count_between(0, end) == count
    assert schedule.text == text
    assert "until" in schedule.words() or "end_at" not in raw


@given(
    SCHEDULES,
    st.integers(1_700_000_000, 1_900_000_000),
    st.integers(0, 10_000_000),
    st.integers(-10_000_000, 10_000_000),
    st.integers(0, 10_000_000),
)
def test_bounded_ones_answer_as_if_other_ticks_did_not_exist(text: str, start: int, length: int, after: int, span: int):
    inner = parse_schedule(text, ANCHOR)
    bounds = [
        f"{datetime.datetime.fromtimestamp(second, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
        for second in (start, start + length)
    ]
    bounded = parse_schedule(text, ANCHOR, Policy(start_at=bounds[0], end_at=bounds[1]))
    low, high = start * S, (start + length) * S
    instant, until = low + after * S, low + (after + span) * S
    following = inner.next_after(max(instant, low - 1))
    assert bounded.next_after(instant) == (None if following is None or following > high else following)
    last = inner.last_at_or_before(min(until, high))
    assert bounded.last_at_or_before(until) == (None if last is None or last < low else last)
    assert bounded.count_between(instant, until) == inner.count_between(
        max(instant, low - 1), max(min(until, high), low - 1)
    )
