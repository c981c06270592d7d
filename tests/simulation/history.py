"""The store in memory, with what a simulation may do to it, and wants to hear."""

from collections.abc import Callable, Iterable
from typing import Any

from cronring.controller.core.model import (
    ClaimRequest,
    ClaimResult,
    EndRequest,
    EndResult,
    EnqueueRequest,
    EnqueueResult,
    Job,
    SkipRequest,
)
from cronring.controller.errors import StoreError
from cronring.controller.store.memory.rows import ActivationRow, StoredExecution
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import Outcome, Trigger


class RecordingStore(MemoryStore):
    def __init__(self, now_us: Callable[[], int], on_notify: Callable[[], None]) -> None:
        super().__init__(now_us, on_notify)
        self.refused_job: int | None = None  # whatever would change it, is refused as a whole
        self.on_lost: Callable[[StoredExecution], None] = lambda _: None
        self.allowed: dict[int, int] = {}  # by execution: how many of its job's might run at once when it was claimed
        self.ended_us: dict[int, int] = {}  # by execution: when its end was committed
        self.ended: dict[int, int] = {}  # by execution: as the how many-th it ended
        self.ended_in: dict[int, int] = {}  # by execution: which of its job's spans was in force when it ended
        self.cancelled: dict[int, int] = {}  # activations, and when
        self.put: list[tuple[int, int, int]] = []  # messages: execution, tick, attempt
        self._by_hand = False  # what is being claimed was asked for

    async def start_cron_jobs(
        self, controller_id: str, requests: list[ClaimRequest], hard_grace_ms: int
    ) -> tuple[int, list[ClaimResult]]:
        self._may_refuse(request.job_id for request in requests)
        return await super().start_cron_jobs(controller_id, requests, hard_grace_ms)

    async def enqueue_cron_jobs(
        self, controller_id: str, requests: list[EnqueueRequest]
    ) -> tuple[int, list[EnqueueResult]]:
        self._may_refuse(request.job_id for request in requests)
        return await super().enqueue_cron_jobs(controller_id, requests)

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
        self._may_refuse(request.report.job_id for request in requests)
        return await super().end_cron_jobs(controller_id, requests)

    async def skip_ticks(self, controller_id: str, requests: list[SkipRequest]) -> list[Job]:
        self._may_refuse(request.job_id for request in requests)
        return await super().skip_ticks(controller_id, requests)

    async def cancel_activation(self, key: str, activation_id: int, by: str = "", note: str = "") -> bool:
        found = await super().cancel_activation(key, activation_id, by, note)
        if found:
            self.cancelled[activation_id] = self.now_us()
        return found

    def _start(self, row: ActivationRow, *values: Any) -> StoredExecution:
        self._by_hand = row.by_hand
        execution = super()._start(row, *values)
        self._by_hand = False
        return execution

    def _add_execution(self, row: StoredExecution) -> None:
        """Judged at the very commit: no clock has a say in what came first."""
        job, by_hand = row.job, self._by_hand
        assert not job.removed, f"removed: {row} is claimed of a job that is gone"
        assert job.cancelled_at is None, f"cancelled: {row} is claimed of a job that is cancelled"
        assert not job.paused or by_hand, f"paused: {row} is claimed while its job is paused"
        assert not job.orphaned, f"orphaned: {row} is claimed while its job has no verb"
        overtaken = row.trigger is Trigger.RETRY and row.of_schedule and not by_hand and (job.last_tick or 0) > row.tick
        assert not overtaken, f"superseded: {row} is claimed after tick {job.last_tick}"
        most = self.allowed[row.execution_id] = max(job.concurrency, 1)
        beside = [each for each in self.unfinished.values() if each.job is job and takes_a_place(each)]
        assert not takes_a_place(row) or len(beside) < most, f"no overlap: {row} is claimed beside {beside}"
        super()._add_execution(row)

    def _put_message(self, execution: StoredExecution, *, awaited: bool) -> None:
        super()._put_message(execution, awaited=awaited)
        self.put.append((execution.execution_id, execution.tick, execution.attempt))

    def _complete(self, execution: StoredExecution, request: EnqueueRequest, controller_id: str) -> None:
        super()._complete(execution, request, controller_id)
        self._note_end(execution.execution_id)

    def _may_refuse(self, job_ids: Iterable[int]) -> None:
        if self.refused_job in tuple(job_ids):
            raise StoreError(f"refused, for the sake of job {self.refused_job}")

    def _end(self, controller_id: str, request: EndRequest) -> EndResult:
        result = super()._end(controller_id, request)
        if result.ended:
            self._note_end(result.execution_id)
        lost = result.ended and request.report.outcome is Outcome.LOST
        if lost and (execution := self.executions[result.execution_id]).runner_id:  # a consumer says so itself
            self.on_lost(execution)
        return result

    def _note_end(self, execution_id: int) -> None:
        assert execution_id not in self.ended, f"one outcome: {execution_id} ended twice"
        self.ended[execution_id] = len(self.ended) + 1
        self.ended_us[execution_id] = self.now_us()
        self.ended_in[execution_id] = len(self.spans[self.executions[execution_id].job.job_id]) - 1


def takes_a_place(row: StoredExecution) -> bool:
    """Backfills beside the job take nobody's."""
    return row.holds_job or row.counted
