"""A runner of `cronring dev` that keeps dying: when dev starts another, and when it gives up."""

import asyncio
import sys
from pathlib import Path

import pytest

from cronring.cli.dev.cluster import QUICK_DEATHS_MAX, LocalCluster, StartPlan
from cronring.cli.dev.processes import DevProcess
from cronring.cli.dev.state import DevState
from cronring.cli.dev.trust import make_certificates

MINUTE_NS = 60_000_000_000


async def ended(log: Path) -> DevProcess:
    """A process that lived for a minute, as far as anybody can tell."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await process.wait()
    child = DevProcess("runner-1", process, log)
    child.started_ns -= MINUTE_NS
    return child


@pytest.mark.parametrize("hosted", [False, True])
async def test_one_that_never_hosted_died_at_once_however_long_its_imports_took(
    hosted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine each took more than three seconds, and dev waited two minutes to say nothing."""
    trust = make_certificates(tmp_path, 1)
    cluster = LocalCluster(StartPlan((), 1, None, "default"), DevState(), tmp_path, {}, trust, lambda _: None)
    started: list[bool] = []

    async def start_runner() -> None:
        started.append(True)

    monkeypatch.setattr(cluster, "start_runner", start_runner)
    cluster.hosted = hosted
    for _ in range(QUICK_DEATHS_MAX):
        cluster._on_exit(await ended(tmp_path / "log"))
    await cluster.stop_controllers(0)
    await asyncio.sleep(0)
    assert (cluster.failed.is_set(), len(started)) == ((False, 3) if hosted else (True, 2))
