"""Sets of jobs in PostgreSQL. A set is applied in one transaction, with the statements that all jobs use."""

from collections.abc import Mapping, Sequence

from cronring.controller.errors import Outdated
from cronring.controller.ports.many import JobChange, JobDone, Outcome, Seen, Who, fails, sliced
from cronring.controller.ports.reads import Namespaces
from cronring.controller.ports.sets import ByHand, SetRow, SetWork, changed_set
from cronring.controller.services.audit_changes import of_job
from cronring.controller.services.refusals import changed_meanwhile, refused_circles
from cronring.controller.store.actions import Action, add_actions
from cronring.controller.store.creating import Creating
from cronring.controller.store.locked import Locked, lock_keys
from cronring.controller.store.many import delete_all, seen_of, update_all
from cronring.controller.store.ordering import tell
from cronring.controller.store.plans import who_follows
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.recording import record
from cronring.controller.store.slices import beside
from cronring.sql.parameters import (
    CountSets,
    FindJobIds,
    ForgetEmptySet,
    GetHandChanges,
    GetSet,
    ListSetKeys,
    ListSets,
    OwnJobs,
    TakeSet,
)


class _Undone(Exception):
    """Some jobs have failed: rolls the transaction back, so that nothing is written."""


class PostgresSets:
    """cronring.controller.ports.sets.Sets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_set(self, namespace: str, name: str) -> SetRow | None:
        """None: there is no such set, or it owns no jobs."""
        records = await self._database.fetch(GetSet(namespace=namespace, name=name))
        return SetRow._make(records[0]) if records else None

    async def list_sets(
        self, namespace: str, after: tuple[str, str], limit: int, namespaces: Namespaces = None
    ) -> list[SetRow]:
        """See cronring.controller.ports.sets.Sets."""
        asked = ListSets(
            namespace=namespace, namespaces=namespaces, after_namespace=after[0], after_name=after[1], limit=limit
        )
        return [SetRow._make(record) for record in await self._database.fetch(asked)]

    async def count_sets(self, namespace: str, namespaces: Namespaces = None) -> int:
        ((count,),) = await self._database.fetch(CountSets(namespace=namespace, namespaces=namespaces))
        return int(count)

    async def set_keys(self, namespace: str, name: str, after_key: str, limit: int) -> list[str]:
        """See cronring.controller.ports.sets.Sets."""
        asked = ListSetKeys(namespace=namespace, name=name, after_key=after_key, limit=limit)
        return [key for (key,) in await self._database.fetch(asked)]

    async def hand_changes(self, name: str, keys: Sequence[str]) -> dict[str, ByHand]:
        """See cronring.controller.ports.sets.Sets."""
        found: dict[str, ByHand] = {}
        for part in sliced(keys):
            for key, *change in await self._database.fetch(GetHandChanges(name=name, keys=part)):
                found[key] = ByHand._make(change)
        return found

    async def apply_set(self, work: SetWork, who: Who, *, dry_run: bool = False) -> dict[str, Outcome]:
        """See cronring.controller.ports.sets.Sets."""
        outcomes: dict[str, Outcome] = {}
        try:
            async with self._database.transaction("applying a set") as transaction:
                await _Applying(transaction, work, who).apply(outcomes, dry_run=dry_run)
        except _Undone:
            pass
        return outcomes


class _Applying:
    """Applies one set in one transaction. Locks in the same order as all others: modules, then jobs by their ids."""

    def __init__(self, transaction: Transaction, work: SetWork, who: Who) -> None:
        self._transaction = transaction
        self._work = work
        self._who = who

    async def apply(self, outcomes: dict[str, Outcome], *, dry_run: bool) -> None:
        """Raises Outdated, and _Undone if an outcome is a failure."""
        work, who = self._work, self._who
        if not dry_run:
            await self._take()
        follows = await beside(len(work.creates) + len(work.changes), lambda: work.follows)
        after = await who_follows(self._transaction, [*follows, *filter(None, follows.values())])
        outcomes |= await beside(len(follows), refused_circles, after, follows)
        creating = Creating(self._transaction, who, _refuse_changes)
        made = await creating.create(list(work.creates.values()), whole=True, dry_run=dry_run or fails(outcomes))
        outcomes |= _unless_failed(outcomes, await self._created(dict(zip(work.creates, made, strict=True))))
        rows = await lock_keys(self._transaction, work.locks)
        outcomes |= {
            key: _as_seen(key, rows.get(key), seen) for key, seen in [*work.adopts.items(), *work.releases.items()]
        }
        only_look = dry_run or fails(outcomes)
        there = {key: change for key, change in work.changes.items() if key in rows}
        changed = await update_all(self._transaction, there, who, whole=True, dry_run=only_look)
        outcomes |= _unless_failed(outcomes, dict(zip(there, changed, strict=True)))
        gone = [key for key in work.removes if key in rows]
        only_look = only_look or fails(outcomes)
        removed = await delete_all(self._transaction, gone, who, seen=work.removes, whole=True, dry_run=only_look)
        outcomes |= dict(zip(gone, removed, strict=True))
        outcomes |= {key: changed_meanwhile(key) for key in work.locks if key not in rows}
        if dry_run:
            return
        if not fails(outcomes):
            await self._own(rows, outcomes)
        if fails(outcomes):
            raise _Undone
        await self._transaction.fetch(ForgetEmptySet(namespace=work.namespace, name=work.name))

    async def _take(self) -> None:
        """Lock the set's row at its revision. Raises Outdated: of two at once, the later one waits here, and then finds
        another revision.
        """
        work = self._work
        taking = TakeSet(
            namespace=work.namespace, name=work.name, revision=work.revision, actor=self._who.by, note=self._who.note
        )
        if not await self._transaction.fetch(taking):
            raise Outdated(changed_set(work.name))

    async def _created(self, made: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """If somebody has made a job of a key since the plan, the outcome is `changed meanwhile`, so that the caller
        plans anew.
        """
        taken = {key for key, each in made.items() if isinstance(each, JobDone) and each.unchanged}
        failed = [key for key, each in made.items() if isinstance(each, Exception)]
        for part in sliced(failed):
            taken |= {key for _, key in await self._transaction.fetch(FindJobIds(keys=part))}
        return {key: changed_meanwhile(key) if key in taken else each for key, each in made.items()}

    async def _own(self, rows: Mapping[str, Locked], outcomes: dict[str, Outcome]) -> None:
        name = self._work.name
        for keys, was, becomes, action in (
            (self._work.adopts, "", name, "adopt"),
            (self._work.releases, name, "", "release"),
        ):
            for part in sliced(list(keys)):
                found = [rows[key] for key in part]
                ids = [row.job.job_id for row in found]
                owning = OwnJobs(name=becomes, was=was, job_ids=ids, actor=self._who.by)
                taken = {job_id for (job_id,) in await self._transaction.fetch(owning)}
                outcomes |= {
                    row.job.key: changed_meanwhile(row.job.key) for row in found if row.job.job_id not in taken
                }
                told = Action(action, self._who.by, self._who.note, details={"set": name})
                await add_actions(self._transaction, [told._replace(job_id=job_id) for job_id in ids])
                await record(self._transaction, *[of_job(row.job.key, {"set": was}, {"set": becomes}) for row in found])
                await tell(self._transaction, found)


async def _refuse_changes(changes: Mapping[str, JobChange], **_: bool) -> list[Outcome]:
    """Outcomes for queues' jobs that somebody has made since the plan."""
    return [changed_meanwhile(key) for key in changes]


def _as_seen(key: str, row: Locked | None, seen: Seen) -> Outcome:
    if row is None or seen_of(row) != seen:
        return changed_meanwhile(key)
    return JobDone(key, row.job.job_id)


def _unless_failed(before: Mapping[str, Outcome], outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """A job may have several outcomes: the first failure is told."""
    return {key: before[key] if isinstance(before.get(key), Exception) else each for key, each in outcomes.items()}
