"""Jobs as orders read them: rows that stay locked until the transaction ends."""

from typing import NamedTuple

import asyncpg

from cronring.controller.core.orders.orders import OrderColumns, OrderTarget
from cronring.controller.core.orders.redeploy import Existing
from cronring.controller.errors import NotFound
from cronring.controller.ports.many import sliced
from cronring.controller.store.pool import Transaction
from cronring.controller.store.rows import spec_of
from cronring.schema.job import JobSpec
from cronring.sql.parameters import FindJobIds, LockJob, LockJobsById

_ROW_FIRST = len(Existing._fields)
_STANDING_NEXT = _ROW_FIRST + len(OrderColumns._fields)
_REST_FIRST = _STANDING_NEXT + 2
_SPEC_FIRST = _REST_FIRST + 4
_SPEC_END = _SPEC_FIRST + len(JobSpec._fields)


class Locked(NamedTuple):
    """A job's row. `now`: PostgreSQL's clock once it was locked.

    `deployment` None: the deployment was made while the statement waited for the lock, so its key can't be seen.
    """

    standing: OrderTarget
    deployment_id: int
    deployment: str | None
    namespace: str
    module: str
    spec: JobSpec
    execution_id: int | None
    template: str
    now: int

    @property
    def job(self) -> Existing:
        return self.standing.job


def no_such_job(key: str) -> NotFound:
    return NotFound(f"there is no job {key!r}; `cronring jobs list` shows them")


async def find_job(transaction: Transaction, key: str) -> Locked | None:
    """The job of that key that is not removed, locked."""
    records = await transaction.fetch(LockJob(key=key))
    return _locked(records[0]) if records else None


async def lock_job(transaction: Transaction, key: str) -> Locked:
    """Raises NotFound."""
    row = await find_job(transaction, key)
    if row is None:
        raise no_such_job(key)
    return row


async def lock_keys(transaction: Transaction, keys: list[str]) -> dict[str, Locked]:
    """The jobs of these keys that are not removed, locked in order of their ids; by key."""
    found = [job_id for job_id, _ in await transaction.fetch(FindJobIds(keys=keys))]
    rows: list[Locked] = []
    for part in sliced(sorted(found)):
        rows += await lock_jobs(transaction, list(part))
    return {row.job.key: row for row in rows}


async def lock_jobs(transaction: Transaction, job_ids: list[int]) -> list[Locked]:
    """Those that are not removed, in order of their ids."""
    return [_locked(record) for record in await transaction.fetch(LockJobsById(job_ids=job_ids))]


def _locked(record: asyncpg.Record) -> Locked:
    values = tuple(record)
    job: Existing = Existing._make(values[:_ROW_FIRST])
    row: OrderColumns = OrderColumns._make(values[_ROW_FIRST:_STANDING_NEXT])
    running, last_outcome = values[_STANDING_NEXT:_REST_FIRST]
    standing = OrderTarget(job, row, bool(running), None if last_outcome is None else str(last_outcome))
    spec = spec_of(values[_SPEC_FIRST:_SPEC_END])
    return Locked._make((standing, *values[_REST_FIRST:_SPEC_FIRST], spec, *values[_SPEC_END:]))
