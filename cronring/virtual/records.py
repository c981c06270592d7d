"""What a virtual cluster's books say, as values. All instants are aware datetimes in UTC."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronring.controller.store.memory.rows import SkipRow, StoredExecution, StoredJob
from cronring.schema.instant import from_us


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt at one tick, or a run that was triggered. What has not come to pass yet is None."""

    id: int
    job: str
    """The job's key: `module.verb`."""
    tick: datetime
    run_at: datetime
    """The tick, moved by jitter; of a retry, when that was due."""
    attempt: int
    trigger: str
    """"schedule", "catch_up", "retry", "manual", "backfill", or "after" (it follows another job)."""
    missed: int
    """Ticks that were passed over before this one."""
    claimed: datetime
    started: datetime | None
    ended: datetime | None
    outcome: str | None
    """"completed", "failed", "timed_out", "cancelled", "lost", "out_of_memory", "out_of_cpu"; None while it runs."""
    error: str | None
    """The exception's type, like `ConnectionError`, or why it was stopped, like `TimedOut`."""
    error_message: str
    output: str
    """What it printed and logged."""
    stack: str
    """The frames of its traceback that are the author's."""
    metrics: dict[str, float | str | bool]
    """What it said by `ctx.report`."""

    @property
    def lateness(self) -> timedelta | None:
        """Start minus run_at."""
        return None if self.started is None else self.started - self.run_at


@dataclass(frozen=True, slots=True)
class Skip:
    """Consecutive ticks of a job that did not run, for one reason."""

    job: str
    reason: str
    """"overlap", "paused", "no_runner", "no_verb", "outside_window", "superseded", ..."""
    first_tick: datetime
    last_tick: datetime
    ticks: int
    decided: datetime


def execution_of(row: StoredExecution) -> Execution:
    report = row.report
    return Execution(
        row.execution_id,
        row.job.key,
        from_us(row.tick),
        from_us(row.run_at),
        row.attempt,
        str(row.trigger),
        row.missed,
        from_us(row.claimed_at),
        None if report is None else from_us(report.started_at),
        None if report is None else from_us(report.ended_at),
        None if row.outcome is None else str(row.outcome),
        None if report is None or not report.error_type else report.error_type,
        "" if report is None else report.error_message,
        "" if report is None else report.output,
        "" if report is None else report.stack,
        json.loads(report.metrics) if report is not None and report.metrics else {},
    )


def skip_of(row: SkipRow, job: StoredJob) -> Skip:
    reason, first_tick, last_tick, ticks = row.skipped
    return Skip(job.key, str(reason), from_us(first_tick), from_us(last_tick), ticks, from_us(row.decided_at))
