"""Kill controllers and runners at random under jobs each second; then a judge and an audit read what came of it."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.integration.cluster import trial
from tests.integration.cluster.conftest import JOURNAL_MODULE
from tests.support.cluster import Cluster


class Chaos:
    """Faults drawn from a seed. A killed part is replaced at once, as a supervisor would."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.runner_deaths: list[float] = []
        self.faults: list[str] = []

    def kill_controller(self) -> None:
        victim = self.random.choice([c for c in self.cluster.controllers if c.alive()])
        victim.kill()
        self.faults.append(victim.name)
        self.cluster.start_controller(wait=False)

    def kill_runner(self) -> None:
        victim = self.random.choice([r for r in self.cluster.runners if r.alive()])
        victim.kill()
        self.runner_deaths.append(time.time())
        self.faults.append(victim.name)
        self.cluster.start_runner(JOURNAL_MODULE)

    def run(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(self.random.uniform(1.0, 4.0))  # the time between faults is part of the fault model
            self.random.choice([self.kill_controller, self.kill_controller, self.kill_runner])()


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(20.0, id="short"), pytest.param(120.0, id="two-minutes", marks=[pytest.mark.soak])],
)
@pytest.mark.timeout(300)
def test_random_kills(cluster: Cluster, journal: Path, seconds: float) -> None:
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(2**32)))
    print(f"CHAOS_SEED={seed}")
    trial.start(cluster, controllers=3, runners=2)
    trial.wait_for_runs(cluster, journal)
    chaos = Chaos(cluster, seed)
    chaos.run(seconds)
    verdict = trial.verdict_when_settled(cluster, journal, chaos.runner_deaths)
    print(f"{len(chaos.faults)} killed: {', '.join(chaos.faults)}\n{verdict}")
    assert verdict.guilty() == {}
    assert verdict.executed > seconds, "too few runs for the verdict to mean anything"
    assert chaos.faults
    audit = trial.audit_when_settled(cluster)
    assert (audit.clean, audit.findings) == (True, ())
    assert audit.executed >= verdict.executed - verdict.outcomes["running"]
