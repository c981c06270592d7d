"""Limits in PostgreSQL. Claims and ends keep their counts: sql/queries/cron_jobs.sql."""

from typing import NamedTuple

import asyncpg

from cronring.controller.errors import NotFound
from cronring.controller.ports.limits import Check, LimitRow, ValueRow, no_such_limit
from cronring.controller.ports.reads import Namespaces
from cronring.controller.services.audit_changes import of_limit
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.sql.parameters import (
    BindExecutions,
    BindJobs,
    CountLimits,
    CountPlaces,
    DropValues,
    ListLimits,
    ListRunningJobs,
    ListUnbound,
    LockJobsOfLimit,
    LockLimits,
    MakePlaces,
    SetLimit,
    SetValues,
)


class _Group(NamedTuple):
    namespace: str
    module: str
    label: str


class PostgresLimits:
    """cronring.controller.ports.limits.Limits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def set_limit(
        self,
        namespace: str,
        module: str,
        max_concurrent: int,
        by: str,
        note: str = "",
        check: Check | None = None,
        *,
        label: str = "",
    ) -> LimitRow:
        """See cronring.controller.ports.limits.Limits."""
        group = _Group(namespace, module, label)
        async with self._database.transaction("setting a limit") as transaction:
            await transaction.fetch(LockLimits())
            before = await _list(transaction, group)
            if check is not None:
                check(before[0] if before else None)
            await _change(transaction, group, max_concurrent, (by, note))
            (after,) = await _list(transaction, group)
            await record(transaction, of_limit(before[0] if before else None, after))
            return after

    async def remove_limit(
        self, namespace: str, module: str, by: str, note: str = "", check: Check | None = None, *, label: str = ""
    ) -> LimitRow:
        """Raises NotFound; see cronring.controller.ports.limits.Limits."""
        group = _Group(namespace, module, label)
        async with self._database.transaction("removing a limit") as transaction:
            await transaction.fetch(LockLimits())
            found = await _list(transaction, group)
            if not found:
                raise NotFound(no_such_limit(*group))
            if check is not None:
                check(found[0])
            await _change(transaction, group, None, (by, note))
            await record(transaction, of_limit(found[0], None))
            return found[0]

    async def list_limits(
        self,
        namespace: str | None = None,
        module: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: tuple[str, str, str] = ("", "", ""),
        limit: int | None = None,
    ) -> list[LimitRow]:
        """See cronring.controller.ports.limits.Limits."""
        wanted = ListLimits(
            namespace=namespace,
            module=module,
            label=None,
            namespaces=namespaces,
            after_namespace=after[0],
            after_module=after[1],
            after_label=after[2],
            limit=limit,
        )
        return list(map(_row, await self._database.fetch(wanted)))

    async def count_limits(self, namespace: str | None = None, namespaces: Namespaces = None) -> int:
        ((count,),) = await self._database.fetch(CountLimits(namespace=namespace, namespaces=namespaces))
        return int(count)


async def _list(transaction: Transaction, group: _Group) -> list[LimitRow]:
    wanted = ListLimits(
        **group._asdict(), namespaces=None, after_namespace="", after_module="", after_label="", limit=1
    )
    return list(map(_row, await transaction.fetch(wanted)))


async def _change(transaction: Transaction, group: _Group, max_concurrent: int | None, told: tuple[str, str]) -> None:
    """Lock jobs in order, then executions, then the limit: claims and ends lock in the same order."""
    # docs/decisions/0013: if the limit came first, this and a claim that has locked a job would deadlock.
    jobs = await transaction.fetch(LockJobsOfLimit(namespace=group.namespace, module=group.module))
    actor, note = told
    setting = SetLimit(**group._asdict(), max_concurrent=max_concurrent, actor=actor, note=note)
    limit_id: int = (await transaction.fetch(setting))[0][0]
    await transaction.fetch(BindJobs(job_ids=[record[0] for record in jobs]))
    if max_concurrent is None:
        await transaction.fetch(DropValues(limit_id=limit_id))
        return
    if group.label:
        running = await transaction.fetch(ListRunningJobs(limit_id=limit_id))
        await transaction.fetch(MakePlaces(job_ids=[record[0] for record in running]))
        await transaction.fetch(SetValues(limit_id=limit_id, max_concurrent=max_concurrent))
    # Runs that have begun before were not counted. Under these locks nothing begins or ends, so the count becomes
    # exact.
    unbound = await transaction.fetch(ListUnbound(limit_id=limit_id))
    if unbound:
        execution_ids, places = zip(*unbound, strict=True)
        await transaction.fetch(BindExecutions(execution_ids=execution_ids, places=places))
    await transaction.fetch(CountPlaces(limit_id=limit_id))


def _row(record: asyncpg.Record) -> LimitRow:
    namespace, module, label, max_concurrent, running, changed_at, changed_by, note, values, full, *fullest = record
    named = tuple(map(ValueRow._make, zip(*fullest, strict=True)))
    return LimitRow(
        namespace, module, max_concurrent, running, changed_at, changed_by, note, label, values, full, named
    )
