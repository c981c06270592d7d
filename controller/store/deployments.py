"""A new version of a module becomes the active one, or a version is killed: one transaction each."""

import asyncio
from typing import NamedTuple

from controller.core.model import Job
from controller.core.redeploy import Existing, Redeploy, deployment_key, plan_redeploy, plan_removal
from controller.errors import NotFound
from controller.ports import Deployed
from controller.store.ordering import take_back
from controller.store.plans import carry_jobs_over, policy_columns, remove_jobs
from controller.store.pool import Database, Transaction
from controller.store.rows import job_of
from schema.keys import JobKey
from schema.module import Module
from schema.text import print_module


class _Row(NamedTuple):
    deployment_id: int
    key: str
    digest: str
    active: bool


class _Name(NamedTuple):
    """A module, and two texts between which all keys of its jobs lie."""

    namespace: str
    module: str
    low: str
    high: str

    @classmethod
    def of(cls, namespace: str, module: str) -> "_Name":
        low = str(JobKey(namespace, module, ""))
        # "/" is what follows "." in COLLATE "C".
        return cls(namespace, module, low, low.removesuffix(".") + "/")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.module}"


class DeploymentStatements:
    """The part of PostgresStore that is about deployments."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_deployment(
        self,
        module: Module,
        digest: str,
        min_replicas: int,
        timeout_ms: int,
        activate: bool,
        default_jitter: str = "",
    ) -> Deployed:
        """Make this version the active one; see controller.ports.Store."""
        name = _Name.of(module.namespace, module.name)
        schema_text = print_module(module)
        async with self._database.transaction("creating a deployment") as transaction:
            await transaction.fetch("LockModule", str(name))
            now, rows = await _deployments(transaction, name, digest)
            row = next((row for row in rows if row.digest == digest), None)
            active = next((row for row in rows if row.active), None)
            if row is not None and row.active:
                await transaction.fetch("SetMinReplicas", row.deployment_id, min_replicas)
                jobs = await _jobs(transaction, name)
                return Deployed(row.key, True, False, (), (), tuple(job.key for job in jobs), jobs)
            created = row is None
            if row is None:
                row = await _create(transaction, module, digest, schema_text, now)
            if not activate and not created:
                return Deployed(row.key, False, created, (), (), (), [])
            if active is not None:
                await transaction.fetch("DeactivateDeployment", active.deployment_id, now)
            await transaction.fetch("ActivateDeployment", row.deployment_id, min_replicas, now)
            existing = [Existing._make(record) for record in await transaction.fetch("LockCronJobs", *name)]
            # In a thread: thousands of schedules take a while to parse, and claims must not wait for them.
            plan = await asyncio.to_thread(plan_redeploy, module, existing, now, timeout_ms, default_jitter)
            changed = {each.job_id for each in plan.removed} | {
                each.job_id for each in plan.carried if each.rescheduled
            }
            await take_back(transaction, [job for job in existing if job.job_id in changed], now)
            await _apply(transaction, name, row.deployment_id, plan, now)
            await transaction.fetch("NotifyJobs", str(name))
            return _deployed(row.key, plan, await _jobs(transaction, name))

    async def kill_deployment(self, key: str) -> tuple[str, ...]:
        """Deactivate it and remove its jobs; their keys. Raises controller.errors.NotFound."""
        async with self._database.transaction("killing a deployment") as transaction:
            found = await transaction.fetch("FindDeployment", key)
            if not found:
                raise NotFound(f"there is no deployment {key!r}; `cronring deployments list` shows them")
            namespace, module, digest = found[0]
            name = _Name.of(namespace, module)
            await transaction.fetch("LockModule", str(name))
            now, rows = await _deployments(transaction, name, digest)
            row = next((row for row in rows if row.key == key and row.active), None)
            if row is None:
                return ()
            await transaction.fetch("DeactivateDeployment", row.deployment_id, now)
            existing = [Existing._make(record) for record in await transaction.fetch("LockCronJobs", *name)]
            removed = plan_removal(existing, now)
            await take_back(transaction, existing, now)
            await remove_jobs(transaction, removed, now)
            await transaction.fetch("NotifyJobs", str(name))
            return tuple(sorted(each.key for each in removed))


async def _deployments(transaction: Transaction, name: _Name, digest: str) -> tuple[int, list[_Row]]:
    records = await transaction.fetch("GetModuleDeployments", name.namespace, name.module, digest)
    return records[0][0], [_Row._make(record[1:]) for record in records if record[1] is not None]


async def _jobs(transaction: Transaction, name: _Name) -> list[Job]:
    return [job_of(record) for record in await transaction.fetch("GetModuleJobs", *name)]


async def _create(transaction: Transaction, module: Module, digest: str, schema_text: str, now: int) -> _Row:
    key = deployment_key(module, digest)
    records = await transaction.fetch("CreateDeployment", key, module.namespace, module.name, digest, schema_text, now)
    return _Row(records[0][0], key, digest, active=False)


async def _apply(transaction: Transaction, name: _Name, deployment_id: int, plan: Redeploy, now: int) -> None:
    await remove_jobs(transaction, plan.removed, now)
    await carry_jobs_over(transaction, deployment_id, plan.carried)
    if plan.added:
        await transaction.fetch(
            "CreateCronJobs",
            name.namespace,
            name.module,
            deployment_id,
            now,
            [job.key for job in plan.added],
            [job.verb for job in plan.added],
            [job.slot for job in plan.added],
            [job.schedule for job in plan.added],
            [job.anchor for job in plan.added],
            [job.timeout_ms for job in plan.added],
            [job.on_disconnect for job in plan.added],
            [job.next_tick for job in plan.added],
            [job.next_run_at for job in plan.added],
            *policy_columns([job.policy for job in plan.added]),
            [job.payload for job in plan.added],
        )


def _deployed(key: str, plan: Redeploy, jobs: list[Job]) -> Deployed:
    return Deployed(
        key,
        active=True,
        created=True,
        added=tuple(sorted(job.key for job in plan.added)),
        removed=tuple(sorted(job.key for job in plan.removed)),
        carried_over=tuple(sorted(job.key for job in plan.carried)),
        jobs=jobs,
    )
