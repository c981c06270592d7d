"""cronring.v1.Executions, what changes executions: cancel, retry."""

from collections.abc import Callable

from cronring.controller.api.activations import table_of
from cronring.controller.api.lookup import find_execution
from cronring.controller.api.messages import activation_message, execution_message
from cronring.controller.api.requests import Context, actor, execution_id, note
from cronring.controller.core.model import CancelRequest
from cronring.controller.core.node.events import ActivationsCreated, CancelsAsked
from cronring.controller.errors import IllegalTransition
from cronring.controller.ports.reads import ExecutionRow, Reads
from cronring.controller.ports.store import ExecutionControl
from cronring.protos.cronring.v1 import executions_pb2, jobs_pb2
from cronring.schema.duration import measured
from cronring.schema.execution import Outcome
from cronring.schema.identity import Permission

# What takes the events by which this controller's own node hears of what was done here.
Put = Callable[[CancelsAsked | ActivationsCreated], None]


class ExecutionWrites:
    """The part of ExecutionsService that changes executions. `put` tells this controller's own node at once."""

    def __init__(self, control: ExecutionControl, reads: Reads, put: Put) -> None:
        self._control = control
        self._reads = reads
        self._put = put

    async def CancelExecution(
        self, request: executions_pb2.CancelExecutionRequest, context: Context
    ) -> executions_pb2.Execution:
        wanted = execution_id("id", request.id)
        by, why = actor(request.requested_by, context), note("note", request.note)
        await find_execution(self._reads, wanted, Permission.OPERATE)
        await self._control.cancel_execution(wanted, by, why)
        row = await self._reads.get_execution(wanted)
        if row.outcome is None:
            asked = CancelRequest(wanted, row.runner_id, row.cancel_requested_by or "", row.cancel_note or "")
            self._put(CancelsAsked([asked]))
        elif row.outcome != Outcome.CANCELLED and row.cancel_requested_at is None:
            message = _too_late(row, await self._reads.database_now())
            raise IllegalTransition(
                message, job=row.job, state=row.outcome, target=Outcome.CANCELLED, action="cancel_execution"
            )
        return execution_message(row)

    async def RetryExecution(
        self, request: executions_pb2.RetryExecutionRequest, context: Context
    ) -> jobs_pb2.Activation:
        wanted = execution_id("id", request.id)
        by, why = actor(request.requested_by, context), note("note", request.note)
        await find_execution(self._reads, wanted, Permission.OPERATE)
        activation = await self._control.retry_execution(wanted, by, why)
        self._put(ActivationsCreated([activation]))
        return activation_message(activation, table_of(await self._reads.get_job(activation.job.key)))


def _too_late(row: ExecutionRow, now: int) -> str:
    assert row.ended_at is not None, "an outcome without an end"
    ago = measured((now - row.ended_at) / 1_000)
    message = (
        f"execution {row.execution_id} of {row.job} is {row.outcome}, and only a running one can become cancelled: "
        f"it had {_ENDED[Outcome(row.outcome or '')]} {ago} before"
    )
    if row.cancel_requested_at is not None:
        message += f", though {row.cancel_requested_by} wanted it cancelled"
    return message


_ENDED = {
    Outcome.COMPLETED: "completed",
    Outcome.FAILED: "failed",
    Outcome.TIMED_OUT: "run into its timeout",
    Outcome.LOST: "been lost with its runner",
    Outcome.OUT_OF_MEMORY: "gone over its memory_limit",
    Outcome.OUT_OF_CPU: "gone over its cpu_limit",
}
