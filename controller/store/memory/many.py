"""Jobs that people make, change and delete, in memory; see controller/store/many.py."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from cronring.controller.core.orders.control import NeverRuns, plan_change, plan_creation
from cronring.controller.core.orders.followers import followed
from cronring.controller.core.orders.orders import refused
from cronring.controller.core.orders.redeploy import Added, Carried, plan_removal
from cronring.controller.core.orders.states import Order
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.many import JobChange, JobDone, NewJob, Outcome, Seen, Who, as_change, fails
from cronring.controller.ports.store import RunByHand
from cronring.controller.services.audit_changes import of_job, spec_fields
from cronring.controller.services.refusals import changed_meanwhile, error_of, not_of_api, other_job, refused_circles
from cronring.controller.store.memory.orders import MemoryOrders, standing
from cronring.controller.store.memory.rows import StoredDeployment, StoredJob
from cronring.schema.execution import SkipReason
from cronring.schema.module import Module
from cronring.schema.policy import parse_policy
from cronring.schema.queues import queue_deployment, queue_of


class _New(NamedTuple):
    job: NewJob
    added: Added
    deployment: StoredDeployment


class _Change(NamedTuple):
    row: StoredJob
    asked: JobChange
    planned: Carried


class MemoryMany(MemoryOrders):
    """Implements cronring.controller.ports.many.ManyJobs."""

    async def create_jobs(
        self, jobs: Sequence[NewJob], by: str, note: str = "", *, whole: bool = False, dry_run: bool = False
    ) -> list[Outcome]:
        return self._create(jobs, Who(by, note), whole=whole, dry_run=dry_run)

    def _create(self, jobs: Sequence[NewJob], who: Who, *, whole: bool, dry_run: bool) -> list[Outcome]:
        keys = [job.key for job in jobs]
        first = dict(reversed(list(zip(keys, jobs, strict=True))))
        planned: dict[str, Outcome | _New | _Change] = {key: self._new(key, first[key]) for key in dict.fromkeys(keys)}
        again = {key: each for key, each in planned.items() if isinstance(each, _Change)}
        follows = followed(each.added for each in planned.values() if isinstance(each, _New))
        follows |= {key: parse_policy(each.planned.spec.policy).after for key, each in again.items()}
        planned |= refused_circles(self._after(), follows)
        others = {at for at, key in enumerate(keys) if jobs[at] != first[key]}
        if not dry_run and not (whole and (others or fails(planned))):
            new = [each for each in planned.values() if isinstance(each, _New)]
            planned |= {each.added.key: self._make(each, who) for each in new}
            planned |= {key: self._change(each, who) for key, each in again.items()}
            if new or again:
                self.on_notify()
        told, seen = list[Outcome](), set[str]()
        for at, key in enumerate(keys):
            outcome = _told(key, planned[key])
            if key in again and isinstance(outcome, JobDone):
                outcome = outcome._replace(updated=True)
            if isinstance(outcome, JobDone) and key in seen:
                outcome = outcome._replace(unchanged=True)
            told.append(other_job(key) if at in others else outcome)
            seen.add(key)
        return told

    async def update_jobs(
        self,
        changes: Mapping[str, JobChange],
        by: str,
        note: str = "",
        *,
        whole: bool = False,
        dry_run: bool = False,
    ) -> list[Outcome]:
        return self._update(changes, Who(by, note), whole=whole, dry_run=dry_run)

    def _update(self, changes: Mapping[str, JobChange], who: Who, *, whole: bool, dry_run: bool) -> list[Outcome]:
        planned: dict[str, Outcome | _Change] = {key: self._changed(key, change) for key, change in changes.items()}
        follows = {
            each.row.key: parse_policy(each.planned.spec.policy).after
            for each in planned.values()
            if isinstance(each, _Change)
        }
        planned |= refused_circles(self._after(), follows)
        if not dry_run and not (whole and fails(planned)):
            found = [each for each in planned.values() if isinstance(each, _Change)]
            planned |= {each.row.key: self._change(each, who) for each in found}
            if found:
                self.on_notify()
        return [_told(key, planned[key]) for key in changes]

    async def delete_jobs(
        self,
        keys: Sequence[str],
        by: str,
        note: str = "",
        *,
        labels: Mapping[str, str] = MappingProxyType({}),
        seen: Mapping[str, Seen] = MappingProxyType({}),
        whole: bool = False,
        dry_run: bool = False,
    ) -> list[Outcome]:
        return self._remove_all(keys, Who(by, note), labels=labels, seen=seen, whole=whole, dry_run=dry_run)

    def _remove_all(
        self,
        keys: Sequence[str],
        who: Who,
        *,
        seen: Mapping[str, Seen],
        whole: bool,
        dry_run: bool,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> list[Outcome]:
        outcomes = {key: self._deletable(key, labels, seen.get(key)) for key in keys}
        gone = [self._job(key) for key, each in outcomes.items() if isinstance(each, JobDone)]
        if not dry_run and not (whole and len(gone) < len(outcomes)):
            outcomes |= {row.key: self._delete(row, who) for row in gone}
            if gone:
                self.on_notify()
        return [outcomes[key] for key in keys]

    def _after(self) -> dict[str, str]:
        return self.followers.after(self.jobs.values())

    def _new(self, key: str, job: NewJob) -> Outcome | _New | _Change:
        name = (job.namespace, job.module)
        queue = queue_of(job.module)
        deployment = next((row for row in self.deployments if row.module == name and row.min_replicas), None)
        if deployment is None and queue:
            deployment = StoredDeployment(queue_deployment(job.namespace, queue), name, "", 1, Module(job.module))
        if deployment is None:
            return Conflict(f"the module {job.module!r} isn't active")
        if not queue and all(verb.name != job.verb for verb in deployment.schema.verbs):
            return Conflict(f"{deployment.key} has no verb {job.verb!r}")
        row = next((row for row in self.jobs.values() if row.key == key and not row.removed), None)
        if row is not None:
            there = row.spec if job.spec.anchor is not None else row.spec._replace(anchor=None)
            same = (there, row.template) == (job.spec, job.template)
            if queue and not same:
                return self._changed(key, as_change(job))
            return JobDone(key, row.job_id, unchanged=True) if same else other_job(key)
        try:
            return _New(job, plan_creation(key, job.verb, job.spec, self.now_us()), deployment)
        except NeverRuns as error:
            return error

    def _make(self, new: _New, who: Who) -> JobDone:
        job, added, deployment = new
        there = next((row for row in self.deployments if row.key == deployment.key), None)
        if there is None:  # the first job of a queue
            self.deployments.append(deployment)
        deployment = there or deployment
        row = job_row(len(self.jobs) + 1, added, deployment)
        row.source, row.changed_by, row.template, row.set_name = "api", who.by, job.template, who.set_name
        self._add_job(row)
        told = ({"template": job.template} if job.template else {}) | who.details
        changes = of_job(added.key, None, spec_fields(added.spec, job.template) | who.details)
        self._act("create", who.by, who.note, row, changes, schedule=row.spec.schedule, **told)
        if job.run_now:
            self._run_by_hand(row, RunByHand(None, who.note), who.by, dry_run=False)
        return JobDone(added.key, row.job_id)

    def _changed(self, key: str, asked: JobChange) -> Outcome | _Change:
        try:
            row = self._job(key)
        except NotFound as error:
            return error
        refusal = refused(standing(row), Order.UPDATE)
        if refusal is not None:
            return error_of(refusal)
        if row.source != "api":
            return not_of_api(key, "updated")
        if asked.seen not in (None, seen_of(row)):
            return changed_meanwhile(key)
        try:
            planned = plan_change(row.existing(), row.spec, asked.spec, asked.names, self.now_us())
        except NeverRuns as error:
            return error
        return JobDone(key, row.job_id, unchanged=True) if planned.spec == row.spec else _Change(row, asked, planned)

    def _change(self, change: _Change, who: Who) -> JobDone:
        row, _, planned = change
        if planned.takes_back:
            self._take_back_all([row])
        changes = of_job(row.key, spec_fields(row.spec), spec_fields(planned.spec))
        self._carry(planned, row.deployment)
        self._act(Order.UPDATE, who.by, who.note, row, changes, **who.details)
        row.spec = row.spec._replace(labels=planned.spec.labels)
        row.changed_by = who.by
        return JobDone(row.key, row.job_id)

    def _deletable(self, key: str, labels: Mapping[str, str], seen: Seen | None) -> Outcome:
        try:
            row = self._job(key)
        except NotFound as error:
            return error
        if row.source != "api":
            return not_of_api(key, "deleted")
        if any(row.spec.labels.get(name) != value for name, value in labels.items()):
            return Conflict(f"{key!r} has other labels by now")
        if seen not in (None, seen_of(row)):
            return changed_meanwhile(key)
        return JobDone(key)

    def _delete(self, row: StoredJob, who: Who) -> JobDone:
        removed = plan_removal([row.existing()], self.now_us(), SkipReason.CANCELLED)
        self._take_back_all([row])
        self._remove(removed)
        row.changed_by = who.by
        changes = of_job(row.key, spec_fields(row.spec, row.template), None)
        self._act(Order.DELETE, who.by, who.note, row, changes, **who.details)
        return JobDone(row.key, row.job_id)


def job_row(job_id: int, added: Added, deployment: StoredDeployment) -> StoredJob:
    return StoredJob(
        job_id, added.key, added.slot, deployment, added.verb, added.spec, added.next_tick, added.next_run_at
    )


def seen_of(row: StoredJob) -> Seen:
    """What a change of it is judged by."""
    return Seen(row.job_id, row.deployment.key, row.spec)


def _told(key: str, planned: Outcome | _New | _Change) -> Outcome:
    return JobDone(key) if isinstance(planned, _New | _Change) else planned
