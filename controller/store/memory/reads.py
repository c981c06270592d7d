"""What is asked before a job is changed, in memory; see controller/store/reads.py."""

from cronring.controller.errors import NotFound
from cronring.controller.ports.reads import DeploymentFilter, DeploymentRow, JobFilter, JobRow, within
from cronring.controller.store.memory import rows
from cronring.controller.store.memory.orders import standing
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.filters import contained
from cronring.schema.keys import namespace_of
from cronring.schema.text import print_module


class MemoryJobReads:
    """cronring.controller.ports.reads.JobReads. What memory doesn't keep of a job is as of one that never ran."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def database_now(self) -> int:
        return self._store.now_us()

    async def get_job(self, key: str) -> JobRow:
        for row in self._store.jobs.values():
            if row.key == key and not row.removed:
                return _shown(row)
        raise NotFound(f"there is no job {key!r}")

    async def list_jobs(self, where: JobFilter, after_key: str, limit: int) -> list[JobRow]:
        found = [_shown(row) for row in self._store.jobs.values() if not row.removed and row.key > after_key]
        found = [row for row in found if _fits(row, where)]
        return sorted(found, key=lambda row: row.key)[:limit]

    async def list_deployments(self, where: DeploymentFilter, before_id: int, limit: int) -> list[DeploymentRow]:
        found = [
            row for row in map(self._deployment, self._store.deployments)
            if where.namespace in {"", row.namespace} and where.module in {"", row.module}
            and within(where.namespaces, row.key) and (row.min_replicas > 0 or not where.active_only)
            and (not before_id or row.deployment_id < before_id)
        ]  # fmt: skip
        return sorted(found, key=lambda row: -row.deployment_id)[:limit]

    async def count_deployments(self, where: DeploymentFilter) -> int:
        return len(await self.list_deployments(where, 0, len(self._store.deployments)))

    async def get_deployment(self, key: str) -> DeploymentRow:
        for row in self._store.deployments:
            if row.key == key:
                return self._deployment(row)
        raise NotFound(f"there is no deployment {key!r}")

    def _deployment(self, row: rows.StoredDeployment) -> DeploymentRow:
        namespace, module = row.module
        jobs = sum(job.deployment is row and not job.removed for job in self._store.jobs.values())
        return DeploymentRow(
            self._store.deployments.index(row) + 1, row.key, namespace, module, row.digest, row.min_replicas, 0, None,
            None, print_module(row.schema), 0, jobs,
        )  # fmt: skip


def _shown(row: rows.StoredJob) -> JobRow:
    outcome = None if row.last_outcome is None else row.last_outcome.value
    slot, defaults = row.upcoming, row.defaults()
    return JobRow(
        row.job_id, row.key, namespace_of(row.key), row.deployment.module[1], row.verb, standing(row).state.value,
        row.slot, row.deployment.key, row.opened_at, None, None if slot is None else slot.tick,
        None if slot is None else slot.run_at, outcome, None, None, None, row.execution_id, row.source,
        row.paused_at if row.paused else None, row.paused_by, row.paused_note, row.failures, row.last_success,
        row.running, row.last_tick, row.paused_tick, row.paused_until, row.cancelled_at, row.cancelled_by,
        row.cancelled_note, row.template, row.set_name, row.orphaned_at, defaults.timeout_ms,
        defaults.late_after_ms, defaults.retries, row.spec,
    )  # fmt: skip


def _fits(row: JobRow, where: JobFilter) -> bool:
    return (
        where.namespace in {"", row.namespace}
        and where.module in {"", row.module}
        and where.verb in {"", row.verb}
        and (not where.statuses or row.status in where.statuses)
        and (not where.outcomes or row.last_outcome in where.outcomes)
        and where.labels.items() <= row.spec.labels.items()
        and contained(row.key, where.contains)
        and (not where.keys or row.key in where.keys)
        and within(where.namespaces, row.key)
    )
