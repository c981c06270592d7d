"""Which tick runs, and which are passed over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schema.missed import DueTick, NextTick, after_run, latest_due
from schema.schedule import parse_schedule
from tests.unit.schema.strategies import SCHEDULES

S = 1_000_000
MINUTE = 60 * S
NOON = 1_795_262_400 * S
assert NOON % (86_400 * S) == 43_200 * S


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("* * * * *", NOON, DueTick(NOON, 0, 0, 0)),
        ("* * * * *", NOON + MINUTE - 1, DueTick(NOON, 0, 0, 0)),
        ("* * * * *", NOON - 1, DueTick(NOON, 0, 0, 0)),
        ("* * * * *", NOON + MINUTE, DueTick(NOON + MINUTE, NOON, NOON, 1)),
        ("* * * * *", NOON + 5 * MINUTE + 1, DueTick(NOON + 5 * MINUTE, NOON, NOON + 4 * MINUTE, 5)),
        ("every 1m", NOON + 2 * MINUTE, DueTick(NOON + 2 * MINUTE, NOON, NOON + MINUTE, 2)),
        ("0 12 * * *", NOON + 1439 * MINUTE, DueTick(NOON, 0, 0, 0)),
        # the schedule has lost its last year meanwhile, and its next tick stays due
        ("0 12 * * * 2020", NOON, DueTick(NOON, 0, 0, 0)),
    ],
)
def test_latest_due(text: str, now: int, expected: DueTick):
    assert latest_due(parse_schedule(text, NOON - MINUTE), NOON, now) == expected


def test_a_tick_that_the_schedule_no_longer_has_still_counts():
    schedule = parse_schedule("0 * * * *", 0)
    odd = NOON + 7 * MINUTE
    assert latest_due(schedule, odd, NOON + 59 * MINUTE) == DueTick(odd, 0, 0, 0)
    assert latest_due(schedule, odd, NOON + 60 * MINUTE) == DueTick(NOON + 60 * MINUTE, odd, odd, 1)
    assert latest_due(schedule, odd, NOON + 121 * MINUTE) == DueTick(NOON + 120 * MINUTE, odd, NOON + 60 * MINUTE, 2)


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("* * * * *", NOON + 1, NextTick(NOON + MINUTE, 0, 0, 0)),
        ("* * * * *", NOON + MINUTE - 1, NextTick(NOON + MINUTE, 0, 0, 0)),
        ("* * * * *", NOON + MINUTE, NextTick(NOON + 2 * MINUTE, NOON + MINUTE, NOON + MINUTE, 1)),
        ("* * * * *", NOON + 9 * MINUTE + 5, NextTick(NOON + 10 * MINUTE, NOON + MINUTE, NOON + 9 * MINUTE, 9)),
        ("every 1m", NOON + MINUTE, NextTick(NOON + 2 * MINUTE, NOON + MINUTE, NOON + MINUTE, 1)),
        # a clock that says the run ended before its tick
        ("* * * * *", NOON - 9 * MINUTE, NextTick(NOON + MINUTE, 0, 0, 0)),
        ("0 12 * * * 2026", NOON, NextTick(NOON + 1440 * MINUTE, 0, 0, 0)),
        ("0 12 21 11 * 2026", NOON, NextTick(None, 0, 0, 0)),
    ],
)
def test_after_run(text: str, now: int, expected: NextTick):
    assert after_run(parse_schedule(text, NOON - MINUTE), NOON, now) == expected


@given(SCHEDULES, st.integers(0, 4_000_000_000 * S), st.integers(0, 200_000 * S))
def test_no_tick_vanishes(text: str, start: int, length: int):
    """Along any history, each tick is run or counted, and none twice."""
    schedule = parse_schedule(text, 0)
    expected = schedule.next_after(start)
    if expected is None:
        return
    now = expected + length
    due = latest_due(schedule, expected, now)
    assert expected <= due.run_tick <= now
    assert due.count + 1 == schedule.count_between(start, due.run_tick)
    end = due.run_tick + length
    passed = after_run(schedule, due.run_tick, end)
    if passed.next_tick is None:
        assert schedule.next_after(end) is None
        assert schedule.count_between(due.run_tick, 5_000_000_000 * S) == passed.count
    else:
        assert passed.next_tick > end
        assert due.count + 1 + passed.count + 1 == schedule.count_between(start, passed.next_tick)
    for found in (due, passed):
        if found.count:
            assert schedule.count_between(found.first_skipped - 1, found.last_skipped) == found.count
            assert (found.count == 1) == (found.first_skipped == found.last_skipped)
