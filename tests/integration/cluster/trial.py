"""Start a cluster under the journal's jobs, wait for its first run, and have it judged at the end."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from cronring.client import AsyncClient
from cronring.client.model import Audit
from tests.integration.cluster.conftest import JOURNAL_MODULE, PERIODS_S
from tests.support.cluster import Cluster
from tests.support.judge import Circumstances, Verdict, judge

SETTLE_S = 25.0  # a lost runner is declared after 10 s, and its jobs' next run may take a few seconds


def start(cluster: Cluster, controllers: int, runners: int, module: Path = JOURNAL_MODULE) -> None:
    for _ in range(controllers):
        cluster.start_controller()
    for _ in range(runners):
        cluster.start_runner(module)


def wait_for_runs(cluster: Cluster, journal: Path, at_least: int = 1) -> None:
    """Until the journal has that many lines. Raises AssertionError with every process's log after 40 s."""
    deadline = time.monotonic() + 40
    while not journal.exists() or journal.read_text().count("\n") < at_least:
        assert time.monotonic() < deadline, "\n".join(p.tail() for p in cluster.controllers + cluster.runners)
        time.sleep(0.05)


def verdict_when_settled(
    cluster: Cluster,
    journal: Path,
    runner_deaths: list[float],
    periods_s: Mapping[str, int] = PERIODS_S,
    settle_s: float = SETTLE_S,
    *,
    circumstances: Circumstances | None = None,
) -> Verdict:
    """The verdict on every tick up to two seconds ago: once nobody is guilty, or the last one before the deadline."""
    known = circumstances or Circumstances(runner_deaths)

    async def settled() -> Verdict:
        until, deadline = time.time() - 2, time.monotonic() + settle_s
        while True:
            verdict = await judge(cluster.database_url, periods_s, until, journal, known)
            if verdict.guilty() == {} or time.monotonic() > deadline:
                return verdict
            await asyncio.sleep(0.25)

    return asyncio.run(settled())


def audit_when_settled(cluster: Cluster, settle_s: float = SETTLE_S) -> Audit:
    """A thorough audit of every tick up to now: once it is clean and nothing is undecided, or the last one."""

    async def settled() -> Audit:
        addresses = [controller.grpc for controller in cluster.controllers if controller.alive()]
        async with AsyncClient(addresses) as client:
            until, deadline = datetime.now(UTC), time.monotonic() + settle_s
            while True:
                audit = await client.ledger.audit(until=until, thorough=True)
                if (audit.clean and not audit.pending) or time.monotonic() > deadline:
                    return audit
                await asyncio.sleep(0.25)

    return asyncio.run(settled())
