"""From our rows to the contract's JSON. Pure: dictionaries whose order is the page's."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from cronring.controller.core.figures import Figures
from cronring.controller.core.orders.interval_states import IntervalStatus
from cronring.controller.interval_jobs.terms import DEFAULTS, of_kept
from cronring.controller.ports.interval_jobs import IntervalFigures, IntervalJobRow, IntervalRun
from cronring.schema.retry import STOPPED_BY_RUNNER

MIB: Final = 1024 * 1024
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  # of UTC, whose "+00:00" is written as Z
ITEMS: Final = ("items_crawled", "items_indexed")
# What an outcome other than `failed` is to say, as all of them are `failed` in the contract.
_SAID: Final = {
    "timed_out": "timed out", "lost": "lost", "out_of_memory": "out of memory", "out_of_cpu": "out of CPU time",
}  # fmt: skip
_JOBS: Final = ("scheduled", "running", "completed", "failed", "cancelled")
_IN_TROUBLE: Final = (IntervalStatus.SCHEDULED, IntervalStatus.PAUSED, IntervalStatus.FAILED)


def job_body(row: IntervalJobRow, *, outputs: bool) -> dict[str, Any]:
    """`outputs` False: of a reader who may not see what authors and their users wrote."""
    terms = of_kept(row.terms)
    timed = "interval_minutes" in terms or "schedule_time" in terms
    latest = row.latest
    return {
        "id": row.interval_id,
        **{name: terms.get(name) for name in ("source_id", "source_name", "url")},
        "verb": row.key.rpartition(":")[0],
        "payload": terms.get("payload") if outputs else None,
        "interval_minutes": terms.get("interval_minutes"),
        "interval_type": terms.get("interval_type", DEFAULTS["interval_type"]),
        "schedule_time": terms.get("schedule_time"),
        "schedule_enabled": terms.get("schedule_enabled", timed),
        **{name: terms.get(name, DEFAULTS[name]) for name in ("max_retries", "retry_backoff_seconds")},
        "metadata": terms.get("metadata", {}) if outputs else {},
        "status": row.status.value,
        "is_paused": row.status is IntervalStatus.PAUSED,
        "paused_at": rfc3339(row.paused_at),
        "cancelled_at": rfc3339(row.cancelled_at),
        "next_run_at": rfc3339(row.next_run_at),
        "started_at": rfc3339(latest.claimed_at if latest.started_at is None else latest.started_at),
        "completed_at": rfc3339(latest.ended_at),
        "created_at": rfc3339(row.created_at),
        "updated_at": rfc3339(row.changed_at),
        "error_message": _error_of(row) if outputs else None,
        "current_retry_count": _retries(row),
    }


def execution_body(run: IntervalRun, interval_id: str, *, outputs: bool) -> dict[str, Any]:
    """`outputs` as of job_body."""
    started = run.claimed_at if run.started_at is None else run.started_at
    metrics = _metrics(run)
    status = _status(run.outcome, run.error_type)
    error = _error(run.outcome, run.error_message) if status == "failed" or run.outcome == "cancelled" else None
    return {
        "id": str(run.execution_id),
        "job_id": interval_id,
        "execution_number": run.number,
        "status": status,
        "started_at": rfc3339(started),
        "completed_at": rfc3339(run.ended_at),
        "duration_ms": None if run.ended_at is None else round((run.ended_at - started) / 1_000),
        **{name: _number(metrics.get(name)) for name in ITEMS},
        "error_message": error if outputs else None,
        "stack_trace": run.stack if outputs else None,
        "cpu_time_ms": None if run.cpu_us is None else round(run.cpu_us / 1_000),
        "memory_peak_mb": None if run.memory_peak_bytes is None else round(run.memory_peak_bytes / MIB, 2),
        "retry_attempt": run.attempt - 1,
        "metadata": {name: value for name, value in metrics.items() if name not in ITEMS} if outputs else {},
    }


def stats_body(row: IntervalJobRow, figures: Figures) -> dict[str, Any]:
    ended = sum(figures.outcomes.values())
    completed, cancelled = figures.outcomes["completed"], figures.outcomes["cancelled"]
    latest = row.latest
    return {
        "total_executions": figures.executions,
        "successful_runs": completed,
        "failed_runs": ended - completed - cancelled,
        "average_duration_ms": _average_ms(figures.duration_us, ended),
        "last_execution_at": rfc3339(latest.claimed_at if latest.started_at is None else latest.started_at),
        "next_scheduled_at": rfc3339(row.next_run_at),
        "success_rate": _share(completed, ended - cancelled),
    }


def metrics_body(jobs: Mapping[str, int], figures: IntervalFigures) -> dict[str, Any]:
    return {
        "jobs": {status: jobs.get(status, 0) for status in _JOBS},
        "executions": {
            "total": figures.executions,
            "average_duration_ms": _average_ms(figures.duration_us, figures.ended),
            "success_rate": _share(figures.completed, figures.ended - figures.cancelled),
        },
        "last_check_at": rfc3339(figures.last_check),
        "last_metrics_update": rfc3339(figures.counted_at),
        "stale_locks_cleared": figures.leases_cleared,
    }


def rfc3339(instant_us: int | None) -> str | None:
    """In UTC."""
    if instant_us is None:
        return None
    return (_EPOCH + timedelta(microseconds=instant_us)).isoformat(timespec="microseconds") + "Z"


def _status(outcome: str | None, error_type: str | None) -> str:
    """What its runner stopped, as that left or was cut off, nobody wanted cancelled."""
    if outcome == "cancelled" and error_type in STOPPED_BY_RUNNER:
        return "failed"
    return {None: "running", "completed": "completed", "cancelled": "cancelled"}.get(outcome, "failed")


def _error(outcome: str | None, message: str | None) -> str | None:
    said = _SAID.get(outcome or "", "")
    if not said or (message or "").lower().startswith(said.lower()):
        return message or said or None
    return f"{said}: {message}" if message else said


def _error_of(row: IntervalJobRow) -> str | None:
    """Why its latest run failed, as long as that is why it waits."""
    if row.orphaned and row.status is IntervalStatus.FAILED:
        return f"no active version of its module has the verb {row.key.rpartition(':')[0]}"
    latest = row.latest
    if row.status not in _IN_TROUBLE or _status(latest.outcome, latest.error_type) != "failed":
        return None
    return _error(latest.outcome, latest.error_message)


def _retries(row: IntervalJobRow) -> int:
    """Of the tick, or the run by hand, that is in hand."""
    if row.status in {IntervalStatus.RUNNING, IntervalStatus.FAILED}:
        return (row.latest.attempt or 1) - 1
    return (row.waiting_attempt or 1) - 1


def _metrics(run: IntervalRun) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run.metrics) if run.metrics else {}
    return found


def _number(value: object) -> int | float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _average_ms(total_us: int, count: int) -> float:
    return round(total_us / count / 1_000, 3) if count else 0


def _share(part: int, of: int) -> float:
    return part / of if of else 0
