"""Kill controllers and runners at random under jobs each second; then the judge reads books and journal."""

import asyncio
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.judge import Verdict, judge

MODULE = Path(__file__).parent / "modules" / "journal.py"
PERIODS_S = {"each_second": 1, "each_second_sync": 1, "longer_than_its_period": 2}
SETTLE_S = 25.0  # a lost runner is declared after 10 s, and its jobs' next run may take a few seconds


class Chaos:
    """Faults drawn from a seed. A killed part is replaced, as a supervisor would, within two seconds."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.runner_deaths: list[float] = []
        self.faults: list[str] = []

    def kill_controller(self) -> None:
        victim = self.random.choice([c for c in self.cluster.controllers if c.alive()])
        victim.kill()
        self.faults.append(f"controller {victim.name}")
        self.cluster.start_controller(wait=False)

    def kill_runner(self) -> None:
        victim = self.random.choice([r for r in self.cluster.runners if r.alive()])
        victim.kill()
        self.runner_deaths.append(time.time())
        self.faults.append(f"runner {victim.name}")
        self.cluster.start_runner(MODULE)

    def run(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(self.random.uniform(1.0, 4.0))  # the time between faults is the fault model
            self.random.choice([self.kill_controller, self.kill_controller, self.kill_runner])()


async def settled(url: str, journal: Path, until: float, deaths: list[float]) -> Verdict:
    """The verdict once every tick up to `until` is booked, or the last one before the deadline."""
    deadline = time.monotonic() + SETTLE_S
    while True:
        verdict = await judge(url, PERIODS_S, until, journal, deaths)
        if (not verdict.unaccounted and not verdict.results_lost) or time.monotonic() > deadline:
            return verdict
        await asyncio.sleep(0.25)


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    environment = {"JOURNAL": str(tmp_path / "journal")}
    with Cluster(database_url, tmp_path, environment) as started:
        for _ in range(3):
            started.start_controller()
        for _ in range(2):
            started.start_runner(MODULE)
        yield started


def wait_for_first_run(journal: Path, cluster: Cluster) -> None:
    deadline = time.monotonic() + 30
    while not journal.exists():
        assert time.monotonic() < deadline, "\n".join(p.tail() for p in cluster.controllers + cluster.runners)
        time.sleep(0.05)


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(20.0, id="short"), pytest.param(120.0, id="two-minutes", marks=[pytest.mark.soak])],
)
@pytest.mark.timeout(300)
def test_random_kills(cluster: Cluster, tmp_path: Path, seconds: float) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(2**32)))
    print(f"CHAOS_SEED={seed}")
    journal = tmp_path / "journal"
    wait_for_first_run(journal, cluster)
    chaos = Chaos(cluster, seed)
    chaos.run(seconds)
    verdict = asyncio.run(settled(cluster.database_url, journal, time.time() - 2, chaos.runner_deaths))
    print(f"{len(chaos.faults)} faults: {', '.join(chaos.faults)}\n{verdict}")
    assert verdict.guilty() == {}
    assert verdict.executed > seconds, "too few runs for the verdict to mean anything"
    assert chaos.faults
