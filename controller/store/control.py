"""What operators do to single jobs: one transaction each, planned by controller.core.orders.control, told by NOTIFY."""

import contextlib
from collections.abc import AsyncIterator

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.orders.control import plan_backfill
from cronring.controller.core.orders.orders import Pause, Resume, refused
from cronring.controller.core.orders.states import Order
from cronring.controller.ports.many import JobChange, NewJob, Seen, Who, done
from cronring.controller.ports.store import Backfill, MadeJob, RunByHand
from cronring.controller.services.audit_changes import Changes, RunBeside, activation_fields, of_job
from cronring.controller.services.refusals import error_of
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.activations import find_activation
from cronring.controller.store.locked import Locked, lock_job, no_such_job
from cronring.controller.store.many import ManyAtOnce, create_all, delete_all, update_all
from cronring.controller.store.ordering import make_activations
from cronring.controller.store.pool import Transaction
from cronring.controller.store.recording import record
from cronring.controller.store.rows import activation_of, job_of
from cronring.schema.instant import format_instant
from cronring.sql.parameters import (
    CreateBackfill,
    DeleteActivation,
    GetCronJobsById,
    GetJobId,
    ListActivations,
    NotifyJobs,
)


class PostgresControl(ManyAtOnce):
    """cronring.controller.ports.store.Control."""

    async def make_job(self, job: NewJob, by: str, note: str = "") -> MadeJob:
        """Idempotent: if the same job is there already, that is the answer."""
        async with self._database.transaction("creating a job") as transaction:
            return await make(transaction, job, by, note)

    async def update_job(self, key: str, change: JobChange, by: str, note: str = "") -> Job:
        """See cronring.controller.ports.store.Control."""
        async with self._database.transaction("updating a job") as transaction:
            return await change_to(transaction, key, change, by, note)

    async def delete_job(self, key: str, by: str, note: str = "", seen: Seen | None = None) -> None:
        """Runs that have begun finish. Activations that wait are dropped."""
        async with self._database.transaction("deleting a job") as transaction:
            # Raised inside the transaction: a refusal must not commit, or count as a change.
            as_seen = {} if seen is None else {key: seen}
            done(await delete_all(transaction, [key], Who(by, note), seen=as_seen, whole=True))

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        """Pause it until somebody resumes it. A paused job stays paused, and loses the end of its pause."""
        return (await self.order_job(key, Pause(note), by)).job

    async def resume_job(self, key: str, by: str) -> Job:
        """A job that isn't paused stays as it is."""
        return (await self.order_job(key, Resume(), by)).job

    async def trigger_job(self, key: str, by: str, payload: str | None, note: str = "") -> Activation:
        """A run as soon as the job is free, paused or not."""
        async with self._changing(key, "triggering a job", Order.TRIGGER) as (transaction, row):
            return await run_by_hand(transaction, row, by, payload, note)

    async def backfill_job(self, key: str, by: str, backfill: Backfill, note: str = "") -> Activation | None:
        """None: the range has no tick that the schedule is done with."""
        async with self._changing(key, "backfilling a job", Order.BACKFILL) as (transaction, row):
            planned = plan_backfill(row.job, backfill.from_at, backfill.until_at, row.now)
            if planned is None:
                return None
            tick, until_tick = planned
            making = CreateBackfill(
                job_id=row.job.job_id,
                run_at=row.now,
                actor=by,
                tick=tick,
                until_tick=until_tick,
                beside=backfill.beside,
                again=backfill.again,
            )
            ((activation_id,),) = await transaction.fetch(making)
            activation = await find_activation(transaction, row.job.job_id, activation_id)
            span: dict[str, object] = {"from": format_instant(tick), "until": format_instant(until_tick)}
            told = Action(Order.BACKFILL, by, note, details=span | {"activation": activation.activation_id})
            await _keep(transaction, row, told, of_job(row.job.key, None, activation_fields(activation)))
            return activation

    async def list_activations(
        self, key: str, *, after: tuple[int, int] | None = None, limit: int | None = None
    ) -> list[Activation]:
        """What waits beside the schedule, the next one first."""
        async with self._database.transaction("listing activations", snapshot=True) as transaction:
            found = await transaction.fetch(GetJobId(key=key))
            if not found:
                raise no_such_job(key)
            run_at, after_id = after or (None, 0)
            wanted = ListActivations(
                job_id=found[0][0], activation_id=None, after_run_at=run_at, after_id=after_id, limit=limit
            )
            return [activation_of(record) for record in await transaction.fetch(wanted)]

    async def cancel_activation(self, key: str, activation_id: int, by: str = "", note: str = "") -> bool:
        """False: it isn't there, or has been claimed."""
        async with self._changing(key, "cancelling an activation") as (transaction, row):
            deleting = DeleteActivation(activation_id=activation_id, job_id=row.job.job_id)
            gone = await transaction.fetch(deleting)
            if gone:
                told = Action("cancel_activation", by, note, details={"activation": activation_id})
                was = activation_fields(RunBeside._make(gone[0]))
                await _keep(transaction, row, told, of_job(row.job.key, was, None))
            return bool(gone)

    @contextlib.asynccontextmanager
    async def _changing(
        self, key: str, what: str, order: Order | None = None
    ) -> AsyncIterator[tuple[Transaction, Locked]]:
        """Lock a job, and tell all controllers of it behind the block. Raises NotFound, and IllegalTransition if its
        state forbids the order.
        """
        async with self._database.transaction(what) as transaction:
            row = await lock_job(transaction, key)
            refusing = None if order is None else refused(row.standing, order)
            if refusing is not None:
                raise error_of(refusing)
            yield transaction, row
            await transaction.fetch(NotifyJobs(payload=f"{row.namespace}/{row.module}"))


async def make(transaction: Transaction, job: NewJob, by: str, note: str = "") -> MadeJob:
    """See PostgresControl.make_job."""
    outcome = done(await create_all(transaction, [job], Who(by, note), whole=True))
    return MadeJob(await job_as_is(transaction, outcome.job_id), outcome.unchanged)


async def change_to(transaction: Transaction, key: str, change: JobChange, by: str, note: str = "") -> Job:
    """See PostgresControl.update_job."""
    outcomes = await update_all(transaction, {key: change}, Who(by, note), whole=True, dry_run=False)
    return await job_as_is(transaction, done(outcomes).job_id)


async def run_by_hand(
    transaction: Transaction, row: Locked, by: str, payload: str | None = None, note: str = "",
    *, of_schedule: bool = False,
) -> Activation:  # fmt: skip
    """See PostgresControl.trigger_job. `of_schedule`: the run counts like one of a tick, also if it fails."""
    made = await make_activations(transaction, [row], RunByHand(payload, note), by, of_schedule=of_schedule)
    return made[row.job.job_id]


async def job_as_is(transaction: Transaction, job_id: int) -> Job:
    """The job as nodes know it."""
    return job_of((await transaction.fetch(GetCronJobsById(job_ids=[job_id])))[0])


async def _keep(transaction: Transaction, row: Locked, action: Action, changes: Changes) -> None:
    await add_actions(transaction, [action._replace(job_id=row.job.job_id)], row.now)
    await record(transaction, changes)
