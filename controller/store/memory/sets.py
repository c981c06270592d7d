"""Sets of jobs, in memory; see controller/store/sets.py."""

from collections.abc import Mapping, Sequence

from cronring.controller.errors import Outdated
from cronring.controller.ports.many import JobDone, Outcome, Who
from cronring.controller.ports.reads import Namespaces
from cronring.controller.ports.sets import ByHand, SetRow, SetWork, changed_set
from cronring.controller.services.audit_changes import of_job
from cronring.controller.services.refusals import changed_meanwhile, refused_circles
from cronring.controller.store.memory.many import MemoryMany, seen_of
from cronring.controller.store.memory.rows import StoredJob

_BY_HAND = frozenset({"create", "update", "delete", "adopt"})


class MemorySets(MemoryMany):
    """Implements cronring.controller.ports.sets.Sets."""

    async def get_set(self, namespace: str, name: str) -> SetRow | None:
        row = self.sets.get((namespace, name))
        return None if row is None else row._replace(jobs=len(self._owned(namespace, name)))

    async def list_sets(
        self, namespace: str, after: tuple[str, str], limit: int, namespaces: Namespaces = None
    ) -> list[SetRow]:
        keys = [
            key
            for key in sorted(self.sets)
            if key > after and namespace in {"", key[0]} and (namespaces is None or key[0] in namespaces)
        ]
        return [self.sets[key]._replace(jobs=len(self._owned(*key))) for key in keys[:limit]]

    async def count_sets(self, namespace: str, namespaces: Namespaces = None) -> int:
        return len(await self.list_sets(namespace, ("", ""), len(self.sets), namespaces))

    async def set_keys(self, namespace: str, name: str, after_key: str, limit: int) -> list[str]:
        return sorted(key for key in self._owned(namespace, name) if key > after_key)[:limit]

    async def hand_changes(self, name: str, keys: Sequence[str]) -> dict[str, ByHand]:
        found: dict[str, ByHand] = {}
        for key in keys:
            rows = [row for row in self.jobs.values() if row.key == key]
            row = max(rows, key=lambda each: (not each.removed, each.job_id), default=None)
            if row is None or row.set_name != name:
                continue
            of_it = [each for each in self.actions if each.job_id == row.job_id and each.action in _BY_HAND]
            if of_it and "set" not in of_it[-1].details:
                last = of_it[-1]
                found[key] = ByHand(last.at, last.action, last.actor, last.note)
        return found

    async def apply_set(self, work: SetWork, who: Who, *, dry_run: bool = False) -> dict[str, Outcome]:
        there = self.sets.get((work.namespace, work.name))
        if not dry_run and there is not None and there.revision != work.revision:
            raise Outdated(changed_set(work.name))
        outcomes = self._looked(work, who)
        if dry_run or any(isinstance(each, Exception) for each in outcomes.values()):
            return outcomes
        self.sets[work.namespace, work.name] = SetRow(
            work.namespace, work.name, work.revision + 1, self.now_us(), who.by, who.note, 0
        )
        outcomes |= self._done(work, who, dry_run=False)
        self._own(work.adopts, "", work.name, "adopt", who)
        self._own(work.releases, work.name, "", "release", who)
        if not self._owned(work.namespace, work.name):
            del self.sets[work.namespace, work.name]
        return outcomes

    def _looked(self, work: SetWork, who: Who) -> dict[str, Outcome]:
        """What would become of each."""
        outcomes = self._done(work, who, dry_run=True)
        owned = {row.key: row for row in self.jobs.values() if not row.removed}
        for key, seen in [*work.adopts.items(), *work.releases.items()]:
            row = owned.get(key)
            was = "" if key in work.adopts else work.name
            if row is None or seen_of(row) != seen or row.set_name != was:
                outcomes[key] = changed_meanwhile(key)
            else:
                outcomes.setdefault(key, JobDone(key, row.job_id))
        outcomes |= refused_circles(self._after(), work.follows)
        outcomes |= {key: changed_meanwhile(key) for key in work.locks if key not in owned}
        return outcomes | {key: changed_meanwhile(key) for key in work.creates if key in owned}

    def _done(self, work: SetWork, who: Who, *, dry_run: bool) -> dict[str, Outcome]:
        made = self._create(list(work.creates.values()), who, whole=True, dry_run=dry_run)
        changed = self._update(work.changes, who, whole=True, dry_run=dry_run)
        removed = self._remove_all(list(work.removes), who, seen=work.removes, whole=True, dry_run=dry_run)
        return (
            dict(zip(work.creates, made, strict=True))
            | dict(zip(work.changes, changed, strict=True))
            | dict(zip(work.removes, removed, strict=True))
        )

    def _owned(self, namespace: str, name: str) -> dict[str, StoredJob]:
        return {
            row.key: row
            for row in self.jobs.values()
            if not row.removed and (row.deployment.module[0], row.set_name) == (namespace, name)
        }

    def _own(self, keys: Mapping[str, object], was: str, becomes: str, action: str, who: Who) -> None:
        for key in keys:
            row = self._job(key)
            row.set_name, row.changed_by = becomes, who.by
            changes = of_job(key, {"set": was}, {"set": becomes})
            self._act(action, who.by, who.note, row, changes, set=was or becomes)
        if keys:
            self.on_notify()
