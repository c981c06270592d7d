"""A limit of two for twenty-one jobs a second, on three controllers: through kill -9 never more than two at once."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.integration.cluster import trial
from tests.support.cluster import Cluster
from tests.support.looking import look
from tests.support.waiting import until

CROWD = Path(__file__).parent / "modules" / "crowd.py"
COUNTED = """
SELECT l.running, (SELECT count(*) FROM cron_executions WHERE outcome IS NULL)
FROM cron_limits l WHERE module = 'crowd'
"""


def _entries(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def _most_at_once(entries: list[dict[str, Any]], runner_died: float) -> int:
    """By what the runs noted themselves. What had no end died with its runner."""
    ends = {entry["execution"]: entry["at"] for entry in entries if entry["event"] == "end"}
    starts = {entry["execution"]: entry["at"] for entry in entries if entry["event"] == "start"}
    changes = [(at, 1) for at in starts.values()] + [(ends.get(each, runner_died), -1) for each in starts]
    most = running = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


def _counted(cluster: Cluster) -> tuple[int, int]:
    """What the limit says that runs, and what the books say."""

    async def ask() -> tuple[int, int]:
        connection = await look(cluster.database_url)
        try:
            (running, unfinished), *_ = await connection.fetch(COUNTED)
            return running, unfinished
        finally:
            await connection.close()

    return asyncio.run(ask())


def test_never_more_than_the_limit_run_at_once_and_every_place_comes_back(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=3, runners=0)
    row = cluster.cli("limits", "set", "crowd", "--max-concurrent", "2", "--note", "test")
    assert (row["module"], row["max_concurrent"], row["running"]) == ("crowd", 2, 0)
    cluster.start_runner(CROWD)
    cluster.start_runner(CROWD)
    trial.wait_for_runs(cluster, journal, 40)
    victim = cluster.controllers[0]
    os.kill(victim.pid, signal.SIGKILL)
    victim.popen.wait()
    seen = len(_entries(journal))
    trial.wait_for_runs(cluster, journal, seen + 40)
    cluster.runners[0].kill()
    died = time.time()
    # What it ran is lost within ten seconds, and its places are somebody else's then.
    trial.wait_for_runs(cluster, journal, seen + 160)
    cluster.runners[1].send(signal.SIGTERM)
    cluster.runners[1].popen.wait()
    until("the end of all runs", lambda: _counted(cluster) == (0, 0))
    entries = _entries(journal)
    assert _most_at_once(entries, died) == 2
    starts = [entry for entry in entries if entry["event"] == "start"]
    assert len({entry["execution"] for entry in starts}) == len(starts)
    # Nobody starves, and who is urgent doesn't wait behind twenty others.
    by_job: dict[str, list[float]] = {}
    for entry in starts:
        by_job.setdefault(entry["job"], []).append(entry["at"])
    assert len(by_job) == 21
    assert len(by_job["crowd.urgent"]) > max(len(ats) for job, ats in by_job.items() if job != "crowd.urgent")
    assert cluster.cli("limits", "list")[0]["running"] == 0
