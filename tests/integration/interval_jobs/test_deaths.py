"""What the contract's clients rely on when processes die."""

import json
from pathlib import Path

import pytest

from tests.integration.interval_jobs.conftest import MODULE, Client, until
from tests.support.cluster import Cluster


@pytest.fixture
def crawled(tmp_path: Path) -> Path:
    folder = tmp_path / "crawled"
    folder.mkdir()
    return folder


def test_a_dead_schedulers_work_is_taken_up_and_what_runs_once_runs_once(
    database_url: str, tmp_path: Path, crawled: Path
) -> None:
    with Cluster(database_url, tmp_path, {"CRAWLED": str(crawled)}) as cluster:
        first = cluster.start_controller("--interval-jobs-verb", "crawler.fetch")
        client = Client(f"http://{first.http}")
        runner = cluster.start_runner(MODULE)
        until(lambda: cluster.cli("deployments", "list", "--active"), runner.tail)
        runner.kill()
        # Nobody can run it now: it waits with its job, in one transaction.
        job = client.create(url="https://a.example/once", max_retries=0)
        recurring = client.create(url="https://a.example/each", schedule_time="* * * * * *")
        assert job["status"] == "pending"
        first.kill()
        second = cluster.start_controller("--interval-jobs-verb", "crawler.fetch")
        cluster.controllers.remove(first)
        cluster.start_runner(MODULE)
        client = Client(f"http://{second.http}")
        client.until(job, "completed")
        until(lambda: len(client.runs(recurring)) >= 3, lambda: client.get(recurring))
        assert [run["execution_number"] for run in client.runs(job)] == [1]
        (note,) = crawled.glob(f"{job['id']}-*")
        assert json.loads(note.read_text())["payload"]["url"] == "https://a.example/once"
        assert client.good("GET", "/scheduler/metrics")["stale_locks_cleared"] in {0, 1}


def test_a_run_whose_runner_dies_has_failed_and_says_so(database_url: str, tmp_path: Path, crawled: Path) -> None:
    with Cluster(database_url, tmp_path, {"CRAWLED": str(crawled)}) as cluster:
        controller = cluster.start_controller("--interval-jobs-verb", "crawler.fetch")
        client = Client(f"http://{controller.http}")
        runner = cluster.start_runner(MODULE)
        until(lambda: cluster.cli("deployments", "list", "--active"), runner.tail)
        job = client.create(url="https://a.example/waits", max_retries=0)
        client.until(job, "running")
        until(lambda: list(crawled.glob(f"{job['id']}-*")), runner.tail)
        runner.kill()
        failed = client.until(job, "failed")
        assert failed["error_message"].startswith("lost")
        (run,) = client.runs(job)
        assert (run["status"], run["error_message"]) == ("failed", failed["error_message"])


def test_without_the_option_there_is_no_facade(database_url: str, tmp_path: Path) -> None:
    with Cluster(database_url, tmp_path) as cluster:
        controller = cluster.start_controller("--no-interval-jobs")
        assert Client(f"http://{controller.http}").send("GET", "/jobs").status == 404


def test_without_a_verb_of_its_own_each_job_names_one(database_url: str, tmp_path: Path, crawled: Path) -> None:
    with Cluster(database_url, tmp_path, {"CRAWLED": str(crawled)}) as cluster:
        controller = cluster.start_controller()
        client = Client(f"http://{controller.http}")
        cluster.start_runner(MODULE)
        until(lambda: cluster.cli("deployments", "list", "--active"), lambda: "the module is deployed")
        said = client.refused(422, "POST", "/jobs", {"url": "https://a.example"})["detail"]
        assert "--interval-jobs-verb" in said
        client.until(client.create(verb="crawler.fetch", url="https://a.example"), "completed")
