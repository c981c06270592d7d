"""Jobs of the interval scheduler's contract, in PostgreSQL: a transaction each, on the statements of all jobs."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import asyncpg

from cronring.controller.core.model import Activation
from cronring.controller.core.orders.interval_states import ORDERED, IntervalOrder, IntervalStatus, refusal
from cronring.controller.core.orders.orders import JobOrder, Resume, refused
from cronring.controller.core.orders.states import Order
from cronring.controller.errors import Conflict, IllegalTransition, NotFound, Outdated
from cronring.controller.ports.interval_jobs import (
    Changed,
    IntervalFigures,
    IntervalFilter,
    IntervalJobRow,
    IntervalRun,
    LatestRun,
    Terms,
)
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.services.audit_changes import digest, of_job
from cronring.controller.services.refusals import error_of
from cronring.controller.store.control import change_to, job_as_is, make, run_by_hand
from cronring.controller.store.locked import Locked, lock_job
from cronring.controller.store.ordering import order_locked
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.sql.parameters import (
    AddIntervalJob,
    CountIntervalExecutions,
    CountIntervalJobs,
    CountIntervalStatuses,
    FindIntervalJobs,
    FindIntervalJobsOfStatus,
    ForgetRetries,
    GetIntervalExecution,
    GetIntervalFigures,
    GetIntervalJob,
    GetIntervalJobs,
    LabelJobs,
    ListIntervalExecutions,
    NotifyJobs,
    SetIntervalJob,
)

_STATUS: Final = 6
_DETAILS: Final = 15  # columns of cron_interval_job_details


class _Found(NamedTuple):
    """A job whose row is locked, and the same job as the contract shows it."""

    row: Locked
    interval: IntervalJobRow


class PostgresIntervalJobs:
    """controller.ports.interval_jobs.IntervalJobs and IntervalReads. `lease_ms`: the cluster's."""

    def __init__(self, database: Database, lease_ms: int) -> None:
        self._database = database
        self._lease_us = lease_ms * 1_000

    async def make_interval_job(self, job: NewJob, terms: Terms, by: str, *, runs: bool) -> Changed:
        """See controller.ports.interval_jobs.IntervalJobs."""
        async with self._database.transaction("creating an interval job") as transaction:
            made = (await make(transaction, job, by)).job
            await transaction.fetch(
                AddIntervalJob(
                    job_id=made.job_id,
                    interval_id=job.name,
                    namespace=job.namespace,
                    source_id=terms.source_id,
                    terms=terms.text,
                )
            )
            await record(transaction, of_job(made.key, None, {"terms": digest(terms.text)}))
            if not runs:
                return Changed(made)
            row = await lock_job(transaction, made.key)
            return Changed(made, await run_by_hand(transaction, row, by, of_schedule=True))

    async def change_interval_job(
        self, namespace: str, interval_id: str, change: JobChange, seen: Terms, terms: Terms, by: str, *, runs: bool
    ) -> Changed:
        """See controller.ports.interval_jobs.IntervalJobs."""
        async with self._changing(namespace, interval_id, IntervalOrder.UPDATE) as (transaction, found):
            if found.interval.terms != seen:
                raise Outdated(f"job {interval_id!r} has been changed meanwhile; try again")
            row, job_id = found.row, found.row.job.job_id
            await change_to(transaction, row.job.key, change, by)
            await transaction.fetch(SetIntervalJob(job_id=job_id, source_id=terms.source_id, terms=terms.text))
            if terms != seen:
                await transaction.fetch(LabelJobs(job_ids=[job_id], labels=[None], actor=by))
                texts = [{"terms": digest(each.text)} for each in (seen, terms)]
                await record(transaction, of_job(row.job.key, *texts))
            activation = await _run(transaction, found, by) if runs else None
            return Changed(await job_as_is(transaction, job_id), activation)

    async def order_interval_job(self, namespace: str, interval_id: str, order: IntervalOrder, by: str) -> Changed:
        """See controller.ports.interval_jobs.IntervalJobs."""
        async with self._changing(namespace, interval_id, order) as (transaction, found):
            activation = None
            if order in ORDERED:
                await _order(transaction, found.row, ORDERED[order], by)
            elif found.interval.waiting_attempt != 1:  # a first attempt that waits already is the wanted run
                activation = await _run(transaction, found, by)
            return Changed(await job_as_is(transaction, found.row.job.job_id), activation)

    async def get_interval_job(self, namespace: str, interval_id: str) -> IntervalJobRow:
        """Raises NotFound."""
        records = await self._database.fetch(GetIntervalJob(namespace=namespace, interval_id=interval_id))
        if not records:
            raise _unknown(interval_id)
        return _row_of(records[0])

    async def list_interval_jobs(
        self, where: IntervalFilter, limit: int, offset: int
    ) -> tuple[list[IntervalJobRow], int]:
        """The newest first, and how many there are: as of one instant."""
        page: dict[str, Any] = {"namespace": where.namespace, "source_id": where.source_id}
        async with self._database.transaction("listing interval jobs", snapshot=True) as transaction:
            if where.status:
                asked = FindIntervalJobsOfStatus(status=where.status, limit=limit, offset=offset, **page)
                ((job_ids, total),) = await transaction.fetch(asked)
            else:
                total = (await transaction.fetch(CountIntervalJobs(**page)))[0][0]
                finding = FindIntervalJobs(limit=limit, offset=offset, **page)
                job_ids = [record[0] for record in await transaction.fetch(finding)]
            records = await transaction.fetch(GetIntervalJobs(job_ids=job_ids)) if job_ids else []
            return [_row_of(record) for record in records], total

    async def count_interval_jobs(self, namespace: str) -> dict[str, int]:
        """By status."""
        return dict(map(tuple, await self._database.fetch(CountIntervalStatuses(namespace=namespace))))

    async def list_interval_runs(self, job_id: int, limit: int, offset: int) -> tuple[list[IntervalRun], int]:
        """The newest first, and how many there are: as of one instant."""
        async with self._database.transaction("listing executions", snapshot=True) as transaction:
            asked = ListIntervalExecutions(job_id=job_id, limit=limit, offset=offset)
            found = [IntervalRun._make(record) for record in await transaction.fetch(asked)]
            total: int = (await transaction.fetch(CountIntervalExecutions(job_id=job_id)))[0][0]
            return found, total

    async def get_interval_run(self, namespace: str, execution_id: int) -> tuple[str, IntervalRun]:
        """With the id of its job. Raises NotFound."""
        records = await self._database.fetch(GetIntervalExecution(execution_id=execution_id, namespace=namespace))
        if not records:
            raise NotFound(f"there is no execution '{execution_id}'")
        interval_id, *run = records[0]
        return interval_id, IntervalRun._make(run)

    async def interval_figures(self, namespace: str) -> IntervalFigures:
        """Of all jobs of a namespace."""
        (row,) = await self._database.fetch(GetIntervalFigures(namespace=namespace))
        lease: int | None = row["latest_lease"]
        return IntervalFigures(
            row["database_now"], row["executions"], row["ended"], row["completed"], row["cancelled"],
            row["duration_us"], row["leases_cleared"], None if lease is None else lease - self._lease_us,
        )  # fmt: skip

    @contextlib.asynccontextmanager
    async def _changing(
        self, namespace: str, interval_id: str, order: IntervalOrder
    ) -> AsyncIterator[tuple[Transaction, _Found]]:
        """The job's row is locked, and its state allows the order. Raises NotFound, IllegalTransition."""
        async with self._database.transaction(f"{order}: an interval job") as transaction:
            key = (await _find(transaction, namespace, interval_id)).key
            row = await lock_job(transaction, key)
            interval = await _find(transaction, namespace, interval_id)  # anew: the lock may have been waited for
            refusing = refusal(order, interval_id, interval.status)
            if refusing is not None:
                raise IllegalTransition(refusing, job=row.job.key, state=interval.status, target="", action=order.value)
            yield transaction, _Found(row, interval)
            await transaction.fetch(NotifyJobs(payload=f"{row.namespace}/{row.module}"))


async def _find(transaction: Transaction, namespace: str, interval_id: str) -> IntervalJobRow:
    records = await transaction.fetch(GetIntervalJob(namespace=namespace, interval_id=interval_id))
    if not records:
        raise _unknown(interval_id)
    return _row_of(records[0])


async def _order(transaction: Transaction, row: Locked, order: JobOrder, by: str) -> None:
    (done,) = await order_locked(transaction, [row], order, by, dry_run=False)
    if isinstance(done, Conflict):
        raise done


async def _run(transaction: Transaction, found: _Found, by: str) -> Activation:
    """At once and anew: what waits to be tried again does not. A job that had failed goes on with its schedule."""
    row, failed = found.row, found.interval.status is IntervalStatus.FAILED
    refusing = refused(row.standing, Order.TRIGGER)
    if refusing is not None:
        raise error_of(refusing)
    if failed and row.job.paused:
        await _order(transaction, row, Resume(), by)
    await transaction.fetch(ForgetRetries(job_id=row.job.job_id))
    return await run_by_hand(transaction, row, by, of_schedule=True)


def _unknown(interval_id: str) -> NotFound:
    return NotFound(f"there is no job {interval_id!r:.200}")


def _row_of(record: asyncpg.Record) -> IntervalJobRow:
    interval_id, job_id, key, namespace, source_id, terms, status, *_ = record
    latest: LatestRun = LatestRun._make(record[_DETAILS:])
    rest = record[_STATUS + 1 : _DETAILS - 1]  # behind which stands one column that is the statement's own
    return IntervalJobRow._make(
        (interval_id, job_id, key, namespace, Terms(terms, source_id), IntervalStatus(status), *rest, latest)
    )
