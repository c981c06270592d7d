"""Versions of modules, and the jobs that they declare, in memory."""

from collections.abc import Collection

from cronring.controller.core.orders.followers import declared
from cronring.controller.core.orders.orphaning import Orphan, Return, key_details, keys_of, plan_orphans, plan_return
from cronring.controller.core.orders.redeploy import Removed, deployment_key, plan_redeploy, plan_removal
from cronring.controller.errors import NotFound
from cronring.controller.ports.store import ActivatedDeployment, ActiveVersion, CheckActive, Deployed, Killed
from cronring.controller.services.audit_changes import of_module
from cronring.controller.services.refusals import other_schema
from cronring.controller.store.memory.control import MemoryControl
from cronring.controller.store.memory.many import job_row
from cronring.controller.store.memory.rows import (
    StoredAction,
    StoredDeployment,
    StoredJob,
)
from cronring.schema.module import Module


class MemoryDeployments(MemoryControl):
    """The part of controller.ports.store.Store that is about versions of modules."""

    async def create_deployment(
        self, module: Module, digest: str, min_replicas: int, timeout_ms: int, activate: bool, default_jitter: str = "",
        by: str = "", note: str = "", *, dry_run: bool = False, fingerprint: str = "",
    ) -> Deployed:  # fmt: skip
        name = (module.namespace, module.name)
        row = next((row for row in self.deployments if row.module == name and row.digest == digest), None)
        is_new = row is None
        key = deployment_key(module, digest) if row is None else row.key
        if (row is None and any(other.key == key for other in self.deployments)) or (row and row.schema != module):
            raise other_schema(key, digest)
        if activate or is_new:
            self._refuse_cycles(module)
        if row is None:
            row = StoredDeployment(key, name, digest, 0, module)
            if not dry_run:
                self.deployments.append(row)
        if fingerprint and not dry_run:
            row.fingerprint = fingerprint
        if not activate and not is_new:
            return Deployed(row.key, row.min_replicas > 0, False, (), (), (), [])
        return self._make_active(row, min_replicas, (timeout_ms, default_jitter), ("deploy", by, note), dry_run)

    async def activate_deployment(
        self, key: str, min_replicas: int, timeout_ms: int, default_jitter: str = "", by: str = "", note: str = "",
        *, dry_run: bool = False, check: CheckActive | None = None,
    ) -> ActivatedDeployment:  # fmt: skip
        row = self._deployment(key)
        if check is not None:
            check(self._active(row.module))
        self._refuse_cycles(row.schema)
        others = [other for other in self.deployments if other.module == row.module and other is not row]
        previous = next((other.key for other in others if other.min_replicas), None)
        action = "activate", by, note
        deployed = self._make_active(row, min_replicas, (timeout_ms, default_jitter), action, dry_run)
        return ActivatedDeployment(
            deployed, previous, sum(each.deployment in others for each in self.unfinished.values())
        )  # fmt: skip

    def _make_active(
        self, row: StoredDeployment, min_replicas: int, defaults: tuple[int, str], action: tuple[str, str, str],
        dry_run: bool,
    ) -> Deployed:  # fmt: skip
        jobs = self._jobs_of(row.module)
        if row.min_replicas:
            before, row.min_replicas = row.version, row.min_replicas if dry_run else min_replicas
            self._record(of_module(row.module, before, row.version))
            keys = tuple(job.key for job in jobs)
            return Deployed(row.key, True, False, (), (), keys, [job.job() for job in jobs])
        active = [other for other in self.deployments if other.module == row.module and other.min_replicas]
        before = self._active(row.module)
        if dry_run:
            return self._apply(row, jobs, defaults, action, before, dry_run=True)
        for other in active:
            other.min_replicas = 0
        row.min_replicas = min_replicas
        return self._apply(row, jobs, defaults, action, before)

    def _active(self, module: tuple[str, str]) -> ActiveVersion:
        active = (each.version for each in self.deployments if each.module == module and each.min_replicas)
        return next(active, ActiveVersion())

    def _refuse_cycles(self, module: Module) -> None:
        """Raises Conflict, before anything is changed."""
        name = (module.namespace, module.name)
        others = [job for job in self.jobs.values() if job.deployment.module != name or job.source == "api"]
        self.followers.refuse_cycles(others, declared(module))

    def _deployment(self, key: str) -> StoredDeployment:
        row = next((row for row in self.deployments if row.key == key), None)
        if row is None:
            raise NotFound(f"no deployment {key}")
        return row

    def _apply(
        self, deployment: StoredDeployment, jobs: list[StoredJob], defaults: tuple[int, str],
        action: tuple[str, str, str], before: ActiveVersion, *, dry_run: bool = False,
    ) -> Deployed:  # fmt: skip
        now = self.now_us()
        plan = plan_redeploy(deployment.schema, [job.existing() for job in jobs], now, *defaults)
        orphaned = plan_orphans(plan.orphaned)
        starts = {each.job_id: self._latest_start(self.jobs[each.job_id]) for each in plan.back}
        back = plan_return(plan.back, {job_id: start for job_id, start in starts.items() if start is not None}, now)
        deployed = Deployed(
            deployment.key, True, True, tuple(sorted(job.key for job in plan.added)), keys_of(plan.removed),
            tuple(sorted(job.key for job in plan.carried)), [], keys_of(orphaned), keys_of(back),
        )  # fmt: skip
        if dry_run:
            return deployed._replace(jobs=[job.job() for job in jobs if job.source == "api"])
        changed = {each.job_id for each in plan.removed} | {each.job_id for each in plan.carried if each.takes_back}
        self._take_back_all(job for job in jobs if job.job_id in changed)
        self._remove(plan.removed)
        for carried in plan.carried:
            self._carry(carried, deployment)
        for added in plan.added:
            row = job_row(len(self.jobs) + 1, added, deployment)
            self._add_job(row)
            self._take_over(row, *action[1:], deployment=deployment.key, order=action[0])
        self._orphan(orphaned)
        self._bring_back(back, deployment)
        self._keep(action, deployment, plan.removed, orphaned, back)
        gone = {"removed": deployed.removed, "orphaned": deployed.orphaned, "back": deployed.back}
        changes = {"added": deployed.added, "rescheduled": plan.rescheduled, **gone}
        self._record(of_module(deployment.module, before, deployment.version, **changes))
        self.on_notify()
        return deployed._replace(jobs=[job.job() for job in self._jobs_of(deployment.module)])

    async def kill_deployment(
        self, key: str, by: str = "", note: str = "", *, dry_run: bool = False, check: CheckActive | None = None
    ) -> Killed:
        row = self._deployment(key)
        if check is not None:
            check(self._active(row.module))
        if not row.min_replicas:
            return Killed()
        jobs = self._jobs_of(row.module)
        declared_jobs = [job for job in jobs if job.source == "annotation"]
        removed = plan_removal([job.existing() for job in declared_jobs], self.now_us())
        orphaned = plan_orphans(job.existing() for job in jobs if job.source == "api" and not job.orphaned)
        if not dry_run:
            before, row.min_replicas = row.version, 0
            self._take_back_all(declared_jobs)
            self._remove(removed)
            self._orphan(orphaned)
            self._keep(("undeploy", by, note), row, removed, orphaned, [])
            gone = {"removed": keys_of(removed), "orphaned": keys_of(orphaned)}
            self._record(of_module(row.module, before, ActiveVersion(), **gone))
            self.on_notify()
        return Killed(keys_of(removed), keys_of(orphaned))

    async def find_active(self, keys: Collection[str]) -> frozenset[str]:
        return frozenset(row.key for row in self.deployments if row.key in keys and row.min_replicas)

    def _keep(
        self, what: tuple[str, str, str], row: StoredDeployment, removed: list[Removed], orphaned: list[Orphan],
        back: list[Return],
    ) -> None:  # fmt: skip
        action, by, note = what
        details = key_details(removed=keys_of(removed), orphaned=keys_of(orphaned), back=keys_of(back))
        self._log(StoredAction(action, by, note, None, details, row.key, self.now_us()))
        for name, planned in (("orphan", orphaned), ("bring_back", back)):
            for each in planned:
                self._act(name, by, note, self.jobs[each.job_id], (), deployment=row.key, order=action)
