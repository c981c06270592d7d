"""Lists of executions by a filter: which index to use, and how far one answer looks. docs/decisions/0084."""

import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import starmap
from typing import Any, Final, NamedTuple, TypedDict

import asyncpg

from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.reads import (
    Cursor,
    ExecutionCount,
    ExecutionFilter,
    ExecutionPage,
    ExecutionRow,
    ExecutionSort,
    Namespaces,
)
from cronring.sql.parameters import (
    CountExecutions,
    CountJobExecutions,
    CountJobTicks,
    CountTroubledExecutions,
    FindExecutionBefore,
    FindExecutionsEnd,
    FindJobExecutionsEnd,
    FindTroubledEnd,
    GetJobIds,
    GetJobsForExecutions,
    ListExecutions,
    ListJobExecutions,
    ListTroubledExecutions,
    RankExecutions,
    RankJobExecutions,
    RankTroubledExecutions,
)
from cronring.sql.records import Statement

LOOKED: Final = 50_000  # executions that one answer looks at
JOBS_MAX: Final = 200  # with up to so many jobs, their ticks are gone through; with more, all executions by id
_HIGHEST: Final = 2**63 - 1
_LAST_TICK: Final = 4_102_444_800_000_000  # the year 2100: no tick is later
_FIRST_POSITION: Final = (_LAST_TICK, 0, 0)  # a tick, an attempt at it, and the id of its job
_COMPLETED: Final = "completed"

Fetch = Callable[[Statement], Awaitable[list[asyncpg.Record]]]


class _Fitting(TypedDict):
    """What cron_fitting_executions is asked for."""

    since: int | None
    until: int | None
    outcomes: Sequence[str]
    runner: str
    of_jobs: bool
    namespaces: Namespaces
    namespace: str
    module: str
    verb: str
    labels: str


class _Way(NamedTuple):
    """How to search. `job_ids`: through these jobs' ticks; None: by id. Only ids above `above_id`. `troubled`: by
    outcome.
    """

    job_ids: list[int] | None
    above_id: int
    troubled: bool = False


class ExecutionLists:
    """Executions in PostgreSQL, by filters. `looked`: how many executions one answer looks at."""

    def __init__(self, fetch: Fetch, looked: int = LOOKED) -> None:
        self._fetch = fetch
        self._looked = looked

    async def page(self, where: ExecutionFilter, sort: ExecutionSort, cursor: Cursor, limit: int) -> ExecutionPage:
        """From after `cursor` on. Raises NotFound when there is no such job; Conflict for more than can be ranked."""
        way = await self._way(where)
        if sort is not ExecutionSort.NEWEST:
            return await self._ranked(where, way, sort, cursor, limit)
        if way.job_ids is None:
            return await self._by_id(where, way, cursor, limit)
        return await self._by_tick(where, way, way.job_ids, cursor, limit)

    async def count(self, where: ExecutionFilter) -> ExecutionCount:
        """How many there are, as far as one answer looks. Raises NotFound when there is no such job."""
        way = await self._way(where)
        fitting = _fitting(where, way)
        if way.job_ids is not None:
            position = await self._position(where, way.job_ids, _FIRST_POSITION)
            if position is not None:
                fitting["since"] = max(where.since or 0, position[0] + 1)
            asked = CountJobExecutions(job_ids=way.job_ids, above_id=way.above_id, **fitting)
            return ExecutionCount((await self._fetch(asked))[0][0], at_least=position is not None)
        end = await self._end(where, way, _HIGHEST)
        kind = CountTroubledExecutions if way.troubled else CountExecutions
        above = way.above_id if end is None else end[0]
        (record,) = await self._fetch(kind(before_id=_HIGHEST, above_id=above, **fitting))
        return ExecutionCount(record[0], at_least=end is not None)

    async def _way(self, where: ExecutionFilter) -> _Way:
        if where.job:
            job_ids = [record[0] for record in await self._fetch(GetJobIds(key=where.job))]
            if not job_ids:
                raise NotFound(f"there is no job {where.job!r}; `cronring jobs list` shows them")
            return _Way(job_ids, where.after_id)
        if where.labels or where.module:
            asked = GetJobsForExecutions(limit=JOBS_MAX + 1, **_of_jobs(where))
            job_ids = [record[0] for record in await self._fetch(asked)]
            if len(job_ids) <= JOBS_MAX:
                return _Way(sorted(job_ids), where.after_id)
        above = where.after_id
        if where.since is not None:
            # Ids grow with time, so executions from before `since` are left out by id.
            above = max(above, (await self._fetch(FindExecutionBefore(instant=where.since)))[0][0])
        return _Way(None, above, troubled=bool(where.outcomes) and _COMPLETED not in where.outcomes)

    async def _by_id(self, where: ExecutionFilter, way: _Way, cursor: Cursor, limit: int) -> ExecutionPage:
        before = cursor[0] if cursor else _HIGHEST
        end = None if _all_fit(where, way) else await self._end(where, way, before)
        above = way.above_id if end is None else end[0]
        kind = ListTroubledExecutions if way.troubled else ListExecutions
        asked = kind(before_id=before, above_id=above, limit=limit + 1, **_fitting(where, way))
        rows = list(starmap(ExecutionRow, await self._fetch(asked)))
        if len(rows) > limit:
            return ExecutionPage(rows[:limit], (rows[limit - 1].execution_id,))
        return ExecutionPage(rows) if end is None else ExecutionPage(rows, (end[0] + 1,), looked_to=end[1])

    async def _by_tick(
        self, where: ExecutionFilter, way: _Way, job_ids: list[int], cursor: Cursor, limit: int
    ) -> ExecutionPage:
        tick, attempt, job = cursor or _FIRST_POSITION
        end = None if _all_fit(where, way) else await self._position(where, job_ids, (tick, attempt, job))
        end_tick, end_attempt, end_job = end or (0, 0, 0)
        records = await self._fetch(
            ListJobExecutions(
                job_ids=job_ids, before_tick=tick, before_attempt=attempt, before_job=job, above_tick=end_tick,
                above_attempt=end_attempt, above_job=end_job, above_id=way.above_id, limit=limit + 1,
                **_fitting(where, way),
            )
        )  # fmt: skip
        rows = list(starmap(ExecutionRow, records))
        if len(rows) > limit:
            last = rows[limit - 1]
            return ExecutionPage(rows[:limit], (last.tick, last.attempt, last.job_id))
        following = (end_tick, end_attempt, end_job + 1)
        return ExecutionPage(rows) if end is None else ExecutionPage(rows, following, looked_to=end_tick)

    async def _ranked(
        self, where: ExecutionFilter, way: _Way, sort: ExecutionSort, cursor: Cursor, limit: int
    ) -> ExecutionPage:
        value, execution_id = cursor or (_HIGHEST, _HIGHEST)
        after: dict[str, Any] = {"sort": sort.value, "below_value": value, "below_id": execution_id, "limit": limit + 1}
        fitting = _fitting(where, way)
        asked: Statement
        if way.job_ids is not None:
            too_many = await self._met(where, way.job_ids) > self._looked
            asked = RankJobExecutions(job_ids=way.job_ids, above_id=way.above_id, **after, **fitting)
        else:
            too_many = await self._end(where, way, _HIGHEST) is not None
            kind = RankTroubledExecutions if way.troubled else RankExecutions
            asked = kind(before_id=_HIGHEST, above_id=way.above_id, **after, **fitting)
        if too_many:
            raise Conflict(
                f"more than {self._looked:,} executions would have to be looked through to say which are {sort}; "
                "narrow it, by since and until, a job, a module, a label, or outcomes other than completed"
            )
        rows = list(starmap(ExecutionRow, await self._fetch(asked)))
        if len(rows) <= limit:
            return ExecutionPage(rows)
        return ExecutionPage(rows[:limit], (_rank(rows[limit - 1], sort), rows[limit - 1].execution_id))

    async def _end(self, where: ExecutionFilter, way: _Way, before: int) -> tuple[int, int] | None:
        """Id and tick of the first execution that one answer doesn't look at. None: it looks at all."""
        position = {"before_id": before, "above_id": way.above_id}
        asked: Statement
        if way.troubled:
            asked = FindTroubledEnd(
                outcomes=where.outcomes, looked=max(self._looked // len(where.outcomes), 1), since=where.since,
                until=where.until, **position,
            )  # fmt: skip
        else:
            asked = FindExecutionsEnd(looked=self._looked, since=where.since, until=where.until, **position)
        records = await self._fetch(asked)
        return (records[0][0], records[0][1]) if records else None

    async def _position(
        self, where: ExecutionFilter, job_ids: list[int], before: tuple[int, int, int]
    ) -> tuple[int, int, int] | None:
        """Tick, attempt and job of the first execution that one answer doesn't look at. None: it looks at all."""
        tick, attempt, job = before
        records = await self._fetch(
            FindJobExecutionsEnd(
                job_ids=job_ids, before_tick=tick, before_attempt=attempt, before_job=job, since=where.since,
                until=where.until, looked=max(self._looked // max(len(job_ids), 1), 1),
            )
        )  # fmt: skip
        return (records[0][0], records[0][1], records[0][2]) if records else None

    async def _met(self, where: ExecutionFilter, job_ids: list[int]) -> int:
        asked = CountJobTicks(job_ids=job_ids, since=where.since, until=where.until, looked=self._looked + 1)
        met: int = (await self._fetch(asked))[0][0]
        return met


def _all_fit(where: ExecutionFilter, way: _Way) -> bool:
    """Whether every execution met fits, so that a page looks at no more than its rows. This is the usual case."""
    if where.runner or _fitting(where, way)["of_jobs"]:
        return False
    if way.job_ids is not None:
        return not where.outcomes and not where.after_id
    return where.since is None and where.until is None and (way.troubled or not where.outcomes)


def _rank(row: ExecutionRow, sort: ExecutionSort) -> int:
    """The rank of a row, as cron_rank in PostgreSQL has it."""
    if sort is ExecutionSort.LATEST:
        return row.lateness_us
    assert row.ended_at is not None, "those that run have no rank"
    assert row.started_at is not None
    return row.ended_at - row.started_at


class _OfJobs(TypedDict):
    namespaces: Namespaces
    namespace: str
    module: str
    verb: str
    labels: str


def _of_jobs(where: ExecutionFilter) -> _OfJobs:
    return {
        "namespaces": where.namespaces,
        "namespace": where.namespace,
        "module": where.module,
        "verb": where.verb,
        "labels": json.dumps(dict(where.labels)),
    }


def _fitting(where: ExecutionFilter, way: _Way) -> _Fitting:
    """Parameters of the filter. If the jobs were found by it, their executions aren't filtered by job again."""
    asked = where.namespaces is not None or any((where.namespace, where.module, where.verb, where.labels))
    return {
        "since": where.since,
        "until": where.until,
        "outcomes": where.outcomes,
        "runner": where.runner,
        "of_jobs": asked and (way.job_ids is None or bool(where.job)),
        **_of_jobs(where),
    }
