"""The one controller of a virtual cluster: a real node, whose statements are answered at the instant they are sent."""

import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol

from cronring.controller.core.model import RunnerInfo
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.node import Node
from cronring.controller.core.runs import run_of
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.memory.store import MemoryStore
from cronring.runner.core import events as runner_events
from cronring.virtual.performing import store_answer, store_call
from cronring.virtual.process import Process
from cronring.virtual.times import VirtualTime

ADDRESS: Final = "virtual:7400"
REGISTRATION_RETRY_NS: Final = 500_000_000


class World(Protocol):
    """What a controller lives in."""

    settings: ClusterSettings
    time: VirtualTime

    def ask(self, call: Callable[[MemoryStore], Coroutine[Any, Any, Any]]) -> Any: ...
    def log(self, who: str, level: str, event: str, values: Mapping[str, Any]) -> None: ...
    def watch_deadlines(self) -> None: ...


class RemoteRunner(Protocol):
    """A runner on the other end of a stream."""

    info: RunnerInfo
    welcomed: bool

    def put(self, event: runner_events.Event) -> None: ...
    def dropped(self) -> None: ...


class VirtualNode(Node):
    """A node whose clock may leap."""

    def next_us(self) -> int | None:
        """When, in PostgreSQL's time, something is due."""
        return min((instant for instant in self._parts.due_us() if instant is not None), default=None)

    def leap(self, by_us: int) -> None:
        self._context.clock.leap(by_us)


class VirtualController(Process):
    """Performs its node's effects. It starts with the first event, and ends without a word."""

    def __init__(self, engine: World, number: int) -> None:
        name = f"controller-{number}"
        self.info = ControllerInfo(name, ADDRESS, "", number, "virtual")
        chance = random.Random(number)  # noqa: S311 - the same in each run # nosec B311
        self.node = VirtualNode(name, ADDRESS, engine.settings, chance, engine.time.now_ns)
        super().__init__(engine.time, name, self.node, events.Woke())
        self._engine = engine
        self._runners: dict[str, RemoteRunner] = {}

    # Runners' streams

    def accept(self, runner: RemoteRunner) -> None:
        """A runner has connected: register it, welcome it, tell the node."""
        self._runners[runner.info.runner_id] = runner
        runner.put(runner_events.LinkOpened(ADDRESS, self._engine.time.now_ns))
        self._register(runner)

    def _register(self, runner: RemoteRunner) -> None:
        info = runner.info
        if not self.alive or self._runners.get(info.runner_id) is not runner:
            return
        if isinstance(self._engine.ask(lambda store: store.register_runner(info)), StoreUnavailable):
            self.time.call_after_ns(REGISTRATION_RETRY_NS, lambda: self._register(runner))
            return
        runner.welcomed = True
        self.put(events.RunnerJoined(RunnerInfo(*info)))
        settings = self._engine.settings
        welcome = runner_events.LinkUp(
            ADDRESS, self.name, (ADDRESS,), settings.runner_beat_ms, settings.runner_fence_ms
        )
        runner.put(welcome)

    def received(self, runner: RemoteRunner, event: events.RunnerBeat | events.ReportsReceived) -> None:
        """From a runner's stream. One that isn't registered is told so, as its beats renew nothing."""
        if isinstance(event, events.RunnerBeat) and not runner.welcomed:
            runner.put(runner_events.BeatAcked(ADDRESS, event.sequence, False, False, ()))
        else:
            self.put(event)

    def dropped(self, runner: RemoteRunner) -> None:
        """Its stream has ended."""
        if self._runners.pop(runner.info.runner_id, None) is runner and runner.welcomed:
            self.put(events.RunnerLeft(runner.info.runner_id))

    def end(self) -> None:
        super().end()
        runners, self._runners = self._runners, {}
        for runner in runners.values():
            runner.dropped()

    # Effects

    def perform(self, effect: Any) -> None:
        match effect:
            case effects.Dispatch() | effects.CancelRuns() | effects.AckReports() | effects.AckBeat():
                self._to_runner(effect)
            case effects.LogLine(level, event, values):
                self._engine.log(self.name, str(level), event, values)
            case effects.SendPacket():
                pass  # there is nobody else
            case _:
                result = self._engine.ask(store_call(effect, self.info, self._engine.settings))
                answer = store_answer(effect, result)
                if answer is not None:
                    self.put(answer)
                if isinstance(effect, effects.Claim | effects.Activate):
                    self._engine.watch_deadlines()

    def _to_runner(self, effect: effects.Dispatch | effects.CancelRuns | effects.AckReports | effects.AckBeat) -> None:
        runner = self._runners.get(effect.runner_id)
        if runner is None:
            return
        match effect:
            case effects.Dispatch(_, now_us, executions):
                runner.put(runner_events.Dispatched(ADDRESS, now_us, [run_of(each) for each in executions]))
            case effects.CancelRuns(_, execution_ids, reason, grace_ms):
                runner.put(runner_events.CancelAsked(execution_ids, reason, grace_ms))
            case effects.AckReports(_, execution_ids):
                runner.put(runner_events.ReportsAcked(execution_ids))
            case effects.AckBeat(_, sequence, renewed, database_ok, peers):
                addresses = tuple(address for _, address in peers)
                runner.put(runner_events.BeatAcked(ADDRESS, sequence, renewed, database_ok, addresses))
