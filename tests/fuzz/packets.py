"""Targets: gossip between controllers, and what a controller says to a runner."""

import random
from typing import Final

from google.protobuf.message import DecodeError

from cronring.controller.core.swim.messages import Status
from cronring.controller.peers.codec import MalformedPacketError, decode, encode
from cronring.protos.gossip.v1 import gossip_pb2
from cronring.protos.runner.v1 import runner_pb2
from cronring.runner.codec import beat_message, report_messages
from cronring.runner.core.effects import CloseLink, Effect, OpenLink, SendBeat, SendReports, StartRuns, StopRuns
from cronring.runner.core.events import Event, LinkDown, LinkOpened, LinkUp, RunnerWoke, RunsEnded
from cronring.runner.core.machine import LINKS_MAX, RunnerCore
from cronring.runner.core.settings import RunnerSettings
from cronring.runner.held import Held
from cronring.runner.link import dialled, event_of
from cronring.schema.execution import Outcome, Run
from cronring.virtual.clock import SECOND
from tests.fuzz.bounds import Misbehaved
from tests.simulation.swim_checkers import disagreements, settle
from tests.simulation.swim_members import Members

_SEPARATOR: Final = b"\xff\x00\xff"
_HEALED_NS: Final = 90 * SECOND
_PACKETS_MAX: Final = 30


def gossip_packet(data: bytes) -> None:
    """Refused, or the same when it is sent on."""
    try:
        packet = decode(gossip_pb2.Packet.FromString(data))
    except (DecodeError, MalformedPacketError):
        return
    if decode(encode(packet)) != packet:
        raise Misbehaved(f"{packet} is another when it is sent on")


def gossip_cluster(data: bytes) -> None:
    """Three controllers, one of which hears garbage: all of them agree with the truth again, without an operator."""
    members = Members("fuzz")
    for host in range(3):
        members.start(host)
    members.clock.run_for(5 * SECOND)
    rng = random.Random(len(data))
    heard = 0
    for part in data.split(_SEPARATOR)[:_PACKETS_MAX]:
        try:
            packet = decode(gossip_pb2.Packet.FromString(part))
        except (DecodeError, MalformedPacketError):
            continue
        heard += 1
        rng.choice(members.running()).deliver("somebody", packet)
        members.clock.run_for(int(rng.random() * SECOND / 5))
    if not heard:
        return
    for process in members.running():
        members.greet(process)  # as each reads the `controllers` table, once a minute
    if settle(members, _HEALED_NS) is None:
        raise Misbehaved(f"{_HEALED_NS // SECOND} s after garbage: {disagreements(members)[:5]}")
    for process in members.running():
        if process.swim.me.status is not Status.ALIVE or process.swim.me.draining:
            raise Misbehaved(f"garbage made {process.member_id} say that it is {process.swim.me}")


class _Runner:
    """A runner's core with everything around it but processes and sockets: what it is told to send is encoded."""

    def __init__(self) -> None:
        self.now_ns = 10 * SECOND
        self.core = RunnerCore(RunnerSettings(), ("a:1",), 0, self.now_ns)
        self.held: dict[int, Run] = {}
        self.links = {"a:1"}
        self.step(RunnerWoke())

    def step(self, event: Event) -> None:
        for effect in self.core.step(event, self.now_ns):
            self._perform(effect)
        if len(self.links) > LINKS_MAX:
            raise Misbehaved(f"{len(self.links)} controllers")

    def _perform(self, effect: Effect) -> None:  # noqa: C901  one branch for each kind of effect
        match effect:
            case StartRuns(runs, _):
                for run in runs:
                    if run.execution_id in self.held:
                        raise Misbehaved(f"{run.execution_id} was started beside itself")
                    self.held[run.execution_id] = run
            case StopRuns(execution_ids):
                if not set(execution_ids) <= set(self.held):
                    raise Misbehaved(f"{execution_ids} are to stop, and don't run")
            case OpenLink(address):
                self.links.add(address)
            case CloseLink(address):
                self.links.discard(address)
            case SendBeat():
                beat_message(effect).SerializeToString()
            case SendReports(_, results):
                for message in report_messages(results):
                    message.SerializeToString()

    def end_all(self) -> None:
        results = [Held(run).result(Outcome.COMPLETED, 0, 0) for run in self.held.values()]
        self.held.clear()
        self.step(RunsEnded(results))


def controller_message(data: bytes) -> None:
    """A controller that says anything, in any order: its runner goes on, and starts nothing beside itself."""
    runner = _Runner()
    runner.step(LinkOpened("a:1", runner.now_ns))
    for number, part in enumerate(data.split(_SEPARATOR)[:_PACKETS_MAX]):
        runner.now_ns += SECOND // 3
        try:
            message = runner_pb2.ControllerMessage.FromString(part)
            event = event_of("a:1", message)
        except (DecodeError, ValueError):
            runner.step(LinkDown("a:1", "garbage"))
            runner.step(LinkOpened("a:1", runner.now_ns))
            continue
        if message.HasField("welcome"):
            said = message.welcome
            peers = dialled(said.addresses)
            runner.step(LinkUp("a:1", said.controller_id, peers, said.runner_beat_ms, said.runner_fence_ms))
        elif event is not None:
            runner.step(event)
        if number % 3 == 2:
            runner.end_all()
        deadline_ns = runner.core.next_deadline()
        if deadline_ns <= runner.now_ns:
            runner.step(RunnerWoke())
    runner.end_all()
