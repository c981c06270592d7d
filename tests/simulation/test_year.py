"""Years of mixed schedules: `python -m tests.simulation.run --year --seed N` tells the story of a failing seed."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests import drawing
from tests.oracle.walk import ticks_between
from tests.simulation.year_days import DAY, Pattern, ticks_of_pattern
from tests.simulation.year_workload import DENSE, OFTEN, OTHER_ZONES, SPARSE, ZONES
from tests.simulation.year_world import DAYS, FIRST_START, YearWorld

SEEDS_DRAWN = 1
SEEDS_SOAKED = 200
SHORT_DAYS = 40
# Four more of 200 days are lived through, and checked, in test_year_checkers.py; two hundred whole years are soaked.
DRAWN_DAYS = DAYS if drawing.DRAWS else 200


def _known_seeds() -> list[int]:
    lines = (Path(__file__).parent / "year_seeds.txt").read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


def _run(seed: int, days: int = DAYS) -> None:
    try:
        YearWorld(seed, days=days).run()
    except Exception as error:
        command = f"python -m tests.simulation.run --year --days {days} --seed {seed}"
        raise AssertionError(f"the year of seed {seed} fails: {error}; see {command}") from error


def test_drawn_years() -> None:
    """Others each time where DRAWN=1: the printed seed reproduces a failure."""
    first = drawing.seed(1_000)  # those before it are soaked
    for number in range(SEEDS_DRAWN):
        _run(first + number, DRAWN_DAYS)


@pytest.mark.soak
@pytest.mark.parametrize("seed", _known_seeds())
def test_years_that_once_failed(seed: int) -> None:
    _run(seed)


@pytest.mark.soak
def test_two_hundred_years() -> None:
    for seed in range(SEEDS_SOAKED):
        _run(seed)


def test_same_seed_same_story_in_any_process() -> None:
    """Nothing depends on the hash seed, which orders sets of strings."""
    digests = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.simulation.run", "--year", "--days", str(SHORT_DAYS), "--seed", "4"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [*command, "--quiet"], env=environment, capture_output=True, text=True, timeout=120, check=True
        )
        digests.append(done.stdout)
    assert digests[0].startswith("seed 4 digest ")
    assert digests[0] == digests[1]


@pytest.mark.parametrize("zone", [*ZONES, *OTHER_ZONES[1:], "UTC", "Africa/El_Aaiun"])
def test_ticks_listed_by_days_are_those_of_the_walk(zone: str) -> None:
    """Around changes of clocks and away from them, of the patterns that years are made of."""
    rng = random.Random(zone)
    for start in range(FIRST_START // 1_000_000, FIRST_START // 1_000_000 + 350 * DAY, 70 * DAY):
        gap, overlap = rng.choice(["", "run_after", "skip"]), rng.choice(["", "first", "both", "second"])
        text = rng.choice(SPARSE + OFTEN + DENSE)
        end = start + 60 * DAY
        listed = [
            tick for tick in ticks_of_pattern(Pattern(zone, text, gap, overlap), start, end) if start < tick <= end
        ]
        assert listed == ticks_between(text, zone, start, end, gap, overlap), (text, gap, overlap)
