"""The part of the API with canned answers that puts messages into queues."""

from typing import Any

from cronring.protos.cronring.v1 import queues_pb2, queues_pb2_grpc


class FakeQueues(queues_pb2_grpc.QueuesServicer):
    check: Any

    async def PutMessage(self, request: Any, context: Any) -> queues_pb2.PutMessageResponse:  # noqa: N802
        await self.check(request, context)
        return queues_pb2.PutMessageResponse(id=4_711)

    async def _asked_by_no_test(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - the name is the protocol's
        raise AssertionError(f"no test asks for {type(request).__name__}")

    TakeMessages = ExtendLease = FinishMessages = RetryMessages = ReleaseMessages = _asked_by_no_test
    ListQueues = ListMessages = ListDeadLetters = ReplayDeadLetters = RemoveDeadLetters = SetQueue = _asked_by_no_test
