"""Calls about executions."""

from datetime import datetime

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.paging import follow
from protos.cronring.v1 import executions_pb2
from protos.cronring.v1.executions_pb2_grpc import ExecutionsStub


class ExecutionCalls:
    """List and get."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def list(
        self,
        job: str = "",
        outcome: str = "",
        since: datetime | None = None,
        after_id: int = 0,
        limit: int | None = 100,
    ) -> list[model.Execution]:
        """The newest first. `outcome` may be "running"; `since`: tick at or after; `after_id`: only ids above."""

        async def fetch(page_size: int, token: str) -> tuple[list[model.Execution], str]:
            request = executions_pb2.ListExecutionsRequest(
                page_size=page_size,
                page_token=token,
                job=job,
                outcome=outcome,
                since=convert.timestamp(since),
                after_id=after_id,
            )
            answer = await self._failover.unary(
                lambda channel: ExecutionsStub(channel).ListExecutions(request, timeout=self._failover.timeout_s)
            )
            return [convert.execution(each) for each in answer.executions], answer.next_page_token

        return await follow(fetch, limit)

    async def get(self, execution_id: int) -> model.Execution:
        """With its output. Raises NotFound."""
        timeout = self._failover.timeout_s
        request = executions_pb2.GetExecutionRequest(id=execution_id)
        return convert.execution(
            await self._failover.unary(lambda channel: ExecutionsStub(channel).GetExecution(request, timeout=timeout))
        )
