"""Overlap `cancel_running`: when the next tick is due, the run before it is cancelled, by whoever holds it.

Its end then says what comes next, as any end does (schema.timetable: the tick that cut it runs at once).
"""

from typing import Final

from controller.core import ticks
from controller.core.cancelling import Cancelling
from controller.core.desk import Desk
from controller.core.effects import Level
from controller.core.model import Execution
from controller.core.timers import Timers

REASON: Final = "the next tick is due, and overlap is cancel_running"


class Cutting:
    """Executions that are to be cancelled at an instant."""

    __slots__ = ("_cancelling", "_desk", "_held", "_timers")

    def __init__(self, desk: Desk, cancelling: Cancelling) -> None:
        self._desk = desk
        self._cancelling = cancelling
        self._timers = Timers()
        self._held: dict[int, Execution] = {}

    def next_us(self) -> int | None:
        return self._timers.next_us()

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

    def turn(self) -> None:
        """Have cancelled what is due."""
        for execution_id in self._timers.pop_due(self._desk.now_us):
            execution = self._held.pop(execution_id)
            self._desk.note(Level.INFO, "cut", job=execution.job.key, execution=execution_id)
            self._cancelling.cancel(execution, REASON)
