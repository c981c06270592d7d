"""A controller whose own clock is a minute off, either way, neither starts early nor late: PostgreSQL's clock rules."""

import shutil
from pathlib import Path

import pytest

from tests.integration.cluster import trial
from tests.integration.cluster.conftest import JOURNAL_MODULE
from tests.support.cluster import Cluster

# Monotonic time is not a clock that anybody sets; faking it too would only break the C libraries' timers.
FAKETIME = ("env", "DONT_FAKE_MONOTONIC=1", "faketime", "-f")


@pytest.mark.skipif(shutil.which("faketime") is None, reason="needs the `faketime` program (Debian: faketime)")
@pytest.mark.parametrize("offset", ["+60s", "-60s"])
def test_a_minute_off(cluster: Cluster, journal: Path, offset: str) -> None:
    cluster.start_controller(wrapper=(*FAKETIME, offset))
    cluster.start_runner(JOURNAL_MODULE)
    trial.wait_for_runs(cluster, journal, at_least=40)
    verdict = trial.verdict_when_settled(cluster, journal, [])
    print(verdict)
    assert verdict.guilty() == {}
    assert verdict.worst_lateness_s < 1.0
    assert verdict.outcomes["completed"] >= 10
