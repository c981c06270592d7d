"""Patterns in zones: the constructor's contract. What ticks when stands in tests/oracle."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.pattern import CronPattern
from cronring.schema.search import CLOCK_END
from cronring.schema.zone import Zone, load_zone, zone_names
from cronring.schema.zoned import ZonedPattern
from tests.support.costs import cpu_s
from tests.unit.schema.strategies import INSTANTS, PATTERNS

OVERLAPS = st.sampled_from(["", "first", "both", "second"])


def zoned(text: str, zone: str = "Europe/Berlin", gap: str = "", overlap: str = "") -> ZonedPattern:
    return ZonedPattern(CronPattern.parse(text), load_zone(zone), gap, overlap)


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("30 2 * * *", True),
        ("0 0-23 * * *", True),
        ("0,15,30,45 1-5,7 */2 * *", True),
        ("*/5 30 2 * * *", True),  # seconds have no say
        ("0 0 1 1 * 2030/2", True),
        ("Mon", True),
        ("* 2 * * *", False),
        ("0 * * * *", False),
        ("*/5 2 * * *", False),
        ("0-30/5 2 * * *", False),
        ("0 2/6 * * *", False),
        ("0 1,2-8/3 * * *", False),
        ("5s", False),
        ("25m", False),
        ("12h", False),
    ],
)
def test_fixed_time(text: str, fixed: bool):
    assert zoned(text).fixed_time is fixed


def test_two_of_the_same_are_equal_also_through_a_pickle():
    one = zoned("30 2 * * *", gap="skip", overlap="both")
    again = pickle.loads(pickle.dumps(one))
    assert again == one == zoned("30  2 * * *", gap="skip", overlap="both")
    assert hash(again) == hash(one)
    assert again.next_second(0) == one.next_second(0)
    for other in (zoned("30 2 * * *", overlap="both"), zoned("30 2 * * *", "Europe/Paris", "skip", "both")):
        assert other != one


def test_other_values_are_refused():
    with pytest.raises(ValueError, match="dst_gap is run_after or skip, not 'run'"):
        zoned("30 2 * * *", gap="run")
    with pytest.raises(ValueError, match="dst_overlap is first or both or second, not 'last'"):
        zoned("30 2 * * *", overlap="last")


@pytest.mark.parametrize(
    ("at", "offsets", "text", "ticks"),
    [
        (0, (-3600, 0), "30 23 31 12 *", []),  # what is skipped is of 1969, and no pattern is
        (0, (-3600, 3600), "30 0 1 1 *", [0]),  # half of it is of 1970: 23:00 -> 01:00 in the first instant
        (0, (-3600, 3600), "30 23 31 12 *", []),
        (0, (3600, 7200), "30 1 1 1 *", [0]),
        (-1, (3600, 7200), "30 1 1 1 *", []),  # made up for before 1970
        (3600, (-7200, 3600), "30 1 1 1 *", [3600]),  # 23:00 -> 02:00
        (CLOCK_END - 3600, (3600, 7200), "30 0 1 1 *", []),  # what is skipped is of 2100
        (CLOCK_END - 3600, (0, 7200), "30 23 31 12 *", [CLOCK_END - 3600]),  # half of it is of 2099
        (CLOCK_END - 1, (-3600, 3600), "0 23 31 12 *", [CLOCK_END - 1]),
        (CLOCK_END, (-3600, 3600), "30 23 31 12 *", []),  # made up for in 2100
    ],
)
def test_changes_at_both_ends_of_time(at: int, offsets: tuple[int, int], text: str, ticks: list[int]):
    zone = Zone("Test/Zone", (-(1 << 62), at), offsets)
    pattern = ZonedPattern(CronPattern.parse(text), zone)
    span = (at - 7200, at + 7200)
    assert pattern.count_seconds(*span) == len(ticks)
    tick = pattern.next_second(span[0])
    assert ([tick] if tick is not None and tick <= span[1] else []) == ticks
    tick = pattern.last_second(span[1])
    assert ([tick] if tick is not None and tick > span[0] else []) == ticks


NOTHING = -(1 << 40), 1 << 40


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Apia", "Pacific/Honolulu"])
def test_instants_out_of_range(zone: str):
    pattern = zoned("0 * * * *", zone)
    first = -load_zone(zone).offset_at(0)  # west of Greenwich 1970 begins later
    assert pattern.next_second(NOTHING[0]) == max(first, 0) == pattern.next_second(-1)
    assert pattern.last_second(NOTHING[1]) == pattern.last_second(CLOCK_END)
    assert pattern.last_second(-1) is pattern.next_second(CLOCK_END - 1) is None
    whole = pattern.count_seconds(*NOTHING)
    assert whole == pattern.count_seconds(-1, CLOCK_END)
    assert pattern.count_seconds(5, 5) == pattern.count_seconds(CLOCK_END, 0) == 0


@given(PATTERNS, INSTANTS, INSTANTS, st.sampled_from(zone_names()), st.sampled_from(["", "skip"]), OVERLAPS)
def test_next_last_and_count_agree(text: str, start: int, until: int, zone: str, gap: str, overlap: str):
    pattern = zoned(text, zone, gap, overlap)
    tick = pattern.next_second(start)
    if tick is not None:
        assert start < tick < CLOCK_END
        assert pattern.last_second(tick) == tick == pattern.next_second(tick - 1)
        assert pattern.count_seconds(start, tick) == 1
        assert pattern.count_seconds(start, tick - 1) == 0
        earlier = pattern.last_second(tick - 1)
        assert earlier is None or 0 <= earlier <= start
    low, high = sorted((start, until))
    middle = (low + high) // 2
    assert pattern.count_seconds(low, middle) + pattern.count_seconds(middle, high) == pattern.count_seconds(low, high)


HOSTILE = [
    ("30 2 29 2 * 2096", "Europe/Berlin", ""),
    ("30 2 31 3 * 2030,2041,2052", "Europe/Berlin", "skip"),
    ("30 2 29 3 * 2026,2037,2043,2048,2054,2065,2071,2076,2082,2093,2099", "Europe/Berlin", "skip"),
    ("30 2 29 2 1 2096", "Africa/Casablanca", ""),
    ("59 59 23 31 12 * 2099", "America/New_York", ""),
    ("0 0 30 12 * 2011", "Pacific/Apia", "skip"),
]


@pytest.mark.parametrize(("text", "zone", "gap"), HOSTILE)
def test_sparse_patterns_are_bounded(text: str, zone: str, gap: str):
    """Some ten microseconds each (croniter took half a second for one)."""
    pattern = zoned(text, zone, gap)
    assert cpu_s(lambda: pattern.next_second(0)) < 0.002
    assert cpu_s(lambda: pattern.last_second(CLOCK_END)) < 0.002
