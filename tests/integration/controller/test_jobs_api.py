"""Jobs made, changed, paused, triggered and backfilled by the command line, on real controllers and a real runner."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer
from tests.support.waiting import until

MODULE = Path(__file__).parent / "modules" / "crawl.py"
SITE = '{"url": "https://example.com", "depth": 2}'
Row = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(
    postgres_servers: Callable[[str], PostgresServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Two controllers, and a runner that hosts crawl: for all tests here, which tell their jobs apart by name."""
    postgres = postgres_servers("postgres18")
    name = postgres.create_database()
    with Cluster(postgres.url(name), tmp_path_factory.mktemp("jobs")) as cluster:
        for _ in range(2):
            cluster.start_controller(wait=False)
        for controller in cluster.controllers:
            cluster.wait_ready(controller)
        cluster.start_runner(MODULE)
        until("the module is deployed", lambda: cluster.cli("deployments", "list", "--active"))
        yield cluster
    postgres.drop_database(name)


def refused(cluster: Cluster, *arguments: str) -> str:
    """What it says on stderr."""
    done = cluster.ask(*arguments)
    assert done.returncode == 1, (arguments, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stderr


def runs_of(cluster: Cluster, job: str, trigger: str) -> list[Row]:
    """Ended ones, the oldest first."""
    rows = cluster.cli("executions", "list", "--job", job, "--limit", "1000")
    return [row for row in reversed(rows) if row["trigger"] == trigger and row["outcome"]]


def test_a_job_made_through_the_api_runs_at_once_and_with_its_payload(cluster: Cluster) -> None:
    made = cluster.cli(
        "jobs", "create", "crawl.site", "--name", "docs", "--cron", "1s", "--payload", SITE, "--label", "team=search"
    )
    assert (made["key"], made["source"], made["labels"]) == ("crawl.site:docs", "api", {"team": "search"})
    assert made["next_tick"]
    (first, *_) = until("its first run", lambda: runs_of(cluster, "crawl.site:docs", "schedule"))
    assert first["outcome"] == "completed"
    output = cluster.cli("executions", "get", str(first["id"]))["output"]
    assert "https://example.com to depth 2" in output
    again = cluster.cli("jobs", "create", "crawl.site", "--name", "docs", "--cron", "1s", "--payload", SITE,
                        "--label", "team=search")  # fmt: skip
    assert again["id"] == made["id"], "repeating it changes nothing"
    other = refused(cluster, "jobs", "create", "crawl.site", "--name", "docs", "--cron", "2s", "--payload", SITE)
    assert "crawl.site:docs" in other


def test_what_is_wrong_is_told_with_its_remedy(cluster: Cluster) -> None:
    for verb, options, says in (
        ("crawl.site", ["--cron", "61 * * * *", "--payload", SITE], "--cron: minute field, character 1"),
        ("crawl.site", ["--manual", "--payload", '{"ulr": 1}'], "did you mean url?"),
        ("crawl.site", ["--every", "1h"], "takes a"),
        ("crawl.sweep", ["--every", "1h", "--timezone", "Europe/Berln"], "Europe/Berlin"),
        ("crawl.sweep", ["--every", "1h", "--overlap", "bufer_one"], "buffer_one"),
        ("crawl.sweeep", ["--manual"], "did you mean 'sweep'?"),
        ("craw.sweep", ["--manual"], "no module 'craw' is active"),
    ):
        assert says in refused(cluster, "jobs", "create", verb, "--name", "x", *options)
    assert not [job for job in cluster.cli("jobs", "list") if job["key"].endswith(":x")]


def test_trigger_waits_for_its_run_and_tells_how_it_ended(cluster: Cluster) -> None:
    cluster.cli("jobs", "create", "crawl.site", "--name", "by-hand", "--manual")
    done = cluster.ask("jobs", "trigger", "crawl.site:by-hand", "--payload", SITE, "--wait")
    assert done.returncode == 0
    # On a busy machine it may have ended before anybody looked.
    assert re.fullmatch(r"execution \d+ of crawl.site:by-hand( runs on \S+|: completed after .+)\n", done.stderr)
    assert "manual " in done.stdout
    assert "https://example.com to depth 2" in done.stdout
    done = cluster.ask("jobs", "trigger", "crawl.site:by-hand", "--payload", '{"url": "down"}', "--wait")
    assert done.returncode == 1
    assert "ConnectionError: the site is down" in done.stdout
    assert "takes a" in refused(cluster, "jobs", "trigger", "crawl.site:by-hand")
    swept = cluster.ask("jobs", "trigger", "crawl.sweep", "--wait")
    assert (swept.returncode, "swept by manual" in swept.stdout) == (0, True)


def test_a_new_schedule_takes_effect_and_the_old_one_never_runs_again(cluster: Cluster) -> None:
    key = cluster.cli("jobs", "create", "crawl.sweep", "--name", "often", "--cron", "1s")["key"]
    until("a run by the first schedule", lambda: runs_of(cluster, key, "schedule"))
    changed = cluster.cli("jobs", "update", key, "--cron", "0 0 1 1 *", "--timezone", "Europe/Berlin", "--retries", "2")
    assert (changed["schedule"], changed["policy"]["retries"]) == ("0 0 1 1 *", 2)
    assert changed["next_tick_local"].endswith("-01-01T00:00:00+01:00")
    claimed = executions(cluster, key)
    let_ticks_pass(cluster, 3)
    assert executions(cluster, key) == claimed
    cluster.cli("jobs", "delete", key)
    assert "there is no job" in refused(cluster, "jobs", "show", key)
    assert "declared in its module" in refused(cluster, "jobs", "delete", "crawl.sweep")


def executions(cluster: Cluster, key: str) -> list[int]:
    return [row["id"] for row in cluster.cli("executions", "list", "--job", key, "--limit", "1000")]


def let_ticks_pass(cluster: Cluster, count: int) -> None:
    """Until another job, which is due each second, has run so many times more."""
    clock = cluster.cli("jobs", "create", "crawl.sweep", "--name", "clock", "--cron", "1s")["key"]
    before = len(runs_of(cluster, clock, "schedule"))
    until("ticks of another job", lambda: len(runs_of(cluster, clock, "schedule")) >= before + count)


def test_a_paused_job_does_not_tick_and_goes_on_where_it_is(cluster: Cluster) -> None:
    key = cluster.cli("jobs", "create", "crawl.sweep", "--name", "steady", "--cron", "1s")["key"]
    until("a run", lambda: runs_of(cluster, key, "schedule"))
    paused = cluster.cli("jobs", "pause", key, "--note", "bank holiday")
    assert paused["status"] in {"paused", "running"}
    assert (paused["paused"]["note"], "@" in paused["paused"]["by"]) == ("bank holiday", True)
    triggered = cluster.ask("jobs", "trigger", key, "--wait")
    assert triggered.returncode == 0, triggered.stderr
    before = until("what ran has ended", lambda: ended_runs(cluster, key))
    let_ticks_pass(cluster, 2)
    assert ended_runs(cluster, key) == before
    shown = cluster.ask("jobs", "show", key).stdout
    assert "bank holiday" in shown
    cluster.cli("jobs", "resume", key)
    until("it ticks again", lambda: len(ended_runs(cluster, key)) > len(before))
    assert cluster.cli("jobs", "show", key)["skipped"]["paused"] >= 2
    assert cluster.cli("jobs", "show", key)["paused"] is None


def ended_runs(cluster: Cluster, key: str) -> list[int]:
    rows = cluster.cli("executions", "list", "--job", key, "--limit", "1000")
    return [row["id"] for row in rows if row["outcome"] and row["trigger"] in {"schedule", "catch_up"}]


def test_a_backfill_runs_past_ticks_one_after_the_other(cluster: Cluster) -> None:
    made = cluster.cli("jobs", "create", "crawl.site", "--name", "hourly", "--cron", "0 * * * *", "--payload", SITE)
    key = made["key"]
    span = ["--from", "2026-03-28T22:00Z", "--to", "2026-03-29T03:00Z"]
    plan = cluster.cli("jobs", "backfill", key, *span, "--dry-run")
    ticks = [row["tick"] for row in plan["first_ticks"]]
    assert (plan["ticks"], ticks[0], ticks[-1]) == (6, "2026-03-28T22:00:00Z", "2026-03-29T03:00:00Z")
    done = cluster.cli("jobs", "backfill", key, *span, "--wait")
    assert (done["ticks"], done["outcomes"]) == (6, {"completed": 6})
    runs = runs_of(cluster, key, "backfill")
    assert [row["tick"] for row in runs] == ticks
    assert all(row["run_at"] > row["tick"] for row in runs)
    # By claimed_at it may look otherwise: that is when the claim's statement began, perhaps before the end that it saw.
    assert all(later["started_at"] >= run["ended_at"] for run, later in pairwise(runs))
    again = cluster.cli("jobs", "backfill", key, *span, "--dry-run")
    assert [(row["outcome"], row["completed"]) for row in again["first_ticks"]] == [("completed", True)] * 6
    assert cluster.cli("jobs", "activations", key) == []
    repeated = cluster.cli("jobs", "backfill", key, *span, "--again", "--overlap", "allow", "--wait")
    assert repeated["outcomes"] == {"completed": 6}
    assert [row["attempt"] for row in runs_of(cluster, key, "backfill")].count(2) == 6


def test_whoever_watches_through_another_controller_hears_of_every_change(cluster: Cluster) -> None:
    _, other = cluster.controllers  # what is changed goes through the first
    watch = [sys.executable, "-m", "cronring.cli.main", "jobs", "watch", "--verb", "sweep", "-o", "json"]
    with subprocess.Popen([*watch, "--controllers", other.grpc], stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        events = map(json.loads, watching.stdout)
        assert any(event["kind"] == "listed" for event in events)

        def heard(kind: str) -> Row:
            """The next event of this kind about the job."""
            return next(
                event["job"] for event in events if event["kind"] == kind and event["job"]["key"].endswith(":watched")
            )

        def jobs(command: str, *arguments: str) -> None:
            done = cluster.ask("jobs", command, *arguments)
            assert done.returncode == 0, done.stderr

        jobs("create", "crawl.sweep", "--name", "watched", "--cron", "0 0 1 1 *")
        assert heard("changed")["schedule"] == "0 0 1 1 *"
        jobs("update", "crawl.sweep:watched", "--set-label", "a=1")
        assert heard("changed")["labels"] == {"a": "1"}
        jobs("pause", "crawl.sweep:watched", "--note", "why")
        assert heard("changed")["paused"]["note"] == "why"
        jobs("resume", "crawl.sweep:watched")
        assert heard("changed")["paused"] is None
        jobs("delete", "crawl.sweep:watched")
        assert heard("removed")
        watching.terminate()


def test_what_waits_is_listed_and_cancelled(cluster: Cluster) -> None:
    slow = '{"url": "down", "takes_s": 1.0}'
    key = cluster.cli(
        "jobs", "create", "crawl.site", "--name", "failing", "--manual", "--payload", slow, "--retries", "3",
        "--backoff", "1h",
    )["key"]  # fmt: skip
    cluster.ask("jobs", "trigger", key, "--wait")
    (retry,) = until("a retry waits", lambda: cluster.cli("jobs", "activations", key))
    assert (retry["trigger"], retry["attempt"]) == ("retry", 2)
    assert json.dumps(cluster.cli("jobs", "show", key)["activations"]) == json.dumps([retry])
    assert cluster.cli("jobs", "activations", key, "--cancel", str(retry["id"])) == []
    assert "no activation" in refused(cluster, "jobs", "activations", key, "--cancel", str(retry["id"]))
