"""An execution as its controller and its runner speak of it: what is to run, how it ended, and what did not run.

Plain tuples, because a controller makes tens of thousands of them a second. The wire's form of them is
protos/executions.py, PostgreSQL's is controller/store. Instants are int microseconds since 1970, PostgreSQL's.
"""

from enum import IntEnum, StrEnum
from typing import Final, NamedTuple


class Trigger(StrEnum):
    """Why an execution runs."""

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"  # a tick that is run late, or ticks before it were missed
    RETRY = "retry"
    MANUAL = "manual"
    BACKFILL = "backfill"
    AFTER = "after"  # a tick of the job that it follows has succeeded


# These are claimed from the job's schedule, the others from an activation.
OF_A_TICK: Final = (Trigger.SCHEDULE, Trigger.CATCH_UP)


class Outcome(StrEnum):
    """How an execution ended. PostgreSQL counts them by their position in this order (cron_jobs.outcomes)."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOST = "lost"
    OUT_OF_MEMORY = "out_of_memory"
    OUT_OF_CPU = "out_of_cpu"


# Outcomes without success: they may be retried, and count as failures. A cancelled run doesn't: somebody wanted that.
FAILURES: Final = tuple(each.value for each in Outcome if each not in {Outcome.COMPLETED, Outcome.CANCELLED})
# Outcomes that a runner may report: only controllers decide that an execution is lost.
OF_A_RUNNER: Final = frozenset(Outcome) - {Outcome.LOST}


class SkipReason(StrEnum):
    """Why a tick did not run."""

    OVERLAP = "overlap"
    PAUSED = "paused"
    NO_RUNNER = "no_runner"
    OUTSIDE_WINDOW = "outside_window"
    SUPERSEDED = "superseded"
    MISSED_POLICY = "missed_policy"
    DEPLOYMENT_REMOVED = "deployment_removed"
    CANCELLED = "cancelled"
    NO_VERB = "no_verb"  # no active version of its module has the job's verb: it is orphaned


class Skipped(NamedTuple):
    """Consecutive ticks that do not run, for one reason."""

    reason: SkipReason
    first_tick: int
    last_tick: int
    ticks: int


class ScheduleKind(IntEnum):
    """What makes a job's ticks. The numbers are the wire's."""

    CRON = 1
    INTERVAL = 2  # its verb may move the job's next run
    ONCE = 3
    MANUAL = 4


class Run(NamedTuple):
    """One execution to run, as it is dispatched to a runner."""

    execution_id: int
    job_id: int
    job: str
    deployment: str
    verb: str
    tick_us: int
    run_at_us: int
    claimed_at_us: int
    deadline_us: int
    attempt: int
    trigger: str
    finish: bool  # on_disconnect = "finish"
    missed: int = 0  # ticks passed over since the execution before
    previous_tick_us: int = 0  # of the execution before; 0: there is none
    previous_success_us: int = 0  # tick of the latest that completed; 0: there is none
    payload_json: str = ""
    timezone: str = ""  # the job's; "" is UTC
    schedule_kind: int = ScheduleKind.CRON
    memory_limit: int = 0  # bytes; 0: none, as below
    cpu_limit_us: int = 0
    priority: int = 0  # a level is worth a second of waiting
    place_epoch: int = 0  # of the place that it takes; 0: none, it was held already

    @property
    def rank_us(self) -> int:
        """Of those that wait for a child, the lowest goes first: with time everything comes before what is new."""
        return self.run_at_us - self.priority * 1_000_000

    @property
    def interval(self) -> bool:
        """Its verb may move the job's next run."""
        return self.schedule_kind == ScheduleKind.INTERVAL

    @property
    def has_quota(self) -> bool:
        """It has to have its processes for itself."""
        return bool(self.memory_limit or self.cpu_limit_us)


class Report(NamedTuple):
    """What a runner says of an execution that ended."""

    execution_id: int
    job_id: int
    claimed_at: int
    outcome: Outcome
    started_at: int
    ended_at: int
    error_type: str = ""
    error_message: str = ""
    output: str = ""
    next_in_ms: int = 0  # the verb moved its job's next run to so long after its end; 0: it did not
    error_bases: tuple[str, ...] = ()  # of a failed run: the base classes of its exception, for retry_on
    stack: str = ""
    cpu_us: int | None = None  # what its code used; None: not known
    memory_peak_bytes: int | None = None  # of its child process
    memory_shared: bool | None = None  # the child ran others meanwhile
    metrics: str = ""  # JSON, what the verb reported of itself; "" for nothing
