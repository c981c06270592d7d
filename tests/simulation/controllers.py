"""A controller: a real Node, in a simulated process."""

import random
from typing import TYPE_CHECKING, Any, assert_never

from cronring.controller.core.model import Execution, RunnerInfo
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.context import MS
from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.store import ControllerInfo
from cronring.virtual.performing import store_answer, store_call
from tests.simulation.process import Process
from tests.simulation.streams import Stream

if TYPE_CHECKING:
    from tests.simulation.world import World


class RunnerStream:
    """A runner's stream, as its controller sees it."""

    def __init__(self, runner_id: str, stream: Stream) -> None:
        self.runner_id = runner_id
        self.stream = stream
        self.registered = False
        self.database_away = False  # so said the latest attempt to register it


class Controller(Process):
    """Performs a node's effects. `address` outlives it: the next process there has another id."""

    def __init__(self, world: "World", controller_id: str, address: str, rng: random.Random, drift_ppm: int) -> None:
        super().__init__(world.clock, controller_id, drift_ppm, events.Woke())
        self.world = world
        self.address = address
        self.left = False
        self.info = ControllerInfo(controller_id, address, "", 1, "simulated")
        self.node = Node(controller_id, address, world.settings, rng, self.local_ns())
        self.machine = self.node
        self._streams: dict[str, RunnerStream] = {}
        world.network.listen(
            address,
            lambda _, packet: self.put(events.PacketReceived(packet)),
            lambda target, _: self.put(events.PeerRefused(target)),
        )
        world.database.notified.append(self._notified)

    def start(self) -> None:
        self.put(events.Woke())

    def _notified(self) -> None:
        if self.alive and self.world.rng.random() >= self.world.notify_loss:
            self.put(events.JobsNotified())

    def kill(self) -> None:
        super().kill()
        self.world.network.close(self.address)
        self.world.database.notified.remove(self._notified)
        for runner in list(self._streams.values()):
            runner.stream.close(self.address)
        self._streams.clear()

    # Runners' streams

    def accept(self, info: RunnerInfo, stream: Stream) -> RunnerStream:
        """A runner's stream opened: register it, welcome it, tell the node; as the gateway does."""
        replaced = self._streams.pop(info.runner_id, None)
        if replaced is not None:
            replaced.stream.close(self.address)
            if replaced.registered:
                self.put(events.RunnerLeft(info.runner_id))
        runner = self._streams[info.runner_id] = RunnerStream(info.runner_id, stream)
        self._register(info, runner, self.local_ns())
        return runner

    def _register(self, info: RunnerInfo, runner: RunnerStream, came_ns: int) -> None:
        if not self.alive or self._streams.get(info.runner_id) is not runner:
            return
        registering_ms = (self.local_ns() - came_ns) // MS

        def answered(result: Any) -> None:
            if isinstance(result, StoreUnavailable):
                runner.database_away = True
                self.clock.call_after(self.world.pace.register_again_ns, lambda: self._register(info, runner, came_ns))
            elif self.alive and self._streams.get(info.runner_id) is runner:
                runner.registered = True
                peers = tuple(address for _, address in self.node.peers)
                # Before whatever the node sends it.
                runner.stream.send(self.address, ("welcome", self.name, peers, registering_ms))
                self.put(events.RunnerJoined(info))

        self.world.database.ask(self.address, lambda store: store.register_runner(info), answered)

    def received(
        self,
        runner: RunnerStream,
        message: events.RunnerBeat | events.ReportsReceived | events.PlacesGranted | events.RunsDeclined,
    ) -> None:
        if isinstance(message, events.RunnerBeat) and not runner.registered:
            database_ok = not runner.database_away or self.node.lease_valid
            runner.stream.send(self.address, ("beat_ack", message.sequence, False, database_ok, ()))
        else:
            self.put(message)

    def stream_broken(self, runner: RunnerStream) -> None:
        if self._streams.get(runner.runner_id) is runner:
            del self._streams[runner.runner_id]
            if runner.registered:
                self.put(events.RunnerLeft(runner.runner_id))

    # Effects

    def perform(self, effect: effects.Effect) -> None:
        match effect:
            case effects.SendPacket(address, packet):
                self.world.network.send(self.address, address, packet)
            case effects.LogLine():
                self.world.log(f"{self.name} {effect.event} {effect.values}")
            case effects.Leave():
                self._leave()
            case (
                effects.Dispatch()
                | effects.SendDemands()
                | effects.CancelRuns()
                | effects.AckReports()
                | effects.AckBeat()
            ):
                self._to_runner(effect)
            case _:
                self._ask(effect)

    def _to_runner(
        self,
        effect: effects.Dispatch | effects.SendDemands | effects.CancelRuns | effects.AckReports | effects.AckBeat,
    ) -> None:
        runner = self._streams.get(effect.runner_id)
        if runner is None:
            return
        match effect:
            case effects.SendDemands(_, demands):
                message: tuple[Any, ...] = ("demands", demands)
            case effects.Dispatch(_, now_us, executions, epochs):
                ids = [execution.execution_id for execution in executions]
                self.world.log(f"{self.name} dispatches {ids} to {effect.runner_id}")
                message = ("dispatch", now_us, list[Execution](executions), list[int](epochs))
            case effects.CancelRuns(_, ids, reason):
                message = ("cancel", ids, reason)
            case effects.AckReports(_, ids):
                message = ("reports_ack", ids)
            case effects.AckBeat(_, sequence, renewed, database_ok, peers):
                message = ("beat_ack", sequence, renewed, database_ok, tuple(address for _, address in peers))
            case _:
                assert_never(effect)
        runner.stream.send(self.address, message)

    def _leave(self) -> None:
        self.left = True
        self.world.log(f"{self.name} leaves")
        name = self.name
        self.world.database.ask(self.address, lambda store: store.remove_controller(name), lambda _: None)
        self.kill()

    def _ask(self, effect: Any) -> None:
        def answered(result: Any) -> None:
            event = store_answer(effect, result)
            if event is not None:
                self.put(event)

        self.world.log(f"{self.name} {_brief(effect)}")
        if self.node.clock.known:
            self.world.database.was_estimated(self.node.clock.now_us(self.local_ns()))
        self.world.database.ask(self.address, store_call(effect, self.info, self.world.settings), answered)


def _brief(effect: Any) -> str:
    name = type(effect).__name__
    match effect:
        case effects.Claim():
            return f"{name} {[(request.job_id, request.run_tick, request.runner_id) for request in effect.requests]}"
        case effects.End(_, requests):
            ends = [
                (request.report.execution_id, str(request.report.outcome), request.next_tick) for request in requests
            ]
            return f"{name} {ends}"
        case effects.FetchWindow() | effects.FetchOverdue() | effects.FetchActivations():
            return f"{name} of {len(effect.slots)} slots"
        case _:
            return f"{name} {tuple(effect)[1:]}"


def settings_for_simulation(hard_timeout_grace_ms: int) -> ClusterSettings:
    """The defaults, but with minutes shortened, so that half a virtual minute sees everything."""
    return ClusterSettings(
        refetch_interval_ms=10_000,
        window_ms=15_000,
        runner_grace_ms=3_000,
        timeout_ms=4_000,
        hard_timeout_grace_ms=hard_timeout_grace_ms,
        claim_batch=8,
        end_batch=8,
    )
