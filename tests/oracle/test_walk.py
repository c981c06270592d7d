"""ZonedPattern against the brute-force walk: random patterns, zones, instants and policies, most near a change.

A failure names all that it takes to see it again. `make soak` runs millions of cases, `make test` the first seeds.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest

from cronring.schema.pattern import CronPattern
from cronring.schema.zone import Zone, load_zone, zone_names
from cronring.schema.zoned import ZonedPattern
from tests.oracle import cases
from tests.oracle.walk import END, Clock, Walk, clock_of, shown

PATTERNS_EACH = 24
INSTANTS_EACH = 12
SEQUENCE_MAX = 120
GAPS = ["", "", "run_after", "skip"]
OVERLAPS = ["", "", "first", "both", "second"]
HOUR = 3600


@dataclass
class Trial:
    """One pattern under one policy over one walk."""

    zoned: ZonedPattern
    walk: Walk
    ticks: list[int]

    def explain(self, what: str, *instants: int) -> str:
        zoned = self.zoned
        around = [shown(tick) for tick in self.ticks if instants and abs(tick - instants[0]) < 2 * 86_400][:12]
        return (
            f"{what} of {zoned.pattern.text!r} in {zoned.zone.name} {zoned.zone.starts[1:9]} {zoned.zone.offsets[:9]}, "
            f"gap {zoned.dst_gap!r}, overlap {zoned.dst_overlap!r}, at {instants} {[shown(one) for one in instants]}; "
            f"ticks around: {around}"
        )

    def check_instant(self, at: int) -> None:
        """`at` lies in the walk: what lies beyond it isn't known, but that it lies beyond."""
        upper = bisect_right(self.ticks, at)
        following = self.zoned.next_second(at)
        if upper < len(self.ticks):
            assert following == self.ticks[upper], self.explain("next", at)
        else:
            assert following is None or self.walk.last < following < END, self.explain("next beyond", at)
        previous = self.zoned.last_second(at)
        if upper:
            assert previous == self.ticks[upper - 1], self.explain("last", at)
        else:
            assert previous is None or 0 <= previous < self.walk.start, self.explain("last beyond", at)

    def check_count(self, after: int, until: int) -> None:
        expected = max(bisect_right(self.ticks, until) - bisect_right(self.ticks, after), 0)
        assert self.zoned.count_seconds(after, until) == expected, self.explain("count", after, until)

    def check_sequence(self, start: int) -> None:
        """One tick out of the other, forwards and backwards, as a controller goes."""
        first = bisect_left(self.ticks, start)
        expected = self.ticks[first : first + SEQUENCE_MAX]
        found, at = [], start - 1
        for _ in expected:
            following = self.zoned.next_second(at)
            assert following is not None, self.explain("end", at)
            at = following
            found.append(at)
        assert found == expected, self.explain("sequence", start)
        for tick in reversed(expected):
            previous = self.zoned.last_second(at)
            assert previous == tick, self.explain("sequence back", at)
            at = tick - 1


def instants(random: Random, walk: Walk, moved: int, ticks: list[int]) -> list[int]:
    picks = [moved - 1, moved, moved + random.randint(-7200, 7200), walk.start - 1, walk.last]
    while len(picks) < INSTANTS_EACH:
        if ticks and random.random() < 0.6:
            picks.append(random.choice(ticks) + random.choice([-1, 0, 1]))
        else:
            picks.append(random.randint(walk.start, walk.last))
    return [min(max(pick, walk.start - 1), walk.last) for pick in picks]


def check_pattern(random: Random, zone: Zone, walk: Walk, text: str, moved: int) -> int:
    """Under three policies. Returns how many instants were checked."""
    parsed = CronPattern.parse(text)
    match = walk.match(text)
    checked = 0
    for gap, overlap in {("", ""), *((random.choice(GAPS), random.choice(OVERLAPS)) for _ in range(2))}:
        ticks = match.ticks(gap, overlap)
        trial = Trial(ZonedPattern(parsed, zone, gap, overlap), walk, ticks)
        assert trial.zoned.fixed_time == match.reading.fixed_time
        at = instants(random, walk, moved, ticks)
        for one in at:
            trial.check_instant(one)
        for after, until in pairwise(at):
            trial.check_count(after, until)
        trial.check_count(walk.start - 1, walk.last)
        trial.check_sequence(max(walk.start, random.choice([0, moved, moved - 4 * HOUR])))
        checked += len(at)
    return checked


def check_walk(random: Random, zone: Zone, clock: Clock, walk: Walk, moved: int) -> int:
    wall = clock(moved + random.choice([-1, 0]))
    checked = 0
    for _ in range(PATTERNS_EACH):
        text = cases.pattern(random, wall + timedelta(hours=random.choice([0, 0, 0, -24, 24])))
        checked += check_pattern(random, zone, walk, text, moved)
    return checked


def window(random: Random, moved: int, hours: int = 40) -> tuple[int, int]:
    """Whole minutes from some time before to some time after."""
    start = moved - random.randint(1, hours) * HOUR - random.randint(0, 59) * 60
    return start // 60 * 60, (moved + random.randint(1, hours) * HOUR) // 60 * 60


def real(seed: int) -> int:
    """A real zone, at one of its changes; now and then anywhere, and at the first and last hours that there are."""
    random = Random(seed)
    name = cases.AWKWARD[seed % len(cases.AWKWARD)] if random.random() < 0.7 else random.choice(zone_names())
    clock = clock_of(name)
    moments = cases.changes(name) if random.random() < 0.9 else ()
    moved = random.choice(moments or (0, END - 1, random.randrange(END)))
    by_second = clock(moved // 60 * 60).second or clock(moved // 60 * 60 - 60).second
    start, end = window(random, moved, 1 if by_second else 40)
    walk = Walk(clock, start, end, 1 if by_second else 60)
    return check_walk(random, load_zone(name), clock, walk, moved)


def invented(seed: int) -> int:
    """A clock that nobody would have: moved several times a day, forth and back."""
    random = Random(seed)
    moved = random.choice([random.randrange(0, END, 60), 0, END - 86_400])
    clock, starts, offsets = cases.invented_clock(random, moved)
    walk = Walk(clock, *window(random, moved + random.randrange(2 * 86_400)))
    return check_walk(random, Zone(f"Invented/{seed}", starts, offsets), clock, walk, random.choice(starts[1:] or [0]))


@pytest.mark.parametrize("part", range(8))
def test_real_zones(part: int) -> None:
    assert sum(real(seed) for seed in range(part * 12, part * 12 + 12)) > 6_000


@pytest.mark.parametrize("part", range(4))
def test_invented_zones(part: int) -> None:
    assert sum(invented(seed) for seed in range(part * 10, part * 10 + 10)) > 5_000


def test_monrovia_by_the_second() -> None:
    """Until 7 January 1972 its minutes were not those of UTC: 44 min 30 s behind, then none."""
    random = Random(0)
    clock, (moved,) = clock_of("Africa/Monrovia"), cases.changes("Africa/Monrovia")
    walk = Walk(clock, *window(random, moved, 2), 1)
    assert check_walk(random, load_zone("Africa/Monrovia"), clock, walk, moved) > 500


@pytest.mark.soak
@pytest.mark.parametrize("part", range(40))
def test_millions(part: int) -> None:
    first = 1_000 + part * 250
    assert sum(real(seed) + invented(seed) for seed in range(first, first + 250)) > 250_000
