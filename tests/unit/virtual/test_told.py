"""What a virtual runner is told of a run is all that there is to tell."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cronring.schema.execution import Report, Run
from cronring.testing import VirtualCluster
from cronring.trace import traceparent
from cronring.virtual.inprocess import RunsHere

SOURCE = """
from cronring import every

@every("1h", jitter="off", priority=5, timezone="Europe/Berlin", memory_limit="64MiB", cpu_limit="2s")
def urgent(): pass
"""


def test_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its priority was missing."""
    file, told = tmp_path / "urgent_work.py", list[Run]()
    begin = RunsHere.begin

    def heard(here: RunsHere, runs: list[Run], ended: Callable[[list[Report]], None]) -> None:
        told.extend(runs)
        begin(here, runs, ended)

    monkeypatch.setattr(RunsHere, "begin", heard)
    file.write_text(SOURCE)
    with VirtualCluster(file, start="2026-03-28") as cluster:
        cluster.run_until("2026-03-28T01:30")
    run = told[0]
    assert (run.priority, run.timezone, run.interval) == (5, "Europe/Berlin", True)
    assert (run.memory_limit, run.cpu_limit_us) == (64 << 20, 2_000_000)
    assert run.rank_us == run.run_at_us - 5_000_000


TRACED = """
from cronring import Context, every

@every("1h", jitter="off")
def traced(ctx: Context): print(ctx.traceparent)
"""


def test_a_verb_has_the_trace_of_its_execution(tmp_path: Path) -> None:
    file = tmp_path / "traced_work.py"
    file.write_text(TRACED)
    with VirtualCluster(file, start="2026-03-28") as cluster:
        cluster.run_until("2026-03-28T03:30")
        runs = cluster.executions("traced")
    assert len(runs) == 3
    for run in runs:
        assert run.output == traceparent(run.id, "traced_work.traced", round(run.tick.timestamp() * 1e6)) + "\n"
