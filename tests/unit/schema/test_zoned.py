"""Patterns in zones: the constructor's contract. What ticks when stands in tests/oracle."""

import pickle

import pytest

from schema.pattern import CronPattern
from schema.zone import load_zone
from schema.zoned import ZonedPattern


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
