"""Tenants on real processes: one run at a time of each through kill -9, turns where places are short, and an end."""

import asyncio
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from tests.integration.cluster import trial
from tests.support.cluster import Cluster
from tests.support.looking import look
from tests.support.waiting import until

TENANTS = Path(__file__).parent / "modules" / "tenants.py"
TAKEN = "SELECT sum(running)::integer, (SELECT count(*) FROM cron_executions WHERE outcome IS NULL) FROM cron_limits"


def _entries(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def _workspace(entry: dict[str, Any]) -> str:
    """Of the job `tenants.work:ws_1-3`."""
    name: str = entry["job"]
    return name.partition(":")[2].partition("-")[0]


def _make(cluster: Cluster, file: Path, cron: str, jobs: dict[str, int]) -> None:
    lines = [
        {
            "verb": "tenants.work", "name": f"{workspace}-{number}", "cron": cron, "jitter": "off",
            "labels": {"workspace": workspace},
        }
        for workspace, count in jobs.items()
        for number in range(count)
    ]  # fmt: skip
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    cluster.cli("jobs", "import", "--stream", str(file))


def _taken(cluster: Cluster) -> tuple[int, int]:
    async def ask() -> tuple[int, int]:
        connection = await look(cluster.database_url)
        try:
            (running, unfinished), *_ = await connection.fetch(TAKEN)
            return running or 0, unfinished
        finally:
            await connection.close()

    return asyncio.run(ask())


def test_one_at_a_time_of_each_workspace_through_kill_9_and_then_it_ends(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=3, runners=0)
    row = cluster.cli("limits", "set", "--by", "label:workspace", "--max", "1")
    assert (row["label"], row["max_concurrent"], row["running"]) == ("workspace", 1, 0)
    cluster.start_runner(TENANTS)
    until("the module", lambda: cluster.cli("deployments", "list", "--module", "tenants"))
    _make(cluster, journal.with_name("jobs.ndjson"), "* * * * * *", {"a": 3, "b": 3, "c": 1})
    trial.wait_for_runs(cluster, journal, 30)
    victim = cluster.controllers[0]
    os.kill(victim.pid, signal.SIGKILL)
    victim.popen.wait()
    trial.wait_for_runs(cluster, journal, len(_entries(journal)) + 40)
    (limit,) = cluster.cli("limits", "list")
    assert limit["full_values"] <= limit["values"] <= 3
    deleted = cluster.cli("workspaces", "delete", "a", "--expect", "3", "--yes")
    assert deleted["deleted"] == 3
    assert [each["workspace"] for each in cluster.cli("workspaces", "list")] == ["b", "c"]
    seen = len(_entries(journal))
    trial.wait_for_runs(cluster, journal, seen + 10)
    assert "a" not in {_workspace(entry) for entry in _entries(journal)[seen + 2 :]}
    cluster.cli("jobs", "pause", "--label", "workspace=b", "--yes")
    cluster.cli("jobs", "pause", "--label", "workspace=c", "--yes")
    until("the end of all runs", lambda: _taken(cluster) == (0, 0))
    running: Counter[str] = Counter()
    for entry in sorted(_entries(journal), key=lambda entry: entry["at"]):
        running[_workspace(entry)] += 1 if entry["event"] == "start" else -1
        assert running[_workspace(entry)] <= 1, entry


def test_three_of_one_workspace_do_not_wait_for_forty_of_another(cluster: Cluster, journal: Path) -> None:
    """One child, and a tick that brings 43 runs of 0.2 s. The three are among the first of it."""
    trial.start(cluster, controllers=1, runners=0)
    cluster.start_runner(TENANTS, extra=("--sync-children", "1"))
    until("the module", lambda: cluster.cli("deployments", "list", "--module", "tenants"))
    _make(cluster, journal.with_name("jobs.ndjson"), "0,30 * * * * *", {"loud": 40, "quiet": 3})
    order = until("a tick of all", lambda: _whole_tick(cluster), 120)["order"]
    assert max(place for place, workspace in enumerate(order) if workspace == "quiet") <= 12, order


def _whole_tick(cluster: Cluster) -> dict[str, Any] | None:
    """The workspaces of a tick that all 43 jobs have run, in the order in which they began."""

    async def ask() -> list[dict[str, Any]]:
        connection = await look(cluster.database_url)
        try:
            found = await connection.fetch(
                "SELECT array_agg(j.labels ->> 'workspace' ORDER BY e.started_at) FROM cron_executions e "
                "JOIN cron_jobs j ON j.id = e.job_id WHERE e.outcome = 'completed' GROUP BY e.tick HAVING count(*) = 43"
            )
            return [{"order": record[0]} for record in found]
        finally:
            await connection.close()

    return next(iter(asyncio.run(ask())), None)
