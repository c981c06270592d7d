"""Everything that may enter a node. Answers of the store come back as events too, under their effect's `request_id`."""

from typing import NamedTuple

from cronring.controller.core.model import (
    Activation,
    ActivationResult,
    CancelRequest,
    ClaimResult,
    EndResult,
    EnqueueResult,
    Execution,
    Job,
    LeaseRenewal,
    RunnerInfo,
)
from cronring.controller.core.swim.messages import Packet
from cronring.schema.execution import Report
from cronring.schema.lanes import Grant


class Woke(NamedTuple):
    """The deadline that `next_deadline` named has come. To step too early does no harm."""


class PacketReceived(NamedTuple):
    packet: Packet


class PeerRefused(NamedTuple):
    """A connection to a controller's address was actively refused: no process listens there."""

    address: str


class PeersFound(NamedTuple):
    """Who holds a lease by the `controllers` table, which is read at every refetch. `(controller_id, address)`."""

    peers: tuple[tuple[str, str], ...]


class SeedsNamed(NamedTuple):
    """Addresses to greet, from `--join`."""

    addresses: tuple[str, ...]


class LeaseRenewed(NamedTuple):
    request_id: int
    renewal: LeaseRenewal


class WindowFetched(NamedTuple):
    """Jobs of the asked slots, due before the window's end, and PostgreSQL's time at the statement."""

    request_id: int
    database_now: int
    jobs: list[Job]


class OverdueFetched(NamedTuple):
    """Idle jobs of the asked slots that are overdue."""

    request_id: int
    database_now: int
    jobs: list[Job]


class JobsNotified(NamedTuple):
    """PostgreSQL's NOTIFY said that jobs changed somewhere."""


class JobsCreated(NamedTuple):
    """Jobs that this controller itself has just created. It watches them for a while, whatever the ring says."""

    jobs: list[Job]


class CancelsNotified(NamedTuple):
    """PostgreSQL's NOTIFY said that somebody wants an execution cancelled."""


class PlacesFreed(NamedTuple):
    """PostgreSQL's NOTIFY said that a full limit, or a full value of a limit by label, has a place. None: any may have
    one.
    """

    limit: int | None = None


class ConsumersNotified(NamedTuple):
    """PostgreSQL's NOTIFY said that a consumer has ended a message that an execution waits for."""


class CancelsAsked(NamedTuple):
    """This controller has been asked to cancel these, and has marked them; others may answer for them."""

    cancels: list[CancelRequest]


class Claimed(NamedTuple):
    request_id: int
    database_now: int
    results: list[ClaimResult]


class Enqueued(NamedTuple):
    request_id: int
    database_now: int
    results: list[EnqueueResult]


class Ended(NamedTuple):
    request_id: int
    results: list[EndResult]


class TicksSkipped(NamedTuple):
    """The answer to SkipTicks: the job rows as they are now."""

    request_id: int
    jobs: list[Job]


class Adopted(NamedTuple):
    """Unfinished executions that now carry this controller's id."""

    request_id: int
    executions: list[Execution]


class ExecutionsFetched(NamedTuple):
    """Unfinished executions among those asked for; ids that are absent are finished, or never were."""

    request_id: int
    executions: list[Execution]


class QueueReported(NamedTuple):
    """Reports of executions that no runner has. Each is told again until its end is committed."""

    request_id: int
    reports: list[Report]


class ActivationsFetched(NamedTuple):
    """Waiting activations of the asked slots, and PostgreSQL's time at the statement."""

    request_id: int
    database_now: int
    activations: list[Activation]


class Activated(NamedTuple):
    request_id: int
    database_now: int
    results: list[ActivationResult]


class ActivationsCreated(NamedTuple):
    """Activations that this controller itself has just created. Any controller may claim one, so it tries at once."""

    activations: list[Activation]


class StoreFailed(NamedTuple):
    """A store effect failed. Whether it was committed is unknown, so whatever follows must be safe to repeat."""

    request_id: int
    reason: str
    connection_lost: bool


StoreAnswer = (
    LeaseRenewed
    | WindowFetched
    | OverdueFetched
    | Claimed
    | Enqueued
    | Ended
    | TicksSkipped
    | Adopted
    | ExecutionsFetched
    | QueueReported
    | ActivationsFetched
    | Activated
)


class RunnerJoined(NamedTuple):
    runner: RunnerInfo


class RunnerLeft(NamedTuple):
    """The stream ended, for whatever reason. The runner may still live."""

    runner_id: str


class RunnerBeat(NamedTuple):
    runner_id: str
    sequence: int
    renew: bool
    draining: bool
    running: int
    out_of_reach: tuple[str, ...] = ()  # ids of controllers that it has lost


class ReportsReceived(NamedTuple):
    runner_id: str
    reports: list[Report]


class PlacesGranted(NamedTuple):
    """A runner grants places."""

    runner_id: str
    grants: list[Grant]


class RunsDeclined(NamedTuple):
    """A runner declined these runs while it had no contact. It has not begun them, and has contact again."""

    runner_id: str
    execution_ids: tuple[int, ...]


class DrainRequested(NamedTuple):
    """SIGTERM: stop claiming, hand the slots over, end what runs, then leave."""


class DrainExpired(NamedTuple):
    """--drain-timeout is over: leave now; others adopt what still runs."""


class DrillRequested(NamedTuple):
    """A drill: claim nothing for so long, while others take over. `forced`: even if there is nobody to do so."""

    for_ms: int
    forced: bool
    by: str


class DrillReleased(NamedTuple):
    """The caller has ended the drill, or is gone: claim again at once."""


FromRunner = RunnerJoined | RunnerLeft | RunnerBeat | ReportsReceived | PlacesGranted | RunsDeclined
Event = (
    Woke
    | PacketReceived
    | PeerRefused
    | PeersFound
    | SeedsNamed
    | LeaseRenewed
    | WindowFetched
    | OverdueFetched
    | JobsNotified
    | JobsCreated
    | CancelsNotified
    | PlacesFreed
    | ConsumersNotified
    | CancelsAsked
    | Claimed
    | Enqueued
    | Ended
    | TicksSkipped
    | Adopted
    | ExecutionsFetched
    | QueueReported
    | ActivationsFetched
    | Activated
    | ActivationsCreated
    | StoreFailed
    | FromRunner
    | DrainRequested
    | DrainExpired
    | DrillRequested
    | DrillReleased
)
