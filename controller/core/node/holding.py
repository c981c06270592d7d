"""The executions this controller answers for: claimed or adopted by it, and not ended yet."""

from collections.abc import Collection, Iterable
from itertools import repeat

from cronring.controller.core.model import Execution
from cronring.controller.core.node.cancelling import Cancelling
from cronring.controller.core.node.connected_runners import ConnectedRunners
from cronring.controller.core.node.context import NodeContext
from cronring.controller.core.node.effects import Dispatch
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.overlap_cancel import OverlapCancel


class Holding:
    """By id and by runner. Which of them a runner really runs, only the runner knows."""

    __slots__ = (
        "_by_runner",
        "_cancelling",
        "_context",
        "_lease",
        "_overlap_cancel",
        "_released",
        "_runners",
        "executions",
        "held_since_ns",
        "stale",
        "undispatched",
    )

    def __init__(
        self,
        context: NodeContext,
        lease: Lease,
        runners: ConnectedRunners,
        overlap_cancel: OverlapCancel,
        cancelling: Cancelling,
    ) -> None:
        self._lease = lease
        self._overlap_cancel = overlap_cancel
        self._cancelling = cancelling
        self._context = context
        self._runners = runners
        self.executions: dict[int, Execution] = {}
        self.held_since_ns: dict[int, int] = {}  # in the order of holding, so the oldest stand first
        self.undispatched: dict[int, None] = {}  # to be verified, and dispatched, when that is possible
        self.stale: dict[int, None] = {}  # held with an outdated job: to be fetched again before it is ended
        self._released: dict[int, None] | None = None  # see watch_releases
        self._by_runner: dict[str, dict[int, Execution]] = {}

    def adopt(self, execution: Execution) -> None:
        """Answer for an execution that somebody else claimed."""
        self._runners.change_held(execution.runner_id, 1)
        self.hold(execution, stale=False)

    def hold(self, execution: Execution, stale: bool) -> None:
        """Answer for this execution. The claim has counted it in the runner's load already."""
        execution_id = execution.execution_id
        self.executions[execution_id] = execution
        self.held_since_ns[execution_id] = self._context.now_ns
        if stale:
            self.stale[execution_id] = None
        if execution.job.policy:
            self._overlap_cancel.held(execution)
        self._by_runner.setdefault(execution.runner_id, {})[execution_id] = execution

    def release(self, execution_id: int) -> Execution | None:
        """It ended, or somebody else answers for it."""
        if self._released is not None:
            self._released[execution_id] = None
        execution = self.executions.pop(execution_id, None)
        if execution is None:
            return None
        del self.held_since_ns[execution_id]
        self.stale.pop(execution_id, None)
        self.undispatched.pop(execution_id, None)
        self._overlap_cancel.released(execution_id)
        self._cancelling.released(execution_id)
        others = self._by_runner[execution.runner_id]
        del others[execution_id]
        if not others:
            del self._by_runner[execution.runner_id]
        self._runners.change_held(execution.runner_id, -1)
        return execution

    @property
    def has_queued(self) -> bool:
        """Whether it holds executions that no runner has: those of messages."""
        return "" in self._by_runner

    @property
    def on_runners(self) -> bool:
        """Whether it holds executions that runners have."""
        return len(self._by_runner) > self.has_queued

    @property
    def adopting(self) -> bool:
        """Whether an adoption is under way. It may give this controller what an answer just before called another's."""
        return self._released is not None

    def watch_releases(self) -> None:
        """Remember releases until `releases` is called: the answer under way may name executions that end meanwhile."""
        self._released = {}

    def releases(self) -> Collection[int]:
        """What was released since `watch_releases`. This ends the watch."""
        released, self._released = self._released or {}, None
        return released

    def touch(self, execution_id: int) -> None:
        """It was seen to be unfinished: count from now how long it has been held."""
        if self.held_since_ns.pop(execution_id, None) is not None:
            self.held_since_ns[execution_id] = self._context.now_ns

    def of_runner(self, runner_id: str, execution_ids: Iterable[int] | None = None) -> list[Execution]:
        """All executions held for this runner, or those of them with these ids."""
        held = self._by_runner.get(runner_id, {})
        if execution_ids is None:
            return list(held.values())
        return [held[execution_id] for execution_id in execution_ids if execution_id in held]

    def dispatch_later(self, executions: Iterable[Execution]) -> None:
        """Remember to dispatch them: their runner may not have them."""
        for execution in executions:
            self.undispatched[execution.execution_id] = None

    def dispatch(self, executions: list[Execution], epochs: list[int] | None = None) -> None:
        """One effect for each connected runner. Runners that are away get theirs when they are back.

        `epochs`: of the places that they take, one for each; None: they take none.

        Without a lease nothing is dispatched: somebody else may have adopted, and even ended, what is held here.
        """
        connected = self._runners.by_id if self._lease.valid else {}
        by_runner: dict[str, tuple[list[Execution], list[int]]] = {}
        undispatched = self.undispatched
        for execution, epoch in zip(executions, repeat(0) if epochs is None else epochs, strict=False):
            runner_id = execution.runner_id
            if not runner_id:
                continue
            if runner_id not in connected:
                undispatched[execution.execution_id] = None
            else:
                undispatched.pop(execution.execution_id, None)
                runs = by_runner.get(runner_id)
                if runs is None:
                    runs = by_runner[runner_id] = ([], [])
                runs[0].append(execution)
                runs[1].append(epoch)
        context = self._context
        for runner_id, (runs_there, its_epochs) in by_runner.items():
            context.stats.dispatched += len(runs_there)
            context.effects.append(Dispatch(runner_id, context.now_us, runs_there, its_epochs))
