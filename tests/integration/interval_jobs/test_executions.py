"""Executions and figures, as docs/interval-jobs.md has them."""

from datetime import datetime, timedelta
from typing import Any

from tests.integration.interval_jobs.conftest import Body, Place, until

SITE = "https://a.example"
FIELDS = (
    "id", "job_id", "execution_number", "status", "started_at", "completed_at", "duration_ms", "items_crawled",
    "items_indexed", "error_message", "stack_trace", "cpu_time_ms", "memory_peak_mb", "retry_attempt", "metadata",
)  # fmt: skip


def ended(place: Place, job: Body, count: int = 1) -> list[Body]:
    """The newest first."""

    def found() -> Any:
        runs = place.client.runs(job)
        return runs if len(runs) >= count and all(run["completed_at"] for run in runs) else None

    runs: list[Body] = until(found, lambda: place.client.runs(job))
    return runs


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_an_execution_has_every_field(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/counts")
    (run,) = ended(place, job)
    assert tuple(run) == FIELDS
    assert place.client.good("GET", f"/executions/{run['id']}") == run
    lasted = datetime.fromisoformat(run["completed_at"]) - datetime.fromisoformat(run["started_at"])
    assert abs(lasted / timedelta(milliseconds=1) - run["duration_ms"]) <= 1
    for name in ("duration_ms", "cpu_time_ms", "memory_peak_mb"):
        assert is_number(run.pop(name)), name
    for name in ("id", "started_at", "completed_at"):
        assert isinstance(run.pop(name), str)
    assert run == {
        "job_id": job["id"], "execution_number": 1, "status": "completed", "items_crawled": 12, "items_indexed": 7.5,
        "error_message": None, "stack_trace": None, "retry_attempt": 0, "metadata": {"pages_failed": 2},
    }  # fmt: skip


def test_one_that_runs_has_no_end_yet(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/waits")
    place.client.until(job, "running")
    (run,) = place.client.runs(job)
    assert (run["status"], run["completed_at"], run["duration_ms"]) == ("running", None, None)
    assert (run["items_crawled"], run["items_indexed"], run["metadata"]) == (0, 0, {})
    assert run["started_at"] == place.client.get(job)["started_at"] or run["started_at"]
    (place.crawled / "go").touch()
    ended(place, job)
    (place.crawled / "go").unlink()


def test_one_that_failed_says_why(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/fails", max_retries=0)
    (run,) = ended(place, job)
    assert (run["status"], run["error_message"]) == ("failed", "the site is closed")
    assert 'raise ValueError("the site is closed")' in run["stack_trace"]


def test_one_that_timed_out_has_failed_and_says_so(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/hangs", max_retries=0)
    (run,) = ended(place, job)
    assert run["status"] == "failed"
    assert run["error_message"].startswith("timed out")
    failed = place.client.until(job, "failed")
    assert failed["error_message"] == run["error_message"]


def test_executions_are_numbered_and_paged(place: Place) -> None:
    job = place.client.create(url=SITE)
    for count in range(1, 5):
        ended(place, job, count)
        place.client.until(job, "completed")
        place.client.order(job, "trigger")
    ended(place, job, 5)
    page = place.client.good("GET", f"/jobs/{job['id']}/executions?limit=2&offset=1")
    assert [run["execution_number"] for run in page["executions"]] == [4, 3]
    assert (page["total"], page["limit"], page["offset"]) == (5, 2, 1)
    whole = place.client.good("GET", f"/jobs/{job['id']}/executions")
    assert [run["execution_number"] for run in whole["executions"]] == [5, 4, 3, 2, 1]
    assert (whole["total"], whole["limit"], whole["offset"]) == (5, 50, 0)


def test_unknown_executions(place: Place) -> None:
    for wanted in ("999999999", "0", "x", "1.5", "9" * 30, "%00"):
        place.client.refused(404, "GET", f"/executions/{wanted}")
    # One of a job that is none of the contract's.
    place.cluster.cli("jobs", "trigger", "crawler.fetch", "--payload", '{"url": "x"}')
    rows = until(lambda: place.cluster.cli("executions", "list", "--job", "crawler.fetch"), lambda: "it never ran")
    place.client.refused(404, "GET", f"/executions/{rows[0]['id']}")


def test_figures_of_a_job(place: Place) -> None:
    job = place.client.create(url=f"{SITE}/fails", max_retries=0)
    assert place.client.good("GET", f"/jobs/{job['id']}/stats").keys() == {
        "total_executions", "successful_runs", "failed_runs", "average_duration_ms", "last_execution_at",
        "next_scheduled_at", "success_rate",
    }  # fmt: skip
    place.client.until(job, "failed")
    place.client.good("PUT", f"/jobs/{job['id']}", {"url": f"{SITE}/counts", "interval_minutes": 60})
    place.client.order(job, "retry")
    ended(place, job, 2)
    found = place.client.until(job, "scheduled")
    stats = place.client.good("GET", f"/jobs/{job['id']}/stats")
    runs = place.client.runs(job)
    assert (stats["total_executions"], stats["successful_runs"], stats["failed_runs"]) == (2, 1, 1)
    assert stats["success_rate"] == 0.5
    assert abs(stats["average_duration_ms"] - sum(run["duration_ms"] for run in runs) / 2) <= 1
    assert stats["last_execution_at"] == runs[0]["started_at"]
    assert stats["next_scheduled_at"] == found["next_run_at"]


def test_figures_of_a_job_that_never_ran(place: Place) -> None:
    job = place.client.create(url=SITE, interval_minutes=60)
    assert place.client.good("GET", f"/jobs/{job['id']}/stats") == {
        "total_executions": 0, "successful_runs": 0, "failed_runs": 0, "average_duration_ms": 0,
        "last_execution_at": None, "next_scheduled_at": job["next_run_at"], "success_rate": 0,
    }  # fmt: skip
    assert place.client.good("GET", f"/jobs/{job['id']}/executions") == {
        "executions": [], "total": 0, "limit": 50, "offset": 0
    }  # fmt: skip


def test_figures_of_the_scheduler(place: Place) -> None:
    before = place.client.good("GET", "/scheduler/metrics")
    assert list(before) == ["jobs", "executions", "last_check_at", "last_metrics_update", "stale_locks_cleared"]
    assert list(before["jobs"]) == ["scheduled", "running", "completed", "failed", "cancelled"]
    assert list(before["executions"]) == ["total", "average_duration_ms", "success_rate"]
    job = place.client.create(url=SITE)
    place.client.until(job, "completed")
    place.client.create(url=SITE, interval_minutes=60)
    after = place.client.good("GET", "/scheduler/metrics")
    assert after["jobs"]["completed"] == before["jobs"]["completed"] + 1
    assert after["jobs"]["scheduled"] == before["jobs"]["scheduled"] + 1
    assert after["executions"]["total"] == before["executions"]["total"] + 1
    assert 0 <= after["executions"]["success_rate"] <= 1
    assert is_number(after["executions"]["average_duration_ms"])
    assert after["stale_locks_cleared"] == 0
    for name in ("last_check_at", "last_metrics_update"):
        assert after[name].endswith("Z")
    assert before["last_metrics_update"] < after["last_metrics_update"]
    listed = place.client.good("GET", "/jobs?status=failed&limit=1")
    assert after["jobs"]["failed"] == listed["total"]
