"""Two hours of faults, operators and policies in one world: python -m tests.simulation.run --hours 2 --seed N."""

from collections.abc import Callable
from functools import partial
from typing import Final

from cronring.virtual.clock import SECOND
from tests.simulation.faults import end_faults, schedule_faults, step_database_clock
from tests.simulation.world import CALM_NS, FAULTS_NS, OPERATED_NS, RECOVERY_NS, SETTLED_US, World

CHAPTER_S: Final = (20, 120)  # faults of a few kinds; then others
QUIET_S: Final = (0, 0, 5, 30)  # between chapters
RUNNERS: Final = 2
STEPPED_MAX_US: Final = (
    3_000_000  # checkers allow for all steps of the clock at any time: more, and they would see nothing
)


class LongWorld(World):
    """As a world of faults, for `seconds`. What goes wrong is drawn anew every minute or so; operators never rest."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None, seconds: float = 7_200.0) -> None:
        self._ends_ns = int(seconds * SECOND)
        super().__init__(seed, show, plain=False, orders=True)
        self.addresses = tuple(f"host-{number}:7000" for number in range(self.rng.choice((3, 3, 4, 5))))

    def _cancels_until_ns(self) -> int:
        return self._ends_ns - CALM_NS

    def run(self) -> None:
        for address in self.addresses:
            self.later(0, 2, partial(self.start_controller, address))
        self.later(0.1, 1, self.deploy)
        quiet_from_ns = self._ends_ns - RECOVERY_NS - CALM_NS
        self.employ_operators(quiet_from_ns + OPERATED_NS - FAULTS_NS)
        while self.clock.now_ns < quiet_from_ns:
            self._man_runners()
            until_ns = min(self.clock.now_ns + int(self.rng.uniform(*CHAPTER_S) * SECOND), quiet_from_ns)
            tired = self.database.stepped_all_us > STEPPED_MAX_US
            schedule_faults(self, until_ns, without=(step_database_clock,) if tired else ())
            self.clock.run_until(until_ns)
            end_faults(self)
            self.clock.run_until(min(until_ns + self.rng.choice(QUIET_S) * SECOND, quiet_from_ns))
        self.settled_us = self.database.now_us() + SETTLED_US
        self.clock.run_until(self._ends_ns)
        self.judge()

    def _man_runners(self) -> None:
        able = sum(runner.alive and not runner.draining for runner in self.runners)
        for _ in range(RUNNERS - able):
            self.start_runner()
