"""kill -9 of a controller and of a runner in the middle of runs: what the books say, and when."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.integration.cluster import trial
from tests.integration.cluster.conftest import JOURNAL_MODULE, PERIODS_S
from tests.support.cluster import Cluster
from tests.support.judge import read_journal
from tests.support.waiting import until

Row = dict[str, Any]
LONG = "journal.longer_than_its_period"
JOB_ROW = {"key", "module", "verb", "schedule", "status", "next_execution", "last_outcome"}
EXECUTION_ROW = {
    "id", "job", "tick", "run_at", "started_at", "ended_at", "outcome", "attempt", "trigger", "controller", "runner",
    "lateness_ms",
}  # fmt: skip


def executions(cluster: Cluster, job: str) -> list[Row]:
    rows: list[Row] = cluster.cli("executions", "list", "--job", job, "--limit", "50")
    return rows


def running(cluster: Cluster, job: str) -> Row | None:
    return next((row for row in executions(cluster, job) if not row["outcome"]), None)


def ended(cluster: Cluster, job: str, execution: int) -> Row | None:
    return next((row for row in executions(cluster, job) if row["id"] == execution and row["outcome"]), None)


def test_a_run_outlives_its_controller_and_is_recorded_once(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=3, runners=1)
    trial.wait_for_runs(cluster, journal)
    run = until("a long run", lambda: running(cluster, LONG))
    members = cluster.cli("cluster", "members")
    victim = next(member["pid"] for member in members if member["id"] == run["controller"])
    os.kill(victim, signal.SIGKILL)
    next(controller for controller in cluster.controllers if controller.pid == victim).popen.wait()

    end = until("its end", lambda: ended(cluster, LONG, run["id"]))
    assert end["outcome"] == "completed"
    runs = [entry for entry in read_journal(journal) if entry.execution_id == run["id"]]
    assert len(runs) == 1
    assert runs[0].ended_at is not None
    verdict = trial.verdict_when_settled(cluster, journal, [])
    assert verdict.guilty() == {}


def test_a_dead_runners_executions_are_lost_and_ticks_go_on(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=2, runners=1)
    trial.wait_for_runs(cluster, journal)
    run = until("a long run", lambda: running(cluster, LONG))
    died = time.time()
    cluster.runners[0].kill()
    cluster.start_runner(JOURNAL_MODULE)
    end = until("the verdict", lambda: ended(cluster, LONG, run["id"]))
    assert end["outcome"] == "lost"
    until("the next run", lambda: running(cluster, LONG))
    verdict = trial.verdict_when_settled(cluster, journal, [died])
    assert verdict.guilty() == {}
    assert verdict.outcomes["lost"] >= 1


def test_the_first_tick_after_an_owners_death_is_run_by_its_backup(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=3, runners=1)
    trial.wait_for_runs(cluster, journal, at_least=6)
    job = "journal.each_second"
    owners = cluster.cli("cluster", "owners", job)
    members = cluster.cli("cluster", "members")
    victim = next(member["pid"] for member in members if member["id"] == owners["primary"])
    os.kill(victim, signal.SIGKILL)
    died = time.time()
    next(controller for controller in cluster.controllers if controller.pid == victim).popen.wait()

    def judged() -> Row | None:
        later = [run for run in read_journal(journal) if run.verb == "each_second" and run.tick > died]
        return {"runs": later} if len(later) >= 6 else None

    runs = until("six ticks after the death", judged)["runs"]
    assert runs[0].tick < died + 1.0, "the tick right after the death ran"
    assert max(run.started_at - run.tick for run in runs) < 2.5, "half a second, were the machine quiet"
    owners = cluster.cli("cluster", "owners", job)
    assert owners["primary"] != next(member["id"] for member in members if member["pid"] == victim)
    assert trial.verdict_when_settled(cluster, journal, []).guilty() == {}


def test_rows_for_programs_have_their_promised_names(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=1, runners=1)
    trial.wait_for_runs(cluster, journal, at_least=4)
    jobs = cluster.cli("jobs", "list")
    assert [job["key"] for job in jobs] == sorted(f"journal.{verb}" for verb in PERIODS_S)
    assert all(job.keys() >= JOB_ROW for job in jobs)
    rows = executions(cluster, "journal.each_second")
    assert rows
    assert all(row.keys() >= EXECUTION_ROW for row in rows)
    done = [row for row in rows if row["outcome"]]
    assert all(row["outcome"] == "completed" and row["lateness_ms"] >= 0 for row in done)
