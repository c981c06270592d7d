"""Calls about the past: how the cluster stood at an instant, and what happened to it."""

from dataclasses import dataclass
from datetime import datetime

from cronring.client import convert
from cronring.client.channel import Failover
from cronring.client.model import Execution
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import history_pb2 as pb2
from cronring.protos.cronring.v1.history_pb2_grpc import HistoryStub


@dataclass(frozen=True, slots=True)
class PastMember:
    """A controller that held a lease. `held_until` None: it goes on. `departed`: it left, else its lease ran out."""

    id: str
    grpc_address: str
    version: str
    share: float  # of the 4,096 slots, as primary, 0..1
    primary_slots: int
    backup_slots: int
    held_since: datetime | None
    held_until: datetime | None
    departed: bool


@dataclass(frozen=True, slots=True)
class PastRunner:
    """A runner that was heard. `seen_until` None: it goes on. `departed`: it left, else nobody heard of it any more."""

    id: str
    hostname: str
    version: str
    deployments: tuple[str, ...]
    seen_since: datetime | None
    seen_until: datetime | None
    departed: bool


@dataclass(frozen=True, slots=True)
class LateExecution:
    """`outcome` "": it runs. `text`: why it was late, in a sentence."""

    execution_id: int
    job: str
    tick: datetime | None
    run_at: datetime | None
    claimed_at: datetime | None
    lateness_ms: float
    outcome: str
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    """How the cluster stood. `known_since`: of members. `looked_to`: runs of ticks before it weren't looked at."""

    at: datetime | None
    members: tuple[PastMember, ...]
    runners: tuple[PastRunner, ...]
    executions: tuple[Execution, ...]
    late: tuple[LateExecution, ...]
    ring_digest: str
    known_since: datetime | None
    looked_to: datetime | None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """`kind`: like controller_lost, failing or pause. `job` "" and `execution_id` 0: it concerns none."""

    at: datetime | None
    kind: str
    subject: str
    text: str
    job: str
    execution_id: int
    error_message: str  # its first line, for those who may see outputs


class HistoryCalls:
    """How the cluster stood, and what happened to it."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def moment(self, at: datetime | None = None) -> Moment:
        """At an instant that has been (None: now). Raises Invalid for one that is to come."""
        request, timeout = pb2.GetMomentRequest(at=convert.timestamp(at)), self._failover.timeout_s
        return _moment(
            await self._failover.unary(lambda channel: HistoryStub(channel).GetMoment(request, timeout=timeout))
        )

    async def timeline(
        self, since: datetime | None = None, until: datetime | None = None, limit: int | None = None
    ) -> list[TimelineEntry]:
        """What failed, recovered, came, went, and was done by people: the latest first.

        `since` None: a day before `until`. `until` None: now. Raises Invalid for more than a year.
        """
        timeout = self._failover.timeout_s

        async def fetch(page_size: int, token: str) -> tuple[list[TimelineEntry], str]:
            request = pb2.ListTimelineRequest(
                since=convert.timestamp(since), until=convert.timestamp(until), page_size=page_size, page_token=token
            )
            answer = await self._failover.unary(
                lambda channel: HistoryStub(channel).ListTimeline(request, timeout=timeout)
            )
            return [_entry(each) for each in answer.entries], answer.next_page_token

        return await follow(fetch, limit)


def _moment(message: pb2.Moment) -> Moment:
    return Moment(
        convert.instant(message.at),
        tuple(
            PastMember(
                each.id, each.grpc_address, each.version, each.share, each.primary_slots, each.backup_slots,
                convert.instant(each.held_since), convert.instant(each.held_until), each.departed,
            )
            for each in message.members
        ),
        tuple(
            PastRunner(
                each.id, each.hostname, each.version, tuple(each.deployments), convert.instant(each.seen_since),
                convert.instant(each.seen_until), each.departed,
            )
            for each in message.runners
        ),
        tuple(convert.execution(each) for each in message.executions),
        tuple(
            LateExecution(
                each.execution_id, each.job, convert.instant(each.tick), convert.instant(each.run_at),
                convert.instant(each.claimed_at), each.lateness_ms, each.outcome, each.text,
            )
            for each in message.late
        ),
        message.ring_digest,
        convert.instant(message.known_since),
        convert.instant(message.looked_to),
    )  # fmt: skip


def _entry(message: pb2.TimelineEntry) -> TimelineEntry:
    return TimelineEntry(
        convert.instant(message.at), message.kind, message.subject, message.text, message.job, message.execution_id,
        message.error_message,
    )  # fmt: skip
