"""Calls about the controllers themselves."""

from datetime import datetime

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.protos.cronring.v1 import cluster_pb2
from cronring.protos.cronring.v1.cluster_pb2_grpc import ClusterStub


class ClusterCalls:
    """Who is there, and who owns what."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def get(self) -> model.Cluster:
        timeout = self._failover.timeout_s
        request = cluster_pb2.GetClusterRequest()
        return convert.cluster(
            await self._failover.unary(lambda channel: ClusterStub(channel).GetCluster(request, timeout=timeout))
        )

    async def ring(self) -> model.Ring:
        timeout = self._failover.timeout_s
        request = cluster_pb2.GetRingRequest()
        return convert.ring(
            await self._failover.unary(lambda channel: ClusterStub(channel).GetRing(request, timeout=timeout))
        )

    async def due(self, limit: int = 10, within_s: float = 300.0) -> tuple[model.Due, ...]:
        """What runs next in the whole cluster, the earliest first."""
        timeout = self._failover.timeout_s
        request = cluster_pb2.ListDueRequest(limit=limit, within_ms=round(within_s * 1000))
        answer = await self._failover.unary(lambda channel: ClusterStub(channel).ListDue(request, timeout=timeout))
        return tuple(
            model.Due(each.job, convert.instant(each.tick), convert.instant(each.run_at)) for each in answer.due
        )

    async def owners(self, job: str, at: datetime | None = None) -> model.Owners:
        """Now, or at an instant that has been. Raises NotFound for no such job, Invalid for what is to come."""
        timeout = self._failover.timeout_s
        request = cluster_pb2.GetOwnersRequest(job=job, at=convert.timestamp(at))
        answer = await self._failover.unary(lambda channel: ClusterStub(channel).GetOwners(request, timeout=timeout))
        return convert.owners(job, answer)
