"""Jobs that people make, change and delete: any number in one transaction, told by NOTIFY once.

Rows are locked in order of their ids, as everywhere. All outcomes are decided before anything is written.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from cronring.controller.core.orders.control import NeverRuns, plan_change
from cronring.controller.core.orders.orders import refused
from cronring.controller.core.orders.redeploy import Carried, plan_removal
from cronring.controller.core.orders.states import Order
from cronring.controller.ports.many import JobChange, JobDone, NewJob, Outcome, Seen, Who, sliced
from cronring.controller.services.audit_changes import Changes, digest, excerpt, of_job, spec_fields
from cronring.controller.services.refusals import changed_meanwhile, error_of, not_of_api, other_labels, refused_circles
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.creating import Creating
from cronring.controller.store.locked import Locked, lock_keys, no_such_job
from cronring.controller.store.ordering import Ordering, take_back, tell
from cronring.controller.store.plans import carry_jobs_over, remove_jobs, who_follows
from cronring.controller.store.pool import Transaction
from cronring.controller.store.recording import entries_of, record_entries
from cronring.controller.store.slices import beside
from cronring.schema.execution import SkipReason
from cronring.schema.instant import format_instant
from cronring.schema.policy import parse_policy
from cronring.sql.parameters import LabelJobs


class _Change(NamedTuple):
    """A change of one job that is to be written."""

    row: Locked
    asked: JobChange
    planned: Carried


# docs/decisions/0083: a single job is a bulk of one
class ManyAtOnce(Ordering):
    """cronring.controller.ports.many.ManyJobs."""

    async def create_jobs(
        self, jobs: Sequence[NewJob], by: str, note: str = "", *, whole: bool = False, dry_run: bool = False
    ) -> list[Outcome]:
        """See cronring.controller.ports.many.ManyJobs."""
        async with self._database.transaction("creating jobs") as transaction:
            outcomes = await create_all(transaction, jobs, Who(by, note), whole=whole, dry_run=dry_run)
            return _told_all(transaction, outcomes, whole=whole, dry_run=dry_run)

    async def update_jobs(
        self,
        changes: Mapping[str, JobChange],
        by: str,
        note: str = "",
        *,
        whole: bool = False,
        dry_run: bool = False,
    ) -> list[Outcome]:
        """See cronring.controller.ports.many.ManyJobs."""
        async with self._database.transaction("updating jobs") as transaction:
            outcomes = await update_all(transaction, changes, Who(by, note), whole=whole, dry_run=dry_run)
            return _told_all(transaction, outcomes, whole=whole, dry_run=dry_run)

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
        """See cronring.controller.ports.many.ManyJobs."""
        async with self._database.transaction("deleting jobs") as transaction:
            who = Who(by, note)
            outcomes = await delete_all(transaction, keys, who, labels=labels, seen=seen, whole=whole, dry_run=dry_run)
            return _told_all(transaction, outcomes, whole=whole, dry_run=dry_run)


async def create_all(
    transaction: Transaction, jobs: Sequence[NewJob], who: Who, *, whole: bool, dry_run: bool = False
) -> list[Outcome]:
    """See cronring.controller.ports.many.ManyJobs."""

    async def change(changes: Mapping[str, JobChange], *, whole: bool, dry_run: bool) -> list[Outcome]:
        return await update_all(transaction, changes, who, whole=whole, dry_run=dry_run)

    return await Creating(transaction, who, change).create(jobs, whole=whole, dry_run=dry_run)


async def delete_all(
    transaction: Transaction,
    keys: Sequence[str],
    who: Who,
    *,
    labels: Mapping[str, str] = MappingProxyType({}),
    seen: Mapping[str, Seen] = MappingProxyType({}),
    whole: bool,
    dry_run: bool = False,
) -> list[Outcome]:
    """See cronring.controller.ports.many.ManyJobs."""
    there = await lock_keys(transaction, list(dict.fromkeys(keys)))
    outcomes = {key: _deletable(key, there.get(key), labels, seen.get(key)) for key in keys}
    gone = [there[key] for key, each in outcomes.items() if isinstance(each, JobDone)]
    if not dry_run and not (whole and len(gone) < len(outcomes)):
        await _delete(transaction, gone, who)
        outcomes |= {row.job.key: JobDone(row.job.key, row.job.job_id) for row in gone}
    return [outcomes[key] for key in keys]


async def update_all(
    transaction: Transaction, asked: Mapping[str, JobChange], who: Who, *, whole: bool, dry_run: bool
) -> list[Outcome]:
    """See cronring.controller.ports.many.ManyJobs."""
    there = await lock_keys(transaction, list(asked))
    planned: dict[str, Outcome | _Change] = {}
    for part in sliced(list(asked)):
        planned |= await beside(len(part), _planned, [(key, asked[key], there.get(key)) for key in part])
    follows = {
        each.row.job.key: parse_policy(each.planned.spec.policy).after
        for each in planned.values()
        if isinstance(each, _Change)
    }
    after = await who_follows(transaction, [*follows, *filter(None, follows.values())])
    planned |= await beside(len(follows), refused_circles, after, follows)
    if not dry_run and not (whole and any(isinstance(each, Exception) for each in planned.values())):
        changes = [each for each in planned.values() if isinstance(each, _Change)]
        for written in sliced(changes):
            await _write(transaction, written, who, alone=len(changes) == 1)
        await tell(transaction, [each.row for each in changes])
        planned |= {each.row.job.key: JobDone(each.row.job.key, each.row.job.job_id) for each in changes}
    return [_told(key, planned[key]) for key in asked]


def _told_all(transaction: Transaction, outcomes: list[Outcome], *, whole: bool, dry_run: bool) -> list[Outcome]:
    """Note on the transaction if nothing was written, so that the caller isn't told of a change."""
    refused_whole = whole and any(isinstance(each, Exception) for each in outcomes)
    wrote = any(isinstance(each, JobDone) and not each.unchanged for each in outcomes)
    transaction.unchanged = dry_run or refused_whole or not wrote
    return outcomes


def _told(key: str, planned: Outcome | _Change) -> Outcome:
    return JobDone(key) if isinstance(planned, _Change) else planned


def _planned(asked: Sequence[tuple[str, JobChange, Locked | None]]) -> dict[str, Outcome | _Change]:
    return {key: _planned_one(key, change, row) for key, change, row in asked}


def _planned_one(key: str, asked: JobChange, row: Locked | None) -> Outcome | _Change:
    if row is None:
        return no_such_job(key)
    refusal = refused(row.standing, Order.UPDATE)
    if refusal is not None:
        return error_of(refusal)
    if row.job.source != "api":
        return not_of_api(key, "updated")
    if asked.seen not in (None, seen_of(row)):
        return changed_meanwhile(key)
    try:
        planned = plan_change(row.job, row.spec, asked.spec, asked.names, row.now)
    except NeverRuns as error:
        return error
    if planned.spec == row.spec:
        return JobDone(key, row.job.job_id, unchanged=True)
    return _Change(row, asked, planned)


def seen_of(row: Locked) -> Seen:
    """What the caller of a change must have seen of the job."""
    return Seen(row.job.job_id, row.deployment or "", row.spec)


async def _write(transaction: Transaction, changes: Sequence[_Change], who: Who, *, alone: bool) -> None:
    now = max(each.row.now for each in changes)
    await take_back(transaction, [each.row.job for each in changes if each.planned.takes_back], now)
    for deployment_id in sorted({each.row.deployment_id for each in changes}):
        of_it = [each.planned for each in changes if each.row.deployment_id == deployment_id]
        await carry_jobs_over(transaction, deployment_id, of_it)
    await transaction.fetch(
        LabelJobs(job_ids=[each.row.job.job_id for each in changes], labels=list(map(_labels, changes)), actor=who.by)
    )
    await add_actions(transaction, await beside(len(changes), _actions, changes, who, alone=alone), now)
    await _record(
        transaction,
        len(changes),
        (of_job(each.row.job.key, spec_fields(each.row.spec), spec_fields(each.planned.spec)) for each in changes),
    )


async def _record(transaction: Transaction, rows: int, changes: Iterable[Changes]) -> None:
    """Entries are made in a thread, too: each has digests of payloads."""
    await record_entries(transaction, await beside(rows, entries_of, changes))


def _actions(changes: Sequence[_Change], who: Who, *, alone: bool) -> list[Action]:
    """`alone`: keep payloads as texts. For many jobs only digests are kept, as texts would be too much."""
    kept = excerpt if alone else digest
    return [
        Action(
            Order.UPDATE, who.by, who.note, job_id=each.row.job.job_id,
            details=_shown(each.asked, each.row.spec.payload, kept) | who.details,
        )
        for each in changes
    ]  # fmt: skip


def _labels(change: _Change) -> str | None:
    return json.dumps(dict(change.asked.spec.labels)) if "labels" in change.asked.names else None


def _shown(change: JobChange, payload: str, kept: Callable[[str], dict[str, object] | None]) -> dict[str, object]:
    """What was set, as the action keeps it. `payload`: the one before. `kept`: makes of a payload what is kept."""
    spec = change.spec
    anchor = None if spec.anchor is None else format_instant(spec.anchor)
    values = spec._asdict() | {"anchor": anchor, "labels": dict(spec.labels)}
    values["payload"] = None if spec.payload == payload else {"old": kept(payload), "new": kept(spec.payload)}
    return {name: value for name, value in values.items() if name in change.names and value is not None}


def _deletable(key: str, row: Locked | None, labels: Mapping[str, str], seen: Seen | None) -> Outcome:
    if row is None:
        return no_such_job(key)
    if row.job.source != "api":
        return not_of_api(key, "deleted")
    if any(row.spec.labels.get(name) != value for name, value in labels.items()):
        return other_labels(key)
    if seen not in (None, seen_of(row)):
        return changed_meanwhile(key)
    return JobDone(key)


async def _delete(transaction: Transaction, rows: Sequence[Locked], who: Who) -> None:
    """Runs that have begun finish. Activations that wait are dropped."""
    for part in sliced(rows):
        jobs, now = [row.job for row in part], max(row.now for row in part)
        await take_back(transaction, jobs, now)
        removed = await beside(len(jobs), plan_removal, jobs, now, SkipReason.CANCELLED)
        await remove_jobs(transaction, removed, now)
        ids = [job.job_id for job in jobs]
        await transaction.fetch(LabelJobs(job_ids=ids, labels=[None] * len(ids), actor=who.by))
        made = [Action(Order.DELETE, who.by, who.note, job_id=job_id, details=who.details) for job_id in ids]
        await add_actions(transaction, made, now)
        await _record(
            transaction, len(part), (of_job(row.job.key, spec_fields(row.spec, row.template), None) for row in part)
        )
    await tell(transaction, rows)
