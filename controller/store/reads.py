"""What the API reads, from PostgreSQL."""

import asyncio
import contextlib
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from itertools import starmap
from typing import Final, TypedDict

import asyncpg

from cronring.controller.core.ticks import upcoming
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.many import sliced
from cronring.controller.ports.reads import (
    ActionFilter,
    ActionRow,
    BookRow,
    ControllerRow,
    Cursor,
    DeploymentFilter,
    DeploymentRow,
    DueRow,
    ExecutionChange,
    ExecutionCount,
    ExecutionFilter,
    ExecutionPage,
    ExecutionRow,
    ExecutionSort,
    JobFilter,
    JobPage,
    JobRow,
    JobSort,
    Namespaces,
    RunnerRow,
    TickRun,
)
from cronring.controller.store.changes import (
    OPEN_FOR_US,
    ExecutionPosition,
    Position,
    SeenRow,
    Stream,
    beginning,
    decode_position,
    encode_position,
)
from cronring.controller.store.execution_lists import ExecutionLists
from cronring.controller.store.pool import Database
from cronring.controller.store.rows import spec_of
from cronring.schema.filters import lower
from cronring.sql.parameters import (
    CountChosenJobs,
    CountDeployments,
    CountJobs,
    FindChosenByKey,
    FindChosenJobs,
    FindJobs,
    GetChanges,
    GetDeployment,
    GetExecution,
    GetExecutionChanges,
    GetJob,
    GetJobIds,
    GetJobsById,
    GetJobsByKey,
    GetJobsOfDeployments,
    GetLastIds,
    GetNow,
    GetSkippedTicks,
    GetUnfinishedIds,
    ListActions,
    ListBooks,
    ListControllers,
    ListDeploymentActions,
    ListDeployments,
    ListDue,
    ListJobActions,
    ListJobs,
    ListRunners,
    ListTemplateActions,
    ListTickRuns,
    RankJobs,
    SuggestKeys,
    SuggestOfDeployments,
    SuggestOfJobs,
)
from cronring.sql.records import Statement

# At most so many reads at once, so that claims and ends find a free connection.
_AT_ONCE: Final = 3
_HIGHEST: Final = 2**63 - 1
_SUGGESTED_OF: Final = 5_000  # jobs that one suggestion looks at
_NONE: Final = -9_000_000_000_000_000_000  # RankJobs' `value` for a job that has none
RANKED_MAX: Final = 20_000  # jobs
_WILD: Final = re.compile(r"[\\%_]")  # characters with a meaning in LIKE
_SPEC_FIRST: Final = JobRow._fields.index("spec")


class PostgresReads:
    """cronring.controller.ports.reads.Reads. A runner is alive if it was seen in the last `lost_after_ms`."""

    def __init__(self, database: Database, lost_after_ms: int) -> None:
        self._database = database
        self._lost_after_ms = lost_after_ms
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._executions = ExecutionLists(self._fetch)

    async def database_now(self) -> int:
        """PostgreSQL's clock."""
        now: int = (await self._fetch(GetNow()))[0][0]
        return now

    async def list_jobs(self, where: JobFilter, after_key: str, limit: int) -> list[JobRow]:
        """Jobs that are not removed, in order of their keys, after `after_key` ("": from the first)."""
        if not _few(where):
            asked = ListJobs(after_key=after_key, limit=limit, **_columns(where))
            return await self._with_skips(await self._fetch(asked))
        rows: list[JobRow] = []
        while len(rows) < limit:
            wanted = limit - len(rows)
            chosen = FindChosenByKey(after_key=after_key, limit=wanted, **_columns(where))
            found = await self._fetch(chosen)
            records = await self._fetch(GetJobsById(job_ids=[job_id for job_id, _ in found])) if found else []
            # A job that is removed between both statements must not make the page shorter: that would look like the
            # last page.
            there = [row for row in await self._with_skips(records) if row.removed_at is None]
            rows += sorted(there, key=lambda row: row.key)
            if len(found) < wanted:
                break
            after_key = found[-1][1]
        return rows

    async def find_jobs(self, where: JobFilter, after_id: int, limit: int) -> list[tuple[int, str]]:
        """Ids and keys of jobs that are not removed, in order of their ids."""
        statement: type[FindChosenJobs | FindJobs] = FindChosenJobs if _few(where) else FindJobs
        records = await self._fetch(statement(after_id=after_id, limit=limit, **_columns(where)))
        return [(job_id, key) for job_id, key in records]

    async def rank_jobs(self, where: JobFilter, sort: JobSort, cursor: Cursor, limit: int) -> JobPage:
        """A page after `cursor`. Raises Conflict if more than RANKED_MAX jobs match."""
        found = await self.find_jobs(where, 0, RANKED_MAX + 1)
        if len(found) > RANKED_MAX:
            raise Conflict(
                f"more than {RANKED_MAX:,} jobs match, too many to sort by {sort}; narrow it by a module, a label or a "
                "namespace, or sort by key"
            )
        value, job_id = cursor or (_HIGHEST, _HIGHEST)
        job_ids = [job_id for job_id, _ in found]
        asked = RankJobs(job_ids=job_ids, sort=sort.value, below_value=value, below_id=job_id, limit=limit + 1)
        rows = await self._with_skips(await self._fetch(asked))
        if len(rows) <= limit:
            return JobPage(rows)
        return JobPage(rows[:limit], (_rank(rows[limit - 1], sort), rows[limit - 1].job_id))

    async def count_jobs(self, where: JobFilter) -> int:
        """How many jobs find_jobs finds on all its pages."""
        statement: type[CountChosenJobs | CountJobs] = CountChosenJobs if _few(where) else CountJobs
        count: int = (await self._fetch(statement(**_columns(where))))[0][0]
        return count

    async def suggest(self, kind: str, begun: str, namespaces: Namespaces, limit: int) -> list[str]:
        """Names that begin with `begun`, in order. Only as far as one answer looks."""
        asked: Statement
        if kind == "job":
            asked = SuggestKeys(begun=begun, namespaces=namespaces, limit=limit)
        elif kind in {"label", "verb"}:
            asked = SuggestOfJobs(kind=kind, begun=begun, namespaces=namespaces, looked=_SUGGESTED_OF, limit=limit)
        else:
            asked = SuggestOfDeployments(kind=kind, begun=begun, namespaces=namespaces, limit=limit)
        return [record[0] for record in await self._fetch(asked)]

    async def list_actions(self, where: ActionFilter, before_id: int, limit: int) -> list[ActionRow]:
        """The newest first, from before `before_id` on (0: from the newest). NotFound for what never was."""
        before = before_id or _HIGHEST
        if where.job:
            ids = [record[0] for record in await self._fetch(GetJobIds(key=where.job))]
            if not ids:
                raise NotFound(f"there is no job {where.job!r}; `cronring jobs list` shows them")
            records = await self._fetch(ListJobActions(before_id=before, job_ids=ids, since=where.since, limit=limit))
        elif where.deployment:
            deployment = await self.get_deployment(where.deployment)
            records = await self._fetch(
                ListDeploymentActions(
                    before_id=before, deployment_ids=[deployment.deployment_id], since=where.since, limit=limit
                )
            )
        elif where.template:
            records = await self._fetch(
                ListTemplateActions(before_id=before, template=where.template, since=where.since, limit=limit)
            )
        else:
            records = await self._fetch(
                ListActions(before_id=before, since=where.since, namespaces=where.namespaces, limit=limit)
            )
        return list(map(ActionRow._make, records))

    async def get_job(self, key: str) -> JobRow:
        """Raises cronring.controller.errors.NotFound."""
        jobs = await self._with_skips(await self._fetch(GetJob(key=key)))
        if not jobs:
            raise NotFound(f"there is no job {key!r}; `cronring jobs list` shows them")
        return jobs[0]

    async def get_jobs(self, keys: Sequence[str]) -> list[JobRow]:
        """The jobs of these keys that there are, with their payloads, but without counts of skips."""
        return [_job_row(record, ()) for record in await self._fetch(GetJobsByKey(keys=keys))]

    async def _with_skips(self, records: list[asyncpg.Record]) -> list[JobRow]:
        skipped: dict[int, list[tuple[str, int]]] = defaultdict(list)
        if records:
            for job_id, reason, ticks in await self._fetch(GetSkippedTicks(job_ids=[record[0] for record in records])):
                skipped[job_id].append((reason, ticks))
        return [_job_row(record, tuple(skipped[record[0]])) for record in records]

    async def list_executions(
        self, where: ExecutionFilter, sort: ExecutionSort, cursor: Cursor, limit: int
    ) -> ExecutionPage:
        """As Reads says. Raises NotFound, Conflict."""
        return await self._executions.page(where, sort, cursor, limit)

    async def count_executions(self, where: ExecutionFilter) -> ExecutionCount:
        """As far as one answer looks. Raises NotFound when there is no such job."""
        return await self._executions.count(where)

    async def get_execution(self, execution_id: int) -> ExecutionRow:
        """Raises cronring.controller.errors.NotFound."""
        records = await self._fetch(GetExecution(execution_id=execution_id))
        if not records:
            raise NotFound(f"there is no execution {execution_id}; `cronring executions list` shows them")
        return ExecutionRow(*records[0])

    async def list_tick_runs(self, job_id: int, first_tick: int, last_tick: int) -> list[TickRun]:
        """What ran of a job's ticks in [first_tick, last_tick], ascending; see
        cronring.controller.ports.reads.Reads.
        """
        records = await self._fetch(ListTickRuns(job_id=job_id, first_tick=first_tick, last_tick=last_tick))
        return list(map(TickRun._make, records))

    async def list_deployments(self, where: DeploymentFilter, before_id: int, limit: int) -> list[DeploymentRow]:
        """The newest first, from before `before_id` on (0: from the newest)."""
        records = await self._fetch(
            ListDeployments(
                before_id=before_id or _HIGHEST,
                namespace=where.namespace,
                module=where.module,
                active_only=where.active_only,
                namespaces=where.namespaces,
                limit=limit,
                lost_after_ms=self._lost_after_ms,
            )
        )
        return list(map(DeploymentRow._make, records))

    async def count_deployments(self, where: DeploymentFilter) -> int:
        ((count,),) = await self._fetch(CountDeployments(**where._asdict()))
        return int(count)

    async def get_deployment(self, key: str) -> DeploymentRow:
        """Raises cronring.controller.errors.NotFound."""
        records = await self._fetch(GetDeployment(key=key, lost_after_ms=self._lost_after_ms))
        if not records:
            raise NotFound(f"there is no deployment {key!r}; `cronring deployments list` shows them")
        return DeploymentRow._make(records[0])

    async def list_books(
        self, keys: Sequence[str], last: int, before: int | None, namespaces: Namespaces = None
    ) -> list[BookRow]:
        """The latest `last` entries of each of these jobs, in the order asked, the latest tick first."""
        asked = ListBooks(keys=keys, last=last, before=before, namespaces=namespaces)
        return list(map(BookRow._make, await self._fetch(asked)))

    async def list_due(self, within_ms: int, limit: int, namespaces: Namespaces = None) -> list[DueRow]:
        """Ticks whose run_at comes within `within_ms`, the earliest first."""
        due: list[DueRow] = []
        records = await self._fetch(ListDue(within_ms=within_ms, limit=limit, namespaces=namespaces))
        for key, tick, run_at, running, schedule, anchor, policy, until in records:
            slot = upcoming(key, (schedule, anchor, policy), tick, run_at)
            if slot is not None and slot.run_at <= until:
                due.append(DueRow(key, slot.tick, slot.run_at, running))
        return sorted(due, key=lambda row: (row.run_at, row.job))

    async def list_controllers(self) -> list[ControllerRow]:
        """By id. A controller whose lease is over stays while unfinished executions carry its id, and a minute more."""
        return list(map(ControllerRow._make, await self._fetch(ListControllers())))

    async def list_runners(self) -> list[RunnerRow]:
        """The longest-running first; dead ones for a day."""
        rows = map(RunnerRow._make, await self._fetch(ListRunners(lost_after_ms=self._lost_after_ms)))
        return [row._replace(deployments=tuple(row.deployments)) for row in rows]

    async def job_position(self) -> Position:
        """Where job_changes begins."""
        execution_id, skip_id, now = (await self._fetch(GetLastIds()))[0]
        unfinished = [record[0] for record in await self._fetch(GetUnfinishedIds())]
        return Position(now, beginning(execution_id, unfinished), beginning(skip_id, []), frozenset(), frozenset())

    async def job_changes(self, position: object) -> tuple[Position, Sequence[JobRow]]:
        """The position after this one, and jobs that may have changed in between; removed ones have `removed_at`."""
        assert isinstance(position, Position)
        since = position.database_now - OPEN_FOR_US
        executions, skips = position.executions, position.skips
        first_executions, last_executions = executions.gaps()
        first_skips, last_skips = skips.gaps()
        records = await self._fetch(
            GetChanges(
                after_execution_id=executions.highest,
                first_execution_ids=first_executions,
                last_execution_ids=last_executions,
                execution_ids=sorted(executions.unfinished),
                first_tick=executions.first_tick,
                last_tick=executions.last_tick,
                after_skip_id=skips.highest,
                first_skip_ids=first_skips,
                last_skip_ids=last_skips,
                since=since,
            )
        )
        by_kind: dict[str, list[asyncpg.Record]] = defaultdict(list)
        for record in records:
            by_kind[record["kind"]].append(record)
        now = max([position.database_now, *(record["database_now"] for record in records[:1])])
        executions, job_ids = _followed(executions, by_kind["execution"], now)
        skips, skipped_ids = _followed(skips, by_kind["skip"], now)
        deployments, jobs = _dated(by_kind["deployment"]), _dated(by_kind["job"])
        job_ids += [job_id for job_id, _ in jobs - position.jobs]
        job_ids += skipped_ids + await self._deployed(deployments - position.deployments)
        rows: list[JobRow] = []
        # After a bulk there are thousands: read them in slices, which hold nobody up.
        for part in sliced(sorted(set(job_ids))):
            rows += [_job_row(record, ()) for record in await self._fetch(GetJobsById(job_ids=part))]
        return Position(now, executions, skips, deployments, jobs), rows

    async def execution_position(self) -> ExecutionPosition:
        """Where execution_changes begins."""
        execution_id, _, now = (await self._fetch(GetLastIds()))[0]
        unfinished = [record[0] for record in await self._fetch(GetUnfinishedIds())]
        # The first answer only finds out which ids are missing. Its rows are older, so they aren't told.
        return (await self.execution_changes(ExecutionPosition(now, beginning(execution_id, unfinished))))[0]

    async def execution_changes(self, position: object) -> tuple[ExecutionPosition, Sequence[ExecutionChange]]:
        """The position after this one, and what has started or ended in between, by id; at most 20,000 new ones."""
        assert isinstance(position, ExecutionPosition)
        before = position.executions
        firsts, lasts = before.gaps()
        records = await self._fetch(
            GetExecutionChanges(
                after_execution_id=before.highest,
                first_execution_ids=firsts,
                last_execution_ids=lasts,
                execution_ids=sorted(before.unfinished),
                first_tick=before.first_tick,
                last_tick=before.last_tick,
            )
        )
        now = max(position.database_now, await self.database_now())
        rows = list(starmap(ExecutionRow, records))
        executions, told = before.after(
            (SeenRow(row[0], row[0], row.outcome is not None, row.tick) for row in rows), now
        )
        news = frozenset(told)
        changes = [ExecutionChange(row, row[0] not in before.unfinished) for row in rows if row[0] in news]
        return ExecutionPosition(now, executions), changes

    def having_told(self, position: object, after: object, changes: Sequence[ExecutionChange]) -> ExecutionPosition:
        """The position between `position` and `after` of a caller that has told only these changes."""
        assert isinstance(position, ExecutionPosition)
        assert isinstance(after, ExecutionPosition)
        now = after.database_now
        rows = [each.row for each in changes]
        seen = [SeenRow(row.execution_id, 0, row.outcome is not None, row.tick) for row in rows]
        return ExecutionPosition(now, position.executions.having_told(seen, now))

    def news(self, position: object, change: ExecutionChange) -> ExecutionChange | None:
        """The part of this change that was not told by that position: all of it, only its end, or None."""
        assert isinstance(position, ExecutionPosition)
        seen, execution_id = position.executions, change.row.execution_id
        if not seen.has_told(execution_id, ended=False):
            return change
        ended = change.row.outcome is not None and not seen.has_told(execution_id, ended=True)
        return change._replace(started=False) if ended else None

    def encode_position(self, position: object) -> bytes:
        """The bytes of a position, for a token that callers get."""
        assert isinstance(position, Position | ExecutionPosition)
        return encode_position(position)

    def decode_position(self, packed: bytes) -> Position | ExecutionPosition:
        """What encode_position gave. Raises ValueError for anything else."""
        return decode_position(packed)

    async def _deployed(self, changes: frozenset[tuple[int, int]]) -> list[int]:
        if not changes:
            return []
        records = await self._fetch(
            GetJobsOfDeployments(deployment_ids=sorted({deployment_id for deployment_id, _ in changes}))
        )
        return [record[0] for record in records]

    async def _fetch(self, statement: Statement) -> list[asyncpg.Record]:
        async with self._limited():
            return await self._database.fetch(statement)

    @contextlib.asynccontextmanager
    async def _limited(self) -> AsyncIterator[None]:
        async with self._free:
            yield


def _few(where: JobFilter) -> bool:
    """Whether an index finds few jobs for this filter. A namespace or a status may be that of most jobs."""
    return bool(where.labels or where.module)


def _rank(row: JobRow, sort: JobSort) -> int:
    """The `value` of RankJobs."""
    if sort is JobSort.NEXT:
        return _NONE if row.next_run_at is None else -row.next_run_at
    if sort is JobSort.LAST:
        return _NONE if row.last_run_at is None else row.last_run_at
    if sort is JobSort.LATENESS:
        if row.last_started_at is None or row.last_run_at is None:
            return _NONE
        return row.last_started_at - row.last_run_at
    if sort is JobSort.SUCCESS:
        return _NONE if row.last_outcome is None else -(row.last_success or 0)
    return row.failures


class _Columns(TypedDict):
    """The parameters of a filter of jobs."""

    namespace: str
    module: str
    verb: str
    statuses: Sequence[str]
    outcomes: Sequence[str]
    labels: str
    namespaces: Namespaces
    contains: Sequence[str]
    keys: Sequence[str]


def _columns(where: JobFilter) -> _Columns:
    return {
        "namespace": where.namespace,
        "module": where.module,
        "verb": where.verb,
        "statuses": where.statuses,
        "outcomes": where.outcomes,
        "labels": json.dumps(dict(where.labels)),
        "namespaces": where.namespaces,
        "contains": ["%" + _WILD.sub(r"\\\g<0>", lower(text)) + "%" for text in where.contains],
        "keys": where.keys,
    }


def _job_row(record: asyncpg.Record, skipped: tuple[tuple[str, int], ...]) -> JobRow:
    return JobRow._make((*record[:_SPEC_FIRST], spec_of(record[_SPEC_FIRST:]), skipped))


def _dated(records: list[asyncpg.Record]) -> frozenset[tuple[int, int]]:
    return frozenset((record["id"], record["instant"]) for record in records)


def _followed(stream: Stream, records: list[asyncpg.Record], now: int) -> tuple[Stream, list[int]]:
    rows = (SeenRow(record["id"], record["job_id"], record["ended"], record["tick"]) for record in records)
    return stream.after(rows, now)
