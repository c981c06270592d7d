"""cronring.v1.Cluster: who is there, and who owns what."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from cronring.controller.api.history import past_instant
from cronring.controller.api.lookup import admit_to_job
from cronring.controller.api.messages import runner_message
from cronring.controller.api.requests import Context, number, required
from cronring.controller.api.scope import namespaces
from cronring.controller.api.token_box import TokenBox
from cronring.controller.core.node.ring import Ring
from cronring.controller.core.swim.member import Member
from cronring.controller.core.swim.messages import Status
from cronring.controller.ports.clock import Clock
from cronring.controller.ports.reads import ControllerRow, Reads, RunnerRow, within
from cronring.controller.services.past import Past
from cronring.protos.cronring.v1 import cluster_pb2, cluster_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission
from cronring.schema.keys import SLOTS

_STATUS_WORDS: Final = {
    Status.ALIVE: "alive",
    Status.SUSPECT: "suspect",
    Status.DEAD: "dead",
    Status.LEFT: "left",
}


_DUE_DEFAULT: Final = 10
_DUE_MAX: Final = 100
_WITHIN_DEFAULT_MS: Final = 300_000
_WITHIN_MAX_MS: Final = 86_400_000


class MemberNode(Protocol):
    """What a node shows of itself."""

    @property
    def ring(self) -> Ring: ...
    def members(self) -> list[Member]: ...
    def database_now(self, now_ns: int) -> int: ...


class ClusterService(cluster_pb2_grpc.ClusterServicer):
    """Members and ring are this controller's own view; leases and runners are PostgreSQL's."""

    def __init__(
        self,
        controller_id: str,
        node: MemberNode,
        reads: Reads,
        clock: Clock,
        past: Past,
        box: TokenBox,
        console_url: str = "",
        trace_url: str = "",
    ) -> None:
        self._controller_id = controller_id
        self._console_url = console_url
        self._trace_url = trace_url
        self._node = node
        self._reads = reads
        self._clock = clock
        self._past = past
        self._cluster_id = box.cluster_id

    async def ListDue(self, request: cluster_pb2.ListDueRequest, context: Context) -> cluster_pb2.ListDueResponse:
        limit = number(request, "limit", _DUE_DEFAULT, _DUE_MAX)
        within_ms = number(request, "within_ms", _WITHIN_DEFAULT_MS, _WITHIN_MAX_MS)
        rows = await self._reads.list_due(within_ms, limit, namespaces(Permission.VIEW))
        return cluster_pb2.ListDueResponse(
            due=[
                cluster_pb2.DueJob(
                    job=row.job, tick=timestamp(row.tick), run_at=timestamp(row.run_at), running=row.running
                )
                for row in rows
            ]
        )

    async def GetCluster(
        self, request: cluster_pb2.GetClusterRequest, context: Context
    ) -> cluster_pb2.GetClusterResponse:
        rows = {row.controller_id: row for row in await self._reads.list_controllers()}
        runners = await self._reads.list_runners()
        ring = self._node.ring
        database_us = self._node.database_now(self._clock.now_ns())
        return cluster_pb2.GetClusterResponse(
            answered_by=self._controller_id,
            members=[
                _member_message(member, ring, rows.get(member.member_id))
                for member in sorted(self._node.members(), key=lambda member: member.member_id)
            ],
            runners=[runner_message(row) for row in _seen(runners)],
            database_time=timestamp(database_us) if database_us else None,
            clock_offset_ms=(self._clock.wall_us() - database_us) / 1_000 if database_us else 0.0,
            ring_digest=ring.digest,
            console_url=self._console_url,
            trace_url_template=self._trace_url,
            cluster_id=self._cluster_id,
        )

    async def GetRing(self, request: cluster_pb2.GetRingRequest, context: Context) -> cluster_pb2.GetRingResponse:
        ring = self._node.ring
        return cluster_pb2.GetRingResponse(
            members=ring.members, primary=ring.primary, backup=ring.backup, digest=ring.digest
        )

    async def GetOwners(self, request: cluster_pb2.GetOwnersRequest, context: Context) -> cluster_pb2.GetOwnersResponse:
        key = required("job", request.job, "a job's key, like module.verb")
        admit_to_job(key)
        job = await self._reads.get_job(key)
        third = None
        if request.HasField("at"):
            at = past_instant("at", request.at, await self._reads.database_now())
            primary, backup = await self._past.owners(job.slot, at)
        else:
            primary, backup = self._node.ring.owners(job.slot)
            third = self._node.ring.third(job.slot)
        return cluster_pb2.GetOwnersResponse(
            slot=job.slot, primary=primary or "", backup=backup or "", third=third or ""
        )


def _seen(runners: Sequence[RunnerRow]) -> Iterator[RunnerRow]:
    """Runners that host deployments which the caller may view, with only those deployments."""
    where = namespaces(Permission.VIEW)
    for row in runners:
        deployments = tuple(key for key in row.deployments if within(where, key))
        if deployments or where is None:
            yield row._replace(deployments=deployments)


def status_word(member: Member) -> str:
    """As people read it: one that is alive and leaves is draining."""
    return "draining" if member.status is Status.ALIVE and member.draining else _STATUS_WORDS[member.status]


def _member_message(member: Member, ring: Ring, row: ControllerRow | None) -> cluster_pb2.Member:
    """`row` is None for one that PostgreSQL no longer (or not yet) knows."""
    primary, backup = len(ring.primary_slots(member.member_id)), len(ring.backup_slots(member.member_id))
    in_drill = member.status is Status.ALIVE and row is not None and row.drill_until is not None
    message = cluster_pb2.Member(
        id=member.member_id,
        grpc_address=row.grpc_address if row is not None else member.address,
        peer_address=member.address,
        status="in_drill" if in_drill and not member.draining else status_word(member),
        incarnation=member.incarnation,
        share=primary / SLOTS,
        primary_slots=primary,
        backup_slots=backup,
    )
    if row is not None:
        known = cluster_pb2.Member(
            http_address=row.http_address,
            lease_expires_at=timestamp(row.lease_expires_at),
            pid=row.pid,
            version=row.version,
            started_at=timestamp(row.started_at),
            drill_until=timestamp(row.drill_until),
        )
        message.MergeFrom(known)
    return message
