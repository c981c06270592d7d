"""Start a cluster under the journal's jobs, wait for its first run, and have it judged at the end."""

import asyncio
import time
from pathlib import Path

from tests.integration.cluster.conftest import JOURNAL_MODULE, PERIODS_S
from tests.support.cluster import Cluster
from tests.support.judge import Verdict, judge

SETTLE_S = 25.0  # a lost runner is declared after 10 s, and its jobs' next run may take a few seconds


def start(cluster: Cluster, controllers: int, runners: int) -> None:
    for _ in range(controllers):
        cluster.start_controller()
    for _ in range(runners):
        cluster.start_runner(JOURNAL_MODULE)


def wait_for_runs(cluster: Cluster, journal: Path, at_least: int = 1) -> None:
    """Until the journal has that many lines. Raises AssertionError with every process's log after 40 s."""
    deadline = time.monotonic() + 40
    while not journal.exists() or journal.read_text().count("\n") < at_least:
        assert time.monotonic() < deadline, "\n".join(p.tail() for p in cluster.controllers + cluster.runners)
        time.sleep(0.05)


def verdict_when_settled(cluster: Cluster, journal: Path, runner_deaths: list[float]) -> Verdict:
    """The verdict on every tick up to two seconds ago: once all are booked, or the last one before the deadline."""
    return asyncio.run(_settled(cluster.database_url, journal, time.time() - 2, runner_deaths))


async def _settled(url: str, journal: Path, until: float, deaths: list[float]) -> Verdict:
    deadline = time.monotonic() + SETTLE_S
    while True:
        verdict = await judge(url, PERIODS_S, until, journal, deaths)
        if (not verdict.unaccounted and not verdict.results_lost) or time.monotonic() > deadline:
            return verdict
        await asyncio.sleep(0.25)
