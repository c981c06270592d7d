"""The one runner of a virtual cluster: a real runner's core. What its runs are made of is said by `Runs`."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from cronring.controller.core.model import RunnerInfo
from cronring.controller.core.node.events import ReportsReceived, RunnerBeat
from cronring.runner.core import effects, events
from cronring.runner.core.machine import RunnerCore
from cronring.runner.core.model import StopReason
from cronring.runner.core.settings import RunnerSettings
from cronring.schema.execution import Report, Run
from cronring.virtual.asking import AnswerVerb
from cronring.virtual.controller import ADDRESS, VirtualController
from cronring.virtual.process import Process
from cronring.virtual.times import VirtualTime

REDIAL_NS: Final = 500_000_000


class Runs(Protocol):
    """Where verbs run. `ended` of `begin` takes results, at the virtual instant at which the runs end."""

    def attach(self, time: VirtualTime, answer: AnswerVerb) -> None:
        """Before anything else: the clock that runs begin and end by, and who answers what their verbs ask."""
        ...

    def begin(self, runs: list[Run], ended: Callable[[list[Report]], None]) -> None:
        """Start these, now."""
        ...

    def stop(self, execution_ids: tuple[int, ...], reason: StopReason, message: str) -> None:
        """Those that still run end soon, for this reason."""
        ...

    def kill(self) -> None:
        """The runner's process is gone, and its children with it: no results."""
        ...

    def horizon_us(self) -> int | None:
        """Virtual time may not pass this instant now, as a run may end before it; None: it may."""
        ...


class Surroundings(Protocol):
    """What a runner lives in. `controller`: None while it is away."""

    time: VirtualTime
    controller: VirtualController | None

    def log(self, who: str, level: str, event: str, values: Mapping[str, Any]) -> None: ...


class VirtualRunner(Process):
    """Performs a runner core's effects."""

    def __init__(self, engine: Surroundings, number: int, deployments: tuple[str, ...], runs: Runs) -> None:
        name = f"runner-{number}"
        self.info = RunnerInfo(name, "virtual", number, "virtual", deployments)
        self.welcomed = False
        self._core = RunnerCore(RunnerSettings(), (ADDRESS,), 0, engine.time.now_ns)
        super().__init__(engine.time, name, self._core, events.RunnerWoke())
        self._engine = engine
        self._runs = runs
        self._controller: VirtualController | None = None

    def end(self) -> None:
        """SIGKILL: its stream breaks, its children die."""
        super().end()
        self._runs.kill()
        if self._controller is not None:
            self._controller.dropped(self)

    def dropped(self) -> None:
        """The controller has gone away."""
        self._controller = None
        self.welcomed = False
        self.put(events.LinkDown(ADDRESS, "the controller is away"))
        self.time.call_after_ns(REDIAL_NS, self._dial)

    def _dial(self) -> None:
        if not self.alive or self._controller is not None:
            return
        if self._engine.controller is None:
            self.time.call_after_ns(REDIAL_NS, self._dial)
            return
        self._controller = self._engine.controller
        self._controller.accept(self)

    def perform(self, effect: Any) -> None:
        match effect:
            case effects.OpenLink():
                self._dial()
            case effects.SendBeat():
                self._send(RunnerBeat(self.name, *effect[1:]))
            case effects.SendReports(_, results):
                self._send(ReportsReceived(self.name, list(results)))
            case effects.StartRuns(runs):
                self._runs.begin(runs, self._ended)
            case effects.StopRuns(execution_ids, reason, message, _):
                self._runs.stop(execution_ids, reason, message)
            case effects.LogLine(level, event, values):
                self._engine.log(self.name, str(level), event, values)
            case effects.CloseLink() | effects.Finished():
                pass  # its only controller is never forgotten, and nobody drains it

    def _send(self, event: RunnerBeat | ReportsReceived) -> None:
        if self._controller is not None:
            self._controller.received(self, event)

    def _ended(self, results: list[Report]) -> None:
        self.put(events.RunsEnded(results))
