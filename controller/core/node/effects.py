"""Everything a node may ask for. Effects with a `request_id` are answered by the event named, or by StoreFailed."""

from enum import StrEnum
from typing import NamedTuple

from cronring.controller.core.model import (
    ActivationRequest,
    ClaimRequest,
    EndRequest,
    EnqueueRequest,
    Execution,
    SkipRequest,
)
from cronring.controller.core.swim.messages import SendPacket
from cronring.schema.lanes import LaneDemand
from cronring.schema.log_line import Level, LogLine

__all__ = ["Level", "LogLine", "SendPacket"]  # effects too, though swim defines them


class RenewLease(NamedTuple):
    """-> LeaseRenewed. Also renews the runners named, and asks what there is to sweep, and what to cancel.

    `cancelling`: executions that this controller knows somebody wants cancelled.
    """

    request_id: int
    draining: bool
    runner_ids: tuple[str, ...]
    cancelling: tuple[int, ...] = ()


class FindPeers(NamedTuple):
    """-> PeersFound, from the `controllers` table. Lost answers don't matter: it is asked again."""


class FetchWindow(NamedTuple):
    """-> WindowFetched. `slots` ascending."""

    request_id: int
    slots: tuple[int, ...]
    window_ms: int


class FetchOverdue(NamedTuple):
    """-> OverdueFetched: idle jobs of `slots` with next_execution at least `delay_ms` ago, in order of ids."""

    request_id: int
    slots: tuple[int, ...]
    delay_ms: int
    at_most: int


class Claim(NamedTuple):
    """-> Claimed (StartCronJobs). `requests` in ascending order of job_id."""

    request_id: int
    requests: list[ClaimRequest]
    hard_grace_ms: int


class Enqueue(NamedTuple):
    """-> Enqueued (EnqueueCronJobs). `requests` in ascending order of job_id."""

    request_id: int
    requests: list[EnqueueRequest]


class End(NamedTuple):
    """-> Ended (EndCronJob, EndAnyRun). `requests` in ascending order of job_id."""

    request_id: int
    requests: list[EndRequest]


class SkipTicks(NamedTuple):
    """-> Skipped."""

    request_id: int
    requests: list[SkipRequest]


class FetchActivations(NamedTuple):
    """-> ActivationsFetched: of `slots`, with run_at before PostgreSQL's now + `window_ms`."""

    request_id: int
    slots: tuple[int, ...]
    window_ms: int


class FetchFollowers(NamedTuple):
    """-> ActivationsFetched, by id, for its first answer: this controller's ends have just made them."""

    request_id: int
    activation_ids: tuple[int, ...]


class Activate(NamedTuple):
    """-> Activated (StartActivations). `requests` in ascending order of job_id."""

    request_id: int
    requests: list[ActivationRequest]
    hard_grace_ms: int


class Adopt(NamedTuple):
    """-> Adopted: take over what these controllers left unfinished (the own id: what did I lose track of?).

    `runner_ids`: only executions on these runners; empty: on all runners.
    """

    request_id: int
    controller_ids: tuple[str, ...]
    runner_ids: tuple[str, ...] = ()


class FetchExecutions(NamedTuple):
    """-> ExecutionsFetched, by id."""

    request_id: int
    execution_ids: tuple[int, ...]


class FetchHeld(NamedTuple):
    """-> ExecutionsFetched, by id: those that, by PostgreSQL, this controller holds."""

    request_id: int
    execution_ids: tuple[int, ...]


class FetchLost(NamedTuple):
    """-> ExecutionsFetched: unfinished executions of runners not seen for `lost_after_ms`.

    Those of jobs with on_disconnect = "finish" are left to their hard timeout.
    """

    request_id: int
    lost_after_ms: int


class FetchOverdueExecutions(NamedTuple):
    """-> ExecutionsFetched: unfinished executions past their hard deadline."""

    request_id: int


class FetchQueueReports(NamedTuple):
    """-> QueueReported: reports of executions that this controller holds and no runner has. Not those of `known`."""

    request_id: int
    known: tuple[int, ...]
    at_most: int


class Dispatch(NamedTuple):
    """Send runs to a connected runner. Idempotent on the runner by execution id."""

    runner_id: str
    now_us: int  # PostgreSQL's time, as the node estimates it
    executions: list[Execution]
    epochs: list[int]  # one for each execution: of the place that it takes (see Grant); 0: it takes none


class SendDemands(NamedTuple):
    """Tell a connected runner how many runs wait here for a place on it, and give places back."""

    runner_id: str
    demands: list[LaneDemand]


class CancelRuns(NamedTuple):
    """Ask these runs to stop. After `grace_ms` (0: the runner's own) they are killed. Harmless to repeat."""

    runner_id: str
    execution_ids: tuple[int, ...]
    reason: str
    grace_ms: int = 0


class ReportRefusal(StrEnum):
    """Why reports ended nothing."""

    NONE = ""  # they did
    FOREIGN = "foreign"  # claimed for another runner, or under another claim
    DECIDED = "decided"  # they had ended before, or never were


class AckReports(NamedTuple):
    """These are decided in PostgreSQL, or refused; the runner may forget them."""

    runner_id: str
    execution_ids: tuple[int, ...]
    refused: ReportRefusal = ReportRefusal.NONE


class AckBeat(NamedTuple):
    """`peers`: (id, address) of every controller that may hold a lease."""

    runner_id: str
    sequence: int
    renewed: bool
    database_ok: bool
    peers: tuple[tuple[str, str], ...]


class Leave(NamedTuple):
    """The node is done: close everything and exit."""


ToRunner = Dispatch | SendDemands | CancelRuns | AckReports | AckBeat
Effect = (
    SendPacket
    | RenewLease
    | FindPeers
    | FetchWindow
    | FetchOverdue
    | Claim
    | Enqueue
    | End
    | SkipTicks
    | FetchActivations
    | FetchFollowers
    | Activate
    | Adopt
    | FetchExecutions
    | FetchHeld
    | FetchLost
    | FetchOverdueExecutions
    | FetchQueueReports
    | Dispatch
    | SendDemands
    | CancelRuns
    | AckReports
    | AckBeat
    | Leave
    | LogLine
)
