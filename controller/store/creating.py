"""Jobs that people make: any number in one transaction, planned by cronring.controller.core.orders.control."""

import asyncio
import json
from collections.abc import Awaitable, Mapping, Sequence
from typing import NamedTuple, Protocol

from cronring.controller.core.orders.control import NeverRuns, plan_creation
from cronring.controller.core.orders.followers import followed
from cronring.controller.core.orders.redeploy import Added
from cronring.controller.errors import Conflict
from cronring.controller.ports.many import JobChange, JobDone, NewJob, Outcome, Who, as_change, fails, sliced
from cronring.controller.ports.store import RunByHand
from cronring.controller.services.audit_changes import of_job, spec_fields
from cronring.controller.services.refusals import other_job, refused_circles
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.locked import lock_jobs
from cronring.controller.store.ordering import make_activations
from cronring.controller.store.plans import policy_columns, who_follows
from cronring.controller.store.pool import Transaction
from cronring.controller.store.recording import Entries, entries_of, record_entries
from cronring.controller.store.rows import spec_of, specs_columns
from cronring.controller.store.slices import beside
from cronring.schema.job import JobSpec
from cronring.schema.queues import queue_deployment, queue_of
from cronring.schema.text import parse_module
from cronring.sql.parameters import CreateApiJobs, GetActiveModule, GetNow, GetSpecs, LockModule, MakeQueue, NotifyJobs


class _Active(NamedTuple):
    """The active version of a module."""

    deployment_id: int
    key: str
    verbs: frozenset[str] | None  # None: any, as it is a queue


class _There(NamedTuple):
    """A job that is there already."""

    job_id: int
    template: str
    spec: JobSpec


class _Again(NamedTuple):
    """A job of a queue that is there already, and is changed into this one."""

    job: NewJob


class _Planned(NamedTuple):
    job: NewJob
    added: Added
    deployment_id: int


class ChangesJobs(Protocol):
    """Changes jobs by their keys."""

    def __call__(
        self, changes: Mapping[str, JobChange], /, *, whole: bool, dry_run: bool
    ) -> Awaitable[list[Outcome]]: ...


class Creating:
    """Makes jobs in one transaction. `change`: changes queues' jobs that are there already."""

    def __init__(self, transaction: Transaction, who: Who, change: ChangesJobs) -> None:
        self._transaction = transaction
        self._change = change
        self._who = who
        self._now = 0

    async def create(self, jobs: Sequence[NewJob], *, whole: bool, dry_run: bool) -> list[Outcome]:
        """See cronring.controller.ports.many.ManyJobs. Idempotent: if the same job is there already, that is the
        outcome.
        """
        keys = [job.key for job in jobs]
        first: dict[str, NewJob] = {}
        for key, job in zip(keys, jobs, strict=True):
            first.setdefault(key, job)
        # Modules are locked in one order everywhere, or two calls could deadlock.
        names = sorted({(job.namespace, job.module) for job in jobs})
        active = {name: await self._module(name, dry_run=dry_run) for name in names}
        there = await self._there(list(first))
        planned: dict[str, Outcome | _Planned | _Again] = {}
        for part in sliced(list(first.items())):
            planned |= await beside(len(part), self._planned, part, active, there)
        planned |= await self._circles(planned)
        again = {key: as_change(each.job) for key, each in planned.items() if isinstance(each, _Again)}
        planned |= {key: JobDone(key) for key in again}
        others = {at for at, key in enumerate(keys) if jobs[at] != first[key]}
        if again:
            refused = whole and (bool(others) or fails(planned))
            planned |= await self._update(again, dry_run=dry_run or refused, whole=whole)
        if not dry_run and not (whole and (others or fails(planned))):
            planned |= await self._write([each for each in planned.values() if isinstance(each, _Planned)])
        told, seen = list[Outcome](), set[str]()
        for at, key in enumerate(keys):
            told.append(other_job(key) if at in others else _told(planned[key], key, again=key in seen))
            seen.add(key)
        return told

    async def _update(self, again: Mapping[str, JobChange], *, dry_run: bool, whole: bool) -> dict[str, Outcome]:
        """Change the jobs of queues that are there already."""
        outcomes = await self._change(again, whole=whole, dry_run=dry_run)
        return {
            key: each._replace(updated=not each.unchanged) if isinstance(each, JobDone) else each
            for key, each in zip(again, outcomes, strict=True)
        }

    async def _there(self, keys: list[str]) -> dict[str, _There]:
        """Jobs that are there. They need no lock of their own: under the module's lock nobody else makes one, and no
        claim waits.
        """
        found: dict[str, _There] = {}
        for part in sliced(keys):
            for key, job_id, template, *spec in await self._transaction.fetch(GetSpecs(keys=part)):
                found[key] = _There(job_id, template, spec_of(spec))
        return found

    async def _module(self, name: tuple[str, str], *, dry_run: bool) -> _Active | None:
        """The module's active version, locked until the transaction ends. None: there is none. A queue is made by its
        first job.
        """
        namespace, module = name
        await self._transaction.fetch(LockModule(namespaced_module=f"{namespace}/{module}"))
        if queue_of(module):
            return await self._queue(namespace, module, dry_run=dry_run)
        records = await self._transaction.fetch(GetActiveModule(namespace=namespace, module=module))
        if not records:
            return None
        deployment_id, key, schema_text, now = records[0]
        self._now = max(self._now, now)
        # In a thread: a module may have thousands of verbs.
        verbs = (await asyncio.to_thread(parse_module, schema_text)).verbs
        return _Active(deployment_id, key, frozenset(verb.name for verb in verbs))

    async def _queue(self, namespace: str, module: str, *, dry_run: bool) -> _Active:
        """The deployment that stands for a queue. The queue's first job makes it."""
        key = queue_deployment(namespace, queue_of(module))
        if dry_run:
            self._now = max(self._now, (await self._transaction.fetch(GetNow()))[0][0])
            return _Active(0, key, None)
        await self._transaction.fetch(MakeQueue(key=key, namespace=namespace, module=module))
        deployment_id, _, _, now = (await self._transaction.fetch(GetActiveModule(namespace=namespace, module=module)))[
            0
        ]
        self._now = max(self._now, now)
        return _Active(deployment_id, key, None)

    def _planned(
        self,
        wanted: Sequence[tuple[str, NewJob]],
        active: Mapping[tuple[str, str], _Active | None],
        there: Mapping[str, _There],
    ) -> dict[str, "Outcome | _Planned | _Again"]:
        return {
            key: self._planned_one(key, job, active[job.namespace, job.module], there.get(key)) for key, job in wanted
        }

    def _planned_one(
        self, key: str, job: NewJob, active: _Active | None, there: _There | None
    ) -> "Outcome | _Planned | _Again":
        if active is None:
            return Conflict(f"the module {job.module!r} of namespace {job.namespace!r} isn't active: deploy it first")
        if active.verbs is not None and job.verb not in active.verbs:
            hint = f"`cronring deployments get {active.key}` lists them"
            return Conflict(f"{active.key} has no verb {job.verb!r}; {hint}")
        if there is not None:
            if _is_same(there, job):
                return JobDone(key, there.job_id, unchanged=True)
            return _Again(job) if queue_of(job.module) else other_job(key)
        try:
            return _Planned(job, plan_creation(key, job.verb, job.spec, self._now), active.deployment_id)
        except NeverRuns as error:
            return error

    async def _circles(self, planned: Mapping[str, Outcome | _Planned | _Again]) -> dict[str, Outcome]:
        """Refusals: of jobs that would follow each other in a circle, the last one is refused."""
        follows = followed(each.added for each in planned.values() if isinstance(each, _Planned))
        after = await who_follows(self._transaction, list(follows.values()))
        return dict(await beside(len(follows), refused_circles, after, follows))

    async def _write(self, planned: Sequence[_Planned]) -> dict[str, JobDone]:
        ids: dict[str, int] = {}
        for part in sliced(planned):
            insertion = await beside(len(part), _insertion, part, self._who, self._now)
            # While PostgreSQL inserts them, their entries of the audit log are made.
            inserted, entries = await asyncio.gather(
                self._transaction.fetch(insertion), beside(len(part), self._entries, part)
            )
            ids |= {key: job_id for job_id, key in inserted}
            await add_actions(self._transaction, [self._action(each, ids) for each in part], self._now)
            await record_entries(self._transaction, entries)
        for at_once in sliced(sorted(ids[each.added.key] for each in planned if each.job.run_now)):
            rows = await lock_jobs(self._transaction, list(at_once))
            await make_activations(self._transaction, rows, RunByHand(None, self._who.note), self._who.by)
        for name in sorted({f"{each.job.namespace}/{each.job.module}" for each in planned}):
            await self._transaction.fetch(NotifyJobs(payload=name))
        return {key: JobDone(key, job_id) for key, job_id in ids.items()}

    def _action(self, planned: _Planned, ids: dict[str, int]) -> Action:
        template = {"template": planned.job.template} if planned.job.template else {}
        details = {"schedule": planned.job.spec.schedule} | template | self._who.details
        return Action("create", self._who.by, self._who.note, job_id=ids[planned.added.key], details=details)

    def _entries(self, planned: Sequence[_Planned]) -> Entries:
        return entries_of(
            of_job(each.added.key, None, spec_fields(each.added.spec, each.job.template) | self._who.details)
            for each in planned
        )


def _is_same(row: _There, job: NewJob) -> bool:
    there = row.spec if job.spec.anchor is not None else row.spec._replace(anchor=None)
    return (there, row.template) == (job.spec, job.template)


def _told(planned: Outcome | _Planned | _Again, key: str, *, again: bool) -> Outcome:
    """`again`: the same job has stood in this call before."""
    if isinstance(planned, Exception):
        return planned
    done = planned if isinstance(planned, JobDone) else JobDone(key)
    return done._replace(unchanged=done.unchanged or again)


def _insertion(planned: Sequence[_Planned], who: Who, now: int) -> CreateApiJobs:
    specs = [each.added.spec for each in planned]
    concurrencies, pause_afters = policy_columns(specs)
    columns = specs_columns(CreateApiJobs, specs) | {"labels": [json.dumps(dict(spec.labels)) for spec in specs]}
    return CreateApiJobs(
        actor=who.by,
        now=now,
        set_name=who.set_name,
        keys=[each.added.key for each in planned],
        namespaces=[each.job.namespace for each in planned],
        modules=[each.job.module for each in planned],
        verbs=[each.added.verb for each in planned],
        slots=[each.added.slot for each in planned],
        deployment_ids=[each.deployment_id for each in planned],
        next_ticks=[each.added.next_tick for each in planned],
        next_run_ats=[each.added.next_run_at for each in planned],
        concurrencies=concurrencies,
        pause_afters=pause_afters,
        templates=[each.job.template for each in planned],
        **columns,
    )
