"""The rest of the table of faults: worlds of each kind hold, and checkers notice when what holds them is taken away."""

import os
import subprocess
import sys

import pytest

from tests.simulation.sabotage import BY_NAME, KNOWN, SABOTAGES, found
from tests.simulation.table_faults import TABLE_FAULTS, draw
from tests.simulation.takeover import TakeoverWorld
from tests.simulation.world import World

SEEDS_OF_A_KIND = 1  # beside those that test_seeds.py draws, of which every other one has a few kinds


@pytest.mark.parametrize("name", [kind.__name__ for _, kind in TABLE_FAULTS])
def test_worlds_of_one_kind(name: str) -> None:
    for seed in range(SEEDS_OF_A_KIND):
        world = World(seed, faults=(name,))
        world.run()
        assert world.hard


@pytest.mark.parametrize("seed", range(4))
def test_no_tick_is_a_second_late_when_a_controller_dies(seed: int) -> None:
    TakeoverWorld(seed).run()


@pytest.mark.parametrize("name", KNOWN)
def test_without_a_protection_a_checker_says_so(name: str) -> None:
    """`python -m tests.simulation.sabotage` lists such seeds."""
    seed, says = KNOWN[name]
    sabotage = BY_NAME[name]
    sabotage.world(seed).run()
    assert says in found(sabotage, seed)


def test_each_protection_has_its_seed() -> None:
    assert [sabotage.name for sabotage in SABOTAGES] == list(KNOWN)


def test_same_seed_same_story_with_table_faults_in_any_process() -> None:
    seed = next(seed for seed in range(100) if draw(seed))
    digests = set()
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.simulation.run", "--seed", str(seed), "--quiet"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.startswith(f"seed {seed} digest ")
        digests.add(done.stdout)
    assert len(digests) == 1
