"""cronring.v1.Executions: list, get."""

from controller.api.messages import execution_message
from controller.api.paging import Pages, page_size
from controller.api.problems import InvalidRequest
from controller.api.requests import OUTCOMES, Context, instant, name, one_of, row_id
from controller.reads import ExecutionFilter, Reads
from protos.cronring.v1 import executions_pb2, executions_pb2_grpc


class ExecutionsService(executions_pb2_grpc.ExecutionsServicer):
    """Reading only."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    async def ListExecutions(
        self, request: executions_pb2.ListExecutionsRequest, context: Context
    ) -> executions_pb2.ListExecutionsResponse:
        where = ExecutionFilter(
            job=name("job", request.job),
            outcome=one_of("outcome", request.outcome, OUTCOMES),
            since=instant("since", request.since) if request.HasField("since") else None,
            after_id=row_id("after_id", request.after_id),
        )
        limit, pages = page_size(request.page_size), Pages("ListExecutions", *where)
        rows = await self._reads.list_executions(where, pages.number_cursor(request.page_token), limit + 1)
        page = rows[:limit]
        return executions_pb2.ListExecutionsResponse(
            executions=[execution_message(row) for row in page],
            next_page_token=pages.token(page[-1].execution_id) if len(rows) > limit else "",
        )

    async def GetExecution(
        self, request: executions_pb2.GetExecutionRequest, context: Context
    ) -> executions_pb2.Execution:
        if request.id <= 0:
            raise InvalidRequest([("id", f"is {request.id}; it must be an execution's id")])
        return execution_message(await self._reads.get_execution(request.id))
