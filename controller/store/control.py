"""What operators do to single jobs: one transaction each, planned by controller.core.orders.control, told by NOTIFY."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.orders.control import (
    manual_tick,
    plan_backfill,
    plan_change,
    plan_creation,
)
from cronring.controller.core.orders.followers import followed
from cronring.controller.core.orders.orders import Pause, Resume, refused
from cronring.controller.core.orders.redeploy import Added, plan_removal
from cronring.controller.core.orders.states import Order
from cronring.controller.errors import Conflict, Outdated
from cronring.controller.ports.store import Backfill, JobChange, NewJob, Seen
from cronring.controller.services.audit_changes import Changes, RunBeside, activation_fields, of_job, spec_fields
from cronring.controller.services.refusals import error_of
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.activations import find_activation
from cronring.controller.store.locked import Locked, find_job, lock_job, no_such_job
from cronring.controller.store.ordering import Ordering, take_back
from cronring.controller.store.plans import carry_jobs_over, policy_columns, refuse_cycles, remove_jobs
from cronring.controller.store.pool import Transaction
from cronring.controller.store.recording import record
from cronring.controller.store.rows import activation_of, job_of, spec_columns
from cronring.schema.execution import SkipReason, Trigger
from cronring.schema.instant import format_instant
from cronring.schema.keys import JobKey
from cronring.schema.policy import parse_policy
from cronring.schema.text import parse_module
from cronring.sql.parameters import (
    CreateActivation,
    CreateApiJob,
    DeleteActivation,
    GetActiveModule,
    GetCronJobsById,
    GetJobId,
    LabelJob,
    ListActivations,
    LockModule,
    NotifyJobs,
)


class _Activation(NamedTuple):
    """See the table cron_activations."""

    trigger: Trigger
    tick: int
    until_tick: int | None = None
    payload: str | None = None
    beside: bool = False
    again: bool = False
    of_schedule: bool = False


class PostgresControl(Ordering):
    """cronring.controller.ports.store.Control."""

    async def create_job(self, job: NewJob, by: str, note: str = "") -> Job:
        """Idempotent: one that is there already, and the same, is the answer."""
        async with self._database.transaction("creating a job") as transaction:
            return await create(transaction, job, by, note)

    async def update_job(self, key: str, change: JobChange, by: str, note: str = "") -> Job:
        """See cronring.controller.ports.store.Control."""
        async with self._changing(key, "updating a job", Order.UPDATE) as (transaction, row):
            return await change_to(transaction, row, change, by, note)

    async def delete_job(self, key: str, by: str, note: str = "") -> None:
        """What runs finishes; what waits beside the schedule goes."""
        async with self._changing(key, "deleting a job") as (transaction, row):
            _check_source(row, key, "deleted")
            await take_back(transaction, [row.job], row.now)
            await remove_jobs(transaction, plan_removal([row.job], row.now, SkipReason.CANCELLED), row.now)
            await transaction.fetch(LabelJob(job_id=row.job.job_id, labels=None, actor=by))
            gone = of_job(row.job.key, spec_fields(row.spec, row.template), None)
            await _keep(transaction, row, Action(Order.DELETE, by, note), gone)

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        """One that is paused stays so."""
        return (await self.order_job(key, Pause(note), by)).job

    async def resume_job(self, key: str, by: str) -> Job:
        """One that isn't paused stays as it is."""
        return (await self.order_job(key, Resume(), by)).job

    async def trigger_job(self, key: str, by: str, payload: str | None, note: str = "") -> Activation:
        """A run as soon as the job is free, paused or not."""
        async with self._changing(key, "triggering a job", Order.TRIGGER) as (transaction, row):
            return await run_by_hand(transaction, row, by, payload, note)

    async def backfill_job(self, key: str, by: str, backfill: Backfill, note: str = "") -> Activation | None:
        """None: no tick in the range that the schedule has done with."""
        async with self._changing(key, "backfilling a job", Order.BACKFILL) as (transaction, row):
            planned = plan_backfill(row.job, backfill.from_at, backfill.until_at, row.now)
            if planned is None:
                return None
            wanted = _Activation(Trigger.BACKFILL, *planned, beside=backfill.beside, again=backfill.again)
            activation = await _activate(transaction, row, wanted, by)
            span: dict[str, object] = {"from": format_instant(planned[0]), "until": format_instant(planned[1])}
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
        """Raises NotFound, and IllegalTransition for an order that the job's state doesn't allow."""
        async with self._database.transaction(what) as transaction:
            row = await lock_job(transaction, key)
            refusing = None if order is None else refused(row.standing, order)
            if refusing is not None:
                raise error_of(refusing)
            yield transaction, row
            await transaction.fetch(NotifyJobs(payload=f"{row.namespace}/{row.module}"))


async def create(transaction: Transaction, job: NewJob, by: str, note: str = "") -> Job:
    """See PostgresControl.create_job."""
    key = str(JobKey(job.namespace, job.module, f"{job.verb}:{job.name}"))
    module = f"{job.namespace}/{job.module}"
    await transaction.fetch(LockModule(namespaced_module=module))
    deployment_id, now = await _active_deployment(transaction, job)
    found = await find_job(transaction, key)
    if found is None:
        added = plan_creation(key, job.verb, job.spec, now)
        job_id = await _insert(transaction, added, job, deployment_id, now, by)
        details = {"schedule": job.spec.schedule} | ({"template": job.template} if job.template else {})
        await refuse_cycles(transaction, [key] if parse_policy(job.spec.policy).after else [])
        await add_actions(transaction, [Action("create", by, note, job_id=job_id, details=details)], now)
        await record(transaction, of_job(key, None, spec_fields(added.spec, job.template)))
        await transaction.fetch(NotifyJobs(payload=module))
    elif _is_same(found, job):
        job_id = found.job.job_id
    else:
        raise Conflict(f"there is another job {key!r}: update it, or delete it first")
    return await job_as_is(transaction, job_id)


async def change_to(transaction: Transaction, row: Locked, change: JobChange, by: str, note: str = "") -> Job:
    """See PostgresControl.update_job. The job's state allows it."""
    _check_source(row, row.job.key, "updated")
    _check_seen(row, change.seen)
    planned = plan_change(row.job, row.spec, change.spec, change.names, row.now)
    if planned.spec == row.spec:
        return await job_as_is(transaction, row.job.job_id)
    if planned.takes_back:
        await take_back(transaction, [row.job], row.now)
    await carry_jobs_over(transaction, row.deployment_id, [planned])
    await refuse_cycles(transaction, list(followed([planned])))
    labels = json.dumps(dict(change.spec.labels)) if "labels" in change.names else None
    await transaction.fetch(LabelJob(job_id=row.job.job_id, labels=labels, actor=by))
    await _keep(
        transaction, row, Action(Order.UPDATE, by, note, details=_shown(change)),
        of_job(row.job.key, spec_fields(row.spec), spec_fields(planned.spec)),
    )  # fmt: skip
    return await job_as_is(transaction, row.job.job_id)


async def run_by_hand(
    transaction: Transaction, row: Locked, by: str, payload: str | None = None, note: str = "",
    *, of_schedule: bool = False,
) -> Activation:  # fmt: skip
    """See PostgresControl.trigger_job. `of_schedule`: it counts as a tick, as a failure, too."""
    wanted = _Activation(Trigger.MANUAL, manual_tick(row.now), payload=payload, of_schedule=of_schedule)
    activation = await _activate(transaction, row, wanted, by)
    told = Action(Order.TRIGGER, by, note, details={"activation": activation.activation_id})
    await _keep(transaction, row, told, of_job(row.job.key, None, activation_fields(activation)))
    return activation


async def job_as_is(transaction: Transaction, job_id: int) -> Job:
    """As nodes know it."""
    return job_of((await transaction.fetch(GetCronJobsById(job_ids=[job_id])))[0])


async def _keep(transaction: Transaction, row: Locked, action: Action, changes: Changes) -> None:
    await add_actions(transaction, [action._replace(job_id=row.job.job_id)], row.now)
    await record(transaction, changes)


def _shown(change: JobChange) -> dict[str, object]:
    """What was set, as it is kept: payloads may hold what is nobody else's business."""
    spec = change.spec
    anchor = None if spec.anchor is None else format_instant(spec.anchor)
    values = spec._asdict() | {"anchor": anchor, "labels": dict(spec.labels), "payload": True}
    return {name: value for name, value in values.items() if name in change.names and value is not None}


def _check_source(row: Locked, key: str, done: str) -> None:
    if row.job.source != "api":
        raise Conflict(f"{key!r} is declared in its module: it can't be {done} but by deploying another version of it")


def _check_seen(row: Locked, seen: Seen | None) -> None:
    there = Seen(row.deployment or "", row.spec.schedule, row.spec.policy, row.spec.payload, row.spec.labels)
    if seen not in (None, there):
        raise Outdated(f"{row.job.key!r} has been changed meanwhile; try again")


async def _active_deployment(transaction: Transaction, job: NewJob) -> tuple[int, int]:
    """Its id, and PostgreSQL's now."""
    records = await transaction.fetch(GetActiveModule(namespace=job.namespace, module=job.module))
    if not records:
        raise Conflict(f"the module {job.module!r} of namespace {job.namespace!r} isn't active: deploy it first")
    deployment_id, key, schema_text, now = records[0]
    if all(verb.name != job.verb for verb in parse_module(schema_text).verbs):
        raise Conflict(f"{key} has no verb {job.verb!r}; `cronring deployments show {key}` lists them")
    return deployment_id, now


def _is_same(row: Locked, job: NewJob) -> bool:
    there = row.spec if job.spec.anchor is not None else row.spec._replace(anchor=None)
    return (there, row.template) == (job.spec, job.template)


async def _insert(transaction: Transaction, added: Added, job: NewJob, deployment_id: int, now: int, by: str) -> int:
    (concurrency,), (pause_after,) = policy_columns([added.spec])
    records = await transaction.fetch(
        CreateApiJob(
            key=added.key,
            namespace=job.namespace,
            module=job.module,
            verb=added.verb,
            slot=added.slot,
            deployment_id=deployment_id,
            **spec_columns(added.spec),
            next_tick=added.next_tick,
            next_run_at=added.next_run_at,
            concurrency=concurrency,
            pause_after=pause_after,
            actor=by,
            now=now,
            template=job.template,
        )
    )
    job_id: int = records[0][0]
    return job_id


async def _activate(transaction: Transaction, row: Locked, wanted: _Activation, by: str) -> Activation:
    job_id = row.job.job_id
    records = await transaction.fetch(
        CreateActivation(
            job_id=job_id,
            run_at=row.now,
            actor=by,
            trigger=wanted.trigger,
            tick=wanted.tick,
            until_tick=wanted.until_tick,
            payload=wanted.payload,
            beside=wanted.beside,
            again=wanted.again,
            of_schedule=wanted.of_schedule,
        )
    )
    return await find_activation(transaction, job_id, records[0][0])
