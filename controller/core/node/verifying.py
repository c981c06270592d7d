"""Is what is held here still unfinished, and still this controller's?

Another controller may have ended an execution after its runner's stream to here broke. Or another controller adopted it
while this one slept or was cut off, and was taken for dead. Then the runner reports to the other one, and nobody tells
this one of the end. So a controller that hears that it was taken for dead looks at once. A runner forgets a run some
time after its end was acknowledged. So an execution that may have ended is looked up before it is dispatched again.
Executions that have been held for long are looked up now and then.
"""

from itertools import islice
from typing import Final

from cronring.controller.core.model import Execution
from cronring.controller.core.node.connected_runners import ConnectedRunners
from cronring.controller.core.node.context import MS, REFUSED_RETRY_NS, NodeContext
from cronring.controller.core.node.effects import FetchHeld
from cronring.controller.core.node.events import ExecutionsFetched, StoreFailed
from cronring.controller.core.node.holding import Holding
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.window import DueWindow

BATCH: Final = 5_000
DRAINING_INTERVAL_MS: Final = 2_000
# The news of this controller's death may come before the adoption that follows from it is committed.
DOUBT_ECHOES_MS: Final = (0, 2_000, 10_000)


class Verifying:
    """What is to be looked up, and one lookup under way."""

    __slots__ = (
        "_all_at_ns",
        "_asked",
        "_asked_ns",
        "_context",
        "_echoes_ns",
        "_holding",
        "_lease",
        "_not_before_ns",
        "_runners",
        "_wanted",
        "_window",
    )

    def __init__(
        self, context: NodeContext, window: DueWindow, lease: Lease, runners: ConnectedRunners, holding: Holding
    ) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._runners = runners
        self._holding = holding
        self._wanted: dict[int, None] = {}
        self._asked: tuple[int, ...] | None = None
        self._asked_ns = 0
        self._echoes_ns: list[int] = []
        self._not_before_ns = 0
        self._all_at_ns = context.now_ns + context.jittered_ns(context.settings.refetch_interval_ms)

    def next_deadline(self) -> int | None:
        if self._asked is not None or not self._context.store_ok:
            return None
        waiting = self._wanted and self._context.now_ns < self._not_before_ns
        return min([self._all_at_ns, *self._echoes_ns[:1], *([self._not_before_ns] if waiting else [])])

    # docs/decisions/0024: a controller that was taken for dead may wait for ends that nobody tells it
    def doubt(self) -> None:
        """Others took this controller for dead, or may have. They may have adopted what is held here, or do so soon."""
        self._echoes_ns = [self._context.now_ns + echo_ms * MS for echo_ms in DOUBT_ECHOES_MS]

    # docs/decisions/0025: what a runner gave back is sent again
    def dispatch_again(self, executions: list[Execution]) -> None:
        """Their runner is back, or declined them: dispatch again what is still unfinished.

        A look comes first. The runner may never have got a run, or have reported it elsewhere, or the run was declared
        lost.
        """
        self._holding.dispatch_later(executions)
        self._wanted.update((execution.execution_id, None) for execution in executions)

    def soon(self) -> None:
        """Draining: verify what is held more often."""
        self._all_at_ns = min(self._all_at_ns, self._context.now_ns + DRAINING_INTERVAL_MS * MS)

    def act(self) -> None:
        context = self._context
        while self._echoes_ns and self._echoes_ns[0] <= context.now_ns:
            del self._echoes_ns[0]
            self._wanted.update(dict.fromkeys(self._holding.executions))
        if context.now_ns >= self._all_at_ns:
            self._ask_for_old()
        # Without a lease nothing may be dispatched, and others may adopt these executions before the answer is here.
        if not self._wanted or self._asked is not None or not context.store_ok or not self._lease.valid:
            return
        if self._holding.adopting or context.now_ns < self._not_before_ns:
            return
        batch = list(islice(self._wanted, BATCH))
        for execution_id in batch:
            del self._wanted[execution_id]
        asked = tuple(sorted(execution_id for execution_id in batch if execution_id in self._holding.executions))
        if asked:
            self._asked, self._asked_ns = asked, context.now_ns
            context.effects.append(FetchHeld(context.request(self), asked))

    def _ask_for_old(self) -> None:
        context = self._context
        interval_ms = DRAINING_INTERVAL_MS if context.draining else context.settings.refetch_interval_ms
        self._all_at_ns = context.now_ns + context.jittered_ns(interval_ms)
        before_ns = context.now_ns - interval_ms * MS
        for execution_id, since_ns in self._holding.held_since_ns.items():
            # In the order in which they were last seen unfinished: all that follow are newer.
            if since_ns > before_ns:
                break
            self._wanted[execution_id] = None

    def fetched(self, event: ExecutionsFetched) -> None:
        """Release what has ended or is another controller's. Dispatch the rest, if its runner may not have it."""
        assert self._asked is not None, "executions fetched without asking"
        asked, self._asked = self._asked, None
        own = {execution.execution_id for execution in event.executions}
        to_dispatch: list[Execution] = []
        for execution_id in asked:
            execution = self._holding.executions.get(execution_id)
            if execution is None:
                continue
            # docs/decisions/0023: it may have been adopted after PostgreSQL answered this look: look again
            since_ns = self._holding.held_since_ns[execution_id]
            if execution_id not in own and (self._holding.adopting or since_ns > self._asked_ns):
                self._wanted[execution_id] = None
                continue
            # docs/decisions/0024: it ended elsewhere, or is another controller's. Nobody will tell this one of its end.
            if execution_id not in own:
                self._holding.release(execution_id)
                self._window.runner_away(execution.job.job_id)
                continue
            self._holding.touch(execution_id)
            if execution.runner_id in self._runners.by_id:
                self._window.runner_here(execution)
                if execution_id in self._holding.undispatched:
                    to_dispatch.append(execution)
        self._holding.dispatch(to_dispatch)

    def failed(self, event: StoreFailed) -> None:
        if not event.connection_lost:
            self._not_before_ns = self._context.now_ns + REFUSED_RETRY_NS
        # Ask again: runs that are to be dispatched wait for this answer.
        self._wanted.update(dict.fromkeys(self._asked or ()))
        self._asked = None
