"""The part of the API with canned answers that says what schedules come to."""

from typing import Any

from cronring.protos.cronring.v1 import schedules_pb2, schedules_pb2_grpc
from tests.unit.cli.fake_times import stamp


class FakeSchedules(schedules_pb2_grpc.SchedulesServicer):
    check: Any
    not_found: Any
    jobs: Any

    async def ExplainJob(self, request: Any, context: Any) -> schedules_pb2.Explanation:  # noqa: N802
        await self.check(request, context)
        if all(each.key != request.job for each in self.jobs):
            await self.not_found(context, f"job {request.job}")
        ticks = [schedules_pb2.ExplainedTick(tick=stamp(60), run_at=stamp(65), local="1970-01-01T00:01:00+00:00")]
        return schedules_pb2.Explanation(schedule="every 1m", words="every minute", timezone="UTC", ticks=ticks)

    async def DescribeVerb(self, request: Any, context: Any) -> schedules_pb2.DescribeVerbResponse:  # noqa: N802
        await self.check(request, context)
        return schedules_pb2.DescribeVerbResponse(verb="refresh", doc="Refreshes.", request="Unit")

    async def ExplainSchedule(self, request: Any, context: Any) -> schedules_pb2.Explanation:  # noqa: N802
        await self.check(request, context)
        return schedules_pb2.Explanation()

    async def PreviewJob(self, request: Any, context: Any) -> schedules_pb2.PreviewJobResponse:  # noqa: N802
        await self.check(request, context)
        return schedules_pb2.PreviewJobResponse()

    async def DescribePolicies(  # noqa: N802
        self, request: Any, context: Any
    ) -> schedules_pb2.DescribePoliciesResponse:
        await self.check(request, context)
        fields = [schedules_pb2.PolicyField(name="retries", kind="count", help="further attempts after a failure")]
        return schedules_pb2.DescribePoliciesResponse(policies=fields)
