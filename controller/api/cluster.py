"""cronring.v1.Cluster: who is there, who owns what, and whether every tick is accounted for."""

from typing import Final, Protocol

from controller.api.messages import outcome_counts, runner_message, skipped_by_reason, timestamp
from controller.api.problems import InvalidRequest
from controller.api.requests import Context, instant, required
from controller.core.ring import Ring
from controller.core.swim.member import Member
from controller.core.swim.messages import Status
from controller.reads import ControllerRow, Reads
from protos.cronring.v1 import cluster_pb2, cluster_pb2_grpc
from schema.keys import SLOTS

_STATUS_WORDS: Final = {
    Status.ALIVE: "alive",
    Status.SUSPECT: "suspect",
    Status.DEAD: "dead",
    Status.LEFT: "left",
}


class NodeView(Protocol):
    """What a node shows of itself."""

    @property
    def ring(self) -> Ring: ...
    def members(self) -> list[Member]: ...
    def database_now(self, now_ns: int) -> int: ...


class Clock(Protocol):
    def now_ns(self) -> int: ...
    def wall_us(self) -> int: ...


class ClusterService(cluster_pb2_grpc.ClusterServicer):
    """Members and ring are this controller's own view; leases and runners are PostgreSQL's."""

    def __init__(self, controller_id: str, node: NodeView, reads: Reads, clock: Clock) -> None:
        self._controller_id = controller_id
        self._node = node
        self._reads = reads
        self._clock = clock

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
            runners=[runner_message(row) for row in runners],
            database_time=timestamp(database_us) if database_us else None,
            clock_offset_ms=(self._clock.wall_us() - database_us) / 1_000 if database_us else 0.0,
            ring_digest=ring.digest,
        )

    async def GetRing(self, request: cluster_pb2.GetRingRequest, context: Context) -> cluster_pb2.GetRingResponse:
        ring = self._node.ring
        return cluster_pb2.GetRingResponse(
            members=ring.members, primary=ring.primary, backup=ring.backup, digest=ring.digest
        )

    async def GetOwners(self, request: cluster_pb2.GetOwnersRequest, context: Context) -> cluster_pb2.GetOwnersResponse:
        job = await self._reads.get_job(required("job", request.job, "a job's key, like module.verb"))
        primary, backup = self._node.ring.owners(job.slot)
        return cluster_pb2.GetOwnersResponse(slot=job.slot, primary=primary or "", backup=backup or "")

    async def GetTotals(self, request: cluster_pb2.GetTotalsRequest, context: Context) -> cluster_pb2.GetTotalsResponse:
        since = instant("since", request.since) if request.HasField("since") else None
        until = instant("until", request.until) if request.HasField("until") else None
        if since is not None and until is not None and since > until:
            raise InvalidRequest([("until", "is before since")])
        row = await self._reads.get_totals(since, until)
        totals = row.totals
        return cluster_pb2.GetTotalsResponse(
            ticks_due=totals.due,
            executed=totals.executed,
            running=totals.running,
            skipped=skipped_by_reason(totals.skipped),
            unaccounted=totals.unaccounted,
            pending=totals.pending,
            outcomes=outcome_counts(row.outcomes),
        )


def _member_message(member: Member, ring: Ring, row: ControllerRow | None) -> cluster_pb2.Member:
    """`row` is None for one that PostgreSQL no longer (or not yet) knows."""
    primary, backup = len(ring.primary_slots(member.member_id)), len(ring.backup_slots(member.member_id))
    alive_but_draining = member.status is Status.ALIVE and member.draining
    message = cluster_pb2.Member(
        id=member.member_id,
        grpc_address=member.address,
        status="draining" if alive_but_draining else _STATUS_WORDS[member.status],
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
        )
        message.MergeFrom(known)
    return message
