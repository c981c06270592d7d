"""Swim machines on a virtual clock and network: start, crash, stop and resume them, part and heal the network."""

import random
from collections.abc import Iterable
from enum import Enum
from hashlib import blake2b
from typing import Final, Protocol

from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.machine import Swim
from cronring.controller.core.swim.member import MemberChange
from cronring.controller.core.swim.messages import Packet, Status, Sync
from cronring.controller.core.swim.reaction import Reaction
from cronring.schema.log_line import LogLine
from cronring.virtual.clock import SECOND, Timer, VirtualClock
from tests.simulation.network import Link, Network

# A machine that wants to be woken again and again without time moving on is stuck.
WAKES_AT_ONE_INSTANT: Final = 5


class State(Enum):
    UP = "up"
    PAUSED = "paused"
    CRASHED = "crashed"
    LEFT = "left"


class Watcher(Protocol):
    """Sees every belief that changes, when it changes."""

    def changed(self, now_ns: int, holder: "Process", change: MemberChange) -> None: ...


class Process:
    """One machine and what its driver does: packets in, deadlines kept, effects out."""

    def __init__(self, members: "Members", member_id: str, address: str, rng: random.Random) -> None:
        self.state = State.UP
        self.member_id = member_id
        self.address = address
        self.gone_ns: int | None = None
        self._members = members
        self._inbox: list[Packet] = []
        self._refusals: list[str] = []
        self._timer: Timer | None = None
        self._wakes = (0, 0)  # (instant, how many there)
        self.swim = Swim(member_id, address, members.settings, rng, members.clock.now_ns)

    def deliver(self, _source: str, packet: Packet) -> None:
        if self.state is State.PAUSED:
            self._inbox.append(packet)
        else:
            self.perform(self.swim.receive(packet, self._members.clock.now_ns))

    def refused(self, target: str, _packet: Packet) -> None:
        if self.state is State.PAUSED:
            self._refusals.append(target)
        else:
            self.perform(self.swim.peer_refused(target, self._members.clock.now_ns))

    def perform(self, reaction: Reaction) -> None:
        for effect in reaction.packets:
            self._members.sent(self, effect.address, effect.packet)
        for change in reaction.changes:
            self._members.changed(self, change)
        for line in reaction.lines:
            self._members.logged(self, line)
        self._set_timer()

    def pause(self) -> None:
        self.state = State.PAUSED
        self._cancel_timer()

    def resume(self) -> None:
        """SIGCONT: the kernel kept what arrived; whether a timer or a packet is seen first is anybody's guess."""
        self.state = State.UP
        inbox, self._inbox = self._inbox, []
        refusals, self._refusals = self._refusals, []
        for packet in inbox:
            self.deliver("", packet)
        for target in refusals:
            self.perform(self.swim.peer_refused(target, self._members.clock.now_ns))
        self._set_timer()

    def end(self, state: State) -> None:
        self.state = state
        self.gone_ns = self._members.clock.now_ns
        self._cancel_timer()

    def _wake(self) -> None:
        now = self._members.clock.now_ns
        self._wakes = (now, self._wakes[1] + 1) if self._wakes[0] == now else (now, 1)
        assert self._wakes[1] <= WAKES_AT_ONE_INSTANT, f"{self.member_id} wakes without end at {now}"
        self.perform(self.swim.wake(now))

    def _set_timer(self) -> None:
        deadline = self.swim.next_deadline()
        if deadline is None or self.state is not State.UP:
            self._cancel_timer()
        elif self._timer is None or self._timer.done or self._timer.at_ns != max(deadline, self._members.clock.now_ns):
            self._cancel_timer()
            self._timer = self._members.clock.call_at(deadline, self._wake)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Members:
    """All processes of one world, in order of their start, and a digest over all they said and came to believe."""

    def __init__(self, seed: str, settings: ClusterSettings | None = None, link: Link | None = None) -> None:
        self.seed = seed
        self.settings = settings or ClusterSettings()
        self.clock = VirtualClock()
        self.network = Network(self.clock, random.Random(f"{seed}/network"), link or Link())
        self.processes: dict[str, Process] = {}
        self.watchers: list[Watcher] = []
        self.story: list[str] = []
        self._digest = blake2b(digest_size=16)

    def start(self, host: int, known: Iterable[Process] | None = None) -> Process:
        """A new process on a host; `known`: whom the `controllers` table lists (by default, all that run)."""
        generation = sum(process.address == f"host{host}:7" for process in self.processes.values())
        member_id = f"c{host}.{generation}"
        process = Process(self, member_id, f"host{host}:7", random.Random(f"{self.seed}/{member_id}"))
        listed = self.running() if known is None else known
        peers = tuple((other.member_id, other.address) for other in listed)
        self.processes[member_id] = process
        self.network.listen(process.address, process.deliver, process.refused)
        self.tell(process, "start")
        process.perform(process.swim.greet(peers, self.clock.now_ns))
        return process

    def running(self) -> list[Process]:
        return [process for process in self.processes.values() if process.state is State.UP]

    def alive(self) -> list[Process]:
        """Running or paused."""
        return [process for process in self.processes.values() if process.state in (State.UP, State.PAUSED)]

    def crash(self, process: Process, silent: bool = False) -> None:
        """kill -9; `silent`: the whole host is gone, so that nothing even refuses connections."""
        self.tell(process, "crash silently" if silent else "crash")
        process.end(State.CRASHED)
        if silent:
            self.network.listen(process.address, lambda _source, _packet: None)
        else:
            self.network.close(process.address)

    def pause(self, process: Process) -> None:
        self.tell(process, "pause")
        process.pause()

    def resume(self, process: Process) -> None:
        self.tell(process, "resume")
        process.resume()

    def leave(self, process: Process) -> None:
        self.tell(process, "leave")
        process.perform(process.swim.leave(self.clock.now_ns))
        process.end(State.LEFT)
        self.network.close(process.address)

    def drain(self, process: Process) -> None:
        self.tell(process, "drain")
        process.perform(process.swim.drain(self.clock.now_ns))

    def greet(self, process: Process) -> None:
        """The `controllers` table, as each controller reads it once a minute."""
        peers = tuple((other.member_id, other.address) for other in self.alive())
        process.perform(process.swim.greet(peers, self.clock.now_ns))

    def sent(self, process: Process, address: str, packet: Packet) -> None:
        message = packet.message
        what = len(message.table) if isinstance(message, Sync) else message.sequence
        self._record(f"{process.member_id}>{address} {type(message).__name__} {what} +{len(packet.updates)}")
        self.network.send(process.address, address, packet)

    def changed(self, process: Process, change: MemberChange) -> None:
        self._record(f"{process.member_id} {change.after!r}")
        for watcher in self.watchers:
            watcher.changed(self.clock.now_ns, process, change)

    def logged(self, process: Process, line: LogLine) -> None:
        words = " ".join(f"{name}={value}" for name, value in line.values.items())
        self.story.append(f"{self.clock.now_ns / SECOND:9.3f} {process.member_id:>8} {line.event} {words}")

    def tell(self, process: Process | None, what: str) -> None:
        name = "" if process is None else process.member_id
        self.story.append(f"{self.clock.now_ns / SECOND:9.3f} {name:>8} --- {what}")
        self._record(what)

    def digest(self) -> str:
        return self._digest.hexdigest()

    def view(self, process: Process) -> dict[str, Status]:
        """Alive and suspect members as this process believes."""
        return {member.member_id: member.status for member in process.swim.live()}

    def _record(self, line: str) -> None:
        self._digest.update(f"{self.clock.now_ns} {line}\n".encode())
