"""Ticks that are completed once their messages are in their queues, in memory; see EnqueueCronJobs."""

from cronring.controller.core import ticks
from cronring.controller.core.model import EnqueueRequest, EnqueueResult
from cronring.controller.store.memory.activations import MemoryActivations
from cronring.controller.store.memory.rows import DecidedByClaim, StoredExecution
from cronring.controller.store.messages import REFUSED
from cronring.schema.execution import Outcome, Report


class MemoryEnqueuing(MemoryActivations):
    """The part of MemoryStore that is about such ticks."""

    async def enqueue_cron_jobs(
        self, controller_id: str, requests: list[EnqueueRequest]
    ) -> tuple[int, list[EnqueueResult]]:
        leased = self._lease_is_valid(controller_id)
        return self.now_us(), [self._enqueue(controller_id, leased, each) for each in requests]

    def _enqueue(self, controller_id: str, leased: bool, request: EnqueueRequest) -> EnqueueResult:
        now = self.now_us()
        row = self.jobs.get(request.job_id)
        if row is None:
            return EnqueueResult(request.job_id, False, False, None, now, False, None, None, 0)
        active = row.deployment.min_replicas > 0
        fits = active and row.deployment.key == request.deployment and row.revision == request.revision
        error = self.refuses_message(row)
        full = None if error is None else self._full_limit(row)
        if not (leased and fits and not row.full and row.is_due(request, now)) or full is not None:
            return EnqueueResult(
                row.job_id, False, active, None, now, row.full, row.next_tick, row.next_run_at, row.revision
            )
        previous_tick, row.last_tick = row.last_tick, request.run_tick
        execution = StoredExecution(
            len(self.executions) + 1, row, row.deployment, request.run_tick, request.run_at, now, controller_id, "",
            now, 1, request.trigger, row.missed + ticks.missed(request.skipped), previous_tick, row.last_success,
            holds_job=error is not None,
        )  # fmt: skip
        self._add_execution(execution)
        self._skip(row, request.skipped, controller_id)
        if error is not None:
            row.missed, row.execution_id = 0, execution.execution_id
            execution.hard_deadline = now + row.timeout_ms * 1_000
            execution.decided = DecidedByClaim(Outcome.FAILED, REFUSED, error)
        else:
            self._complete(execution, request, controller_id)
        return EnqueueResult(
            row.job_id, True, True, execution.execution_id, now, row.full, row.next_tick, row.next_run_at,
            row.revision, error is not None, None if error is not None else self._follow(execution),
        )  # fmt: skip

    def _complete(self, execution: StoredExecution, request: EnqueueRequest, controller_id: str) -> None:
        row, now = execution.job, self.now_us()
        del self.unfinished[execution.execution_id]
        execution.outcome = Outcome.COMPLETED
        execution.report = Report(execution.execution_id, row.job_id, now, Outcome.COMPLETED, now, now)
        row.missed, row.last_outcome, row.failures = ticks.missed(request.passed), Outcome.COMPLETED, 0
        row.last_success = max(row.last_success or 0, execution.tick)
        row.next_tick, row.next_run_at = request.next_tick, request.next_run_at
        self._skip(row, request.passed, controller_id)
        self._put_message(execution, awaited=False)
