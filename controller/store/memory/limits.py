"""Limits, in memory; see controller/store/limits.py. What runs is counted when somebody asks, so it can't drift."""

from collections.abc import Iterator

from cronring.controller.errors import NotFound
from cronring.controller.ports.limits import Check, LimitRow, limit_name, no_such_limit
from cronring.controller.ports.reads import Namespaces
from cronring.controller.services.audit_changes import of_limit
from cronring.controller.store.memory.rows import JobRow
from cronring.controller.store.memory.tables import MemoryTables


class MemoryLimits(MemoryTables):
    """Implements cronring.controller.ports.limits.Limits."""

    async def set_limit(
        self, namespace: str, module: str, max_concurrent: int, by: str, note: str = "", check: Check | None = None
    ) -> LimitRow:
        key = namespace, module
        if check is not None:
            check(self.limits.get(key))
        self.limit_ids.setdefault(key, len(self.limit_ids) + 1)
        before = self.limits.get(key)
        self.limits[key] = LimitRow(namespace, module, max_concurrent, 0, self.now_us(), by, note)
        self._record(of_limit(before, self.limits[key]))
        self.on_places()
        return self._limit(key)

    async def remove_limit(
        self, namespace: str, module: str, by: str, note: str = "", check: Check | None = None
    ) -> LimitRow:
        if (namespace, module) not in self.limits:
            raise NotFound(no_such_limit(namespace, module))
        row = self._limit((namespace, module))
        if check is not None:
            check(row)
        del self.limits[namespace, module]
        self.limits_removed.append((row, by, note))
        self._record(of_limit(row, None))
        self.on_places()
        return row

    async def list_limits(
        self,
        namespace: str | None = None,
        module: str | None = None,
        namespaces: Namespaces = None,
        *,
        after: tuple[str, str] = ("", ""),
        limit: int | None = None,
    ) -> list[LimitRow]:
        found = [
            self._limit(key)
            for key in sorted(self.limits)
            if namespace in {None, key[0]} and module in {None, key[1]} and (namespaces is None or key[0] in namespaces)
        ]
        return [row for row in found if (row.namespace, row.module) > after][:limit]

    def _limit(self, key: tuple[str, str]) -> LimitRow:
        return self.limits[key]._replace(running=_runs_of(self, key))

    def _full_limit(self, job: JobRow) -> int | None:
        """The id of the limit that has no place for a run of the job."""
        if not self.limits:
            return None
        for key in _limits_of(job):
            if key in self.limits and _runs_of(self, key) >= self.limits[key].max_concurrent:
                return self.limit_ids[key]
        return None

    def _places_freed(self, job: JobRow) -> None:
        """An execution of the job has ended: whoever waits for the place of a limit that was full is told."""
        for key in _limits_of(job):
            if key in self.limits and _runs_of(self, key) + 1 >= self.limits[key].max_concurrent:
                self.on_places()
                return


def _limits_of(job: JobRow) -> Iterator[tuple[str, str]]:
    namespace, module = job.deployment.module
    yield namespace, module
    yield namespace, ""


def _runs_of(tables: MemoryTables, key: tuple[str, str]) -> int:
    return sum(key in _limits_of(each.job) for each in tables.unfinished.values())


def full_in_words(tables: MemoryTables, job: JobRow) -> str:
    """The limit that has no place for a run of the job; "": there is none."""
    for key in _limits_of(job):
        if key in tables.limits and (running := _runs_of(tables, key)) >= (most := tables.limits[key].max_concurrent):
            return f"{limit_name(*key)} runs {running} of {most}"
    return ""
