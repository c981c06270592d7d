"""What operators do to single executions, in memory; see controller/store/execution_control.py."""

from cronring.controller.core.model import Activation, CancelRequest
from cronring.controller.core.orders.states import State
from cronring.controller.errors import NotFound
from cronring.controller.services.audit_changes import activation_fields, of_execution
from cronring.controller.services.refusals import not_retried
from cronring.controller.store.memory.activations import MemoryActivations
from cronring.controller.store.memory.rows import StoredAction, StoredExecution
from cronring.schema.execution import Outcome, Trigger
from cronring.schema.instant import format_instant

CANCELS_MAX = 1_000  # named in one renewal


class MemoryExecutionControl(MemoryActivations):
    """Implements cronring.controller.ports.store.ExecutionControl."""

    async def cancel_execution(self, execution_id: int, by: str, note: str) -> bool:
        row = self.unfinished.get(execution_id)
        if row is None or row.cancel is not None:
            return False
        row.cancel = CancelRequest(execution_id, row.runner_id, by, note)
        self._log(
            StoredAction("cancel_execution", by, note, row.job.job_id, {}, at=self.now_us()),
            of_execution(execution_id, row.job.key, {"cancel_requested_by": by}),
        )
        self.on_cancels()
        return True

    async def retry_execution(self, execution_id: int, by: str, note: str = "") -> Activation:
        row = self.executions.get(execution_id)
        if row is None:
            raise NotFound(f"there is no execution {execution_id}")
        self._check_retryable(row)
        job, now = row.job, self.now_us()
        waiting = next((each for each in self.activations.values() if each.is_retry_of(job, row.tick)), None)
        if waiting is None:
            latest = max(self.attempts[job.job_id, row.tick], key=lambda each: each.attempt)
            waiting = self._add_activation(
                job, Trigger.RETRY, row.tick, attempt=latest.attempt + 1, run_at=now, payload=row.ran_with or None,
                beside=not (row.holds_job or row.counted), by=by, of_schedule=row.of_schedule,
                counted_before=latest.counted_before or latest.outcome is not Outcome.CANCELLED,
            )  # fmt: skip
        else:
            waiting.requested_by, waiting.run_at = by, min(waiting.run_at, now)
            waiting.payload = row.ran_with or waiting.payload
        details = {"activation": waiting.activation_id, "tick": format_instant(row.tick)}
        activation = waiting.activation()
        self._log(
            StoredAction("retry_execution", by, note, job.job_id, details, at=now),
            of_execution(execution_id, job.key, activation_fields(activation)),
        )
        self.on_notify()
        return activation

    def _check_retryable(self, row: StoredExecution) -> None:
        job = row.job
        if job.removed or job.cancelled_at is not None or job.orphaned:
            gone = "removed" if job.removed else "cancelled" if job.cancelled_at is not None else "orphaned"
            state = State.ORPHANED if gone == "orphaned" else State.CANCELLED
            raise not_retried(f"the job {job.key!r} of execution {row.execution_id} has been {gone}", job.key, state)
        for other in self.attempts[row.job.job_id, row.tick]:
            if other.outcome in {None, Outcome.COMPLETED}:
                state = State.RUNNING if other.outcome is None else State.COMPLETED
                raise not_retried(f"execution {other.execution_id} is {state.value}", row.job.key, state)

    def _to_cancel(self, controller_id: str, known: frozenset[int]) -> tuple[CancelRequest, ...]:
        found = [
            row.cancel
            for row in self.unfinished.values()
            if row.cancel is not None and row.controller_id == controller_id and row.execution_id not in known
        ]
        return tuple(sorted(found)[:CANCELS_MAX])
