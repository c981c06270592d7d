"""An operator who cancels what runs, in the middle of everything else: whoever is asked, and whatever gets lost."""

import random
from functools import partial
from typing import TYPE_CHECKING, Final

from cronring.controller.core.node.events import CancelsAsked, CancelsNotified
from cronring.controller.store.memory.rows import StoredExecution
from cronring.schema.execution import Outcome
from cronring.virtual.clock import SECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

CANCELS: Final = 30
EVERY_NS: Final = 3 * SECOND  # on average, in worlds that last
# The next renewal names it, its runner is told, and stops it within the grace.
STOPPED_WITHIN_US: Final = 1_500_000 + 2_000_000


class Cancels:
    """Has draws of its own, so that a seed without it stays what it is."""

    def __init__(self, world: "World", until_ns: int) -> None:
        self._world = world
        self._rng = random.Random(f"cancels {world.seed}")
        self.marked_us: dict[int, int] = {}
        world.database.store.on_cancels = self._notify
        for _ in range(max(CANCELS, until_ns // EVERY_NS)):
            world.clock.call_after(int(self._rng.uniform(2 * SECOND, until_ns)), self._cancel)

    def _cancel(self) -> None:
        world = self._world
        waiting = [row for row in world.database.store.unfinished.values() if row.cancel is None]
        if not waiting:
            return
        row = self._rng.choice(waiting)
        execution_id = row.execution_id

        def answered(result: object) -> None:
            able = [controller for controller in world.controllers if controller.alive and not controller.stopped]
            if result is True and row.cancel is not None and able and self._rng.random() < 0.8:
                self._rng.choice(able).put(CancelsAsked([row.cancel]))

        world.log(f"OPERATOR cancels {execution_id}")
        world.database.ask("operator", lambda store: store.cancel_execution(execution_id, "operator", ""), answered)

    def _notify(self) -> None:
        """As of the mark itself, whether or not its answer arrives."""
        world = self._world
        now_us = world.database.now_us()
        for row in world.database.store.unfinished.values():
            if row.cancel is not None:
                self.marked_us.setdefault(row.execution_id, now_us)
        for controller in world.controllers:
            if controller.alive and self._rng.random() >= world.notify_loss:
                world.clock.call_after(int(self._rng.random() * SECOND // 100), partial(controller.put, NOTIFIED))

    def check(self, calm_since_us: int) -> None:
        """What was marked has ended, and in quiet times soon: on a runner that lives, in nobody else's stead."""
        world = self._world
        store, now_us = world.database.store, world.database.now_us()
        living = [runner.name for runner in world.runners if runner.alive]
        for execution_id, marked_us in self.marked_us.items():
            row = store.executions[execution_id]
            if row.runner_id not in living or now_us - marked_us < 2 * STOPPED_WITHIN_US:
                continue
            if marked_us < calm_since_us:
                assert not world.journal.is_running(execution_id), f"cancelled, and runs: {row}"
            else:
                self._check_soon(row, marked_us)

    def _check_soon(self, row: StoredExecution, marked_us: int) -> None:
        if row.execution_id not in self._world.journal.started_us:
            assert row.outcome is Outcome.CANCELLED, f"cancelled before it began, and not ended: {row}"
            return
        _, finished_us, outcome = self._world.journal.finished.get(row.execution_id, ("", 0, None))
        assert outcome is not None, f"cancelled, and runs: {row}"
        assert finished_us - marked_us <= STOPPED_WITHIN_US, f"cancelled {finished_us - marked_us} us ago: {row}"

    @property
    def cancelled(self) -> int:
        """How many of the marked ones were stopped for it."""
        rows = (self._world.database.store.executions[execution_id] for execution_id in self.marked_us)
        return sum(row.outcome is Outcome.CANCELLED for row in rows)


NOTIFIED: Final = CancelsNotified()
