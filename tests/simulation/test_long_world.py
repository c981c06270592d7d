"""Ten minutes of faults and operators in one world; the whole two hours are `make chaos`."""

import pytest

from tests import drawing
from tests.simulation.long_world import LongWorld

SECONDS = 600.0
HOURS_S = 7_200.0
KEPT = (
    (644324651, SECONDS),  # a move of a job's next run that PostgreSQL had ignored, as it was paused meanwhile
    (118, 180.0),  # ticks that awaited a retry, which began late: the checker took them for skipped without a reason
    (144, 180.0),  # ticks that buffer_all had kept, until the policy was changed: again a reason that it didn't know
)


def _run(seed: int, seconds: float) -> LongWorld:
    world = LongWorld(seed, seconds=seconds)
    try:
        world.run()
    except Exception as error:
        command = f"python -m tests.simulation.run --seed {seed} --hours {seconds / 3_600:g}"
        raise AssertionError(f"seed {seed} fails: {error}; see {command}") from error
    return world


def test_ten_minutes_end_with_a_clean_audit() -> None:
    world = _run(drawing.seed(1), SECONDS)
    store = world.database.store
    assert len(store.executions) > SECONDS
    actions = {action.action for action in store.actions}
    orders = {"pause", "resume", "skip_next", "cancel", "restore", "cancel_execution", "retry_execution", "activate"}
    assert orders <= actions, f"not ordered: {orders - actions}"


@pytest.mark.parametrize(("seed", "seconds"), KEPT)
def test_worlds_that_once_failed(seed: int, seconds: float) -> None:
    _run(seed, seconds)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_two_hours_end_with_a_clean_audit() -> None:
    _run(drawing.seed(1), HOURS_S)
