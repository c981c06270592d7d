"""What operators do to single executions: one statement or transaction each, told by NOTIFY."""

from typing import NamedTuple

from cronring.controller.core.model import Activation
from cronring.controller.core.orders.states import State, remedy_of
from cronring.controller.errors import NotFound
from cronring.controller.services.audit_changes import activation_fields, of_execution
from cronring.controller.services.refusals import not_retried
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.activations import find_activation
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.schema.instant import format_instant
from cronring.sql.parameters import (
    CreateRetry,
    GetAttempts,
    HastenRetry,
    LockJobOfExecution,
    MarkCancelled,
    NotifyJobs,
)


class _Retried(NamedTuple):
    """An execution, whose job's row is locked while its transaction lasts."""

    job_id: int
    key: str
    gone: str  # "removed", "cancelled", "orphaned" or ""
    tick: int
    payload: str | None
    beside: bool
    of_schedule: bool


class _Attempt(NamedTuple):
    execution_id: int
    attempt: int
    outcome: str | None
    counted_before: bool  # an earlier attempt has counted the tick as one without success

    @property
    def has_counted(self) -> bool:
        """Whether the tick has been counted as one without success. A cancelled attempt alone doesn't count."""
        return self.counted_before or self.outcome != "cancelled"


class PostgresExecutionControl:
    """cronring.controller.ports.store.ExecutionControl."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def cancel_execution(self, execution_id: int, by: str, note: str) -> bool:
        """Mark an execution as to be cancelled. True: this call marked it."""
        async with self._database.transaction("cancelling an execution") as transaction:
            marked = await transaction.fetch(MarkCancelled(execution_id=execution_id, actor=by, note=note))
            if not marked:
                transaction.unchanged = True
                return False
            job_id, job, _ = marked[0]
            await add_actions(transaction, [Action("cancel_execution", by, note, job_id, None, execution_id)])
            await record(transaction, of_execution(execution_id, job, {"cancel_requested_by": by}))
            return True

    async def retry_execution(self, execution_id: int, by: str, note: str = "") -> Activation:
        """A further attempt at its tick. Raises NotFound, IllegalTransition."""
        async with self._database.transaction("retrying an execution") as transaction:
            found = await transaction.fetch(LockJobOfExecution(execution_id=execution_id))
            if not found:
                raise NotFound(f"there is no execution {execution_id}; `cronring executions list` shows them")
            retried = _Retried._make(found[0])
            attempts = await transaction.fetch(
                GetAttempts(job_id=retried.job_id, tick=retried.tick, execution_id=execution_id)
            )
            latest = _check(execution_id, retried, list(map(_Attempt._make, attempts)))
            activation_id = await _waiting(transaction, retried, latest, by)
            details = {"activation": activation_id, "tick": format_instant(retried.tick)}
            kept = Action("retry_execution", by, note, retried.job_id, None, execution_id, details)
            await add_actions(transaction, [kept])
            await transaction.fetch(NotifyJobs(payload=retried.key))
            activation = await find_activation(transaction, retried.job_id, activation_id)
            await record(transaction, of_execution(execution_id, retried.key, activation_fields(activation)))
            return activation


def _check(execution_id: int, retried: _Retried, attempts: list[_Attempt]) -> _Attempt:
    """The latest attempt at the tick. Raises IllegalTransition unless there may be a further one."""
    what = f"execution {execution_id} of {retried.key}"
    if retried.gone:
        state = State.ORPHANED if retried.gone == "orphaned" else State.CANCELLED
        remedy = "deploy or create it anew" if retried.gone == "removed" else remedy_of(state)
        message = f"{what} can't become running again: its job has been {retried.gone}; {remedy}"
        raise not_retried(message, retried.key, state)
    for each in attempts:
        if each.outcome not in {None, "completed"}:
            continue
        state = State.COMPLETED if each.outcome else State.RUNNING
        if each.execution_id == execution_id:
            message = f"{what} is {state.value}, and only one that ended without success can become running again"
            raise not_retried(message, retried.key, state)
        (own,) = (other.outcome for other in attempts if other.execution_id == execution_id)
        message = (
            f"{what} is {own}, and can't become running again: execution {each.execution_id}, attempt {each.attempt} "
            f"at the same tick, is {state.value}"
        )
        raise not_retried(message, retried.key, state)
    return attempts[0]


async def _waiting(transaction: Transaction, retried: _Retried, latest: _Attempt, by: str) -> int:
    """The id of the retry that waits: one that the job's policy had made before, or a new one."""
    records = await transaction.fetch(
        HastenRetry(job_id=retried.job_id, tick=retried.tick, actor=by, payload=retried.payload)
    )
    if not records:
        records = await transaction.fetch(
            CreateRetry(
                job_id=retried.job_id,
                tick=retried.tick,
                attempt=latest.attempt + 1,
                payload=retried.payload,
                beside=retried.beside,
                of_schedule=retried.of_schedule,
                actor=by,
                counted_before=latest.has_counted,
            )
        )
    activation_id: int = records[0][0]
    return activation_id
