"""The hand-written cases, by schema and by the brute-force walk: both must say what was worked out."""

import pytest

from cronring.schema.pattern import CronPattern
from cronring.schema.zone import load_zone
from cronring.schema.zoned import ZonedPattern
from tests.oracle.dst_vectors import VECTORS, Vector
from tests.oracle.walk import Walk, clock_of, instant, shown, ticks_between

IDS = [f"{number}-{vector.zone}-{vector.pattern}" for number, vector in enumerate(VECTORS)]


def days(vector: Vector) -> int:
    return (instant(vector.until) - instant(vector.after)) // 86_400


@pytest.mark.parametrize("vector", VECTORS, ids=IDS)
def test_schema(vector: Vector) -> None:
    zoned = ZonedPattern(CronPattern.parse(vector.pattern), load_zone(vector.zone), vector.gap, vector.overlap)
    after, until = instant(vector.after), instant(vector.until)
    expected = [instant(tick) for tick in vector.ticks]
    found, at = [], zoned.next_second(after)
    while at is not None and at <= until:
        found.append(at)
        at = zoned.next_second(at)
    assert [shown(tick) for tick in found] == [shown(tick) for tick in expected], vector.why
    back, at = [], zoned.last_second(until)
    while at is not None and at > after:
        back.append(at)
        at = zoned.last_second(at - 1)
    assert back == expected[::-1], vector.why
    assert zoned.count_seconds(after, until) == len(expected), vector.why


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if days(vector) < 10])
def test_the_oracle(vector: Vector) -> None:
    """That it was written by the same rules, and not by the code that it judges. (Years would take it too long.)"""
    after, until = instant(vector.after), instant(vector.until)
    step = 1 if vector.zone == "Africa/Monrovia" else 60
    walk = Walk(clock_of(vector.zone), after // step * step, until, step)
    found = [tick for tick in walk.match(vector.pattern).ticks(vector.gap, vector.overlap) if after < tick <= until]
    assert [shown(tick) for tick in found] == [shown(instant(tick)) for tick in vector.ticks], vector.why


def test_three_months_by_the_oracle() -> None:
    """As the simulator's checkers ask it."""
    after, until = instant("2026-02-10T12:34:56"), instant("2026-05-10T12:00")
    for pattern in ("30 2 * * *", "0 3 */5 * 1", "*/20 1-3 * * *"):
        zoned = ZonedPattern(CronPattern.parse(pattern), load_zone("Europe/Berlin"))
        expected = ticks_between(pattern, "Europe/Berlin", after, until)
        assert zoned.count_seconds(after, until) == len(expected)
        assert [zoned.next_second(tick - 1) for tick in expected] == expected
