"""A node on a stage: told what happens, line by line, it says what it does.

The store behind it is the memory store; it answers after 1 ms there and 1 ms back, unless it is down. Peers answer
pings until they fall silent. Lines of a story:

    job NAME SCHEDULE...     a job, made before the start
    start                    the node wakes for the first time
    wait SECONDS             time passes
    runner ID joins|leaves|falls silent
                             it hosts every job; it beats each second, and asks for renewals, until it falls silent
    report EXECUTION OUTCOME by its runner
    ask / create             JobsNotified / JobsCreated for all jobs
    peer ID appears|falls silent|leaves
    other ID claims JOB      another controller, with a lease of its own, claims a job's due tick
    other ID ends EXECUTION  and ends an execution as completed
    cancel EXECUTION here|elsewhere|silently
                             somebody wants it cancelled: asks this controller, or another, whose NOTIFY is heard or not
    store down|up|forgets    `forgets`: the next statement is committed, and its answer lost
    drain / expire
    drill SECONDS / release  somebody has it hold a drill for so long, and ends that early
    show WHAT                of the background: renewals, packets, searches, beats
"""

import random
from collections.abc import Callable
from typing import Any

from cronring.controller.core.model import ClaimRequest, EndRequest, RunnerInfo
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.messages import Ack, Packet, Ping, Status, Sync, Update
from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import Outcome, Report
from cronring.schema.module import Module, Verb
from cronring.virtual.clock import MS, SECOND, VirtualClock
from cronring.virtual.performing import run_now, store_answer, store_call
from tests.golden.telling import BACKGROUND, tell
from tests.simulation.process import Process

EPOCH_US = 1_800_000_000_000_000
PEERS = ("c2", "c3")
INFO = ControllerInfo("c1", "host-1", "", 1, "1")
SETTINGS = ClusterSettings(timeout_ms=8_000, hard_timeout_grace_ms=18_000)


class Stage(Process):
    """Plays one story. `lines` is what the node has done since the last command."""

    def __init__(self) -> None:
        super().__init__(VirtualClock(), "c1", 0, events.Woke())
        self.lines: list[str] = []
        self.store = MemoryStore(self._database_us)
        self._node = Node("c1", "host-1", SETTINGS, random.Random(1), self.local_ns())
        self._verbs: list[Verb] = []
        self._hidden: list[type] = [*BACKGROUND.values()]
        self._peers: dict[str, bool] = {}
        self._beating: dict[str, int] = {}
        self._joined = 0
        self._store_state = "up"

    def _database_us(self) -> int:
        return EPOCH_US + self.clock.now_ns // 1_000

    def play(self, line: str) -> None:
        """One command. Raises KeyError for one that does not exist."""
        word, *rest = line.split()
        commands: dict[str, Callable[..., None]] = {
            "job": self._job,
            "start": self._start,
            "wait": lambda seconds: self.clock.run_for(int(float(seconds) * SECOND)),
            "runner": self._runner,
            "report": self._report,
            "ask": lambda: self.put(events.JobsNotified()),
            "create": lambda: self.put(events.JobsCreated([row.job() for row in self.store.jobs.values()])),
            "peer": self._peer,
            "other": self._other,
            "cancel": self._cancel,
            "store": self._set_store,
            "drain": lambda: self.put(events.DrainRequested()),
            "expire": lambda: self.put(events.DrainExpired()),
            "drill": lambda seconds: self.put(events.DrillRequested(int(float(seconds) * 1_000), False, "ann")),
            "release": lambda: self.put(events.DrillReleased()),
            "show": lambda what: self._hidden.remove(BACKGROUND[what]),
        }
        commands[word](*rest)

    # Commands

    def _job(self, name: str, *schedule: str) -> None:
        self._verbs.append(Verb(name, schedule=" ".join(schedule)))

    def _start(self) -> None:
        if self._verbs:
            run_now(
                self.store.create_deployment(Module("m", tuple(self._verbs)), "0" * 64, 1, SETTINGS.timeout_ms, True)
            )
        # Whoever appears in a story has had a row before: who has none owns nothing, whatever packets say.
        for peer_id in PEERS:
            run_now(self.store.renew_lease(ControllerInfo(peer_id, f"host-{peer_id}", "", 1, "1"), False, 0, (), 8_750))
        self.machine = self._node
        self.put(events.Woke())

    def _runner(self, runner_id: str, *what: str) -> None:
        if what != ("joins",):
            self._beating.pop(runner_id, None)
        if what == ("leaves",):
            self.put(events.RunnerLeft(runner_id))
        if what != ("joins",):
            return
        info = RunnerInfo(runner_id, "host", 1, "1", tuple(row.key for row in self.store.deployments))
        run_now(self.store.register_runner(info))
        self.put(events.RunnerJoined(info))
        self._joined += 1
        self._beating[runner_id] = self._joined
        self._beat(runner_id, self._joined)

    def _beat(self, runner_id: str, joined: int) -> None:
        if self._beating.get(runner_id) == joined:
            self.put(events.RunnerBeat(runner_id, self.clock.now_ns // SECOND, True, False, 0))
            self.clock.call_after(SECOND, lambda: self._beat(runner_id, joined))

    def _report(self, execution_id: str, outcome: str) -> None:
        row = self.store.executions[int(execution_id)]
        now_us = self._database_us()
        report = Report(
            row.execution_id, row.job.job_id, row.claimed_at, Outcome(outcome), row.claimed_at, now_us, "", "", ""
        )
        self.put(events.ReportsReceived(row.runner_id, [report]))

    def _peer(self, peer_id: str, *what: str) -> None:
        status = {"appears": Status.ALIVE, "leaves": Status.LEFT}.get(what[0])
        self._peers[peer_id] = status is Status.ALIVE
        if status is not None:
            update = Update(peer_id, f"host-{peer_id}", status, 1, False)
            self._hear(peer_id, Sync(False, (update,)))

    def _hear(self, peer_id: str, message: Any) -> None:
        self.put(events.PacketReceived(Packet(peer_id, f"host-{peer_id}", (), message)))

    def _other(self, controller_id: str, what: str, number: str) -> None:
        info = ControllerInfo(controller_id, f"host-{controller_id}", "", 1, "1")
        run_now(self.store.renew_lease(info, False, 5_000, (), 8_750))
        if what == "claims":
            job = self.store.jobs[int(number)]
            assert job.next_tick is not None
            assert job.next_run_at is not None
            runner_id = next(iter(self.store.runners))
            request = ClaimRequest(
                job.job_id, job.next_tick, job.next_tick, job.next_run_at, runner_id, job.deployment.key, ()
            )
            run_now(self.store.start_cron_jobs(controller_id, [request], 5_000))
            return
        row = self.store.executions[int(number)]
        now_us = self._database_us()
        report = Report(
            row.execution_id, row.job.job_id, row.claimed_at, Outcome.COMPLETED, row.claimed_at, now_us, "", "", ""
        )
        next_tick = now_us // 1_000_000 * 1_000_000 + 1_000_000
        run_now(self.store.end_cron_jobs(controller_id, [EndRequest(report, row.tick, 1, next_tick, next_tick, ())]))

    def _cancel(self, number: str, where: str) -> None:
        assert run_now(self.store.cancel_execution(int(number), "ann", "wrong month"))
        if where == "here":
            row = self.store.executions[int(number)]
            assert row.cancel is not None
            self.put(events.CancelsAsked([row.cancel]))
        elif where == "elsewhere":
            self.put(events.CancelsNotified())

    def _set_store(self, state: str) -> None:
        self._store_state = state

    # Effects

    def perform(self, effect: effects.Effect) -> None:
        if type(effect) not in self._hidden:
            self.lines.append(f"{self.clock.now_ns / SECOND:.3f} {tell(effect, EPOCH_US)}")
        match effect:
            case effects.SendPacket(address, packet):
                self._answer_packet(address, packet)
            case effects.Leave():
                self.kill()
            case (
                effects.LogLine() | effects.Dispatch() | effects.CancelRuns() | effects.AckReports() | effects.AckBeat()
            ):
                pass
            case _:
                self._ask(effect)

    def _answer_packet(self, address: str, packet: Packet) -> None:
        peer_id = address.removeprefix("host-")
        message = packet.message
        if self._peers.get(peer_id) and isinstance(message, Ping):
            self.clock.call_after(MS, lambda: self._hear(peer_id, Ack(message.sequence)))

    def _ask(self, effect: Any) -> None:
        def arrive() -> None:
            state = self._store_state
            if state == "forgets":
                self._store_state = "up"
            result: Any = None
            if state != "down":
                result = run_now(store_call(effect, INFO, SETTINGS)(self.store))
            if state != "up":
                result = StoreUnavailable("down")
            self.clock.call_after(MS, lambda: self._deliver(effect, result))

        self.clock.call_after(MS, arrive)

    def _deliver(self, effect: Any, result: Any) -> None:
        event = store_answer(effect, result)
        if event is not None:
            self.put(event)
