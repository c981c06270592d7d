"""Everything that dev may have to tell, one at a time. Instants are PostgreSQL's, once there is one to ask."""

from typing import NamedTuple

from cronring.client.model import Audit, Execution


class StartProgress(NamedTuple):
    """A step of the start, done."""

    text: str


class ProcessStarted(NamedTuple):
    name: str
    pid: int
    grpc_address: str
    http_address: str


class ProcessEnded(NamedTuple):
    """`how` in words; `next_step` says what dev does about it."""

    name: str
    pid: int
    how: str
    next_step: str


class MemberChanged(NamedTuple):
    """A controller's status in the eyes of the one that answers. `before` is "" for a new one."""

    name: str
    before: str
    after: str


class RingHealed(NamedTuple):
    """All slots belong to living controllers again, `after_s` since a controller died."""

    after_s: float
    owners: int


class ServedBy(NamedTuple):
    """Another controller feeds this view now."""

    name: str


class ViewLost(NamedTuple):
    """No controller answers."""

    reason: str


class RunStarted(NamedTuple):
    execution: Execution
    controller: str
    runner: str


class RunEnded(NamedTuple):
    execution: Execution
    controller: str
    runner: str


class OutputLine(NamedTuple):
    """A line of what an execution has printed, or why it failed."""

    execution_id: int
    job: str
    text: str
    is_error: bool


class Heartbeat(NamedTuple):
    """The books so far."""

    books: Audit
    worst_lateness_ms: float
    controllers_alive: int


Happening = (
    StartProgress
    | ProcessStarted
    | ProcessEnded
    | MemberChanged
    | RingHealed
    | ServedBy
    | ViewLost
    | RunStarted
    | RunEnded
    | OutputLine
    | Heartbeat
)
