"""Jobs that run after others, on living controllers: kill -9 between the end of one and the start of the other."""

import json
import statistics
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.integration.cluster import trial
from tests.support.cluster import Cluster
from tests.support.programs import Done
from tests.support.waiting import until

MODULES = Path(__file__).parent / "modules"
CLOSING, REPORTING = MODULES / "closing.py", MODULES / "reporting.py"
CLOSE, REPORT, SEND = "closing.close", "reporting.report", "reporting.send"
Row = dict[str, Any]


def ran(journal: Path, job: str) -> list[float]:
    """The ticks that a verb ran for, as it says itself."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    return [line["tick"] for line in lines if line["job"] == job]


def executions(cluster: Cluster, job: str) -> list[Row]:
    rows: list[Row] = cluster.cli("executions", "list", "--job", job, "--limit", "200")
    return rows


def instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def succeeded(cluster: Cluster, job: str) -> list[float]:
    return sorted(instant(row["tick"]) for row in executions(cluster, job) if row["outcome"] == "completed")


def waiting(cluster: Cluster, job: str) -> list[Row]:
    rows: list[Row] = cluster.cli("jobs", "activations", job)
    return rows


def test_every_success_is_followed_once_though_all_who_knew_of_it_are_killed(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=3, runners=0)
    cluster.cli("deploy", str(REPORTING))  # before what it follows, and without a runner
    runner = cluster.start_runner(CLOSING)
    until("three successes that wait to be followed", lambda: len(waiting(cluster, REPORT)) >= 3)
    assert ran(journal, REPORT) == []
    for controller in cluster.controllers:  # among them those who committed the ends
        controller.kill()
    cluster.controllers.clear()
    runner.kill()
    cluster.start_controller()
    before = waiting(cluster, REPORT)
    assert len(before) >= 3
    assert {row["trigger"] for row in before} == {"after"}
    cluster.start_runner(REPORTING)
    until("they are followed", lambda: waiting(cluster, REPORT) == [] and waiting(cluster, SEND) == [])
    until("they have ended", lambda: len(succeeded(cluster, SEND)) == len(succeeded(cluster, CLOSE)))

    closed = succeeded(cluster, CLOSE)
    assert succeeded(cluster, REPORT) == succeeded(cluster, SEND) == closed
    for job in (REPORT, SEND):
        assert Counter(ran(journal, job)) == Counter(closed), f"{job}: once for each"
        assert {row["trigger"] for row in executions(cluster, job)} == {"after"}
    assert not [tick for tick in closed if tick % 60 % 8 == 0], "those failed"


def test_a_follower_starts_at_once_while_controllers_die(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=3, runners=0)
    cluster.start_runner(CLOSING, REPORTING)
    until("a chain", lambda: len(ran(journal, SEND)) >= 3)
    for _ in range(2):
        seen = len(ran(journal, SEND))
        dead = cluster.controllers[0]
        dead.kill()
        until("it goes on", lambda before=seen: len(ran(journal, SEND)) >= before + 3)  # type: ignore[misc]  # a default binds it
        cluster.wait_ready(cluster.restart_controller(dead))
    cluster.cli("jobs", "pause", CLOSE)

    def settled() -> bool:
        return succeeded(cluster, CLOSE) == succeeded(cluster, REPORT) == succeeded(cluster, SEND)

    until("all is followed", settled)
    assert Counter(ran(journal, SEND)) == Counter(succeeded(cluster, CLOSE))
    ends = {row["tick"]: instant(row["ended_at"]) for row in executions(cluster, CLOSE) if row["ended_at"]}
    delays = [instant(row["started_at"]) - ends[row["tick"]] for row in executions(cluster, REPORT)]
    assert min(delays) >= 0
    assert statistics.median(delays) < 1.0
    assert trial.audit_when_settled(cluster).clean


def test_the_command_line_tells_of_it(cluster: Cluster, journal: Path) -> None:
    trial.start(cluster, controllers=1, runners=0)
    told = cronring(cluster, "deploy", str(REPORTING))
    assert "warning: there is no job closing.close yet" in told.stderr
    assert "There is no job closing.close" in cronring(cluster, "why", REPORT).stdout
    cluster.start_runner(CLOSING, REPORTING)
    until("a run", lambda: len(ran(journal, SEND)) >= 1)
    assert f"after {CLOSE}" in cronring(cluster, "jobs", "list").stdout
    shown = cronring(cluster, "jobs", "show", REPORT).stdout
    assert f"(after {CLOSE})" in shown
    assert f"when {CLOSE} has completed one" in shown
    tick = executions(cluster, REPORT)[0]["tick"]
    why = cronring(cluster, "why", REPORT, "--at", tick).stdout
    assert f"{REPORT} runs after {CLOSE}" in why
    assert "It ran for the tick" in why
    failed = next(row["tick"] for row in until_row(cluster, CLOSE, "failed"))
    why = cronring(cluster, "why", SEND, "--at", failed).stdout
    assert f"{SEND} runs after {REPORT}" in why
    assert f"of {CLOSE} has not succeeded" in why
    assert "failed with ValueError: not every tick succeeds" in why
    circle = cronring(cluster, "jobs", "create", SEND, "--name", "me", "--after", f"{SEND}:me", code=1)
    assert "can't run after itself" in circle.stderr
    both = cronring(cluster, "jobs", "create", SEND, "--name", "me", "--after", CLOSE, "--every", "1h", code=1)
    assert "write one of the two" in both.stderr
    several = cronring(cluster, "jobs", "create", SEND, "--name", "me", "--after", f"{CLOSE}, {REPORT}", code=1)
    assert "exactly one other" in several.stderr


def until_row(cluster: Cluster, job: str, outcome: str) -> list[Row]:
    found: list[Row] = []

    def there() -> bool:
        found[:] = [row for row in executions(cluster, job) if row["outcome"] == outcome]
        return bool(found)

    until(outcome, there)
    return found


def cronring(cluster: Cluster, *arguments: str, code: int = 0) -> Done:
    done = cluster.ask(*arguments)
    assert done.returncode == code, f"{arguments}: {done.returncode} {done.stdout} {done.stderr}"
    return done
