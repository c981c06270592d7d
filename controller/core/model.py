"""What the core knows of jobs, claims and executions.

Instants are `int` microseconds since 1970 in PostgreSQL's clock, and named `*_us` or by a noun of DESIGN.md (tick,
run_at, claimed_at). Monotonic times are `int` nanoseconds of the controller's own clock, named `*_ns`. Plain tuples,
because a controller makes tens of thousands of them a second.
"""

from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """How an execution ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"


class SkipReason(StrEnum):
    """Why a tick did not run."""

    OVERLAP = "overlap"
    PAUSED = "paused"
    NO_RUNNER = "no_runner"
    OUTSIDE_WINDOW = "outside_window"
    SUPERSEDED = "superseded"


class Skipped(NamedTuple):
    """Consecutive ticks that do not run, for one reason."""

    reason: SkipReason
    first_tick: int
    last_tick: int
    ticks: int


class Job(NamedTuple):
    """A job as GetCronJobs returns it. `next_tick` and `next_run_at` are of its next tick; None when it has none."""

    job_id: int
    key: str
    slot: int
    deployment: str  # the deployment's key
    verb: str
    schedule: str  # see schema.schedule.parse_schedule
    anchor: int
    revision: int
    timeout_ms: int
    on_disconnect: str  # "stop" | "finish"
    executing: bool
    next_tick: int | None
    next_run_at: int | None


class ClaimRequest(NamedTuple):
    """Claim `job_id` if its next tick still is `expected_tick`; run `run_tick` (later only when ticks were missed)."""

    job_id: int
    expected_tick: int
    run_tick: int
    run_at: int
    runner_id: str
    deployment: str  # the one the runner was chosen for: refused if the job has moved on to another
    skipped: Skipped | None  # the missed ticks before run_tick, reason SUPERSEDED


class ClaimResult(NamedTuple):
    """One attempted row. When not `updated`, the last four say what the row is like instead."""

    job_id: int
    updated: bool
    has_min_replicas: bool
    execution_id: int | None
    claimed_at: int
    executing: bool
    next_tick: int | None
    next_run_at: int | None
    revision: int


class Execution(NamedTuple):
    """An unfinished execution with all that is needed to dispatch it and to end it."""

    execution_id: int
    job: Job
    tick: int
    run_at: int
    claimed_at: int
    attempt: int
    trigger: str
    deployment: str  # the deployment's key it was claimed for; the job may have moved on
    runner_id: str


class Report(NamedTuple):
    """What a runner says of an execution that ended."""

    execution_id: int
    job_id: int
    claimed_at: int
    outcome: Outcome
    started_at: int
    ended_at: int
    error_type: str
    error_message: str
    output: str


class EndRequest(NamedTuple):
    """End the execution whose claim is `report.claimed_at`; set its job's next tick if it still has `revision`."""

    report: Report
    revision: int
    next_tick: int | None
    next_run_at: int | None
    skipped: Skipped | None  # ticks that passed while it ran, reason OVERLAP


class EndResult(NamedTuple):
    """`ended`: this statement ended it. False: somebody had before, or the claim is not (or no longer) this one."""

    execution_id: int
    job_id: int
    ended: bool
    # Of the job after the statement; None when the job has no further tick, was removed, or is executing.
    next_tick: int | None
    next_run_at: int | None
    revision: int


class SkipRequest(NamedTuple):
    """Record that an idle job's due ticks are not run, and move it to its next tick."""

    job_id: int
    expected_tick: int
    revision: int
    skipped: Skipped
    next_tick: int | None
    next_run_at: int | None


class RunnerInfo(NamedTuple):
    """A connected runner, as its session's Hello and registration describe it."""

    runner_id: str
    hostname: str
    pid: int
    version: str
    deployments: tuple[str, ...]  # keys of the deployments it hosts


class LeaseRenewal(NamedTuple):
    """The answer to a renewal: PostgreSQL's time, and what there is to sweep."""

    database_now: int
    renewed_runners: tuple[str, ...]
    dead_controllers: tuple[str, ...]  # ids whose lease ran out (or that are gone) while executions still carry them
    lost_runners: tuple[str, ...]  # ids not seen for `runner_lost_after` while executions still carry them
    overdue_executions: bool  # at least one execution is past its hard deadline
