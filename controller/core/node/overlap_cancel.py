"""Overlap `cancel_running`: when the next tick is due, the controller that holds the run before cancels that run.

Its end then says what comes next, as any end does (schema.timetable: the tick that cut it runs at once). A run may last
for hours, and its job may be paused, removed or changed meanwhile. So the row is read again when the tick is due.
"""

from typing import Final

from cronring.controller.core import ticks
from cronring.controller.core.model import Execution
from cronring.controller.core.node.cancelling import Cancelling
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import FetchHeld, Level
from cronring.controller.core.node.events import ExecutionsFetched, StoreFailed
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.timers import Timers

REASON: Final = "the next tick is due, and overlap is cancel_running"
RETRY_US: Final = 500_000


class OverlapCancel:
    """Executions that are to be cancelled at an instant, and one read of rows under way."""

    __slots__ = ("_asked", "_cancelling", "_context", "_held", "_lease", "_timers")

    def __init__(self, context: NodeContext, lease: Lease, cancelling: Cancelling) -> None:
        self._context = context
        self._lease = lease
        self._cancelling = cancelling
        self._timers = Timers()
        self._held: dict[int, Execution] = {}
        self._asked: tuple[int, ...] = ()

    def next_us(self) -> int | None:
        return None if self._asked or not self._can_ask() else self._timers.next_us()

    def held(self, execution: Execution) -> None:
        """Watch it, if its job's policy asks for that."""
        if not execution.holds_job or not ticks.cuts(execution.job):
            return
        due_us = ticks.cut_at(execution)
        if due_us is not None:
            self._held[execution.execution_id] = execution
            self._timers.arm(execution.execution_id, due_us)

    def released(self, execution_id: int) -> None:
        if self._held.pop(execution_id, None) is not None:
            self._timers.disarm(execution_id)

    def _can_ask(self) -> bool:
        """Without a lease or PostgreSQL, nobody here claims the next tick. So the run may go on."""
        return self._context.store_ok and self._lease.valid

    def act(self) -> None:
        """Read the rows of the executions whose time has come."""
        if self._asked or not self._can_ask():
            return
        self._asked = tuple(sorted(self._timers.pop_due(self._context.now_us)))
        if self._asked:
            self._context.effects.append(FetchHeld(self._context.request(self), self._asked))

    def fetched(self, event: ExecutionsFetched) -> None:
        """Cancel what the next tick still cuts. If that tick comes later by now, wait for it."""
        asked, self._asked = self._asked, ()
        known = {execution.execution_id: execution for execution in event.executions}
        for execution_id in asked:
            if execution_id not in self._held:
                continue
            execution = known.get(execution_id)
            if execution is None:
                # It has ended, or is another's. An adoption may give it back; else it is soon let go (verifying.py).
                self._timers.arm(execution_id, self._context.now_us + RETRY_US)
                continue
            due_us = self._due(execution)
            if due_us is None:
                del self._held[execution_id]
            elif due_us > self._context.now_us:
                self._timers.arm(execution_id, due_us)
            else:
                del self._held[execution_id]
                self._context.log(Level.INFO, "cut", job=execution.job.key, execution=execution_id)
                self._cancelling.cancel(execution, REASON)

    def _due(self, execution: Execution) -> int | None:
        """When the next tick cuts the run, by its job's row. Without a next tick: when to ask again, as it may be
        resumed.
        """
        if not ticks.cuts(execution.job):
            return None
        if execution.job.next_tick is not None:
            return ticks.cut_at(execution)
        following = ticks.following(execution.job, self._context.now_us)
        return None if following is None else max(following.run_at, self._context.now_us + RETRY_US)

    def failed(self, _: StoreFailed) -> None:
        asked, self._asked = self._asked, ()
        for execution_id in asked:
            if execution_id in self._held:
                self._timers.arm(execution_id, self._context.now_us + RETRY_US)
