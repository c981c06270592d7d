"""Cancelling an execution that comes to its end at the same time: one answer, and the books say the same."""

from typing import Any

import pytest

from cronring.controller.api.execution_writes import ExecutionWrites
from cronring.controller.errors import IllegalTransition
from cronring.controller.ports.caller import calling
from cronring.controller.ports.reads import ExecutionRow
from cronring.protos.cronring.v1.executions_pb2 import CancelExecutionRequest
from cronring.schema.identity import LOCAL

RUNNING = ExecutionRow(7, "m.v", "d", 0, 0, 0, 0, None, None, 1, "manual", "c", "r", None, None)
COMPLETED = RUNNING._replace(ended_at=1, outcome="completed")


class Books:
    """One execution. `ends_as`: what becomes of it between its mark and the look at it."""

    def __init__(self, row: ExecutionRow, ends_as: ExecutionRow | None = None) -> None:
        self.row = row
        self.ends_as = ends_as
        self.put: list[Any] = []
        self.writes = ExecutionWrites(self, self, self.put.append)  # type: ignore[arg-type]  # what cancelling needs

    async def cancel_execution(self, execution_id: int, by: str, note: str) -> bool:
        assert (execution_id, note) == (7, "")
        marks = self.row.outcome is None
        if marks:
            self.row = (self.ends_as or self.row)._replace(cancel_requested_at=1, cancel_requested_by=by)
        return marks

    async def get_execution(self, execution_id: int) -> ExecutionRow:
        assert execution_id == 7
        return self.row

    async def database_now(self) -> int:
        return 5

    async def cancel(self) -> Any:
        request = CancelExecutionRequest(id=7, requested_by="ann")
        with calling(LOCAL):
            return await self.writes.CancelExecution(request, None)  # type: ignore[arg-type]  # asked only for who it is


async def test_one_that_runs_is_marked_and_its_controller_is_told() -> None:
    books = Books(RUNNING)
    answer = await books.cancel()
    assert (answer.outcome, answer.cancel_requested_by, len(books.put)) == ("", "ann", 1)


async def test_one_that_completed_after_its_mark_was_cancelled_in_time() -> None:
    """It was told as a conflict, though the books kept the mark and the action."""
    books = Books(RUNNING, ends_as=COMPLETED)
    answer = await books.cancel()
    assert (answer.cancel_requested_by, answer.HasField("ended_at"), books.put) == ("ann", True, [])
    assert (await books.cancel()).cancel_requested_by == "ann", "and so it is when it is asked again"


async def test_one_that_had_completed_before_is_a_conflict() -> None:
    with pytest.raises(IllegalTransition, match="is completed"):
        await Books(COMPLETED).cancel()
