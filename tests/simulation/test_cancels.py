"""Executions cancelled under drawn faults: the invariants hold as ever, and what is marked stops."""

import pytest

from tests import drawing
from tests.simulation.world import World

SEEDS = 20


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
    assert sum(_run(seed) for seed in range(first, first + SEEDS)) > SEEDS


@pytest.mark.soak
def test_two_thousand_seeds() -> None:
    for seed in range(2_000):
        _run(seed)
