"""130 years of one time of the day, by a second oracle: from each day's wall-clock time to its instants by PEP 495.

The walk of walk.py goes from instants to wall-clock times, and looks at some days. This goes the other way, day by day.
"""

from datetime import datetime, timedelta
from random import Random

import pytest

from cronring.schema.pattern import CronPattern
from cronring.schema.zone import load_zone, zone_names
from cronring.schema.zoned import ZonedPattern
from tests.oracle.cases import AWKWARD
from tests.oracle.walk import END, EPOCH, clock_of, zoneinfo_of

DAYS = END // 86_400


def instants(wall: datetime, zone: str) -> list[int]:
    """Of a naive wall-clock time: none in a gap, two in an overlap."""
    clock = clock_of(zone)
    aware = wall.replace(tzinfo=zoneinfo_of(zone))
    guesses = sorted({int(aware.replace(fold=fold).timestamp()) for fold in (0, 1)})
    return [guess for guess in guesses if clock(guess) == wall]


def first_after(wall: datetime, zone: str) -> int:
    """The first instant at which the clock shows more than a wall-clock time in a gap."""
    clock = clock_of(zone)
    low = int((wall - EPOCH).total_seconds()) - 27 * 3600
    high = low + 54 * 3600
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if clock(middle) > wall else (middle, high)
    return high


def ticks_of(hour: int, minute: int, zone: str, gap: str, overlap: str) -> list[int]:
    found = set()
    for day in range(DAYS):
        wall = EPOCH + timedelta(days=day, hours=hour, minutes=minute)
        known = instants(wall, zone)
        if len(known) == 2 and overlap != "both":
            known = [known[1] if overlap == "second" else known[0]]
        if not known and gap != "skip":
            known = [first_after(wall, zone)]
        found.update(known)
    return sorted(tick for tick in found if 0 <= tick < END)


def check(zone: str, hour: int, minute: int, gap: str, overlap: str) -> None:
    expected = ticks_of(hour, minute, zone, gap, overlap)
    zoned = ZonedPattern(CronPattern.parse(f"{minute} {hour} * * *"), load_zone(zone), gap, overlap)
    found, at = [], -1
    while (following := zoned.next_second(at)) is not None:
        at = following
        found.append(at)
    assert found == expected, (zone, hour, minute, gap, overlap)
    back = []
    previous = zoned.last_second(END)
    while previous is not None:
        back.append(previous)
        previous = zoned.last_second(previous - 1)
    assert back == expected[::-1], (zone, hour, minute, gap, overlap)
    assert zoned.count_seconds(-1, END) == len(expected)
    middle = len(expected) // 3
    assert zoned.count_seconds(expected[middle], END) == len(expected) - middle - 1


@pytest.mark.parametrize(
    ("zone", "hour", "minute", "gap", "overlap"),
    [
        ("Europe/Berlin", 2, 30, "", ""),
        ("Pacific/Apia", 9, 0, "", ""),
        ("America/Sao_Paulo", 0, 0, "", ""),
        ("Australia/Lord_Howe", 2, 15, "skip", "second"),
        ("Europe/Dublin", 1, 30, "", "both"),
        ("Africa/Casablanca", 2, 59, "", "second"),
    ],
)
def test_every_day(zone: str, hour: int, minute: int, gap: str, overlap: str) -> None:
    check(zone, hour, minute, gap, overlap)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(30))
def test_every_day_of_every_zone(part: int) -> None:
    random = Random(part)
    for zone in sorted({*zone_names()[part::30], *AWKWARD[part::30]}):
        hour, minute = random.choice([0, 0, 1, 1, 2, 2, 3, 23, 12]), random.choice([0, 0, 15, 30, 45, 59])
        check(zone, hour, minute, random.choice(["", "skip"]), random.choice(["", "second", "both"]))
