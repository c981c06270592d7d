"""Controllers and runners with few places, in virtual time, and nothing that fails unless a test makes it.

Real: nodes, runners' cores, the rules of the store. Simulated: children that take as long as is said. Messages between
runners and controllers take 1 ms; statements and their answers `store_ms` each.
"""

import heapq
import random
from collections import defaultdict, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cronring.controller.core.model import RunnerInfo
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.node import Node
from cronring.controller.core.runs import run_of
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.memory.store import MemoryStore
from cronring.runner.core import effects as runner_effects
from cronring.runner.core import events as runner_events
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.machine import RunnerCore
from cronring.runner.core.settings import RunnerSettings
from cronring.schema.execution import Outcome, Report, Run
from cronring.schema.lanes import LaneKind
from cronring.schema.module import Module, Verb
from cronring.virtual.performing import run_now, store_answer, store_call

MS: Final = 1_000_000
EPOCH_US: Final = 1_800_000_000_000_000
HOP_NS: Final = 1 * MS
TIMEOUT_MS: Final = 600_000


class PlacedRunner:
    """A runner's core, and children: `places` for each lane. What it measures is in ms."""

    def __init__(self, world: "PlacesWorld", name: str, lanes: ModuleLanes) -> None:
        self.world = world
        self.name = name
        self.lanes = lanes
        self.core = RunnerCore(RunnerSettings(), tuple(world.nodes), 0, world.now_ns, (lanes,))
        self.running: dict[LaneKind, int] = defaultdict(int)
        self.waiting: dict[LaneKind, deque[tuple[Run, int]]] = defaultdict(deque)
        self.most_waiting = 0
        self.most_running = 0
        self.waits: list[tuple[int, float]] = []  # when a run began, and how long it had waited here
        self.dead_to: set[str] = set()  # controllers whose messages don't arrive

    def tell(self, event: runner_events.Event) -> None:
        for effect in self.core.step(event, self.world.now_ns):
            self._perform(effect)

    def _perform(self, effect: runner_effects.Effect) -> None:
        match effect:
            case runner_effects.SendBeat(address, sequence, renew, draining, running):
                self._send(address, events.RunnerBeat(self.name, sequence, renew, draining, running))
            case runner_effects.SendReports(address, results):
                self._send(address, events.ReportsReceived(self.name, list(results)))
            case runner_effects.SendGrants(address, grants):
                self.world.grants += 1
                self._send(address, events.PlacesGranted(self.name, grants))
            case runner_effects.StartRuns(runs):
                for run in runs:
                    kind = self.lanes.kind(run)
                    self.waiting[kind].append((run, self.world.now_ns))
                    self._pump(kind)
                self.most_waiting = max(self.most_waiting, sum(len(each) for each in self.waiting.values()))
            case runner_effects.LogLine(_, event, values):
                self.world.lines.append((event, values))
            case _:
                pass

    def _send(self, address: str, event: events.Event) -> None:
        if address not in self.dead_to:
            self.world.later(partial(self.world.tell, address, event))

    def _pump(self, kind: LaneKind) -> None:
        while self.waiting[kind] and self.running[kind] < self.lanes.places(kind):
            run, since_ns = self.waiting[kind].popleft()
            self.running[kind] += 1
            self.most_running = max(self.most_running, self.running[kind])
            began_ns = self.world.now_ns
            self.waits.append((began_ns // MS, (began_ns - since_ns) / MS))
            self.world.starts.append((began_ns // MS, run.verb, (began_ns // 1_000 + EPOCH_US - run.run_at_us) / 1e3))
            self.world.later(partial(self._end, kind, run, began_ns), int(self.world.run_ms(run.verb) * MS))

    def _end(self, kind: LaneKind, run: Run, began_ns: int) -> None:
        self.running[kind] -= 1
        began_us, ended_us = EPOCH_US + began_ns // 1_000, EPOCH_US + self.world.now_ns // 1_000
        result = Report(run.execution_id, run.job_id, run.claimed_at_us, Outcome.COMPLETED, began_us, ended_us)
        self._pump(kind)
        self.tell(runner_events.RunsEnded([result]))


class PlacesWorld:
    """`run_ms`: how long a run of a verb lasts. `runners`: lanes of each.

    `placeless`: they grant no places, and take whatever comes, as in virtual time.
    """

    def __init__(
        self,
        controllers: int,
        verbs: list[Verb],
        run_ms: Callable[[str], float],
        runners: list[ModuleLanes],
        *,
        store_ms: float = 2,
        placeless: bool = False,
    ) -> None:
        self.now_ns = 0
        self.run_ms = run_ms
        self.store = MemoryStore(lambda: EPOCH_US + self.now_ns // 1_000)
        self._store_ns = int(store_ms * MS)
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._settings = ClusterSettings()
        self._infos = {f"host:{n}": ControllerInfo(f"c{n}", f"host:{n}", "", n, "1") for n in range(controllers)}
        self.nodes = {
            address: Node(info.controller_id, address, self._settings, random.Random(n), 0)
            for n, (address, info) in enumerate(self._infos.items())
        }
        self._placeless = placeless
        self.stopped: set[str] = set()
        self._stopped_inbox: dict[str, list[events.Event]] = defaultdict(list)
        self.starts: list[tuple[int, str, float]] = []  # when (ms), the verb, and how late it began (ms)
        self.lines: list[tuple[str, Any]] = []
        self.grants = self.demands = 0  # messages
        self.deployed = run_now(
            self.store.create_deployment(Module("busy", tuple(verbs)), "a" * 64, 1, TIMEOUT_MS, True)
        )
        self.runners = {f"r{n}": self.make_runner(f"r{n}", lanes) for n, lanes in enumerate(runners)}
        for address in self.nodes:
            self.tell(address, events.Woke())
        for runner in self.runners.values():
            runner.tell(runner_events.RunnerWoke())
            for address in self.nodes:
                self.join(runner, address)

    def make_runner(self, name: str, lanes: ModuleLanes) -> PlacedRunner:
        return PlacedRunner(self, name, lanes)

    def join(self, runner: PlacedRunner, address: str) -> None:
        key = self.deployed.key
        sync_verbs = None if self._placeless else ((key, runner.lanes.sync_verbs),)
        info = RunnerInfo(runner.name, "host", 1, "1", (key,), sync_verbs)
        run_now(self.store.register_runner(info))
        self.tell(address, events.RunnerJoined(info))
        runner.tell(runner_events.LinkOpened(address, self.now_ns))
        peers = tuple(self.nodes)
        runner.tell(runner_events.LinkUp(address, address, peers, 1_000, 8_000, None if self._placeless else (key,)))

    def run(self, seconds: float) -> None:
        ends_ns = self.now_ns + int(seconds * 1_000) * MS
        while True:
            at_ns, action = self._next()
            if at_ns > ends_ns:
                self._call_at(at_ns, action)
                self.now_ns = ends_ns
                return
            self.now_ns = max(self.now_ns, at_ns)
            action()

    def _next(self) -> tuple[int, Callable[[], None]]:
        deadlines: list[tuple[int, str, Callable[[], None]]] = []
        for address, node in self.nodes.items():
            deadline = node.next_deadline()
            if deadline is not None and address not in self.stopped:
                deadlines.append((deadline, address, partial(self.tell, address, events.Woke())))
        for name, runner in self.runners.items():
            deadlines.append((runner.core.next_deadline(), name, partial(runner.tell, runner_events.RunnerWoke())))
        at_ns, _, action = min(deadlines, key=lambda each: each[:2])
        if self._queue and self._queue[0][0] <= at_ns:
            at_ns, _, action = heapq.heappop(self._queue)
        return at_ns, action

    def _call_at(self, at_ns: int, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (at_ns, self._serial, action))

    def later(self, action: Callable[[], None], delay_ns: int = HOP_NS) -> None:
        self._call_at(self.now_ns + delay_ns, action)

    def tell(self, address: str, event: events.Event) -> None:
        if address in self.stopped:
            self._stopped_inbox[address].append(event)
            return
        for effect in self.nodes[address].step(event, self.now_ns):
            self._perform(address, effect)

    def stop(self, address: str) -> None:
        """SIGSTOP."""
        self.stopped.add(address)

    def resume(self, address: str) -> None:
        self.stopped.discard(address)
        for event in self._stopped_inbox.pop(address, []):
            self.tell(address, event)

    def _perform(self, address: str, effect: Any) -> None:
        match effect:
            case effects.SendPacket(target, packet):
                self.later(partial(self.tell, target, events.PacketReceived(packet)))
            case effects.Dispatch(runner_id, now_us, executions, epochs):
                runs = list(map(run_of, executions, epochs))
                self._to_runner(runner_id, runner_events.Dispatched(address, now_us, runs))
            case effects.SendDemands(runner_id, demands):
                self.demands += 1
                self._to_runner(runner_id, runner_events.DemandsReceived(address, demands))
            case effects.AckReports(runner_id, ids):
                self._to_runner(runner_id, runner_events.ReportsAcked(ids))
            case effects.AckBeat(runner_id, sequence, renewed, database_ok, _):
                self._to_runner(runner_id, runner_events.BeatAcked(address, sequence, renewed, database_ok, ()))
            case effects.LogLine(_, event, values):
                self.lines.append((event, values))
            case effects.CancelRuns() | effects.Leave():
                pass
            case _:
                self.later(partial(self._ask, address, effect), self._store_ns)

    def _to_runner(self, runner_id: str, event: runner_events.Event) -> None:
        self.later(partial(self.runners[runner_id].tell, event))

    def _ask(self, address: str, effect: Any) -> None:
        info = self._infos[address]
        answer = store_answer(effect, run_now(store_call(effect, info, self._settings)(self.store)))
        if answer is not None:
            self.later(partial(self.tell, address, answer), self._store_ns)

    # What is asked of it

    def waits_ms(self, after_s: float) -> list[float]:
        """How long runs that began after that time had waited on their runner, ascending."""
        runners = self.runners.values()
        return sorted(wait for runner in runners for at_ms, wait in runner.waits if at_ms >= after_s * 1_000)
