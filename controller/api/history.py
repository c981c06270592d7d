"""cronring.v1.History: how the cluster stood, and what happened to it."""

from typing import Final, Literal

from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.messages import execution_message
from cronring.controller.api.paging import Pages, page_size
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, instant
from cronring.controller.api.scope import namespaces, shows_outputs
from cronring.controller.api.token_box import TokenBox
from cronring.controller.core.ledger.happenings import Happened
from cronring.controller.core.ledger.lateness import LateRun
from cronring.controller.core.ledger.lives import Life
from cronring.controller.core.node.ring import Ring
from cronring.controller.ports.reads import Reads
from cronring.controller.services.past import Past, hosted
from cronring.protos.cronring.v1 import history_pb2 as pb2
from cronring.protos.cronring.v1 import history_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission
from cronring.schema.keys import SLOTS

_DAY_US: Final = 86_400_000_000
_YEAR_US: Final = 366 * _DAY_US
_DETAIL_SHOWN: Final = 300


class HistoryService(history_pb2_grpc.HistoryServicer):
    """Reading only."""

    def __init__(self, past: Past, reads: Reads, box: TokenBox) -> None:
        self._past = past
        self._reads = reads
        self._box = box

    async def GetMoment(self, request: pb2.GetMomentRequest, context: Context) -> pb2.Moment:
        now = await self._reads.database_now()
        at = past_instant("at", request.at, now) if request.HasField("at") else now
        where = namespaces(Permission.VIEW)
        found = await self._past.moment(at, where)
        return pb2.Moment(
            at=timestamp(at),
            members=[_member(life, found.ring) for life in found.members],
            runners=[
                _runner(life, deployments)
                for life in found.runners
                if (deployments := hosted(life, where)) is not None
            ],
            executions=map(execution_message, found.running),
            late=[_late(run, why) for run, why in found.late],
            ring_digest=found.ring.digest,
            known_since=timestamp(found.known_since),
            looked_to=timestamp(found.looked_to),
            database_time=timestamp(now),
        )  # fmt: skip

    async def ListTimeline(self, request: pb2.ListTimelineRequest, context: Context) -> pb2.ListTimelineResponse:
        pages = Pages(self._box, "ListTimeline", _asked(request, "since"), _asked(request, "until"))
        limit, cursor = page_size(request), pages.text_cursor(request.page_token)
        since, until, *position = await self._span(request) if not cursor else _read(cursor)
        found = await self._past.timeline(int(since), int(until), namespaces(Permission.VIEW))
        rest = found.happenings
        if position:
            before = (int(position[0]), position[1])
            rest = [each for each in rest if each.position < before]
        page = rest[:limit]
        more = len(rest) > limit
        return pb2.ListTimelineResponse(
            entries=map(_entry, page),
            next_page_token=pages.token(" ".join(map(str, (since, until, *page[-1].position)))) if more else "",
            looked_to=timestamp(found.looked_to),
        )

    async def _span(self, request: pb2.ListTimelineRequest) -> tuple[int, int]:
        """Raises InvalidRequest."""
        until = instant("until", request.until) if request.HasField("until") else await self._reads.database_now()
        since = instant("since", request.since) if request.HasField("since") else until - _DAY_US
        if since > until:
            raise InvalidRequest([("since", "is after until; the timeline begins at since")])
        if until - since > _YEAR_US:
            raise InvalidRequest([("since", "is more than a year before until; ask for less")])
        return since, until


def past_instant(field: str, stamp: Timestamp, now: int) -> int:
    """Raises InvalidRequest for an instant in the future."""
    at = instant(field, stamp)
    if at > now:
        raise InvalidRequest([(field, "is to come; give an instant that has been")])
    return at


def _asked(request: pb2.ListTimelineRequest, field: Literal["since", "until"]) -> int | None:
    return instant(field, getattr(request, field)) if request.HasField(field) else None


def _read(cursor: str) -> tuple[str, ...]:
    """Since, until, and the position of the last entry: its instant, and the rest."""
    return tuple(cursor.split(" ", 3))


def _member(life: Life, ring: Ring) -> pb2.PastMember:
    primary, backup = len(ring.primary_slots(life.member)), len(ring.backup_slots(life.member))
    return pb2.PastMember(
        id=life.member, grpc_address=life.address, version=life.version, share=primary / SLOTS, primary_slots=primary,
        backup_slots=backup, held_since=timestamp(life.from_at), held_until=timestamp(life.until_at),
        departed=life.departed and life.until_at is not None,
    )  # fmt: skip


def _runner(life: Life, deployments: tuple[str, ...]) -> pb2.PastRunner:
    return pb2.PastRunner(
        id=life.member, hostname=life.address, version=life.version, deployments=deployments,
        seen_since=timestamp(life.from_at), seen_until=timestamp(life.until_at),
        departed=life.departed and life.until_at is not None,
    )  # fmt: skip


def _late(run: LateRun, why: str) -> pb2.LateExecution:
    return pb2.LateExecution(
        execution_id=run.execution_id, job=run.job, tick=timestamp(run.tick), run_at=timestamp(run.run_at),
        claimed_at=timestamp(run.claimed_at), lateness_ms=run.lateness_us / 1_000, outcome=run.outcome, text=why,
    )  # fmt: skip


def _entry(each: Happened) -> pb2.TimelineEntry:
    detail = each.detail[:_DETAIL_SHOWN] if each.detail and shows_outputs(each.job) else ""
    return pb2.TimelineEntry(
        at=timestamp(each.at), kind=each.kind, subject=each.subject, text=each.text, job=each.job,
        execution_id=each.execution_id, error_message=detail,
    )  # fmt: skip
