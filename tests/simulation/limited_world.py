"""Controllers that share a store with limits, runners whose runs last as long as is said, and nothing that fails.

Real: nodes and the rules of the store. Statements and packets take 2 ms each way.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cronring.controller.core.model import Execution, RunnerInfo
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import Outcome, Report
from cronring.schema.module import Module, Verb
from cronring.virtual.performing import run_now, store_answer, store_call

MS: Final = 1_000_000
EPOCH_US: Final = 1_800_000_000_000_000
HOP_NS: Final = 2 * MS
TIMEOUT_MS: Final = 600_000


class LimitedWorld:
    """`run_ms`: how long a run of a verb lasts. `notify`: whether PostgreSQL's NOTIFY arrives."""

    def __init__(
        self, controllers: int, verbs: list[Verb], run_ms: Callable[[str], int], *, notify: bool = True
    ) -> None:
        self.now_ns = 0
        self.store = MemoryStore(lambda: EPOCH_US + self.now_ns // 1_000)
        if notify:
            self.store.on_places = self._places_freed
        self._run_ms = run_ms
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._serial = 0
        self._settings = ClusterSettings()
        self._infos = [ControllerInfo(f"c{n}", f"host:{n}", "", n, "1") for n in range(controllers)]
        self._nodes = {
            info.grpc_address: Node(info.controller_id, info.grpc_address, self._settings, random.Random(n), 0)
            for n, info in enumerate(self._infos)
        }
        self.claims: list[int] = []  # when each statement that claims was sent, in ms
        self.starts: list[tuple[int, str]] = []  # in ms, and the verb
        self.most = 0  # that ran at once
        self.watch: Callable[[object], None] = lambda _: None  # is told of each effect
        self._running: dict[int, Execution] = {}
        self.deployed = run_now(
            self.store.create_deployment(Module("billing", tuple(verbs)), "a" * 64, 1, TIMEOUT_MS, True)
        )
        for info in self._infos:
            self._join(info)

    def _join(self, info: ControllerInfo) -> None:
        runner = RunnerInfo(f"r-{info.controller_id}", "host", 1, "1", (self.deployed.key,))
        run_now(self.store.register_runner(runner))
        self.store.runners[runner.runner_id].last_seen_at = EPOCH_US * 2  # nobody is lost here
        self._tell(info, events.Woke())
        self._tell(info, events.RunnerJoined(runner))

    def run(self, seconds: float) -> None:
        ends_ns = self.now_ns + int(seconds * 1_000) * MS
        while True:
            deadlines = [
                (node.next_deadline(), info) for info, node in zip(self._infos, self._nodes.values(), strict=True)
            ]
            at_ns, info = min((deadline, info) for deadline, info in deadlines if deadline is not None)
            if self._queue and self._queue[0][0] <= at_ns:
                at_ns, _, action = heapq.heappop(self._queue)
            else:
                action = partial(self._tell, info, events.Woke())
            if at_ns > ends_ns:
                self._call_at(at_ns, action)
                self.now_ns = ends_ns
                return
            self.now_ns = max(self.now_ns, at_ns)
            action()

    def claims_each_second(self) -> Counter[int]:
        return Counter(ms // 1_000 for ms in self.claims)

    def _call_at(self, at_ns: int, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (at_ns, self._serial, action))

    def _later(self, action: Callable[[], None], delay_ns: int = HOP_NS) -> None:
        self._call_at(self.now_ns + delay_ns, action)

    def _places_freed(self, limit: int | None) -> None:
        for info in self._infos:
            self._later(partial(self._tell, info, events.PlacesFreed(limit)))

    def _tell(self, info: ControllerInfo, event: events.Event) -> None:
        for effect in self._nodes[info.grpc_address].step(event, self.now_ns):
            self.watch(effect)
            self._perform(info, effect)

    def _perform(self, info: ControllerInfo, effect: Any) -> None:
        match effect:
            case effects.SendPacket(address, packet):
                peer = next(each for each in self._infos if each.grpc_address == address)
                self._later(partial(self._tell, peer, events.PacketReceived(packet)))
            case effects.Dispatch(runner_id, _, runs):
                for run in runs:
                    self._begin(info, runner_id, run)
            case effects.CancelRuns() | effects.AckReports() | effects.AckBeat() | effects.LogLine() | effects.Leave():
                pass
            case _:
                if isinstance(effect, effects.Claim | effects.Activate):
                    self.claims.append(self.now_ns // MS)
                self._later(partial(self._ask, info, effect))

    def _ask(self, info: ControllerInfo, effect: Any) -> None:
        answer = store_answer(effect, run_now(store_call(effect, info, self._settings)(self.store)))
        if answer is not None:
            self._later(partial(self._tell, info, answer))

    def _begin(self, info: ControllerInfo, runner_id: str, run: Execution) -> None:
        self._running[run.execution_id] = run
        self.most = max(self.most, len(self._running))
        self.starts.append((self.now_ns // MS, run.job.verb))
        self._later(partial(self._end, info, runner_id, run), self._run_ms(run.job.verb) * MS)

    def _end(self, info: ControllerInfo, runner_id: str, run: Execution) -> None:
        del self._running[run.execution_id]
        now_us = self.store.now_us()
        report = Report(
            run.execution_id, run.job.job_id, run.claimed_at, Outcome.COMPLETED, now_us, now_us, "", "", ""
        )  # fmt: skip
        self._tell(info, events.ReportsReceived(runner_id, [report]))
