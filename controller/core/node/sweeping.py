"""Executions that nobody else ends: those of dead controllers, of lost runners, and those past their hard timeout.

Nothing here polls: the lease's renewal says each second whether there is anything to sweep. When SWIM declares a member
dead, or the member leaves, one controller adopts from it at once: its successor in the order of ids. If the successor
fails, the renewals of all others name the dead controller as soon as its lease is over. A runner may also lose contact
to a controller that lives. Then the runner asks another controller to take over what that one held for it.
"""

from typing import Final

from cronring.controller.core.model import Execution, LeaseRenewal
from cronring.controller.core.node.connected_runners import ConnectedRunners
from cronring.controller.core.node.context import MS, REFUSED_RETRY_NS, NodeContext
from cronring.controller.core.node.effects import Adopt, CancelRuns, FetchLost, FetchOverdueExecutions, Level
from cronring.controller.core.node.ending import Ending
from cronring.controller.core.node.events import Adopted, ExecutionsFetched, StoreFailed
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.window import DueWindow
from cronring.schema.duration import measured
from cronring.schema.execution import Outcome

# A statement whose connection broke may still run, and commit later. So look more than once for what it claimed.
DOUBT_ECHOES_MS: Final = (0, 2_000, 10_000, 30_000)
LOST_GRID_NS: Final = 100 * MS  # runners that left within so long are looked for together


class Sweeping:
    """Requests of each kind, at most one under way."""

    __slots__ = (
        "_adopt",
        "_adopting",
        "_context",
        "_echoes_ns",
        "_ending",
        "_holding",
        "_lease",
        "_leave_ns",
        "_losing",
        "_not_before_ns",
        "_overdue",
        "_runners",
        "_suspects",
        "_taking_over",
        "_window",
    )

    def __init__(
        self,
        context: NodeContext,
        window: DueWindow,
        lease: Lease,
        runners: ConnectedRunners,
        holding: Holding,
        ending: Ending,
    ) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._runners = runners
        self._holding = holding
        self._ending = ending
        self._adopt: dict[str, None] = {}
        self._echoes_ns: list[int] = []
        self._not_before_ns = 0  # of adoptions
        self._taking_over: dict[str, tuple[str, ...]] = {}  # runner id -> ids of controllers that it has lost
        self._leave_ns: dict[str, int] = {}  # runner id -> when it may be declared lost, unless it is back
        self._adopting: Adopt | None = None
        self._losing: int | None = None
        self._suspects: list[Execution] = []
        self._overdue: int | None = None

    @property
    def idle(self) -> bool:
        """No adoption under way or asked for."""
        return self._adopting is None and not self._adopt and not self._echoes_ns

    def adopt_from(self, controller_ids: tuple[str, ...]) -> None:
        """Adopt what these controllers hold. A draining controller doesn't: others learn of it from their renewals."""
        # It would have to hand over at once what it adopts.
        if self._context.draining:
            return
        self._adopt.update(dict.fromkeys(controller_ids))

    # docs/decisions/0039: both may live, and still not reach each other
    def take_over(self, runner_id: str, controller_ids: tuple[str, ...]) -> None:
        """A runner that is connected here has lost these controllers. It asks again as long as that lasts."""
        others = tuple(each for each in controller_ids if each != self._context.controller_id)
        if others and not self._context.draining:
            self._taking_over[runner_id] = others

    def runner_left(self, runner_id: str) -> None:
        """A runner left, and executions on it are held here. Renew as soon as the runner may be lost."""
        lost_ns = self._context.now_ns + self._context.settings.runner_lost_after_ms * MS
        self._leave_ns[runner_id] = (lost_ns // LOST_GRID_NS + 2) * LOST_GRID_NS

    # docs/decisions/0057: a failed claim may have been committed
    def doubt(self) -> None:
        """A claim (or an adoption) failed, and may have been committed: adopt from itself, more than once."""
        now_ns = self._context.now_ns
        self._echoes_ns = [now_ns + echo_ms * MS for echo_ms in DOUBT_ECHOES_MS]

    def next_deadline(self) -> int | None:
        context = self._context
        deadlines = self._echoes_ns[:1]
        if self._leave_ns:
            deadlines.append(min(self._leave_ns.values()))
        wanted = self._adopt or self._taking_over
        if wanted and self._adopting is None and self._lease.valid and context.now_ns < self._not_before_ns:
            deadlines.append(self._not_before_ns)
        return min(deadlines) if deadlines and context.store_ok else None

    def renewed(self, renewal: LeaseRenewal) -> None:
        """Sweep what a renewal names."""
        context = self._context
        self.adopt_from(renewal.dead_controllers)
        suspects, self._suspects = self._suspects, []
        if self._may_declare_lost():
            self._end_lost(suspects)
        # docs/decisions/0018: this renewal confirmed the suspects of the one before. New suspects need their own
        # renewal.
        if renewal.lost_runners and self._losing is None and not suspects and self._may_declare_lost():
            self._losing = context.request(self)
            context.effects.append(FetchLost(self._losing, context.settings.runner_lost_after_ms))
        if renewal.overdue_executions and self._overdue is None and self._had_time_to_return():
            self._overdue = context.request(self)
            context.effects.append(FetchOverdueExecutions(self._overdue))

    # docs/decisions/0026: results may be on their way
    def _had_time_to_return(self) -> bool:
        """Whether runners that lived through an outage have had time to be seen again: as long as they have without an
        outage.

        They may hold the result of a run whose hard timeout passed during the outage.
        """
        return self._lease.unbroken_ns() >= self._context.settings.runner_lost_after_ms * MS

    # docs/decisions/0018: a step of the clock makes living runners look dead
    def _may_declare_lost(self) -> bool:
        """Whether runners that were not seen may be declared lost: they had time to return.

        How long a runner was not seen is PostgreSQL's time, while runners fence themselves by monotonic clocks. Both
        agree only if PostgreSQL's clock was not set during that time.
        """
        context = self._context
        stepped_ns = context.clock.stepped_ns
        steady = stepped_ns is None or context.now_ns - stepped_ns >= context.settings.runner_lost_after_ms * MS
        return steady and self._had_time_to_return()

    def act(self) -> None:
        context = self._context
        if not context.store_ok:
            return
        while self._echoes_ns and self._echoes_ns[0] <= context.now_ns:
            del self._echoes_ns[0]
            self._adopt[context.controller_id] = None
        self._look_for_the_lost()
        if context.now_ns < self._not_before_ns:
            return
        if self._adopting is None and self._lease.valid:
            self._adopt_some()

    def _look_for_the_lost(self) -> None:
        now_ns = self._context.now_ns
        due = [runner_id for runner_id, lost_ns in self._leave_ns.items() if lost_ns <= now_ns]
        for runner_id in due:
            del self._leave_ns[runner_id]
        # The silence here proves nothing: the runner may beat elsewhere. Only a renewal tells which runners are lost.
        if any(runner_id not in self._runners.by_id for runner_id in due):
            self._lease.renew_soon()

    def _adopt_some(self) -> None:
        """Adopt from controllers that are gone. If there are none: what runners have asked for, in one statement."""
        runner_ids: tuple[str, ...] = ()
        if self._adopt:
            controller_ids = tuple(sorted(self._adopt))
            self._adopt.clear()
        elif self._taking_over:
            lost = {each for controller_ids in self._taking_over.values() for each in controller_ids}
            controller_ids, runner_ids = tuple(sorted(lost)), tuple(sorted(self._taking_over))
            self._taking_over.clear()
        else:
            return
        self._adopting = Adopt(self._context.request(self), controller_ids, runner_ids)
        # docs/decisions/0023: ends may be committed while the answer is on its way
        self._holding.watch_releases()
        self._context.effects.append(self._adopting)

    # docs/decisions/0023: what was released since the request must not be held again
    def adopted(self, event: Adopted) -> None:
        """Hold the adopted executions, and dispatch them again: their runner knows whether it has them.

        But an execution that ended here after PostgreSQL had answered is not held: nobody would ever report it again.
        """
        assert self._adopting is not None, "adopted without asking"
        controller_ids = self._adopting.controller_ids
        self._adopting = None
        known, released = self._holding.executions, self._holding.releases()
        new = [
            each for each in event.executions if each.execution_id not in known and each.execution_id not in released
        ]
        for execution in event.executions:
            self._holding.touch(execution.execution_id)
        for execution in new:
            self._holding.adopt(execution)
            if execution.runner_id in self._runners.by_id:
                self._window.runner_here(execution)
        self._context.stats.adopted += len(new)
        if new:
            self._context.log(Level.INFO, "adopted", executions=len(new), controllers=", ".join(controller_ids))
        self._holding.dispatch(new)

    def fetched(self, event: ExecutionsFetched) -> None:
        if event.request_id == self._losing:
            # One more renewal at once: it shows whether PostgreSQL's clock was set just before this answer.
            self._losing = None
            self._suspects = event.executions
            self._lease.renew_soon()
        else:
            self._overdue = None
            self._end_overdue(event.executions)

    def _end_lost(self, executions: list[Execution]) -> None:
        after_ms = self._context.settings.runner_lost_after_ms
        ended = 0
        for execution in executions:
            message = f"runner {execution.runner_id} has not been seen for more than {measured(after_ms)}"
            ended += self._ending.declare(execution, Outcome.LOST, "RunnerLost", message)
        self._context.stats.lost += ended
        if ended:
            runners = ", ".join(dict.fromkeys(execution.runner_id for execution in executions[:10]))
            self._context.log(Level.WARNING, "executions_lost", executions=ended, runners=runners)

    def _end_overdue(self, executions: list[Execution]) -> None:
        cancelled: dict[str, list[int]] = {}
        grace_ms = self._context.settings.hard_timeout_grace_ms
        for execution in executions:
            if not self._is_overdue(execution):
                continue
            limit = f"its timeout of {measured(execution.job.timeout_ms)}"
            error_type, message = "TimedOut", f"no consumer ended it within {limit}"
            if execution.runner_id:
                error_type, message = "HardTimeout", f"nobody ended it within {limit} and {measured(grace_ms)} of grace"
            if not self._ending.declare(execution, Outcome.TIMED_OUT, error_type, message):
                continue
            self._context.stats.hard_timeouts += 1
            self._context.log(Level.WARNING, "hard_timeout", job=execution.job.key, execution=execution.execution_id)
            if execution.runner_id in self._runners.by_id:
                cancelled.setdefault(execution.runner_id, []).append(execution.execution_id)
        for runner_id, execution_ids in cancelled.items():
            self._context.effects.append(CancelRuns(runner_id, tuple(execution_ids), "hard timeout"))

    def _is_overdue(self, execution: Execution) -> bool:
        """Whether its time is over, without the time by which PostgreSQL's clock was only set forward."""
        clock = self._context.clock
        grace_ms = self._context.settings.hard_timeout_grace_ms if execution.runner_id else 0
        limit_us = (execution.job.timeout_ms + grace_ms) * 1_000
        passed_us = self._context.now_us - execution.claimed_at
        return passed_us - clock.stepped_forward_since_us(execution.claimed_at) >= limit_us

    def failed(self, event: StoreFailed) -> None:
        """Later renewals name again what there is to sweep, and runners ask again.

        A failed adoption may have been committed. Then this controller holds executions that it doesn't know of
        (`doubt`).
        """
        if self._adopting is not None and event.request_id == self._adopting.request_id:
            # Runners ask again by themselves, as long as they miss somebody (docs/decisions/0039).
            if not self._adopting.runner_ids:
                self.adopt_from(self._adopting.controller_ids)
            if event.connection_lost and self._adopting.controller_ids != (self._context.controller_id,):
                self.doubt()
            self._adopting = None
            self._holding.releases()
            if not event.connection_lost:
                self._not_before_ns = self._context.now_ns + REFUSED_RETRY_NS
        elif event.request_id == self._losing:
            self._losing = None
        else:
            self._overdue = None
