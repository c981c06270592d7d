"""What operators do to single jobs: one transaction each, planned by controller.core.control, told by NOTIFY."""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

from controller.core.control import (
    Spec,
    Start,
    Wanted,
    manual_tick,
    plan_backfill,
    plan_change,
    plan_creation,
    plan_pause,
    plan_resume,
)
from controller.core.model import Activation, Job, Trigger
from controller.core.redeploy import Existing, plan_removal
from controller.errors import Conflict, NotFound, Outdated
from controller.ports import Backfill, JobChange, NewJob, Seen
from controller.store.plans import add_skips, carry_jobs_over, policy_columns, remove_jobs
from controller.store.pool import Database, Transaction
from controller.store.rows import activation_of, job_of
from schema.keys import JobKey
from schema.text import parse_module

_EXISTING_COLUMNS = len(Existing._fields)


class _Locked(NamedTuple):
    """A job's row, while its transaction lasts. `now`: PostgreSQL's clock once it was locked.

    `deployment` None: of one that was made while the lock was waited for.
    """

    job: Existing
    deployment_id: int
    deployment: str | None
    namespace: str
    module: str
    payload: str
    labels: str
    timeout_ms: int
    on_disconnect: str
    now: int


class _Activation(NamedTuple):
    """See the table cron_activations."""

    trigger: Trigger
    tick: int
    until_tick: int | None = None
    payload: str | None = None
    beside: bool = False
    again: bool = False


class PostgresControl:
    """controller.ports.Control."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_job(self, job: NewJob, by: str) -> Job:
        """Idempotent: one that is there already, and the same, is the answer."""
        key = str(JobKey(job.namespace, job.module, f"{job.verb}:{job.name}"))
        module = f"{job.namespace}/{job.module}"
        async with self._database.transaction("creating a job") as transaction:
            await transaction.fetch("LockModule", module)
            deployment_id, now = await _active_deployment(transaction, job)
            found = await _find(transaction, key)
            if found is None:
                job_id = await _insert(transaction, key, job, deployment_id, now, by)
                await transaction.fetch("NotifyJobs", module)
            elif _is_same(found, job):
                job_id = found.job.job_id
            else:
                raise Conflict(f"there is another job {key!r}: update it, or delete it first")
            return await _job(transaction, job_id)

    async def update_job(self, key: str, change: JobChange, by: str) -> Job:
        """See controller.ports.Control."""
        wanted = Wanted(
            change.schedule, change.policy, change.anchor, change.payload, change.timeout_ms, change.on_disconnect
        )
        async with self._changing(key, "updating a job") as (transaction, row):
            _check_source(row, key, "updated")
            _check_seen(row, change.seen)
            planned = plan_change(row.job, wanted, row.now)
            await carry_jobs_over(transaction, row.deployment_id, [planned])
            labels = None if change.labels is None else json.dumps(change.labels)
            await transaction.fetch("LabelJob", row.job.job_id, labels, by)
            return await _job(transaction, row.job.job_id)

    async def delete_job(self, key: str, by: str) -> None:
        """What runs finishes; what waits beside the schedule goes."""
        async with self._changing(key, "deleting a job") as (transaction, row):
            _check_source(row, key, "deleted")
            await remove_jobs(transaction, plan_removal([row.job], row.now), row.now)
            await transaction.fetch("LabelJob", row.job.job_id, None, by)

    async def pause_job(self, key: str, by: str, note: str) -> Job:
        """One that is paused stays as it is."""
        async with self._changing(key, "pausing a job") as (transaction, row):
            if not row.job.paused:
                await transaction.fetch("PauseJob", row.job.job_id, plan_pause(row.job), by, note, row.now)
            return await _job(transaction, row.job.job_id)

    async def resume_job(self, key: str, by: str) -> Job:
        """One that isn't paused stays as it is."""
        async with self._changing(key, "resuming a job") as (transaction, row):
            if row.job.paused:
                found = await transaction.fetch("GetLatestStart", row.job.job_id, row.job.last_tick)
                planned = plan_resume(row.job, Start._make(found[0]) if found else None, row.now)
                await transaction.fetch("ResumeJob", row.job.job_id, planned.next_tick, planned.next_run_at, by)
                await add_skips(transaction, [(row.job.job_id, planned.skipped)])
            return await _job(transaction, row.job.job_id)

    async def trigger_job(self, key: str, by: str, payload: str | None) -> Activation:
        """A run as soon as the job is free, paused or not."""
        async with self._changing(key, "triggering a job") as (transaction, row):
            wanted = _Activation(Trigger.MANUAL, manual_tick(row.now), payload=payload)
            return await _activate(transaction, row, wanted, by)

    async def backfill_job(self, key: str, by: str, backfill: Backfill) -> Activation | None:
        """None: no tick in the range that the schedule has done with."""
        async with self._changing(key, "backfilling a job") as (transaction, row):
            planned = plan_backfill(row.job, backfill.from_at, backfill.until_at, row.now)
            if planned is None:
                return None
            wanted = _Activation(Trigger.BACKFILL, *planned, beside=backfill.beside, again=backfill.again)
            return await _activate(transaction, row, wanted, by)

    async def list_activations(self, key: str) -> list[Activation]:
        """What waits beside the schedule, the next one first."""
        async with self._database.transaction("listing activations", snapshot=True) as transaction:
            found = await transaction.fetch("GetJobId", key)
            if not found:
                raise _not_found(key)
            return [activation_of(record) for record in await transaction.fetch("ListActivations", found[0][0], None)]

    async def cancel_activation(self, key: str, activation_id: int) -> bool:
        """False: it isn't there, or has been claimed."""
        async with self._changing(key, "cancelling an activation") as (transaction, row):
            return bool(await transaction.fetch("DeleteActivation", activation_id, row.job.job_id))

    @contextlib.asynccontextmanager
    async def _changing(self, key: str, what: str) -> AsyncIterator[tuple[Transaction, _Locked]]:
        async with self._database.transaction(what) as transaction:
            row = await _find(transaction, key)
            if row is None:
                raise _not_found(key)
            yield transaction, row
            await transaction.fetch("NotifyJobs", f"{row.namespace}/{row.module}")


def _not_found(key: str) -> NotFound:
    return NotFound(f"there is no job {key!r}; `cronring jobs list` shows them")


def _check_source(row: _Locked, key: str, done: str) -> None:
    if row.job.source != "api":
        raise Conflict(f"{key!r} is declared in its module: it can't be {done} but by deploying another version of it")


def _check_seen(row: _Locked, seen: Seen | None) -> None:
    there = Seen(row.deployment or "", row.job.schedule, row.job.policy, row.payload, json.loads(row.labels))
    if seen not in (None, there):
        raise Outdated(f"{row.job.key!r} has been changed meanwhile; try again")


async def _find(transaction: Transaction, key: str) -> _Locked | None:
    records = await transaction.fetch("LockJob", key)
    if not records:
        return None
    return _Locked(Existing._make(records[0][:_EXISTING_COLUMNS]), *records[0][_EXISTING_COLUMNS:])


async def _job(transaction: Transaction, job_id: int) -> Job:
    return job_of((await transaction.fetch("GetCronJob", job_id))[0])


async def _active_deployment(transaction: Transaction, job: NewJob) -> tuple[int, int]:
    """Its id, and PostgreSQL's now."""
    records = await transaction.fetch("GetActiveModule", job.namespace, job.module)
    if not records:
        raise Conflict(f"the module {job.module!r} of namespace {job.namespace!r} isn't active: deploy it first")
    deployment_id, key, schema_text, now = records[0]
    if all(verb.name != job.verb for verb in parse_module(schema_text).verbs):
        raise Conflict(f"{key} has no verb {job.verb!r}; `cronring deployments show {key}` lists them")
    return deployment_id, now


def _is_same(row: _Locked, job: NewJob) -> bool:
    there = row.job
    return (
        (there.schedule, there.policy, row.payload, row.timeout_ms, row.on_disconnect)
        == (job.schedule, job.policy, job.payload, job.timeout_ms, job.on_disconnect)
        and json.loads(row.labels) == job.labels
        and job.anchor in (None, there.anchor)
    )


async def _insert(transaction: Transaction, key: str, job: NewJob, deployment_id: int, now: int, by: str) -> int:
    spec = Spec(job.schedule, job.policy, job.anchor, job.payload, job.timeout_ms, job.on_disconnect)
    added = plan_creation(key, job.verb, spec, now)
    (policy,), (concurrency,), (pause_after,) = policy_columns([added.policy])
    records = await transaction.fetch(
        "CreateApiJob",
        key,
        job.namespace,
        job.module,
        added.verb,
        added.slot,
        deployment_id,
        added.schedule,
        added.anchor,
        added.timeout_ms,
        added.on_disconnect,
        added.next_tick,
        added.next_run_at,
        policy,
        concurrency,
        pause_after,
        added.payload,
        json.dumps(job.labels),
        by,
        now,
    )
    job_id: int = records[0][0]
    return job_id


async def _activate(transaction: Transaction, row: _Locked, wanted: _Activation, by: str) -> Activation:
    job_id = row.job.job_id
    records = await transaction.fetch("CreateActivation", job_id, row.now, by, *wanted)
    return activation_of((await transaction.fetch("ListActivations", job_id, records[0][0]))[0])
