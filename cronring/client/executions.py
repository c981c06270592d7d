"""Calls about executions."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.errors import SLOW, Refused
from cronring.client.filters import ExecutionsCounted, ExecutionsFound, execution_filter
from cronring.client.lasting import AWAY_PAUSE_S, lasting
from cronring.client.paging import PAGE_SIZE_MAX, follow
from cronring.client.patience import patiently
from cronring.protos.cronring.v1 import executions_pb2
from cronring.protos.cronring.v1.executions_pb2_grpc import ExecutionsStub
from cronring.schema.filters import ExecutionQuery

LOOKS_MAX: Final = 20  # of one `find`: pages that ended before they were full, after 50,000 executions each
_KINDS: Final = {
    executions_pb2.ExecutionEvent.KIND_STARTED: model.ExecutionEventKind.STARTED,
    executions_pb2.ExecutionEvent.KIND_ENDED: model.ExecutionEventKind.ENDED,
}


class ExecutionCalls:
    """List, find, count, get, follow, watch; cancel and retry. `by` says who asks, which is kept; "": this address."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def list(
        self,
        job: str = "",
        outcome: str = "",
        since: datetime | None = None,
        after_id: int = 0,
        limit: int | None = 100,
        until: datetime | None = None,
    ) -> list[model.Execution]:
        """The newest first. `outcome` may be "running", or "unsuccessful"; `after_id`: only ids above.

        `since`, `until`: tick at or after, at or before. It looks as far back as it takes: `find` has bounds.
        """
        chosen = executions_pb2.ExecutionFilter(
            job=job, outcomes=[outcome] if outcome else [], since=convert.timestamp(since),
            until=convert.timestamp(until), after_id=after_id,
        )  # fmt: skip

        async def fetch(page_size: int, token: str) -> tuple[list[model.Execution], str]:
            answer = await self._page(chosen, "", page_size, token)
            return [convert.execution(each) for each in answer.executions], answer.next_page_token

        return await follow(fetch, limit)

    async def find(self, query: ExecutionQuery, limit: int = 100) -> ExecutionsFound:
        """Of what fits, the first by `query.sort`; after LOOKS_MAX looks that filled no page, what was found by then.

        Raises NotFound for a job that isn't there, and Conflict for more than can be sorted.
        """
        chosen, found, token, looks = execution_filter(query), list[model.Execution](), "", 0
        while True:
            answer = await self._page(chosen, query.sort, min(limit - len(found), PAGE_SIZE_MAX), token)
            found += map(convert.execution, answer.executions)
            token, looks = answer.next_page_token, looks + answer.HasField("looked_to")
            if not token or len(found) >= limit:
                return ExecutionsFound(found, None)
            if looks >= LOOKS_MAX:
                return ExecutionsFound(found, convert.instant(answer.looked_to))

    async def each(self, query: ExecutionQuery) -> AsyncIterator[model.Execution]:
        """All that fit, by `query.sort`, without their outputs: page by page, however far back. Raises as `find`."""
        chosen, token = execution_filter(query), ""
        while True:
            answer = await self._page(chosen, query.sort, PAGE_SIZE_MAX, token)
            for found in answer.executions:
                yield convert.execution(found)
            token = answer.next_page_token
            if not token:
                return

    async def count(self, query: ExecutionQuery) -> ExecutionsCounted:
        """How many fit, or that it is at least so many. Raises NotFound for a job that isn't there."""
        request = executions_pb2.CountExecutionsRequest(filter=execution_filter(query))
        timeout = self._failover.timeout_s
        answer = await self._failover.unary(
            lambda channel: ExecutionsStub(channel).CountExecutions(request, timeout=timeout)
        )
        return ExecutionsCounted(answer.count, answer.at_least)

    async def _page(
        self, chosen: executions_pb2.ExecutionFilter, sort: str, page_size: int, token: str
    ) -> executions_pb2.ListExecutionsResponse:
        request = executions_pb2.ListExecutionsRequest(filter=chosen, sort=sort, page_size=page_size, page_token=token)
        timeout = self._failover.timeout_s
        return await self._failover.unary(
            lambda channel: ExecutionsStub(channel).ListExecutions(request, timeout=timeout)
        )

    async def get(self, execution_id: int) -> model.Execution:
        """With its output. Raises NotFound."""
        timeout = self._failover.timeout_s
        request = executions_pb2.GetExecutionRequest(id=execution_id)
        return convert.execution(
            await self._failover.unary(lambda channel: ExecutionsStub(channel).GetExecution(request, timeout=timeout))
        )

    async def cancel(self, execution_id: int, note: str = "", by: str = "") -> model.Execution:
        """Have it stopped: softly, then by killing its process. How it ends is told by `follow`, or `get`.

        It is not retried by its job's policy. Raises Conflict, which says how, if it had ended before, but for one that
        had been cancelled.
        """
        timeout = self._failover.timeout_s
        request = executions_pb2.CancelExecutionRequest(id=execution_id, note=note, requested_by=by)
        return convert.execution(
            await self._failover.change(
                lambda channel: ExecutionsStub(channel).CancelExecution(request, timeout=timeout),
                f"`cronring executions get {execution_id}`",
                repeatable=True,
            )
        )

    async def retry(self, execution_id: int, by: str = "", note: str = "") -> model.Activation:
        """A further attempt at its tick, as soon as the job is free; one that waits already is the answer.

        Raises Conflict while an attempt at that tick runs, or if one has completed.
        """
        timeout = self._failover.timeout_s
        request = executions_pb2.RetryExecutionRequest(id=execution_id, requested_by=by, note=note)
        return convert.activation(
            await self._failover.change(
                lambda channel: ExecutionsStub(channel).RetryExecution(request, timeout=timeout),
                "`cronring executions list` and `cronring jobs activations JOB`",
            )
        )

    async def follow(
        self, execution_id: int, from_offset: int = 0, *, once: bool = False
    ) -> AsyncIterator[model.OutputChunk]:
        """What it prints, from there on, and then how it ended; `once`: what there is now, and how it stands.

        When the controller that served it goes, another goes on where it was. Raises NotFound; Refused
        (RESOURCE_EXHAUSTED) when this reads too slowly: then go on from the end of the last chunk; and Unreachable or
        Unavailable when neither came back within a minute.
        """
        position = max(0, from_offset)

        def request() -> executions_pb2.FollowExecutionRequest:
            return executions_pb2.FollowExecutionRequest(id=execution_id, from_offset=position, once=once)

        followed = lasting(self._failover, lambda channel: ExecutionsStub(channel).FollowExecution(request()))
        async for message in followed:
            if message is None:
                continue
            execution = convert.execution(message.execution) if message.HasField("execution") else None
            gap, position = message.offset - position, message.offset + len(message.data)
            yield model.OutputChunk(message.offset, message.data, gap, execution)
            if execution is not None:
                return

    async def wait(self, execution_id: int) -> model.Execution:
        """How it ended, with its output, once it has. Raises as `follow` does."""
        while True:
            try:
                async for chunk in self.follow(execution_id):
                    if chunk.execution is not None:
                        return await patiently(self.get, execution_id)
            except Refused as error:
                if error.code != SLOW:
                    raise
                await asyncio.sleep(AWAY_PAUSE_S)

    async def watch(self, job: str = "", outcome: str = "") -> AsyncIterator[model.ExecutionEvent]:
        """Every start and end from now on, for ever; with an outcome, only ends with that.

        When the controller that served it goes, or drops this for reading too slowly, it goes on from the latest token:
        nothing is left out, and what came after that token is told again, but for what has been told already.
        """
        token, told = "", _Told()

        def request() -> executions_pb2.WatchExecutionsRequest:
            return executions_pb2.WatchExecutionsRequest(job=job, outcome=outcome, resume_token=token)

        while True:
            try:
                watched = lasting(self._failover, lambda channel: ExecutionsStub(channel).WatchExecutions(request()))
                async for message in watched:
                    if message is None:
                        continue
                    kind = _KINDS.get(message.kind)
                    if kind is not None and told.is_new(kind, message.execution.id):
                        yield model.ExecutionEvent(kind, convert.execution(message.execution))
                    if message.resume_token not in {"", token}:
                        token = message.resume_token
                        told.forget()
            except Refused as error:
                if error.code != SLOW or not token:
                    raise
                await asyncio.sleep(AWAY_PAUSE_S)


class _Told:
    """Events since the latest token: after a change of controllers they come again."""

    def __init__(self) -> None:
        self._told: set[tuple[model.ExecutionEventKind, int]] = set()

    def is_new(self, kind: model.ExecutionEventKind, execution_id: int) -> bool:
        event = kind, execution_id
        if event in self._told:
            return False
        self._told.add(event)
        return True

    def forget(self) -> None:
        self._told.clear()
