"""Runs and results. Instants end in `_us` and are PostgreSQL's; monotonic times end in `_ns` and are this machine's."""

from enum import StrEnum
from typing import NamedTuple


class Outcome(StrEnum):
    """How an execution may end on a runner. That one is `lost`, only controllers say."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    OUT_OF_MEMORY = "out_of_memory"
    OUT_OF_CPU = "out_of_cpu"


class StopReason(StrEnum):
    """Why a run is to stop."""

    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    DISCONNECTED = "disconnected"
    DRAINED = "drained"

    @property
    def outcome(self) -> Outcome:
        return Outcome.TIMED_OUT if self is StopReason.TIMED_OUT else Outcome.CANCELLED

    @property
    def error_type(self) -> str:
        return _ERROR_TYPES[self]


_ERROR_TYPES = {
    StopReason.TIMED_OUT: "TimedOut",
    StopReason.CANCELLED: "Cancelled",
    StopReason.DISCONNECTED: "Disconnected",
    StopReason.DRAINED: "RunnerStopped",
}


class Run(NamedTuple):
    """One execution to run."""

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
    interval: bool = False  # its verb may move the job's next run
    memory_limit: int = 0  # bytes; 0: none, as below
    cpu_limit_us: int = 0
    priority: int = 0  # a level is worth a second of waiting
    place_epoch: int = 0  # of the place that it takes; 0: none, it was held already, or comes from an older controller

    @property
    def rank_us(self) -> int:
        """Of those that wait for a child, the lowest goes first: with time everything comes before what is new."""
        return self.run_at_us - self.priority * 1_000_000

    @property
    def isolated(self) -> bool:
        """It has to have its processes for itself."""
        return bool(self.memory_limit or self.cpu_limit_us)


class Result(NamedTuple):
    """One execution that ended here."""

    execution_id: int
    job_id: int
    claimed_at_us: int
    outcome: Outcome
    started_at_us: int
    ended_at_us: int
    error_type: str = ""
    error_message: str = ""
    output: str = ""
    next_in_ms: int = 0  # the job's next run moves to so long after this one's end; 0: it doesn't
    error_bases: tuple[str, ...] = ()  # of a failed run: the classes that its exception's is a kind of
    stack: str = ""
    cpu_us: int | None = None  # None: not known, as below
    memory_peak_bytes: int | None = None  # of its child
    memory_shared: bool | None = None  # that child runs several at once
    metrics: str = ""  # JSON; "" for none
