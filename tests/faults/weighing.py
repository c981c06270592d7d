"""How much memory the processes of a stage take, and how much more after a while."""

from typing import Final

import psutil

from tests.faults.stage import Stage
from tests.support.cluster import Process

MIB: Final = 1 << 20


class Scales:
    """`weigh` as often as wanted; the growth is that from the first to the last weighing."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._weights: list[dict[str, float]] = []

    def weigh(self, when: str) -> None:
        cluster = self._stage.cluster
        found = {each.name: _resident_mib(each) for each in cluster.controllers + cluster.runners if each.alive()}
        self._weights.append(found)
        self._stage.tell(f"memory at {when}: " + ", ".join(f"{name} {mib:.0f} MiB" for name, mib in found.items()))

    def expect_growth_below(self, mib: float) -> None:
        first, last = self._weights[0], self._weights[-1]
        grown = {name: last[name] - before for name, before in first.items() if name in last}
        worst = max(grown, key=lambda name: grown[name])
        self._stage.measured["grew most"] = f"{worst} by {grown[worst]:.1f} MiB"
        self._stage.expect(grown[worst] < mib, f"{worst} grew by {grown[worst]:.1f} MiB (at most {mib:g})")


def _resident_mib(process: Process) -> float:
    """Of the process itself: what a runner's children take is their author's."""
    resident: int = psutil.Process(process.pid).memory_info().rss
    return resident / MIB
