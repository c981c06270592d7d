"""What the core knows of jobs, claims and executions.

Instants are `int` microseconds since 1970 in PostgreSQL's clock, and named `*_us` or by a word of docs/glossary.md
(tick, run_at, claimed_at). Monotonic times are `int` nanoseconds of the controller's own clock, named `*_ns`. Plain
tuples, because a controller makes tens of thousands of them a second.
"""

from enum import Enum
from typing import NamedTuple

from cronring.schema.execution import Report, Skipped, Trigger


class Job(NamedTuple):
    """A job as GetCronJobs returns it. `next_tick` and `next_run_at` are of its next tick; None when it has none.

    `executing`: no further execution may begin. The job has one, or (overlap "allow") as many as it may have.
    """

    job_id: int
    key: str
    slot: int
    deployment: str  # the deployment's key
    verb: str
    schedule: str  # see cronring.schema.schedule.parse_schedule
    anchor: int
    revision: int
    timeout_ms: int
    on_disconnect: str  # "stop" | "finish"
    executing: bool
    next_tick: int | None
    next_run_at: int | None
    policy: str = ""  # see cronring.schema.policy.parse_policy
    payload: str = ""  # JSON for the verb's parameter; "" for none
    share: str = ""  # whose it is, by the label `workspace`; "" for nobody's
    default_retries: int = 0  # of the cluster's defaults, for a policy that doesn't say them


class ClaimRequest(NamedTuple):
    """Claim `job_id` if its next tick still is `expected_tick`; run `run_tick` (later only when ticks were missed).

    With overlap "allow" the job stays idle, and goes on to its next tick at once: `next_tick` and `next_run_at`.
    """

    job_id: int
    expected_tick: int
    run_tick: int
    run_at: int
    runner_id: str  # "": none. The job's target is a queue, and the claim puts a message there
    deployment: str  # the one the runner was chosen for: refused if the job has moved on to another
    skipped: tuple[Skipped, ...]  # the ticks before run_tick that are passed over, ascending
    trigger: Trigger = Trigger.SCHEDULE
    next_tick: int | None = None
    next_run_at: int | None = None
    revision: int = 0  # of the row from which `next_tick`, `next_run_at` and `skipped` were computed
    turn: int = 0  # if a limit has too few places, the lowest turn gets one first


class ClaimResult(NamedTuple):
    """One attempted row: what it is like after the statement, whoever changed it."""

    job_id: int
    updated: bool
    active: bool  # its deployment is
    execution_id: int | None
    claimed_at: int
    executing: bool
    next_tick: int | None
    next_run_at: int | None
    revision: int
    # When updated: the tick claimed before this one, and the latest one that completed.
    previous_tick: int | None = None
    previous_success: int | None = None
    missed: int = 0  # ticks missed since the claim of `previous_tick`, with those of this request
    full: int | None = None  # the limit that has no place for it: the tick waits


class EnqueueRequest(NamedTuple):
    """Put the message of a tick into its queue, which completes the tick. The job goes on to its next tick.

    The other fields are as in ClaimRequest. The ticks of `passed` come after `run_tick`, and don't run either.
    """

    job_id: int
    expected_tick: int
    run_tick: int
    run_at: int
    deployment: str
    skipped: tuple[Skipped, ...]
    trigger: Trigger
    passed: tuple[Skipped, ...]
    next_tick: int | None
    next_run_at: int | None
    revision: int


class EnqueueResult(NamedTuple):
    """One attempted row: what it is like after the statement, whoever changed it.

    `refused`: PostgreSQL refused the message of this tick. The execution has no message, and this controller has to end
    it. `followers`: activations of jobs that follow this one.
    """

    job_id: int
    updated: bool
    active: bool  # its deployment is
    execution_id: int | None
    claimed_at: int
    executing: bool
    next_tick: int | None
    next_run_at: int | None
    revision: int
    refused: bool = False
    followers: list[int] | None = None


class Activation(NamedTuple):
    """A run that is wanted beside the job's schedule: a retry, a manual run, the next one of a backfill, or one that
    follows another job's tick.
    """

    activation_id: int
    job: Job
    tick: int
    until_tick: int | None  # of a backfill: the last tick it may run; None for the others
    attempt: int  # of a backfill: counted at the claim
    trigger: Trigger
    run_at: int
    payload: str  # "": the job's own
    beside: bool  # may run while the job runs; it then neither frees nor holds the job


class ActivationRequest(NamedTuple):
    """Claim this activation. `next_tick`: of a backfill, the tick after this one; None ends the activation."""

    activation_id: int
    job_id: int
    tick: int  # the one that is expected there
    runner_id: str
    deployment: str
    next_tick: int | None
    turn: int = 0  # as of a ClaimRequest


class ActivationResult(NamedTuple):
    """`execution` when it was claimed; else `gone` says that there is no such activation (any more).

    `next_tick`: of a backfill that goes on, whoever moved it.
    """

    activation_id: int
    execution: "Execution | None"
    gone: bool
    next_tick: int | None
    full: int | None = None  # the limit that has no place for it


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
    missed: int = 0  # ticks passed over since the execution before
    previous_tick: int | None = None
    previous_success: int | None = None
    payload: str = ""
    holds_job: bool = True  # False: it runs beside; its end neither frees the job nor sets the next tick
    of_schedule: bool = True  # False: a manual run, a backfill, or a retry of either; no tick supersedes it


class MessageFate(Enum):
    """What an end means for the message of an execution that no runner has."""

    NONE = 0  # it has a runner
    SETTLED = 1  # its consumer, or its claim, has decided it: the message has said all
    WITHDRAWN = 2  # somebody else ends it: its consumer is not to go on


class Unseen(NamedTuple):
    """The condition of an end as `lost`: the runner has not been seen for `for_ms`. Else the end is refused."""

    runner_id: str
    for_ms: int


class EndRequest(NamedTuple):
    """End the execution whose claim is `report.claimed_at`, if its job still has `revision`; set its next tick.

    An end with `retry_at` makes the retry as an activation. An end with `anchor` moves the job's next run. It opens new
    books at `closes_at`: the schedule counts from the anchor, and the revision grows. Then there may be no next tick.
    """

    report: Report
    tick: int  # that of the execution: its row is found by it
    revision: int
    next_tick: int | None
    next_run_at: int | None
    skipped: tuple[Skipped, ...]  # ticks that passed while it ran
    retry_at: int | None = None
    anchor: int | None = None
    closes_at: int | None = None
    message: MessageFate = MessageFate.NONE
    holds: bool = True  # its job, for a tick of its schedule; False: it runs beside others, or somebody asked for it
    unseen: Unseen | None = None  # only if that is so when this is committed


class EndResult(NamedTuple):
    """`ended`: this statement ended it. False: it had ended before, or it has another claim (by now)."""

    execution_id: int
    job_id: int
    ended: bool
    # Of the job after the statement; None when the job has no further tick, was removed, or is executing.
    next_tick: int | None
    next_run_at: int | None
    revision: int
    stale: bool = False  # not ended: the request was made from an older row of the job; read the row, and ask again
    retry_id: int | None = None  # the activation that was made for the retry
    paused: bool = False  # this end was the last failure that `pause_after_failures` allows
    followers: list[int] | None = None  # activations of jobs that follow this one, made by this end
    moved: bool = False  # the anchor that was asked for is the job's by this statement
    # Not ended: its runner is back, or its message's consumer has it. That one is about to report the end.
    busy: bool = False


class SkipRequest(NamedTuple):
    """Record that an idle job's due ticks are not run, and move it to its next tick."""

    job_id: int
    expected_tick: int
    revision: int
    skipped: tuple[Skipped, ...]
    next_tick: int | None
    next_run_at: int | None


class RunnerInfo(NamedTuple):
    """A connected runner, as its stream's Hello and registration describe it."""

    runner_id: str
    hostname: str
    pid: int
    version: str
    deployments: tuple[str, ...]  # keys of the deployments it hosts
    # By deployment, its sync verbs. None (virtual runners): the runner grants no places, and takes whatever comes.
    sync_verbs: tuple[tuple[str, frozenset[str]], ...] | None = None
    # How many runs of each module it holds at once, of sync and of async verbs; 0: not told.
    sync_places: int = 0
    async_places: int = 0


class CancelRequest(NamedTuple):
    """Somebody wants an unfinished execution cancelled."""

    execution_id: int
    runner_id: str
    by: str
    note: str

    @property
    def reason(self) -> str:
        """What the execution's error message will say."""
        return f"cancelled by {self.by}: {self.note}" if self.note else f"cancelled by {self.by}"


class LeaseRenewal(NamedTuple):
    """The answer to a renewal: PostgreSQL's time, and what there is to sweep."""

    database_now: int
    renewed_runners: tuple[str, ...]
    dead_controllers: tuple[str, ...]  # ids whose lease ran out (or that are gone) while executions still carry them
    lost_runners: tuple[str, ...]  # ids not seen for `runner_lost_after` while executions still carry them
    overdue_executions: bool  # at least one execution is past its hard deadline
    cancels: tuple[CancelRequest, ...] = ()  # of this controller's executions, without RenewLease.cancelling
    controllers: tuple[tuple[str, str], ...] = ()  # (id, address for clients) of every row
    queue_reports: bool = False  # consumers, or claims of this controller, have decided executions
