"""A new version of a module becomes the active one, or a version is killed: one transaction each."""

import asyncio
from collections.abc import Collection, Iterable
from typing import NamedTuple

from cronring.controller.core.model import Job
from cronring.controller.core.orders.followers import declared
from cronring.controller.core.orders.orphaning import Orphan, Return, key_details, keys_of, plan_orphans, plan_return
from cronring.controller.core.orders.redeploy import (
    Existing,
    Redeploy,
    Removed,
    deployment_key,
    plan_redeploy,
    plan_removal,
)
from cronring.controller.errors import NotFound
from cronring.controller.ports.many import sliced
from cronring.controller.ports.store import (
    ActivatedDeployment,
    ActiveVersion,
    CheckActive,
    Deployed,
    Killed,
    SentModule,
)
from cronring.controller.services.audit_changes import Changes, of_module
from cronring.controller.services.refusals import other_schema
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.ordering import latest_starts, take_back, take_over
from cronring.controller.store.plans import (
    bring_back,
    carry_jobs_over,
    orphan_jobs,
    policy_columns,
    refuse_cycles,
    remove_jobs,
)
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.controller.store.rows import job_of, specs_columns
from cronring.schema.keys import JobKey
from cronring.schema.module import Module
from cronring.schema.text import parse_module, print_module
from cronring.sql.parameters import (
    ActivateDeployment,
    CountRunningOfOthers,
    CreateCronJobs,
    CreateDeployment,
    DeactivateDeployment,
    FindActive,
    FindDeployment,
    GetModuleDeployments,
    GetModuleJobs,
    LockCronJobs,
    LockModule,
    NotifyJobs,
    RecogniseDeployment,
    RememberFingerprint,
    SetMinReplicas,
)


class _Row(NamedTuple):
    deployment_id: int
    key: str
    digest: str
    schema_text: str
    min_replicas: int

    @property
    def active(self) -> bool:
        return self.min_replicas > 0

    @property
    def version(self) -> ActiveVersion:
        """As an active version."""
        return ActiveVersion(self.key, self.digest, self.min_replicas)


class _Name(NamedTuple):
    """A module, and two texts between which all keys of its jobs lie."""

    namespace: str
    module: str
    low_key: str
    high_key: str

    @classmethod
    def of(cls, namespace: str, module: str) -> "_Name":
        low = str(JobKey(namespace, module, ""))
        # "/" follows "." in COLLATE "C", so all keys of the module lie between both.
        return cls(namespace, module, low, low.removesuffix(".") + "/")

    def __str__(self) -> str:
        return f"{self.namespace}/{self.module}"

    def lock(self) -> LockCronJobs:
        return LockCronJobs(namespace=self.namespace, module=self.module, low_key=self.low_key, high_key=self.high_key)

    def jobs(self, due_until: int | None) -> GetModuleJobs:
        return GetModuleJobs(
            namespace=self.namespace,
            module=self.module,
            low_key=self.low_key,
            high_key=self.high_key,
            due_until=due_until,
        )


class DeploymentStatements:
    """The part of PostgresStore that is about deployments."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # docs/decisions/0011: a known digest must not read the jobs of the module
    async def create_deployment(
        self,
        module: Module,
        digest: str,
        min_replicas: int,
        timeout_ms: int,
        activate: bool,
        default_jitter: str = "",
        by: str = "",
        note: str = "",
        *,
        dry_run: bool = False,
        fingerprint: str = "",
    ) -> Deployed:
        """Make this version the active one; see cronring.controller.ports.store.Store."""
        version = await _version(module, digest, fingerprint)
        options = _DeployOptions(min_replicas, timeout_ms, default_jitter, by, note)
        async with self._database.transaction("creating a deployment", rehearsal=dry_run) as transaction:
            await transaction.fetch(LockModule(namespaced_module=str(version.name)))
            return await _deploy(transaction, version, options, activate)

    # docs/decisions/0061: other runners of the same module wait for the first one, and repeat none of its work
    async def register_deployment(
        self, sent: SentModule, digest: str, timeout_ms: int, default_jitter: str = "", by: str = "",
        soon_ms: int | None = None,
    ) -> Deployed:  # fmt: skip
        """Register what a runner hosts. The module is parsed only if it is new; see
        cronring.controller.ports.store.Store.
        """
        known = RecogniseDeployment(
            namespace=sent.namespace, module=sent.name, digest=digest, fingerprint=sent.fingerprint
        )
        # Without the lock first: after an outage all runners come at once, and must not wait for each other.
        if found := await self._database.fetch(known):
            return _as_it_was(*found[0])
        name = _Name.of(sent.namespace, sent.name)
        async with self._database.transaction("creating a deployment") as transaction:
            await transaction.fetch(LockModule(namespaced_module=str(name)))
            if found := await transaction.fetch(known):  # another runner made it while this one waited for the lock
                return _as_it_was(*found[0])
            version = await _version(await sent.judge(), digest, sent.fingerprint)
            options = _DeployOptions(1, timeout_ms, default_jitter, by, "", soon_ms)
            return await _deploy(transaction, version, options, activate=False)

    async def activate_deployment(
        self, key: str, min_replicas: int, timeout_ms: int, default_jitter: str = "", by: str = "", note: str = "",
        *, dry_run: bool = False, check: CheckActive | None = None,
    ) -> ActivatedDeployment:  # fmt: skip
        """Make a version that is there the active one; see cronring.controller.ports.store.Store."""
        async with self._database.transaction("activating a deployment", rehearsal=dry_run) as transaction:
            name, digest, schema_text = await _find(transaction, key)
            await transaction.fetch(LockModule(namespaced_module=str(name)))
            now, rows = await _deployments(transaction, name, digest)
            if check is not None:
                check(_active(rows))
            row = next(row for row in rows if row.key == key)
            module = await asyncio.to_thread(parse_module, schema_text)
            change = _Change(name, row, rows, min_replicas, timeout_ms, default_jitter, now, ("activate", by, note))
            deployed = await _activate(transaction, module, change)
            running: int = (
                await transaction.fetch(
                    CountRunningOfOthers(namespace=name.namespace, module=name.module, deployment_id=row.deployment_id)
                )
            )[0][0]
            return ActivatedDeployment(deployed, change.previous, running)

    async def kill_deployment(
        self, key: str, by: str = "", note: str = "", *, dry_run: bool = False, check: CheckActive | None = None
    ) -> Killed:
        """Deactivate it. Its declared jobs are removed, and jobs made by hand are orphaned. Raises
        cronring.controller.errors.NotFound.
        """
        async with self._database.transaction("killing a deployment", rehearsal=dry_run) as transaction:
            name, digest, _ = await _find(transaction, key)
            await transaction.fetch(LockModule(namespaced_module=str(name)))
            now, rows = await _deployments(transaction, name, digest)
            if check is not None:
                check(_active(rows))
            row = next((row for row in rows if row.key == key and row.active), None)
            if row is None:
                return Killed()
            await transaction.fetch(DeactivateDeployment(deployment_id=row.deployment_id, now=now))
            existing = [Existing._make(record) for record in await transaction.fetch(name.lock())]
            declared_jobs = [job for job in existing if job.source == "annotation"]
            removed = plan_removal(declared_jobs, now)
            orphaned = plan_orphans(job for job in existing if job.source == "api" and not job.orphaned)
            await take_back(transaction, declared_jobs, now)
            await remove_jobs(transaction, removed, now)
            await orphan_jobs(transaction, orphaned, now)
            await _keep(transaction, ("undeploy", by, note), row, now, None, removed, orphaned, [])
            gone = {"removed": keys_of(removed), "orphaned": keys_of(orphaned)}
            await record(transaction, of_module(name[:2], row.version, ActiveVersion(), **gone))
            await transaction.fetch(NotifyJobs(payload=str(name)))
            return Killed(keys_of(removed), keys_of(orphaned))

    async def find_active(self, keys: Collection[str]) -> frozenset[str]:
        """Which of these deployments are active."""
        return frozenset(key for (key,) in await self._database.fetch(FindActive(keys=list(keys))))


class _Version(NamedTuple):
    """A version of a module that is to be deployed."""

    name: _Name
    module: Module
    digest: str
    schema_text: str
    fingerprint: str


class _DeployOptions(NamedTuple):
    """How a version is to become the active one."""

    min_replicas: int
    timeout_ms: int
    default_jitter: str
    by: str
    note: str
    soon_ms: int | None = None  # see _Change


class _Change(NamedTuple):
    """A change of a module's active version, under the module's lock: `row` of `rows` becomes active."""

    name: _Name
    row: _Row
    rows: list[_Row]
    min_replicas: int
    timeout_ms: int
    default_jitter: str
    now: int
    action: tuple[str, str, str]  # what is done, by whom, and why
    soon_ms: int | None = None  # return only jobs that are due within this time; None: all

    @property
    def previous(self) -> str | None:
        """The key of the version that was active, if that is another one."""
        return next((row.key for row in self.rows if row.active and row.key != self.row.key), None)

    def audited(self, **jobs: tuple[str, ...]) -> Changes:
        """`jobs`: what it does to them; see of_module."""
        after = self.row.version._replace(min_replicas=self.min_replicas)
        return of_module(self.name[:2], _active(self.rows), after, **jobs)

    @property
    def due_until(self) -> int | None:
        return None if self.soon_ms is None else self.now + 1_000 * self.soon_ms


def _active(rows: Iterable[_Row]) -> ActiveVersion:
    return next((row.version for row in rows if row.active), ActiveVersion())


async def _find(transaction: Transaction, key: str) -> tuple[_Name, str, str]:
    """The module of a deployment, its digest, and its schema's text. Raises NotFound."""
    found = await transaction.fetch(FindDeployment(key=key))
    if not found:
        raise NotFound(f"there is no deployment {key!r}; `cronring deployments list` shows them")
    namespace, module, digest, schema_text = found[0]
    return _Name.of(namespace, module), digest, schema_text


async def _activate(transaction: Transaction, module: Module, change: _Change) -> Deployed:
    """Make it the active version, with the jobs that it declares. `created` False: it was active already."""
    name, row, now = change.name, change.row, change.now
    if row.active:
        await transaction.fetch(SetMinReplicas(deployment_id=row.deployment_id, min_replicas=change.min_replicas))
        await record(transaction, change.audited())
        jobs = await _jobs(transaction, name, None)
        return Deployed(row.key, True, False, (), (), tuple(job.key for job in jobs), jobs)
    for other in change.rows:
        if other.active:
            await transaction.fetch(DeactivateDeployment(deployment_id=other.deployment_id, now=now))
    await transaction.fetch(
        ActivateDeployment(deployment_id=row.deployment_id, min_replicas=change.min_replicas, now=now)
    )
    existing = [Existing._make(record) for record in await transaction.fetch(name.lock())]
    # In a thread: thousands of schedules take a while to parse, and claims must not wait for them.
    plan, following = await asyncio.to_thread(_planned, module, existing, change)
    changed = {each.job_id for each in plan.removed} | {each.job_id for each in plan.carried if each.takes_back}
    orphaned = plan_orphans(plan.orphaned)
    back = plan_return(plan.back, await latest_starts(transaction, plan.back), now)
    await take_back(transaction, [job for job in existing if job.job_id in changed], now)
    await _apply(transaction, name, row.deployment_id, plan, now)
    await orphan_jobs(transaction, orphaned, now)
    await bring_back(transaction, row.deployment_id, back, now)
    action, by, note = change.action
    of_job: dict[str, object] = {"deployment": row.key, "order": action}
    await take_over(transaction, [job.key for job in plan.added], by, note, of_job, now)
    await refuse_cycles(transaction, following)
    await _keep(transaction, change.action, row, now, change.previous, plan.removed, orphaned, back)
    gone = {"removed": keys_of(plan.removed), "orphaned": keys_of(orphaned), "back": keys_of(back)}
    await record(transaction, change.audited(added=keys_of(plan.added), rescheduled=plan.rescheduled, **gone))
    await transaction.fetch(NotifyJobs(payload=str(name)))
    deployed = _deployed(row.key, plan, await _jobs(transaction, name, change.due_until))
    return deployed._replace(orphaned=keys_of(orphaned), back=keys_of(back))


def _planned(module: Module, existing: list[Existing], change: _Change) -> tuple[Redeploy, list[str]]:
    """The plan for the module's jobs, and the keys of its followers."""
    plan = plan_redeploy(module, existing, change.now, change.timeout_ms, change.default_jitter)
    return plan, list(declared(module))


async def _keep(
    transaction: Transaction, what: tuple[str, str, str], row: _Row, now: int, previous: str | None,
    removed: list[Removed], orphaned: list[Orphan], back: list[Return],
) -> None:  # fmt: skip
    """Record who did it and what it did: a summary for the deployment, and an action for each job made by hand."""
    action, by, note = what
    details: dict[str, object] = {} if previous is None else {"previous": previous}
    details |= key_details(removed=keys_of(removed), orphaned=keys_of(orphaned), back=keys_of(back))
    of_job = {"deployment": row.key, "order": action}
    made = [Action("orphan", by, note, job_id=each.job_id, details=of_job) for each in orphaned]
    made += [Action("bring_back", by, note, job_id=each.job_id, details=of_job) for each in back]
    await add_actions(
        transaction, [Action(action, by, note, deployment_id=row.deployment_id, details=details), *made], now
    )


async def _version(module: Module, digest: str, fingerprint: str) -> _Version:
    """Print the module in a thread: it may have thousands of verbs, and ticks wait for the event loop."""
    schema_text = await asyncio.to_thread(print_module, module)
    return _Version(_Name.of(module.namespace, module.name), module, digest, schema_text, fingerprint)


async def _deploy(transaction: Transaction, version: _Version, options: _DeployOptions, activate: bool) -> Deployed:
    """Under the module's lock."""
    now, rows = await _deployments(transaction, version.name, version.digest)
    row = next((row for row in rows if row.digest == version.digest), None)
    created = row is None
    if row is None:
        row = await _create(transaction, version, now)
    else:
        await _check_schema(row, version.module, version.schema_text)
        if version.fingerprint:
            await transaction.fetch(
                RememberFingerprint(deployment_id=row.deployment_id, fingerprint=version.fingerprint)
            )
    if not activate and not created:
        # A runner that comes back needs only its deployment's key. Its module may have a million jobs: don't read them.
        return _as_it_was(row.key, row.active)
    min_replicas, timeout_ms, default_jitter, by, note, soon_ms = options
    action = "deploy", by, note
    change = _Change(version.name, row, rows, min_replicas, timeout_ms, default_jitter, now, action, soon_ms)
    return await _activate(transaction, version.module, change)


def _as_it_was(key: str, active: bool) -> Deployed:
    return Deployed(key, active, False, (), (), (), [])


async def _check_schema(row: _Row, module: Module, schema_text: str) -> None:
    """Raises Conflict if this digest has another schema. Only the text may differ, if another release printed it."""
    if row.schema_text != schema_text and await asyncio.to_thread(parse_module, row.schema_text) != module:
        raise other_schema(row.key, row.digest)


async def _deployments(transaction: Transaction, name: _Name, digest: str) -> tuple[int, list[_Row]]:
    records = await transaction.fetch(GetModuleDeployments(namespace=name.namespace, module=name.module, digest=digest))
    return records[0][0], [_Row._make(record[1:]) for record in records if record[1] is not None]


async def _jobs(transaction: Transaction, name: _Name, due_until: int | None) -> list[Job]:
    return [job_of(record) for record in await transaction.fetch(name.jobs(due_until))]


async def _create(transaction: Transaction, version: _Version, now: int) -> _Row:
    (namespace, module, *_), _, digest, schema_text, fingerprint = version
    key = deployment_key(version.module, digest)
    if await transaction.fetch(FindDeployment(key=key)):
        raise other_schema(key, digest)
    ((deployment_id,),) = await transaction.fetch(
        CreateDeployment(
            namespace=namespace,
            module=module,
            key=key,
            digest=digest,
            schema_text=schema_text,
            async_verbs=[verb.name for verb in version.module.verbs if verb.is_async],
            now=now,
            fingerprint=fingerprint,
        )
    )
    return _Row(deployment_id, key, digest, schema_text, min_replicas=0)


async def _apply(transaction: Transaction, name: _Name, deployment_id: int, plan: Redeploy, now: int) -> None:
    """Write the plan in slices, so that making columns doesn't block the event loop."""
    for removed in sliced(plan.removed):
        await remove_jobs(transaction, removed, now)
    for carried in sliced(plan.carried):
        await carry_jobs_over(transaction, deployment_id, carried)
    for added in sliced(plan.added):
        specs = [job.spec for job in added]
        concurrencies, pause_afters = policy_columns(specs)
        await transaction.fetch(
            CreateCronJobs(
                namespace=name.namespace,
                module=name.module,
                deployment_id=deployment_id,
                now=now,
                keys=[job.key for job in added],
                verbs=[job.verb for job in added],
                slots=[job.slot for job in added],
                next_ticks=[job.next_tick for job in added],
                next_run_ats=[job.next_run_at for job in added],
                concurrencies=concurrencies,
                pause_afters=pause_afters,
                **specs_columns(CreateCronJobs, specs),
            )
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
