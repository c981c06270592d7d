"""Everything that may enter a runner's core. A link is named by the controller's address, HOST:PORT."""

from typing import NamedTuple

from cronring.runner.core.model import CallAnswer, CallId
from cronring.schema.execution import Report, Run
from cronring.schema.lanes import LaneDemand


class RunnerWoke(NamedTuple):
    """The deadline has come. It does no harm if it has not."""


class LinkOpened(NamedTuple):
    """The stream stands and Hello is on its way: beats may go. Without PostgreSQL, a Welcome may be long in coming.

    `hello_ns`: Hello was sent then (monotonic), or later.
    """

    address: str
    hello_ns: int


class LinkUp(NamedTuple):
    """A controller welcomed this runner. `peers`: addresses of all controllers that may hold a lease.

    `beat_ms` and `fence_ms` are the cluster's. `deployments`: the keys of the registered modules, in the order of Hello
    ("": refused). None: the controller demands no places, and sends what is due (in virtual time).
    `registering_ms`: the controller renewed this runner's lease so long after Hello had come, or later, by its clock.
    """

    address: str
    controller_id: str
    peers: tuple[str, ...]
    beat_ms: int
    fence_ms: int
    deployments: tuple[str, ...] | None = None
    registering_ms: int = 0


class LinkDown(NamedTuple):
    """A stream has ended, or could not be made. `refused`: nobody listens at that address."""

    address: str
    reason: str
    refused: bool = False


class BeatAcked(NamedTuple):
    address: str
    sequence: int
    renewed: bool
    database_ok: bool
    peers: tuple[str, ...]  # empty: as before


class Dispatched(NamedTuple):
    address: str
    now_us: int
    runs: list[Run]


class CancelAsked(NamedTuple):
    execution_ids: tuple[int, ...]
    reason: str
    grace_ms: int = 0  # what still runs after this is killed; 0: the runner's own


class ReportsAcked(NamedTuple):
    execution_ids: tuple[int, ...]


class RunsEnded(NamedTuple):
    results: list[Report]


class DemandsReceived(NamedTuple):
    """A controller demands places, or returns some."""

    address: str
    demands: list[LaneDemand]


class DrainAsked(NamedTuple):
    """SIGTERM: take no more runs, finish those there are, deliver their results."""


class VerbAsked(NamedTuple):
    """A verb of a run here makes a call, and waits `patience_ms` for it. `request`: as it goes to controllers."""

    call: CallId
    request: bytes
    patience_ms: int


class VerbAnswered(NamedTuple):
    """By a controller."""

    address: str
    call: CallId
    answer: CallAnswer


Event = (
    RunnerWoke
    | LinkOpened
    | LinkUp
    | LinkDown
    | BeatAcked
    | Dispatched
    | CancelAsked
    | ReportsAcked
    | RunsEnded
    | DemandsReceived
    | DrainAsked
    | VerbAsked
    | VerbAnswered
)
