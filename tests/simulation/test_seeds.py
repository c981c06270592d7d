"""Whole clusters under drawn faults: `python -m tests.simulation.run --seed N` tells the story of a failing seed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import drawing
from tests.simulation.world import World

BUDGET_S = 15.0  # of CPU time: ten thousand are soaked
WALL_S = 60.0  # on a machine that is busy with something else
SEEDS_MIN = 10  # even then
SEEDS_MAX = 400
SOAKED = 10_000
WORDS = {"plain", "without-orders", "without-table-faults", "places"}  # of a line in seeds.txt, beside names of faults


def _known_seeds() -> list[str]:
    lines = (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def _run(
    seed: int, faults: str = "", *, plain: bool | None = None, orders: bool | None = None, hard: bool | None = None,
    places: bool | None = None,
) -> None:  # fmt: skip
    try:
        named = tuple(name for name in faults.split(",") if name)
        World(seed, faults=named, plain=plain, orders=orders, hard=hard, places=places).run()
    except Exception as error:
        command = f"python -m tests.simulation.run --seed {seed}" + (f" --faults {faults}" if faults else "")
        command += (" --plain" if plain else "") + (" --without-orders" if orders is False else "")
        command += (" --without-table-faults" if hard is False else "") + (" --places" if places else "")
        raise AssertionError(f"seed {seed} fails: {error}; see {command}") from error


@pytest.mark.parametrize("known", _known_seeds())
def test_seeds_that_once_failed(known: str) -> None:
    """A line begins with seed[:plain][:without-orders][:without-table faults][:places][:faults]."""
    seed, *told = known.split(":")
    faults = next((part for part in told if part not in WORDS), "")
    _run(
        int(seed), faults, plain=True if "plain" in told else None, orders=False if "without-orders" in told else None,
        hard=False if "without-table-faults" in told else None, places=True if "places" in told else None,
    )  # fmt: skip


def test_drawn_seeds() -> None:
    """As many as the time allows; others each time where DRAWN=1: the printed seed reproduces a failure."""
    first = drawing.seed(0)
    busy_until, ends = time.process_time() + BUDGET_S, time.monotonic() + WALL_S
    for number in range(SEEDS_MAX):
        if number >= SEEDS_MIN and (time.process_time() > busy_until or time.monotonic() > ends):
            break
        _run(first + number)


@pytest.mark.soak
def test_ten_thousand_seeds() -> None:
    """On all cores."""
    seeds, jobs = f"0-{SOAKED - 1}", str(os.cpu_count() or 1)
    command = [sys.executable, "-m", "tests.simulation.run", "--seeds", seeds, "--jobs", jobs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.stdout.splitlines()[-1].startswith(f"{SOAKED} seeds, 0 failed"), done.stdout


def test_same_seed_same_story_in_any_process() -> None:
    """Nothing depends on the hash seed, which orders sets of strings."""
    digests = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.simulation.run", "--seed", "4", "--quiet"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        digests.append(done.stdout)
    assert digests[0].startswith("seed 4 digest ")
    assert digests[0] == digests[1]
