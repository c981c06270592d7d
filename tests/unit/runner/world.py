"""A runner's core in virtual time, and controllers that answer it."""

from typing import TypeVar

from cronring.runner.core.effects import (
    Effect,
    SendBeat,
)
from cronring.runner.core.events import (
    BeatAcked,
    Dispatched,
    Event,
    LinkOpened,
    LinkUp,
    RunnerWoke,
)
from cronring.runner.core.machine import RunnerCore
from cronring.runner.core.settings import SECOND_NS, RunnerSettings
from cronring.schema.execution import Outcome, Report, Run

T = TypeVar("T")
NOW_US = 1_700_000_000_000_000


def make_run(execution_id: int, finish: bool = False) -> Run:
    return Run(execution_id, 1, "m.v", "d", "v", NOW_US, NOW_US, NOW_US, NOW_US + 300_000_000, 1, "schedule", finish)


def make_result(execution_id: int) -> Report:
    return Report(execution_id, 1, NOW_US, Outcome.COMPLETED, NOW_US, NOW_US)


class World:
    """A core whose controllers answer beats as `renews`, `blind` and `silent` say; time moves by seconds."""

    def __init__(self, *addresses: str) -> None:
        self.now_ns = 1_000 * SECOND_NS
        self.core = RunnerCore(RunnerSettings(), addresses, 0, self.now_ns)
        self.effects: list[Effect] = []
        self.silent: set[str] = set()
        self.blind: set[str] = set()
        self.step(RunnerWoke())

    def step(self, event: Event) -> list[Effect]:
        effects = self.core.step(event, self.now_ns)
        self.effects += effects
        for effect in effects:
            if isinstance(effect, SendBeat) and effect.address not in self.silent:
                sighted = effect.address not in self.blind
                self.step(BeatAcked(effect.address, effect.sequence, effect.renew and sighted, sighted, ()))
        return effects

    def up(self, *addresses: str) -> None:
        for address in addresses:
            self.step(LinkOpened(address, self.now_ns))
            self.step(LinkUp(address, address, (), 1_000, 8_000))

    def dispatch(self, address: str, *runs: Run) -> None:
        self.step(Dispatched(address, NOW_US, list(runs)))

    def pass_s(self, seconds: float) -> None:
        end_ns = self.now_ns + int(seconds * SECOND_NS)
        while (deadline_ns := self.core.next_deadline()) <= end_ns:
            assert deadline_ns >= self.now_ns
            self.now_ns = deadline_ns
            self.step(RunnerWoke())
        self.now_ns = end_ns

    def of(self, kind: type[T]) -> list[T]:
        return [effect for effect in self.effects if isinstance(effect, kind)]
