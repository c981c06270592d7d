"""Runs that are to stop: somebody wants an execution cancelled, or the next tick of its job cuts it short.

Whoever holds an execution asks its runner, at once and every two seconds until it has ended: a runner that was away, or
didn't hear, is asked again. It stops the run softly, and kills its child after the grace. A cancellation is a mark on
the execution, which each renewal of the lease names. So the controller that holds the execution by then acts on it. The
controller that was asked also tells the runner, if the runner is connected here: asking twice is harmless.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from cronring.controller.core.model import CancelRequest, Execution
from cronring.controller.core.node.connected_runners import ConnectedRunners
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import CancelRuns, Level
from cronring.controller.core.node.follow_ups import NONE, FollowUps, Withdrawn
from cronring.controller.core.node.timers import Timers

REPEAT_US: Final = 2_000_000


class _Wanted(NamedTuple):
    runner_id: str
    reason: str


class Cancelling:
    """Held executions that are to stop, until they have ended."""

    __slots__ = ("_by_request", "_context", "_due", "_once", "_runners", "_timers", "_wanted")

    def __init__(self, context: NodeContext, runners: ConnectedRunners) -> None:
        self._context = context
        self._runners = runners
        self._wanted: dict[int, _Wanted] = {}
        self._by_request: dict[int, None] = {}  # those that a mark asks for
        self._due: dict[int, None] = {}
        self._once: dict[int, _Wanted] = {}  # held by another controller: asked for once, without repeats
        self._timers = Timers()

    def next_us(self) -> int | None:
        return self._timers.next_us()

    def requested(self) -> tuple[int, ...]:
        """Executions whose marks this controller knows of."""
        return tuple(sorted(self._by_request))

    def cancel(self, execution: Execution, reason: str) -> None:
        """Ask its runner from now on, until it has ended. Of several reasons the first is told."""
        execution_id = execution.execution_id
        if execution_id not in self._wanted:
            self._wanted[execution_id] = _Wanted(execution.runner_id, reason)
            self._due[execution_id] = None

    def asked(self, cancels: Iterable[CancelRequest], held: Mapping[int, Execution]) -> None:
        """Somebody wants these cancelled. What isn't held here (yet) is asked for only once."""
        for each in cancels:
            execution = held.get(each.execution_id)
            if execution is None:
                self._once[each.execution_id] = _Wanted(each.runner_id, each.reason)
                continue
            if each.execution_id not in self._by_request:
                self._by_request[each.execution_id] = None
                self._context.log(
                    Level.INFO, "cancelling", job=execution.job.key, execution=each.execution_id, by=each.by
                )
            self.cancel(execution, each.reason)

    def runner_joined(self, runner_id: str) -> None:
        """Ask it again: what was sent to its stream before may be lost."""
        self._due.update((each, None) for each, wanted in self._wanted.items() if wanted.runner_id == runner_id)

    def released(self, execution_id: int) -> None:
        """It has ended, or somebody else answers for it."""
        if self._wanted.pop(execution_id, None) is not None:
            self._by_request.pop(execution_id, None)
            self._due.pop(execution_id, None)
            self._timers.disarm(execution_id)

    def act(self) -> FollowUps:
        """Ask the connected runners, one effect for each runner and reason. Messages are withdrawn instead."""
        context = self._context
        self._due.update(dict.fromkeys(self._timers.pop_due(context.now_us)))
        if not self._due and not self._once:
            return NONE
        repeat_us = context.now_us + REPEAT_US
        asked: dict[_Wanted, list[int]] = {}
        for execution_id in self._due:
            asked.setdefault(self._wanted[execution_id], []).append(execution_id)
            self._timers.arm(execution_id, repeat_us)
        due = [(each, self._wanted[each]) for each in self._due]
        withdrawn = [Withdrawn(each, wanted.reason) for each, wanted in due if not wanted.runner_id]
        for execution_id, wanted in self._once.items():
            asked.setdefault(wanted, []).append(execution_id)
        self._due.clear()
        self._once.clear()
        for wanted, execution_ids in asked.items():
            if wanted.runner_id in self._runners.by_id:
                ids, grace_ms = tuple(execution_ids), context.settings.cancel_grace_ms
                context.effects.append(CancelRuns(wanted.runner_id, ids, wanted.reason, grace_ms))
        return withdrawn
