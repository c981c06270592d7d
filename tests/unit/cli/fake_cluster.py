"""The part of the API with canned answers that tells of the cluster."""

from typing import Any

from cronring.protos.cronring.v1 import cluster_pb2, cluster_pb2_grpc
from tests.unit.cli.fake_times import stamp


class FakeCluster(cluster_pb2_grpc.ClusterServicer):
    check: Any
    not_found: Any
    jobs: list[Any]
    members: list[str]
    cluster_id = "c1"

    async def GetCluster(self, request: Any, context: Any) -> cluster_pb2.GetClusterResponse:  # noqa: N802
        await self.check(request, context)
        members = [
            cluster_pb2.Member(
                id=name, grpc_address=f"127.0.0.1:{7400 + index}", http_address=f"127.0.0.1:{7480 + index}",
                status="alive", incarnation=1, share=0.5, primary_slots=2048, backup_slots=2048,
                lease_expires_at=stamp(5), pid=100 + index, version="0.1.0", started_at=stamp(-60),
            )
            for index, name in enumerate(self.members)
        ]  # fmt: skip
        runner = cluster_pb2.Runner(
            id="runner-1", hostname="here", pid=200, deployments=["billing-1"], alive=True, started_at=stamp(-60),
            last_seen_at=stamp(0), sync_places=8, async_places=4_096,
        )  # fmt: skip
        return cluster_pb2.GetClusterResponse(
            answered_by=self.members[0], members=members, runners=[runner], database_time=stamp(1), clock_offset_ms=0.4,
            ring_digest="d1e9", trace_url_template="https://traces.example/trace/{trace_id}",
            cluster_id=self.cluster_id,
        )  # fmt: skip

    async def GetRing(self, request: Any, context: Any) -> cluster_pb2.GetRingResponse:  # noqa: N802
        await self.check(request, context)
        return cluster_pb2.GetRingResponse(
            members=self.members, primary=[0, 1, 0, -1], backup=[1, 0, 1, 0], digest="d1e9"
        )

    async def GetOwners(self, request: Any, context: Any) -> cluster_pb2.GetOwnersResponse:  # noqa: N802
        await self.check(request, context)
        if request.job not in {each.key for each in self.jobs}:
            await self.not_found(context, f"job {request.job}")
        return cluster_pb2.GetOwnersResponse(slot=7, primary="controller-1", backup="")
