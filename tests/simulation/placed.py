"""Worlds whose runners have few places: what has none must wait in its job's row, through every fault.

Which worlds, how few, and which controllers are of before there were places, is drawn by a generator of its own: all
others remain the stories they were. Once the faults are over, a runner with room for everything comes.
"""

import random
from typing import TYPE_CHECKING, Any, Final

from cronring.controller.core.node.events import PlacesGranted
from cronring.runner.core import effects, events
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.machine import RunnerCore
from cronring.schema.execution import Run
from cronring.schema.lanes import LaneKind
from tests.simulation.runners import TIMED_OUT, Runner

if TYPE_CHECKING:
    from tests.simulation.world import World

SHARE: Final = 0.25
FEW: Final = (1, 1, 2, 3, 5)
PLENTY: Final = 1_000
SYNC: Final = frozenset({"quick", "slow"})  # what the names of sync verbs begin with
AHEAD: Final = 16  # more than is sent ahead for verbs that take some milliseconds
WAIT_US: Final = 1_000_000


def draw(seed: int) -> bool:
    return random.Random(f"whether {seed} has places").random() < SHARE


class SyncVerbs(frozenset[str]):
    """Of all versions, by how their names begin."""

    def __contains__(self, verb: object) -> bool:
        return str(verb).split("_", maxsplit=1)[0] in SYNC


class Places:
    """What is drawn for one world."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"places of {seed}")
        self.scarce = True

    def lanes(self) -> ModuleLanes:
        if not self.scarce:
            return ModuleLanes(SyncVerbs(), PLENTY, PLENTY, PLENTY)
        return ModuleLanes(SyncVerbs(), self.rng.choice(FEW), self.rng.choice(FEW), self.rng.choice(FEW))


class PlacedRunner(Runner):
    """Has children for as many runs in each lane as it has places."""

    def __init__(
        self, world: "World", runner_id: str, deployments: tuple[str, ...], rng: random.Random, drift_ppm: int
    ) -> None:
        super().__init__(world, runner_id, deployments, rng, drift_ppm)
        assert world.few_places is not None, "a world without places"
        self.lanes = world.few_places.lanes()
        self.most_waiting: dict[tuple[str, LaneKind], int] = {}
        self.waits_us: list[tuple[int, int]] = []  # when a run that had to wait began, and how long it had
        self._since_us: dict[int, int] = {}
        self.info = self.info._replace(sync_verbs=tuple((key, self.lanes.sync_verbs) for key in deployments))
        self.core = RunnerCore(
            world.pace.runner, world.addresses[:1], rng.randrange(10), self.local_ns(), (self.lanes,) * len(deployments)
        )
        self.machine = self.core
        world.log(f"{runner_id} has {self.lanes[1:]} places")

    def perform(self, effect: effects.Effect) -> None:
        if isinstance(effect, effects.SendGrants):
            self._send(effect.address, PlacesGranted(self.name, effect.grants))
        else:
            super().perform(effect)

    def _received(self, address: str, message: tuple[Any, ...]) -> None:
        match message:
            case ("welcome", controller_id, peers, registering_ms):
                self._welcomed(address, controller_id, peers, self.info.deployments, registering_ms)
            case ("demands", demands):
                self.put(events.DemandsReceived(address, demands))
            case _:
                super()._received(address, message)

    def _lane(self, run: Run) -> tuple[str, LaneKind]:
        return run.deployment, self.lanes.kind(run)

    def _is_free(self, run: Run) -> bool:
        lane = self._lane(run)
        running = sum(self._lane(each.run) == lane for each in self._runs.values())
        few = self.places is not None and len(self._runs) >= self.places
        return not few and running < self.lanes.places(lane[1])

    def _take_place(self, run: Run) -> None:
        if self._is_free(run):
            self._start_run(run)
            return
        lane = self._lane(run)
        waiting = 1 + sum(self._lane(each) == lane for each, _ in self._queue.values())
        self.most_waiting[lane] = max(waiting, self.most_waiting.get(lane, 0))
        self._since_us[run.execution_id] = self.world.database.now_us()
        left_ns = max(0, (run.deadline_us - self.world.database.now_us()) * 1_000)
        self._queue[run.execution_id] = run, self.clock.call_after(left_ns, lambda: self._leave_queue(run, TIMED_OUT))

    def call_up(self) -> None:
        for run, _ in list(self._queue.values()):
            if not self.stopped and run.execution_id in self._queue and self._is_free(run):
                self._call(run)

    def _start_run(self, run: Run) -> None:
        since_us = self._since_us.pop(run.execution_id, None)
        if since_us is not None:
            now_us = self.world.database.now_us()
            self.waits_us.append((now_us, now_us - since_us))
        super()._start_run(run)


def check_waiting(world: "World") -> None:
    """Runners hold little that waits, at the worst; and in quiet times nothing has to wait for long."""
    for runner in world.runners:
        if not isinstance(runner, PlacedRunner):
            continue
        for (_, kind), most in runner.most_waiting.items():
            bound = runner.lanes.places(kind) * (1 + len(world.addresses)) + AHEAD
            assert most <= bound, f"{runner.name} had {most} waiting in its lane {kind}, at most {bound} may"
        # What is sent again takes no place. If it came before, it waited for as long as the one that had it ran.
        late = [(at_us, wait_us) for at_us, wait_us in runner.waits_us if at_us - wait_us > world.settled_us]
        assert all(wait_us < WAIT_US for _, wait_us in late), f"on {runner.name} runs waited: {late}"
