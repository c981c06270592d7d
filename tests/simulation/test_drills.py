"""Controllers that is in a drill in the middle of every other fault: nothing may come of it but lateness."""

import random

from cronring.controller.core.node.events import DrillReleased, DrillRequested
from cronring.virtual.clock import SECOND
from tests import drawing
from tests.simulation.controllers import Controller
from tests.simulation.world import FAULTS_NS, World

SEEDS = 12


class DrilledWorld(World):
    """Every two seconds or so somebody has a controller hold a drill: forced or not, ended early or not."""

    def employ_operators(self, until_ns: int) -> None:
        super().employ_operators(until_ns)
        self._drill_rng = random.Random(f"drills of {self.seed}")
        self._drill_later()

    def _drill_later(self) -> None:
        wait_ns = int(self._drill_rng.uniform(0.5, 3.5) * SECOND)
        if self.clock.now_ns + wait_ns < FAULTS_NS:
            self.clock.call_after(wait_ns, self._drill)

    def _drill(self) -> None:
        self._drill_later()
        able = [each for each in self.controllers if each.alive and not each.stopped]
        if not able:
            return
        chosen, for_ms = self._drill_rng.choice(able), self._drill_rng.randint(1_000, 12_000)
        forced = self._drill_rng.random() < 0.3
        self.log(f"FAULT drill: {chosen.name} is in a drill for {for_ms} ms{', forced' if forced else ''}")
        chosen.put(DrillRequested(for_ms, forced, "drill"))
        if self._drill_rng.random() < 0.4:
            self.clock.call_after(int(self._drill_rng.uniform(0, 6) * SECOND), lambda: self._release(chosen))

    def _release(self, chosen: Controller) -> None:
        if chosen.alive:
            chosen.put(DrillReleased())


def test_drills_amid_faults_lose_and_double_nothing() -> None:
    first = drawing.seed(0)
    past_drill = 0
    for seed in range(first, first + SEEDS):
        world = DrilledWorld(seed)
        try:
            world.run()
        except AssertionError as error:
            raise AssertionError(f"DrilledWorld({seed}) fails: {error}") from error
        past_drill += sum(controller.node.stats().drills for controller in world.controllers)
        assert not any(controller.alive and controller.node.in_drill for controller in world.controllers)
    assert past_drill >= SEEDS, "there were drills"
