"""Values of a runner's core: why a run is stopped, and calls of verbs.

Names of instants by PostgreSQL's clock end in `_us`, those of this machine's monotonic times in `_ns`.
"""

from enum import StrEnum
from typing import NamedTuple

from cronring.schema.execution import Outcome


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


class CallId(NamedTuple):
    """A call of a verb's (ctx.jobs). `number`: which of its execution, from 1."""

    execution_id: int
    number: int


class CallAnswer(NamedTuple):
    """What became of a call. `reason` "": it was done. `value`: JSON.

    `again`: ask again. The controller doesn't know whether it was done, or could not do it now.
    """

    value: str = ""
    reason: str = ""
    problem: str = ""
    again: bool = False
