"""Of the runs that wait for a child, which goes first."""

from cronring.runner.held import Held
from cronring.runner.pool import ChildLane
from cronring.schema.execution import Run

S_US = 1_000_000


def _held(number: int, run_at_us: int, priority: int = 0) -> Held:
    run = Run(number, number, "m.j", "d", "j", run_at_us, run_at_us, run_at_us, 0, 1, "schedule", finish=False)
    return Held(run._replace(priority=priority))


def _order(lane: ChildLane) -> list[int]:
    return [held.run.execution_id for held in lane.waiting]


def test_without_priorities_runs_wait_in_the_order_in_which_they_came() -> None:
    lane = ChildLane(1)
    lane.enqueue([_held(2, 5), _held(1, 3)])
    lane.enqueue([_held(3, 1)])
    assert _order(lane) == [2, 1, 3]


def test_a_higher_priority_goes_before_what_waits_already() -> None:
    lane = ChildLane(1)
    lane.enqueue([_held(1, 0), _held(2, 0)])
    lane.enqueue([_held(3, S_US, priority=5), _held(4, S_US, priority=-10)])
    lane.enqueue([_held(5, 2 * S_US)])
    assert _order(lane) == [3, 1, 2, 5, 4]


def test_what_has_waited_for_longer_than_the_levels_between_them_goes_first() -> None:
    lane = ChildLane(1)
    lane.enqueue([_held(1, 0)])
    lane.enqueue([_held(2, 5 * S_US, priority=5), _held(3, 6 * S_US, priority=5)])
    assert _order(lane) == [1, 2, 3]


def test_order_is_that_of_coming_again_once_all_priorities_have_left() -> None:
    lane = ChildLane(1)
    lane.enqueue([_held(1, 0, priority=5)])
    lane.waiting.clear()
    lane.enqueue([_held(3, 9), _held(2, 1)])
    assert _order(lane) == [3, 2]
