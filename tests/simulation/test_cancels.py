"""Executions cancelled under drawn faults: the invariants hold as ever, and what is marked stops."""

import time

import pytest

from tests import drawing
from tests.simulation.world import World

BUDGET_S = 12.0
SEEDS_MIN = 15
SEEDS_MAX = 150


def _run(seed: int) -> int:
    world = World(seed, cancels=True)
    try:
        world.run()
    except Exception as error:
        command = f"python -m tests.simulation.run --seed {seed} --cancels"
        raise AssertionError(f"seed {seed} fails: {error}; see {command}") from error
    assert world.cancels is not None
    return world.cancels.cancelled


def test_what_is_cancelled_stops_whatever_else_happens() -> None:
    first = drawing.seed(0)
    cancelled, ends = 0, time.monotonic() + BUDGET_S
    for number in range(SEEDS_MAX):
        if number >= SEEDS_MIN and time.monotonic() > ends:
            break
        cancelled += _run(first + number)
    assert cancelled > SEEDS_MIN


@pytest.mark.soak
def test_two_thousand_seeds() -> None:
    for seed in range(2_000):
        _run(seed)
