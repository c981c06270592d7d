"""cronring.v1.Executions: list, get, follow, watch; the other methods stand in execution_writes.py."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from cronring.controller.api.execution_writes import ExecutionWrites, Put
from cronring.controller.api.following import OutputFollowers
from cronring.controller.api.lookup import admit_to_job, find_execution
from cronring.controller.api.messages import execution_message
from cronring.controller.api.paging import Pages, page_size
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import OUTCOMES, Context, execution_id, instant, name, one_of, row_id
from cronring.controller.api.scope import namespaces
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.watch_executions import ExecutionEventKind, ExecutionHub, Matches
from cronring.controller.ports.reads import ExecutionFilter, Reads, within
from cronring.controller.ports.store import ExecutionControl
from cronring.protos.cronring.v1 import executions_pb2, executions_pb2_grpc
from cronring.schema.execution import Outcome
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
        where = ExecutionFilter(
            job=name("job", request.job),
            outcome=one_of("outcome", request.outcome, OUTCOMES),
            since=instant("since", request.since) if request.HasField("since") else None,
            after_id=row_id("after_id", request.after_id),
            until=instant("until", request.until) if request.HasField("until") else None,
        )
        if where.until is not None and not where.job:
            raise InvalidRequest([("until", "goes with a job only; name one")])
        limit, pages = page_size(request), Pages(self._box, "ListExecutions", *where)
        admit_to_job(where.job)
        where = where._replace(namespaces=namespaces(Permission.VIEW))
        rows = await self._reads.list_executions(where, pages.number_cursor(request.page_token), limit + 1)
        page = rows[:limit]
        return executions_pb2.ListExecutionsResponse(
            executions=[execution_message(row) for row in page],
            next_page_token=pages.token(page[-1].execution_id) if len(rows) > limit else "",
        )

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
        matches = _matching(name("job", request.job), one_of("outcome", request.outcome, ENDED_OUTCOMES))
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


ENDED_OUTCOMES: Final = tuple(outcome.value for outcome in Outcome)


def _matching(job: str, outcome: str) -> Matches:
    """Of what its caller may see. With an outcome, only ends count."""
    seen = namespaces(Permission.VIEW)  # now: it is asked while others call
    return lambda kind, row: (
        within(seen, row.job)
        and job in {"", row.job}
        and (not outcome or (kind is ExecutionEventKind.ENDED and row.outcome == outcome))
    )
