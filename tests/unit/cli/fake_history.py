"""The part of the API with canned answers that tells of the past."""

from typing import Any

from cronring.protos.cronring.v1 import history_pb2, history_pb2_grpc
from tests.unit.cli.fake_times import stamp


class FakeHistory(history_pb2_grpc.HistoryServicer):
    check: Any
    entries: tuple[history_pb2.TimelineEntry, ...] = (
        history_pb2.TimelineEntry(
            at=stamp(2), kind="controller_lost", subject="controller-1",
            text="Controller controller-1 was lost: its lease ran out.",
        ),
        history_pb2.TimelineEntry(
            at=stamp(1), kind="pause", subject="billing.close_month", job="billing.close_month",
            text="token:ann paused billing.close_month: [it] fails *now*",
        ),
    )  # fmt: skip

    async def GetMoment(self, request: Any, context: Any) -> history_pb2.Moment:  # noqa: N802
        await self.check(request, context)
        member = history_pb2.PastMember(
            id="controller-1", share=1.0, primary_slots=4096, held_since=stamp(-60), held_until=stamp(2)
        )
        late = history_pb2.LateExecution(
            execution_id=3, job="billing.refresh", run_at=stamp(0), lateness_ms=2_000, text="No runner was connected."
        )
        return history_pb2.Moment(at=request.at, members=[member], late=[late], known_since=stamp(-60))

    async def ListTimeline(self, request: Any, context: Any) -> history_pb2.ListTimelineResponse:  # noqa: N802
        await self.check(request, context)
        return history_pb2.ListTimelineResponse(entries=self.entries)
