"""Everything a runner's core may ask for."""

from typing import NamedTuple

from cronring.runner.core.model import CallAnswer, CallId, StopReason
from cronring.schema.execution import Report, Run
from cronring.schema.lanes import Grant
from cronring.schema.log_line import Level, LogLine

__all__ = ["Level", "LogLine"]  # part of the vocabulary, though controllers have them too


class OpenLink(NamedTuple):
    """Connect, and stay connected until CloseLink."""

    address: str


class CloseLink(NamedTuple):
    address: str


class SendBeat(NamedTuple):
    address: str
    sequence: int
    renew: bool
    draining: bool
    running: int
    out_of_reach: tuple[str, ...] = ()  # ids of controllers, whose runs for this runner another should take over


class SendReports(NamedTuple):
    address: str
    results: list[Report]


class SendGrants(NamedTuple):
    address: str
    grants: list[Grant]


class SendDeclined(NamedTuple):
    """To the controller that sent these runs: they were not begun, and may be sent again."""

    address: str
    execution_ids: tuple[int, ...]


class SendCall(NamedTuple):
    """-> VerbAnswered, or silence."""

    address: str
    call: CallId
    request: bytes


class AnswerVerb(NamedTuple):
    """To a verb that waits for it."""

    call: CallId
    answer: CallAnswer


class StartRuns(NamedTuple):
    runs: list[Run]
    offset_us: int  # PostgreSQL's clock minus the monotonic one


class StopRuns(NamedTuple):
    """-> RunsEnded in any case: a run that goes on after `grace_ms` is killed."""

    execution_ids: tuple[int, ...]
    reason: StopReason
    message: str
    grace_ms: int


class Finished(NamedTuple):
    """The drain is over. `undelivered`: results that no controller has acknowledged."""

    undelivered: int


ToController = SendBeat | SendReports | SendGrants | SendDeclined | SendCall
Effect = OpenLink | CloseLink | ToController | AnswerVerb | StartRuns | StopRuns | Finished | LogLine
