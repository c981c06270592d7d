"""cronring.v1.Executions: list, get, follow, watch; the other methods stand in execution_writes.py."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from cronring.controller.api.execution_writes import ExecutionWrites, Put
from cronring.controller.api.filters import execution_filter, executions_asked
from cronring.controller.api.following import OutputFollowers
from cronring.controller.api.lookup import admit_to_job, find_execution
from cronring.controller.api.messages import execution_message
from cronring.controller.api.paging import Pages, page_size
from cronring.controller.api.requests import Context, execution_id, name, one_of, row_id
from cronring.controller.api.scope import namespaces
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.watch_executions import ExecutionEventKind, ExecutionHub, Matches
from cronring.controller.core.figures import OUTCOMES
from cronring.controller.ports.reads import ExecutionFilter, Reads, within
from cronring.controller.ports.store import ExecutionControl
from cronring.protos.cronring.v1 import executions_pb2, executions_pb2_grpc, lists_pb2
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission

_KINDS: Final = {
    ExecutionEventKind.WATCHING: executions_pb2.ExecutionEvent.KIND_WATCHING,
    ExecutionEventKind.STARTED: executions_pb2.ExecutionEvent.KIND_STARTED,
    ExecutionEventKind.ENDED: executions_pb2.ExecutionEvent.KIND_ENDED,
}


class ExecutionsService(ExecutionWrites, executions_pb2_grpc.ExecutionsServicer):
    """`put` takes what this controller's own node has to hear of what was done here."""

    def __init__(
        self,
        reads: Reads,
        box: TokenBox,
        control: ExecutionControl,
        following: OutputFollowers,
        hub: ExecutionHub,
        put: Put,
    ) -> None:
        ExecutionWrites.__init__(self, control, reads, put)
        self._following = following
        self._hub = hub
        self._box = box

    async def ListExecutions(
        self, request: executions_pb2.ListExecutionsRequest, context: Context
    ) -> executions_pb2.ListExecutionsResponse:
        where, sort, words = await executions_asked(request.filter, request.sort, self._reads.database_now)
        limit, pages = page_size(request), Pages(self._box, "ListExecutions", sort.value, *words)
        where = _within_sight(where)
        page = await self._reads.list_executions(where, sort, pages.place_cursor(request.page_token), limit)
        found = await self._reads.count_executions(where) if request.total else None
        return executions_pb2.ListExecutionsResponse(
            executions=[execution_message(row) for row in page.rows],
            next_page_token=pages.token(page.next),
            looked_to=timestamp(page.looked_to),
            total=None if found is None else lists_pb2.Total(count=found.executions, at_least=found.at_least),
        )

    async def CountExecutions(
        self, request: executions_pb2.CountExecutionsRequest, context: Context
    ) -> executions_pb2.CountExecutionsResponse:
        where = await execution_filter(request.filter, self._reads.database_now)
        found = await self._reads.count_executions(_within_sight(where))
        return executions_pb2.CountExecutionsResponse(count=found.executions, at_least=found.at_least)

    async def GetExecution(
        self, request: executions_pb2.GetExecutionRequest, context: Context
    ) -> executions_pb2.Execution:
        wanted = execution_id("id", request.id)
        return execution_message(await find_execution(self._reads, wanted, Permission.VIEW))

    async def FollowExecution(
        self, request: executions_pb2.FollowExecutionRequest, context: Context
    ) -> AsyncIterator[executions_pb2.OutputChunk]:
        wanted, offset = execution_id("id", request.id), row_id("from_offset", request.from_offset)
        await find_execution(self._reads, wanted, Permission.OUTPUTS)
        async with contextlib.aclosing(self._following.follow(wanted, offset, once=request.once)) as chunks:
            async for chunk in chunks:
                end = None if chunk.row is None else execution_message(chunk.row._replace(output=None))
                yield executions_pb2.OutputChunk(offset=chunk.offset, data=chunk.data, execution=end)

    async def WatchExecutions(
        self, request: executions_pb2.WatchExecutionsRequest, context: Context
    ) -> AsyncIterator[executions_pb2.ExecutionEvent]:
        matches = _matching(name("job", request.job), one_of("outcome", request.outcome, OUTCOMES))
        if request.resume_token:
            position = self._hub.resumed(request.resume_token, await self._reads.database_now())
            watched = self._hub.resume(matches, position)
        else:
            watched = self._hub.watch(matches)
        async with contextlib.aclosing(watched) as events:
            async for event in events:
                execution = None if event.row is None else execution_message(event.row)
                kind = _KINDS[event.kind]
                yield executions_pb2.ExecutionEvent(kind=kind, execution=execution, resume_token=event.token)


def _within_sight(where: ExecutionFilter) -> ExecutionFilter:
    """Confined to what the caller may view. Raises NotFound, Forbidden."""
    admit_to_job(where.job)
    return where._replace(namespaces=namespaces(Permission.VIEW, where.namespace))


def _matching(job: str, outcome: str) -> Matches:
    """A filter of events that the caller may see. With an outcome, only ends match."""
    visible = namespaces(Permission.VIEW)  # read now: the filter is used outside of the call
    return lambda kind, row: (
        within(visible, row.job)
        and job in {"", row.job}
        and (not outcome or (kind is ExecutionEventKind.ENDED and row.outcome == outcome))
    )
