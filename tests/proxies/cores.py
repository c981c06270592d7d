"""A burst through the cores alone: three nodes and two runners' cores on a virtual clock, with the wire's real codecs.

2,000 jobs are due in the same second; what is counted is the second around the third tick. The same seed gives the same
numbers to the last call, on any machine with the same Python.
"""

import gc
import tracemalloc
from collections import Counter
from cProfile import Profile
from itertools import starmap
from typing import Any, Final

from cronring.controller.core.node import effects, events
from cronring.controller.core.runs import run_of
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.messages import Packet
from cronring.protos.executions import decode_reports, encode_runs
from cronring.protos.runner.v1 import runner_pb2 as wire
from cronring.runner.codec import report_messages
from cronring.runner.core import effects as runner_effects
from cronring.runner.core import events as runner_events
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.link import event_of
from cronring.schema.execution import Outcome, Report, Run
from cronring.schema.lanes import LaneKind
from cronring.schema.module import Verb
from tests.proxies.metered import Metered, counted
from tests.simulation.places_world import EPOCH_US, PlacedRunner, PlacesWorld
from tests.simulation.swim_members import Members, Process

JOBS: Final = 2_000
PERIOD_S: Final = 10
CONTROLLERS: Final = 3
RUNNERS: Final = 2
LANES: Final = ModuleLanes(frozenset(), 4, 4_096, 4)
CLAIM: Final = ("Woke", "Claimed")  # a node's steps from the tick to its dispatch, and from the report to its end
END: Final = ("ReportsReceived", "Ended")


class BurstRunner(PlacedRunner):
    """Its child runs no-op verbs: whatever came in one batch ends together, as one turn of its loop reports it."""

    def __init__(self, world: "BurstWorld", name: str, lanes: ModuleLanes) -> None:
        super().__init__(world, name, lanes)
        self.burst = world
        self.core: Any = Metered(self.core, world.what)
        self._ended: list[Report] = []

    def _end(self, kind: LaneKind, run: Run, began_ns: int) -> None:
        self.running[kind] -= 1
        began_us, ended_us = EPOCH_US + began_ns // 1_000, EPOCH_US + self.world.now_ns // 1_000
        if not self._ended:
            self.world.later(self._report, 0)
        result = Report(run.execution_id, run.job_id, run.claimed_at_us, Outcome.COMPLETED, began_us, ended_us)
        self._ended.append(result._replace(cpu_us=7, memory_peak_bytes=30_000_000, memory_shared=True))

    def _report(self) -> None:
        ended, self._ended = self._ended, []
        self.tell(runner_events.RunsEnded(ended))

    def _perform(self, effect: runner_effects.Effect) -> None:
        self.burst.messages[type(effect).__name__] += 1
        if not isinstance(effect, runner_effects.SendReports):
            super()._perform(effect)
            return
        for message in self.burst.coded("encode_reports", lambda: list(report_messages(effect.results))):
            packed = message.SerializeToString()
            self.burst.sizes["reports"] += len(packed)
            found = wire.RunnerMessage.FromString(packed).reports
            reports = self.burst.coded("decode_reports", lambda found=found: decode_reports(found))
            self._send(effect.address, events.ReportsReceived(self.name, reports))


class BurstWorld(PlacesWorld):
    """`what` is metered: "calls", "memory" or nothing."""

    def __init__(self, jobs: int, schedule: str, what: str) -> None:
        self.what = what
        self.messages: Counter[str] = Counter()  # effects of both sides, by kind
        self.sizes: Counter[str] = Counter()  # bytes on the wire
        self.codecs: dict[str, Profile] = {}
        verbs = [Verb(f"job_{number}", schedule=schedule, is_async=True) for number in range(jobs)]
        super().__init__(CONTROLLERS, verbs, lambda _: 1, [LANES] * RUNNERS)
        metered: dict[str, Any] = {address: Metered(node, what) for address, node in self.nodes.items()}
        self.nodes = metered
        self.metered_nodes: list[Metered] = list(metered.values())

    def make_runner(self, name: str, lanes: ModuleLanes) -> BurstRunner:
        return BurstRunner(self, name, lanes)

    @property
    def metered_cores(self) -> list[Metered]:
        return [runner.core for runner in self.runners.values()]  # type: ignore[misc]  # BurstRunner's is metered

    def coded(self, name: str, work: Any) -> Any:
        if self.what != "calls":
            return work()
        profile = self.codecs.setdefault(name, Profile())
        profile.enable()
        try:
            return work()
        finally:
            profile.disable()

    def forget(self) -> None:
        for each in [*self.metered_nodes, *self.metered_cores]:
            each.forget()
        self.messages.clear()
        self.sizes.clear()
        self.codecs.clear()

    def _perform(self, address: str, effect: Any) -> None:
        self.messages[type(effect).__name__] += 1
        if not isinstance(effect, effects.Dispatch):
            super()._perform(address, effect)
            return
        pairs = list(zip(effect.executions, effect.epochs, strict=True))
        runs = self.coded("encode_runs", lambda: encode_runs(starmap(run_of, pairs)))
        packed = wire.ControllerMessage(dispatch=wire.Dispatch(now_us=effect.now_us, runs=runs)).SerializeToString()
        self.sizes["dispatch"] += len(packed)
        message = wire.ControllerMessage.FromString(packed)
        self._to_runner(effect.runner_id, self.coded("decode_runs", lambda: event_of(address, message)))


def _burst(what: str) -> tuple[BurstWorld, int]:
    """After it: the world, and how many executions there were."""
    world = BurstWorld(JOBS, f"*/{PERIOD_S} * * * * *", what)
    world.run(PERIOD_S * 3 - 0.2)
    world.forget()
    before = len(world.starts)
    if what == "memory":
        gc.collect()
        gc.disable()
        tracemalloc.start()
    try:
        world.run(1)
    finally:
        if what == "memory":
            tracemalloc.stop()
            gc.enable()
    done = len(world.starts) - before
    assert done == JOBS, f"{done} executions in the burst, of {JOBS} jobs"
    return world, done


def _calls(machines: list[Metered], kinds: tuple[str, ...] = ()) -> int:
    return sum(
        sum(counted(profile).values())
        for machine in machines
        for kind, profile in machine.profiles.items()
        if not kinds or kind in kinds
    )


def calls() -> dict[str, float]:
    """Calls of functions, messages and bytes, for each execution (messages: for each thousand)."""
    world, done = _burst("calls")
    sent = world.messages
    figures = {
        "core_claim_calls": _calls(world.metered_nodes, CLAIM) / done,
        "core_end_calls": _calls(world.metered_nodes, END) / done,
        "core_all_calls": _calls(world.metered_nodes) / done,
        "runner_core_calls": _calls(world.metered_cores) / done,
        "core_claims_per_1000": sent["Claim"] * 1_000 / done,
        "core_ends_per_1000": sent["End"] * 1_000 / done,
        "core_to_runner_per_1000": (sent["Dispatch"] + sent["AckReports"] + sent["SendDemands"]) * 1_000 / done,
        "core_from_runner_per_1000": (sent["SendReports"] + sent["SendGrants"]) * 1_000 / done,
        "dispatch_bytes": world.sizes["dispatch"] / done,
        "report_bytes": world.sizes["reports"] / done,
    }
    for name, profile in world.codecs.items():
        figures[f"{name}_calls"] = sum(counted(profile).values()) / done
    return figures


def busiest(top: int = 12) -> list[tuple[str, float]]:
    """What the calls are: those functions of the nodes and runners' cores that are called most, for each execution."""
    world, done = _burst("calls")
    found: Counter[str] = Counter()
    for machine in [*world.metered_nodes, *world.metered_cores]:
        for profile in machine.profiles.values():
            found.update(counted(profile))
    return [(name, number / done) for name, number in found.most_common(top)]


def memory() -> dict[str, float]:
    """Bytes that a step takes at its worst instant, and blocks that stay behind, for each execution."""
    world, done = _burst("memory")
    peaks: Counter[str] = Counter()
    blocks: Counter[str] = Counter()
    for machine in world.metered_nodes:
        peaks.update(machine.peak_bytes)
        blocks.update(machine.kept_blocks)
    runners = sum(sum(core.peak_bytes.values()) for core in world.metered_cores)
    return {
        "core_claim_peak_bytes": sum(peaks[kind] for kind in CLAIM) / done,
        "core_end_peak_bytes": sum(peaks[kind] for kind in END) / done,
        "core_claim_blocks": sum(blocks[kind] for kind in CLAIM) / done,
        "runner_core_peak_bytes": runners / done,
    }


IDLE_S: Final = 60


def idle() -> dict[str, float]:
    """A second of a cluster whose 2,000 jobs are not due today: for each controller, and for each runner."""
    world = BurstWorld(JOBS, "0 0 1 1 *", "")
    world.run(10)
    world.forget()
    world.run(IDLE_S)
    asked = ("RenewLease", "FetchWindow", "FindPeers", "FetchOverdue", "FetchActivations", "Claim", "End", "Adopt")
    nodes, cores = CONTROLLERS * IDLE_S, RUNNERS * IDLE_S
    return {
        "idle_statements_per_s": sum(world.messages[kind] for kind in asked) / nodes,
        "idle_node_wakes_per_s": sum(node.steps["Woke"] for node in world.metered_nodes) / nodes,
        "idle_node_steps_per_s": sum(sum(node.steps.values()) for node in world.metered_nodes) / nodes,
        "idle_runner_steps_per_s": sum(sum(core.steps.values()) for core in world.metered_cores) / cores,
    }


PERIODS: Final = 20
WARM_NS: Final = 4_000_000_000


def membership() -> dict[str, float]:
    """Packets of a member for each probe interval, once all know all: with ten members, and with a hundred."""
    return {f"swim_packets_{count}": _packets(count) for count in (10, 100)}


class _Members(Members):
    """Counts what is sent."""

    packets = 0

    def sent(self, process: Process, address: str, packet: Packet) -> None:
        self.packets += 1
        super().sent(process, address, packet)


def _packets(count: int) -> float:
    members = _Members("proxies")
    for host in range(count):
        members.start(host)
    settings = ClusterSettings()
    period_ns = settings.probe_interval_ms * 1_000_000
    members.clock.run_until(WARM_NS)
    assert all(len(process.swim.live()) >= count - 1 for process in members.running())
    before = members.packets
    members.clock.run_until(WARM_NS + PERIODS * period_ns)
    return (members.packets - before) / count / PERIODS
