"""Limits, in memory; see controller/store/limits.py. What runs is counted when somebody asks, so it can't drift."""

from collections import Counter
from collections.abc import Iterator

from cronring.controller.errors import NotFound
from cronring.controller.ports.limits import FULLEST, Check, LimitRow, ValueRow, limit_name, no_such_limit
from cronring.controller.ports.reads import Namespaces
from cronring.controller.services.audit_changes import of_limit
from cronring.controller.store.memory.rows import LimitKey, PlaceKey, StoredExecution, StoredJob
from cronring.controller.store.memory.tables import MemoryTables


class MemoryLimits(MemoryTables):
    """Implements cronring.controller.ports.limits.Limits."""

    async def set_limit(
        self,
        namespace: str,
        module: str,
        max_concurrent: int,
        by: str,
        note: str = "",
        check: Check | None = None,
        *,
        label: str = "",
    ) -> LimitRow:
        key = LimitKey(namespace, module, label)
        if check is not None:
            check(self.limits.get(key))
        before = self.limits.get(key)
        self.limits[key] = LimitRow(namespace, module, max_concurrent, 0, self.now_us(), by, note, label)
        self._record(of_limit(before, self.limits[key]))
        self._bind(key)
        self.on_places(None)
        return self._limit(key)

    def _bind(self, key: LimitKey) -> None:
        """What runs under the limit, and has no place of it, has one from now on."""
        for execution in self.unfinished.values():
            if all(place.limit != key for place in execution.places):
                execution.places += tuple(place for place in places_of(self, execution.job) if place.limit == key)

    async def remove_limit(
        self, namespace: str, module: str, by: str, note: str = "", check: Check | None = None, *, label: str = ""
    ) -> LimitRow:
        key = LimitKey(namespace, module, label)
        if key not in self.limits:
            raise NotFound(no_such_limit(*key))
        row = self._limit(key)
        if check is not None:
            check(row)
        del self.limits[key]
        for execution in self.unfinished.values() if label else ():
            execution.places = tuple(place for place in execution.places if place.limit != key)
        self.limits_removed.append((row, by, note))
        self._record(of_limit(row, None))
        self.on_places(None)
        return row

    async def list_limits(
        self,
        namespace: str | None = None,
        module: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: tuple[str, str, str] = ("", "", ""),
        limit: int | None = None,
    ) -> list[LimitRow]:
        found = [
            self._limit(key)
            for key in sorted(self.limits)
            if namespace in {None, key.namespace}
            and module in {None, key.module}
            and (namespaces is None or key.namespace in namespaces)
            and key > after
        ]
        return found[:limit]

    async def count_limits(self, namespace: str | None = None, namespaces: Namespaces = None) -> int:
        return len(await self.list_limits(namespace, None, namespaces))

    def _limit(self, key: LimitKey) -> LimitRow:
        row, held = self.limits[key], _held(self)
        of_values = {place.value: count for place, count in held.items() if place.limit == key}
        row = row._replace(running=sum(of_values.values()))
        if not key.label:
            return row
        fullest = sorted((-count, value) for value, count in of_values.items())[:FULLEST]
        return row._replace(
            values=len(of_values),
            full_values=sum(count >= row.max_concurrent for count in of_values.values()),
            fullest=tuple(ValueRow(value, -count) for count, value in fullest),
        )

    def _full_limit(self, job: StoredJob) -> int | None:
        """Its number."""
        full = _full_place(self, job)
        return None if full is None else self._id_of(full)

    def _id_of(self, place: PlaceKey) -> int:
        return self.place_ids.setdefault(place, len(self.place_ids) + 1)

    def _places_freed(self, execution: StoredExecution) -> None:
        """An execution has ended: whoever waits for the place of a limit that was full is told."""
        held = _held(self)
        for place in execution.places:
            if place.limit in self.limits and held[place] + 1 >= self.limits[place.limit].max_concurrent:
                self.on_places(self._id_of(place))


def places_of(tables: MemoryTables, job: StoredJob) -> Iterator[PlaceKey]:
    """Of the limits that the job is under: its module's before its namespace's, those by label behind."""
    namespace, module = job.deployment.module
    keys = (key for key in tables.limits if key.namespace == namespace and key.module in {module, ""})
    for key in sorted(keys, key=lambda key: (key.label, not key.module)):
        if not key.label:
            yield PlaceKey(key, "")
        elif key.label in job.spec.labels:
            yield PlaceKey(key, job.spec.labels[key.label])


def full_in_words(tables: MemoryTables, job: StoredJob) -> str:
    """The limit that has no place for a run of the job; "": there is none."""
    full = _full_place(tables, job)
    if full is None:
        return ""
    (namespace, module, label), value = full
    held, most = _held(tables)[full], tables.limits[full.limit].max_concurrent
    return f"{limit_name(namespace, module, label, value)} runs {held} of {most}"


def _held(tables: MemoryTables) -> Counter[PlaceKey]:
    return Counter(place for each in tables.unfinished.values() for place in each.places)


def _full_place(tables: MemoryTables, job: StoredJob) -> PlaceKey | None:
    """What has no place for a run of the job."""
    if not tables.limits:
        return None
    held = _held(tables)
    full = (each for each in places_of(tables, job) if held[each] >= tables.limits[each.limit].max_concurrent)
    return next(full, None)
