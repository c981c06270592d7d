"""python -m tests.simulation.node_cost [JOBS]: what a node's own code costs for each execution, in microseconds.

One node, jobs due every second, two runners that finish at once, and a store that takes 4 ms: only step() and
next_deadline() are measured. Prints how many effects there were as well, which don't depend on the machine.
"""

import heapq
import random
import sys
import time
from typing import Any, NamedTuple

from cronring.controller.core.model import ClaimResult, EndResult, Job, LeaseRenewal, RunnerInfo
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.schema.execution import Outcome, Report
from cronring.schema.keys import slot_of

MS = 1_000_000
EPOCH_US = 1_800_000_000_000_000
SECONDS = 10


class Cost(NamedTuple):
    executions: int
    microseconds_each: float
    effects: dict[str, int]


def _jobs(count: int) -> list[Job]:
    first = EPOCH_US + 2_000_000
    keys = [f"m.job_{number}" for number in range(count)]
    return [
        Job(number, key, slot_of(key), "d", "v", "* * * * * *", EPOCH_US, 1, 5_000, "stop", False, first, first)
        for number, key in enumerate(keys, 1)
    ]


class Bench:
    """Answers what the node asks, each a little later."""

    def __init__(self, jobs: int) -> None:
        self._jobs = _jobs(jobs)
        self._node = Node("c1", "host:1", ClusterSettings(), random.Random(7), 0)
        self._queue: list[tuple[int, int, Any]] = []
        self._serial = 0
        self._executions = 0
        self._now_ns = 0
        self._spent_s = 0.0
        self._effects: dict[str, int] = {}

    def run(self) -> Cost:
        self._step(events.Woke())
        for runner_id in ("r1", "r2"):
            self._step(events.RunnerJoined(RunnerInfo(runner_id, "host", 1, "1", ("d",))))
        while self._now_ns < (SECONDS + 2) * 1_000 * MS:
            deadline_ns = self._node.next_deadline()
            if self._queue and (deadline_ns is None or self._queue[0][0] <= deadline_ns):
                at_ns, _, event = heapq.heappop(self._queue)
            else:
                assert deadline_ns is not None
                at_ns, event = deadline_ns, events.Woke()
            self._now_ns = max(self._now_ns, at_ns)
            self._step(event)
        ended = self._node.stats().ended
        return Cost(ended, self._spent_s / ended * 1e6, self._effects)

    def _step(self, event: Any) -> None:
        began_s = time.perf_counter()
        new = self._node.step(event, self._now_ns)
        self._node.next_deadline()
        self._spent_s += time.perf_counter() - began_s
        for effect in new:
            name = type(effect).__name__
            self._effects[name] = self._effects.get(name, 0) + 1
            self._answer(effect)

    def _later(self, event: Any) -> None:
        self._serial += 1
        heapq.heappush(self._queue, (self._now_ns + 4 * MS, self._serial, event))

    def _answer(self, effect: Any) -> None:
        now_us = EPOCH_US + self._now_ns // 1_000 + 2_000
        match effect:
            case effects.RenewLease(request_id, _, runner_ids):
                self._later(events.LeaseRenewed(request_id, LeaseRenewal(now_us, runner_ids, (), (), False)))
            case effects.FetchWindow(request_id):
                self._later(events.WindowFetched(request_id, now_us, self._jobs))
            case effects.FindPeers():
                self._later(events.PeersFound(()))
            case effects.Claim(request_id, requests):
                results = []
                for each in requests:
                    self._executions += 1
                    results.append(ClaimResult(each.job_id, True, True, self._executions, now_us, True, None, None, 1))
                self._later(events.Claimed(request_id, now_us, results))
            case effects.Dispatch(runner_id, _, runs):
                reports = [
                    Report(
                        run.execution_id, run.job.job_id, run.claimed_at, Outcome.COMPLETED, now_us, now_us, "", "", ""
                    )
                    for run in runs
                ]
                self._later(events.ReportsReceived(runner_id, reports))
            case effects.End(request_id, requests):
                ends = [
                    EndResult(each.report.execution_id, each.report.job_id, True, each.next_tick, each.next_run_at, 1)
                    for each in requests
                ]
                self._later(events.Ended(request_id, ends))
            case _:
                pass


if __name__ == "__main__":
    cost = Bench(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000).run()
    sys.stdout.write(f"{cost.executions} executions, {cost.microseconds_each:.1f} us each; effects {cost.effects}\n")
