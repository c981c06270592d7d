"""Queues in worlds of drawn faults: kills, cuts, stopped clocks, and a database that is away."""

import pytest

from tests import drawing
from tests.simulation.queued import Queued
from tests.simulation.world import World

SEEDS = 5


def _run(seed: int) -> Queued:
    world = World(seed, plain=True, places=False)
    queued = Queued(world)
    try:
        world.run()
        queued.check()
    except Exception as error:
        raise AssertionError(f"seed {seed} fails: {error}") from error
    assert len(world.database.store.put) > 20
    return queued


def test_each_tick_that_runs_has_one_message_whatever_else_happens() -> None:
    first = drawing.seed(0)
    assert sum(_run(seed).consumed for seed in range(first, first + SEEDS)) > 20 * SEEDS


@pytest.mark.soak
def test_two_thousand_seeds() -> None:
    for seed in range(2_000):
        _run(seed)
