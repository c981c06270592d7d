"""One controller dies, now and then, and nothing else goes wrong: the backup is there, half a second behind."""

from collections.abc import Callable
from typing import Final

from cronring.virtual.clock import SECOND
from tests.simulation.checkers import check_on_time
from tests.simulation.world import World

DEATHS_S: Final = (7, 15, 23)
GROWN_UP_US: Final = 6_000_000


class TakeoverWorld(World):
    """Three controllers or more, no policies, and no NOTIFY is lost. No tick may be a second late, nor more."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, show, plain=True)
        self.addresses = tuple(f"host-{number}:7000" for number in range(self.rng.choice((3, 3, 4, 5))))
        self.notify_loss = 0.0

    def _go_wrong(self, until_ns: int) -> None:
        for at_s in DEATHS_S:
            at_ns = int((at_s + self.hard_rng.random()) * SECOND)
            assert at_ns < until_ns
            self.clock.call_at(at_ns, self._kill)

    def _kill(self) -> None:
        controller = self.some_controller()
        assert controller is not None
        self.log(f"FAULT kill {controller.name}")
        controller.kill()
        self.later(2, 3, lambda: self.start_controller(controller.address))

    def judge(self) -> None:
        super().judge()
        check_on_time(self, self.start_us + GROWN_UP_US)
