"""Declared jobs go and come back as operators left them, under faults; and the checker of that bites."""

import pytest

from cronring.controller.core.orders.taking_over import KEPT
from tests.simulation.taken_over import check_taken_over
from tests.simulation.world import World

SEED = 33  # one of those in which a cancelled job comes back
SLACK_US = 10_000_000


def test_the_checker_bites() -> None:
    world = World(SEED)
    world.run()
    store = world.database.store
    check_taken_over(store, SLACK_US)
    kept = [row for row in store.actions if row.action in KEPT]
    assert kept, f"nothing was taken over in world {SEED}: choose another one"
    store.actions.remove(kept[0])
    with pytest.raises(AssertionError, match="it was cancelled"):
        check_taken_over(store, SLACK_US)
    store.actions.append(kept[0])
    left = max(
        (row for row in store.jobs.values() if row.key == store.jobs[kept[0].job_id or 0].key and row.removed),
        key=lambda row: row.job_id,
    )
    left.cancelled_at = None
    with pytest.raises(AssertionError, match="nothing was to be taken over"):
        check_taken_over(store, SLACK_US)
