"""Golden bodies: what the contract's clients read, to the letter."""

import json
from typing import Any

import pytest

from cronring.controller.core.figures import Figures
from cronring.controller.core.orders.interval_states import IntervalStatus
from cronring.controller.interval_jobs.bodies import execution_body, job_body, metrics_body, stats_body
from cronring.controller.ports.interval_jobs import IntervalFigures, IntervalJobRow, IntervalRun, LatestRun, Terms

AT = 1_800_000_000_000_000  # 2027-01-15T08:00:00Z
S = 1_000_000
TERMS = Terms('{"source_id":"s","url":"u","interval_minutes":5,"payload":{"a":1},"metadata":{"b":2}}', "s")
JOB = IntervalJobRow(
    "i1", 7, "crawling/crawler.fetch:i1", "crawling", TERMS, IntervalStatus.SCHEDULED, AT, AT + 1, AT + 300 * S, None,
    None, False, None,
)  # fmt: skip
RUN = IntervalRun(
    41, 3, "completed", AT, AT + 1_000, AT + 2_501_400, None, None, None, 12_345, 50 << 20, 1,
    '{"items_crawled":12,"other":true}',
)  # fmt: skip
OUTCOMES = {"completed": 3, "failed": 1, "timed_out": 1, "cancelled": 4, "lost": 1, "out_of_memory": 0, "out_of_cpu": 0}


def test_a_job() -> None:
    assert json.dumps(job_body(JOB, outputs=True)) == json.dumps({
        "id": "i1", "source_id": "s", "source_name": None, "url": "u", "verb": "crawling/crawler.fetch",
        "payload": {"a": 1}, "interval_minutes": 5, "interval_type": "minutes", "schedule_time": None,
        "schedule_enabled": True, "max_retries": 3, "retry_backoff_seconds": 60, "metadata": {"b": 2},
        "status": "scheduled", "is_paused": False, "paused_at": None, "cancelled_at": None,
        "next_run_at": "2027-01-15T08:05:00.000000Z", "started_at": None, "completed_at": None,
        "created_at": "2027-01-15T08:00:00.000000Z", "updated_at": "2027-01-15T08:00:00.000001Z",
        "error_message": None, "current_retry_count": 0,
    })  # fmt: skip


def test_an_execution() -> None:
    assert json.dumps(execution_body(RUN, "i1", outputs=True)) == json.dumps({
        "id": "41", "job_id": "i1", "execution_number": 3, "status": "completed",
        "started_at": "2027-01-15T08:00:00.001000Z", "completed_at": "2027-01-15T08:00:02.501400Z",
        "duration_ms": 2_500, "items_crawled": 12, "items_indexed": 0, "error_message": None, "stack_trace": None,
        "cpu_time_ms": 12, "memory_peak_mb": 50.0, "retry_attempt": 0, "metadata": {"other": True},
    })  # fmt: skip


def test_figures_of_a_job() -> None:
    row = JOB._replace(latest=LatestRun(AT, AT + S, AT + 2 * S, 1, "completed"))
    assert json.dumps(stats_body(row, Figures(11, 1, OUTCOMES, 25_000_000, 0))) == json.dumps({
        "total_executions": 11, "successful_runs": 3, "failed_runs": 3, "average_duration_ms": 2_500.0,
        "last_execution_at": "2027-01-15T08:00:01.000000Z", "next_scheduled_at": "2027-01-15T08:05:00.000000Z",
        "success_rate": 0.5,
    })  # fmt: skip


def test_figures_of_the_scheduler() -> None:
    figures = IntervalFigures(AT, 11, 10, 3, 4, 25_000_000, 2, AT - S)
    assert json.dumps(metrics_body({"scheduled": 5, "paused": 1, "failed": 2}, figures)) == json.dumps({
        "jobs": {"scheduled": 5, "running": 0, "completed": 0, "failed": 2, "cancelled": 0},
        "executions": {"total": 11, "average_duration_ms": 2_500.0, "success_rate": 0.5},
        "last_check_at": "2027-01-15T07:59:59.000000Z", "last_metrics_update": "2027-01-15T08:00:00.000000Z",
        "stale_locks_cleared": 2,
    })  # fmt: skip
    nothing = metrics_body({}, IntervalFigures(AT, 0, 0, 0, 0, 0, 0, None))
    assert nothing["executions"] == {"total": 0, "average_duration_ms": 0, "success_rate": 0}
    assert nothing["last_check_at"] is None


def test_who_may_not_see_outputs_reads_the_rest() -> None:
    failed = JOB._replace(status=IntervalStatus.FAILED, latest=LatestRun(AT, AT, AT, 4, "failed", "E", "secret"))
    shown, hidden = job_body(failed, outputs=True), job_body(failed, outputs=False)
    assert hidden == shown | {"payload": None, "metadata": {}, "error_message": None}
    run = RUN._replace(outcome="failed", error_message="secret", stack="secret")
    shown, hidden = execution_body(run, "i1", outputs=True), execution_body(run, "i1", outputs=False)
    assert hidden == shown | {"error_message": None, "stack_trace": None, "metadata": {}}


@pytest.mark.parametrize(
    ("outcome", "error_type", "message", "status", "error"),
    [
        (None, None, None, "running", None),
        ("completed", None, None, "completed", None),
        ("failed", "ValueError", "no", "failed", "no"),
        ("failed", "ValueError", None, "failed", None),
        ("timed_out", None, "after 5s", "failed", "timed out: after 5s"),
        ("timed_out", None, "Timed out after 5s", "failed", "Timed out after 5s"),
        ("timed_out", None, None, "failed", "timed out"),
        ("lost", None, "runner r1 was not seen", "failed", "lost: runner r1 was not seen"),
        ("out_of_memory", None, "64 MiB", "failed", "out of memory: 64 MiB"),
        ("cancelled", None, "cancelled by ada", "cancelled", "cancelled by ada"),
        ("cancelled", "Disconnected", "cut off", "failed", "cut off"),
        ("cancelled", "RunnerStopped", "it left", "failed", "it left"),
    ],
)
def test_outcomes(outcome: str | None, error_type: str | None, message: str | None, status: str, error: str | None):
    run = RUN._replace(outcome=outcome, error_type=error_type, error_message=message)
    body = execution_body(run, "i1", outputs=True)
    assert (body["status"], body["error_message"]) == (status, error)


@pytest.mark.parametrize(
    ("status", "waiting", "latest", "count", "error"),
    [
        (IntervalStatus.SCHEDULED, None, LatestRun(), 0, None),
        (IntervalStatus.SCHEDULED, 2, LatestRun(AT, AT, AT, 1, "failed", "E", "no"), 1, "no"),
        (IntervalStatus.RUNNING, None, LatestRun(AT, None, None, 3), 2, None),
        (IntervalStatus.FAILED, None, LatestRun(AT, AT, AT, 4, "failed", "E", "no"), 3, "no"),
        (IntervalStatus.PENDING, 1, LatestRun(AT, AT, AT, 4, "failed", "E", "no"), 0, None),
        (IntervalStatus.SCHEDULED, None, LatestRun(AT, AT, AT, 3, "completed"), 0, None),
        (IntervalStatus.SCHEDULED, None, LatestRun(AT, AT, AT, 1, "cancelled", "", "by ada"), 0, None),
        (IntervalStatus.CANCELLED, None, LatestRun(AT, AT, AT, 1, "failed", "E", "no"), 0, None),
    ],
)
def test_retries_and_errors_of_a_job(
    status: IntervalStatus, waiting: int | None, latest: LatestRun, count: int, error: str | None
) -> None:
    body = job_body(JOB._replace(status=status, waiting_attempt=waiting, latest=latest), outputs=True)
    assert (body["current_retry_count"], body["error_message"]) == (count, error)


@pytest.mark.parametrize("reported", ['"twelve"', "true", "null"])
def test_what_is_no_number_counts_as_none(reported: str) -> None:
    body: dict[str, Any] = execution_body(RUN._replace(metrics=f'{{"items_crawled":{reported}}}'), "i1", outputs=True)
    assert (body["items_crawled"], body["items_indexed"]) == (0, 0)
