"""What must be so again a while after the last fault: `RECOVERY_NS` of world.py is the stated bound, in every world.

Rings and leases, and that ticks are on time, is judged by `checkers.check_converged`. Here: that nothing is left lying
which nobody would ever look at again before its hard timeout.
"""

from typing import TYPE_CHECKING, Final

from cronring.controller.core.node.window import Stage
from cronring.schema.execution import Outcome

if TYPE_CHECKING:
    from tests.simulation.world import World

UNDER_WAY_US: Final = 2_000_000  # claimed, adopted or ended just now: its controller's answer may still be on its way


def check_liveness(world: "World") -> None:
    _check_held(world)
    _check_entries(world)
    _check_begun(world)


def _check_held(world: "World") -> None:
    """Each execution that has not ended is answered for by a controller that lives."""
    alive = {controller.name: controller.node for controller in world.controllers if controller.alive}
    held = {execution_id for node in alive.values() for execution_id in node._parts.holding.executions}
    now_us = world.database.now_us()
    for row in world.database.store.unfinished.values():
        if row.claimed_at > now_us - UNDER_WAY_US and row.execution_id > world.database.stepped_after:
            continue
        finished = world.journal.finished.get(row.execution_id)
        if finished is not None and finished[1] > now_us - UNDER_WAY_US:
            continue
        assert row.controller_id in alive, f"held by nobody: {row}, whose controller is gone"
        assert row.execution_id in held, f"held by nobody: {row}, though {row.controller_id} lives"


def _check_entries(world: "World") -> None:
    """Who waits for an execution's end waits for one that there is."""
    store = world.database.store
    running = {row.job.job_id for row in store.unfinished.values()}
    settled_us = world.database.now_us() - UNDER_WAY_US
    just_ended = {
        row.job.job_id for row in store.executions.values() if store.ended_us.get(row.execution_id, 0) > settled_us
    }
    for controller in world.controllers:
        if not controller.alive:
            continue
        for job_id, entry in controller.node._parts.window.entries.items():
            waits = entry.stage is Stage.RUNNING and job_id not in running | just_ended
            assert not waits, f"entry stuck: {controller.name} waits for an end of {entry.job.key}, which doesn't run"


def _check_begun(world: "World") -> None:
    """What is claimed in quiet times begins, and is not taken for late on its arrival."""
    for row in world.database.store.executions.values():
        if row.execution_id <= world.database.stepped_after or row.claimed_at < world.settled_us:
            continue
        begun = row.execution_id in world.journal.started_us
        late = row.outcome is Outcome.TIMED_OUT and not begun
        assert not late, f"not begun: {row} was past its deadline when it got there, in quiet times"
