"""What people made by hand is theirs: a runner's start and an undeploy orphan it, and it comes back as it was."""

import json
from pathlib import Path

from tests.support.cluster import Cluster, Process
from tests.support.waiting import until

MODULES = Path(__file__).parent / "modules"
WITH = MODULES / "crawler.py"
TICKING, PAUSED = "crawler.site:docs", "crawler.site:blog"


def without_site(folder: Path) -> Path:
    file = folder / "without" / "crawler.py"
    file.parent.mkdir()
    file.write_text(WITH.read_text().partition("@verb")[0].replace("yearly", "monthly"))
    return file


def make_jobs(cluster: Cluster) -> None:
    for key, url in ((TICKING, "docs"), (PAUSED, "blog")):
        cluster.cli(
            "jobs", "create", "crawler.site", "--name", key.partition(":")[2], "--cron", "* * * * * *",
            "--payload", json.dumps(f"https://{url}.example"), "--label", "tier=slow",
        )  # fmt: skip
    cluster.cli("jobs", "pause", PAUSED, "--note", "they asked us")


def status(cluster: Cluster, key: str) -> str:
    return str(cluster.cli("jobs", "show", key)["status"])


def runs(cluster: Cluster, key: str) -> int:
    return sum(row["outcome"] == "completed" for row in cluster.cli("executions", "list", "--job", key))


def replaced(cluster: Cluster, runner: Process, file: Path) -> Process:
    runner.kill()
    return cluster.start_runner(file)


def test_jobs_made_by_hand_outlive_a_runner_without_their_verb(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_controller()
    cluster.start_controller()
    runner = cluster.start_runner(WITH)
    until("the module is deployed", lambda: cluster.cli("deployments", "list", "--active"))
    make_jobs(cluster)
    until("it runs", lambda: runs(cluster, TICKING))
    runner = replaced(cluster, runner, without_site(tmp_path))
    until("it is orphaned", lambda: status(cluster, TICKING) == "orphaned")
    assert [row["key"] for row in cluster.cli("jobs", "list", "--status", "orphaned")] == [PAUSED, TICKING]
    shown = cluster.ask("jobs", "show", TICKING).stdout
    assert "no active version of crawler has its verb site" in shown
    refused = cluster.ask("jobs", "trigger", TICKING)
    assert (refused.returncode, "it is orphaned" in refused.stderr) == (1, True)
    # Of the latest tick: until the next one, that is one before.
    until("a tick finds no verb", lambda: cluster.cli("why", TICKING)["verdict"] == "orphaned")
    assert "orphaned jobs" in cluster.ask("doctor").stdout
    until("the runner says so", lambda: "jobs_orphaned" in runner.log.read_text())
    logs = "".join(each.log.read_text() for each in cluster.controllers)
    assert "jobs_orphaned" in logs
    assert PAUSED in logs
    (orphaned,) = [row for row in cluster.cli("jobs", "actions", TICKING) if row["action"] == "orphan"]
    assert orphaned["actor"].startswith("runner ")
    before = runs(cluster, TICKING)
    rolled = cluster.cli("rollback", "crawler", "--yes", "--note", "site is missed")
    assert (rolled["jobs_back"], rolled["jobs_removed"]) == ([PAUSED, TICKING], ["crawler.monthly"])
    replaced(cluster, runner, WITH)
    until("it runs again", lambda: runs(cluster, TICKING) > before)
    job, paused = cluster.cli("jobs", "show", TICKING), cluster.cli("jobs", "show", PAUSED)
    assert (job["payload"], job["labels"]) == ('"https://docs.example"', {"tier": "slow"})
    assert (paused["status"], paused["paused"]["note"], paused["payload"]) == (
        "paused", "they asked us", '"https://blog.example"'
    )  # fmt: skip
    assert job["skipped"]["no_verb"] >= 1
    until("the audit is clean", lambda: cluster.ask("audit", "--thorough").returncode == 0)


def test_undeploying_asks_orphans_and_is_undone(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start_controller()
    cluster.start_runner(WITH)
    until("the module is deployed", lambda: cluster.cli("deployments", "list", "--active"))
    make_jobs(cluster)
    numbered = tmp_path / "crawler.py"
    numbered.write_text(WITH.read_text().replace("url: str", "url: int"))
    misfits = cluster.cli("deploy", str(numbered), "--dry-run")["jobs_misfit"]
    assert [(each["key"], len(each["faults"])) for each in misfits] == [(PAUSED, 1), (TICKING, 1)]
    assert [row["key"] for row in cluster.cli("plan", str(numbered))["api_jobs"]] == [PAUSED, TICKING]
    asked = cluster.ask("undeploy", "crawler")
    assert asked.returncode == 2
    assert "1 declared job would be removed (crawler.yearly); 2 jobs made by hand would be orphaned" in asked.stderr
    dry = cluster.cli("undeploy", "crawler", "--dry-run")
    assert (dry["jobs_removed"], dry["jobs_orphaned"]) == (["crawler.yearly"], [PAUSED, TICKING])
    assert status(cluster, TICKING) in {"scheduled", "running"}
    done = cluster.cli("undeploy", "crawler", "--yes", "--as", "ada", "--note", "moved")
    assert (done["jobs_removed"], done["jobs_orphaned"]) == (dry["jobs_removed"], dry["jobs_orphaned"])
    assert {status(cluster, key) for key in (TICKING, PAUSED)} == {"orphaned"}
    actions = cluster.cli("jobs", "actions")
    (undeployed,) = [row for row in actions if row["action"] == "undeploy"]
    assert (undeployed["actor"], undeployed["details"]["orphaned_keys"]) == ("ada", [PAUSED, TICKING])
    updated = cluster.cli("jobs", "update", TICKING, "--payload", '"https://new.example"')
    assert (updated["status"], updated["payload"]) == ("orphaned", '"https://new.example"')
    back = cluster.cli("rollback", "crawler")
    assert (back["jobs_back"], back["jobs_added"]) == ([PAUSED, TICKING], ["crawler.yearly"])
    ran = runs(cluster, TICKING)
    until("it runs again", lambda: runs(cluster, TICKING) > ran)
    assert status(cluster, PAUSED) == "paused"
    assert cluster.ask("jobs", "delete", PAUSED).returncode == 0
    until("the audit is clean", lambda: cluster.ask("audit", "--thorough").returncode == 0)
