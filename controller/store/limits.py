"""Limits in PostgreSQL. Claims and ends look after them by themselves: sql/queries/cron_jobs.sql."""

from cronring.controller.errors import NotFound
from cronring.controller.ports.limits import Check, LimitRow, no_such_limit
from cronring.controller.ports.reads import Namespaces
from cronring.controller.services.audit_changes import of_limit
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.sql.parameters import BindJobs, CountPlaces, ListLimits, LockJobsOfLimit, LockLimits, SetLimit


class PostgresLimits:
    """cronring.controller.ports.limits.Limits."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def set_limit(
        self, namespace: str, module: str, max_concurrent: int, by: str, note: str = "", check: Check | None = None
    ) -> LimitRow:
        """See cronring.controller.ports.limits.Limits."""
        async with self._database.transaction("setting a limit") as transaction:
            await transaction.fetch(LockLimits())
            before = await _list(transaction, namespace, module)
            if check is not None:
                check(before[0] if before else None)
            await _change(transaction, namespace, module, max_concurrent, (by, note))
            (after,) = await _list(transaction, namespace, module)
            await record(transaction, of_limit(before[0] if before else None, after))
            return after

    async def remove_limit(
        self, namespace: str, module: str, by: str, note: str = "", check: Check | None = None
    ) -> LimitRow:
        """Raises NotFound; see cronring.controller.ports.limits.Limits."""
        async with self._database.transaction("removing a limit") as transaction:
            await transaction.fetch(LockLimits())
            found = await _list(transaction, namespace, module)
            if not found:
                raise NotFound(no_such_limit(namespace, module))
            if check is not None:
                check(found[0])
            await _change(transaction, namespace, module, None, (by, note))
            await record(transaction, of_limit(found[0], None))
            return found[0]

    async def list_limits(
        self,
        namespace: str | None = None,
        module: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: tuple[str, str] = ("", ""),
        limit: int | None = None,
    ) -> list[LimitRow]:
        """See cronring.controller.ports.limits.Limits."""
        wanted = ListLimits(
            namespace=namespace,
            module=module,
            namespaces=namespaces,
            after_namespace=after[0],
            after_module=after[1],
            limit=limit,
        )
        return list(map(LimitRow._make, await self._database.fetch(wanted)))


async def _list(transaction: Transaction, namespace: str, module: str) -> list[LimitRow]:
    wanted = ListLimits(
        namespace=namespace, module=module, namespaces=None, after_namespace="", after_module="", limit=1
    )
    return list(map(LimitRow._make, await transaction.fetch(wanted)))


async def _change(
    transaction: Transaction, namespace: str, module: str, max_concurrent: int | None, told: tuple[str, str]
) -> None:
    """First the jobs are locked, in order, then the limit: as claims and ends do."""
    # docs/decisions/0013: with the limit first, this and a claim that holds a job would wait for each other.
    jobs = await transaction.fetch(LockJobsOfLimit(namespace=namespace, module=module))
    actor, note = told
    records = await transaction.fetch(
        SetLimit(namespace=namespace, module=module, max_concurrent=max_concurrent, actor=actor, note=note)
    )
    limit_id: int = records[0][0]
    job_ids = [record[0] for record in jobs]
    await transaction.fetch(
        BindJobs(limit_id=limit_id, job_ids=job_ids, of_module=bool(module), bound=max_concurrent is not None)
    )
    # What ran before was counted by nobody. Under these locks nothing begins or ends, so the count is exact from here
    # on.
    await transaction.fetch(CountPlaces(limit_id=limit_id))
