"""The books as of one instant, from PostgreSQL, for controller.services.audit and for "why"."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import asyncpg

from cronring.controller.core.figures import OUTCOMES
from cronring.controller.core.ledger.audit import RunCounts
from cronring.controller.core.ledger.audit_walk import AuditRun, SkipRange
from cronring.controller.core.ledger.books import Closed, JobStanding, Span
from cronring.controller.core.ledger.why_facts import ActionFact, Attempt, Facts, SkipFact, WaitingRun, WhyJob
from cronring.controller.ports.ledger import AuditReport, AuditRequest, CountedSkips, NumberedSpan, Twin, ZoneData
from cronring.controller.ports.reads import Namespaces
from cronring.controller.services.audit import audit
from cronring.controller.services.explaining import gather
from cronring.controller.store.pool import Database, Transaction
from cronring.sql.parameters import (
    CountRuns,
    CountSkips,
    GetActionsBefore,
    GetAttemptsOfTick,
    GetClosedBooks,
    GetNow,
    GetRunAfter,
    GetRunBefore,
    GetRunsInOrder,
    GetSkipAt,
    GetSkipBefore,
    GetSkipsInOrder,
    GetSpans,
    GetSpansAround,
    GetStandings,
    GetSubjects,
    GetTwins,
    GetWaiting,
    GetZoneData,
)

RUNS_COUNTED_AT_ONCE: Final = 10_000  # of each job of a page
_MICROSECOND: Final = timedelta(microseconds=1)


class PostgresLedger:
    """cronring.controller.ports.store.ledger.Ledger. A runner is alive if it was seen in the last `lost_after_ms`."""

    def __init__(self, database: Database, lost_after_ms: int) -> None:
        self._database = database
        self._lost_after_ms = lost_after_ms
        # An audit takes a connection for seconds; claims and ends need the others.
        self._auditing = asyncio.Semaphore(1)

    async def audit(self, request: AuditRequest) -> AuditReport:
        """In one snapshot; one audit at a time."""
        async with self._auditing, self._books("auditing") as books:
            return await audit(books, request)

    async def facts(self, key: str, at: int | None, namespaces: Namespaces = None) -> Facts:
        """In one snapshot."""
        async with self._books("reading the books") as books:
            return await gather(books, key, at, namespaces)

    @contextlib.asynccontextmanager
    async def _books(self, what: str) -> AsyncIterator["PostgresBooks"]:
        async with self._database.transaction(what, snapshot=True) as transaction:
            now: int = (await transaction.fetch(GetNow()))[0][0]
            yield PostgresBooks(transaction, now, self._lost_after_ms)


class PostgresBooks:
    """cronring.controller.ports.store.ledger.Books and cronring.controller.services.explaining.Archive, within one
    transaction.
    """

    def __init__(self, transaction: Transaction, now: int, lost_after_ms: int) -> None:
        self._transaction = transaction
        self._now = now
        self._lost_after_ms = lost_after_ms

    @property
    def now(self) -> int:
        return self._now

    async def standings(self, after_id: int, key: str, limit: int, namespaces: Namespaces = None) -> list[JobStanding]:
        """How jobs stand, removed ones too, in order of ids."""
        wanted = GetStandings(after_id=after_id, key=key, limit=limit, namespaces=namespaces)
        records = await self._transaction.fetch(wanted)
        return list(map(JobStanding._make, records))

    async def spans(self, job_ids: list[int], since: int, after: tuple[int, int], limit: int) -> list[NumberedSpan]:
        """In order of job and revision."""
        after_job_id, after_revision = after
        records = await self._transaction.fetch(
            GetSpans(
                job_ids=job_ids, since=since, after_job_id=after_job_id, after_revision=after_revision, limit=limit
            )
        )
        return [NumberedSpan(job_id, revision, Span(*span)) for job_id, revision, *span in records]

    async def closed(self, job_ids: list[int]) -> list[Closed]:
        """What retention has summarised."""
        records = await self._transaction.fetch(GetClosedBooks(job_ids=job_ids))
        return [_closed(record) for record in records]

    async def count_runs(
        self, job_ids: list[int], afters: list[int], until: int, late_after: int
    ) -> dict[int, RunCounts]:
        """Counts by job. Each statement reads a bounded number of a job's rows, and there are as many as it takes."""
        found: dict[int, RunCounts] = {}
        while job_ids:
            records = await self._transaction.fetch(
                CountRuns(
                    job_ids=job_ids,
                    after_ticks=afters,
                    until_tick=until,
                    limit=RUNS_COUNTED_AT_ONCE,
                    late_after_us=late_after,
                )
            )
            for record in records:
                found[record["job_id"]] = _added(found.get(record["job_id"], RunCounts()), record)
            more = [record for record in records if record["executions"] >= RUNS_COUNTED_AT_ONCE]
            job_ids = [record["job_id"] for record in more]
            afters = [record["last_tick"] for record in more]
        return found

    async def count_skips(self, job_ids: list[int], afters: list[int], until: int) -> list[CountedSkips]:
        """Counts by job and reason. Ranges that reach beyond the audited time are counted apart."""
        records = await self._transaction.fetch(CountSkips(job_ids=job_ids, after_ticks=afters, until_tick=until))
        return list(map(CountedSkips._make, records))

    async def runs(self, job_id: int, after: tuple[int, int], until: int, limit: int) -> list[AuditRun]:
        """By tick and attempt."""
        after_tick, after_attempt = after
        records = await self._transaction.fetch(
            GetRunsInOrder(
                job_id=job_id, after_tick=after_tick, after_attempt=after_attempt, until_tick=until, limit=limit
            )
        )
        return list(map(AuditRun._make, records))

    async def skips(self, job_id: int, after: tuple[int, int], until: int, limit: int) -> list[SkipRange]:
        """By first tick."""
        after_tick, after_id = after
        records = await self._transaction.fetch(
            GetSkipsInOrder(job_id=job_id, after_tick=after_tick, after_id=after_id, until_tick=until, limit=limit)
        )
        return list(map(SkipRange._make, records))

    async def skip_reaching(self, job_id: int, beyond: int) -> SkipRange | None:
        """The range that begins at or before an instant and reaches beyond it."""
        records = await self._transaction.fetch(GetSkipBefore(job_id=job_id, instant=beyond))
        return SkipRange._make(records[0]) if records else None

    async def twins(self, after: int, until: int, limit: int) -> list[Twin]:
        """Ticks that two jobs of one key have both run."""
        records = await self._transaction.fetch(GetTwins(after_tick=after, until_tick=until, limit=limit))
        return list(map(Twin._make, records))

    async def zone_data(self) -> list[ZoneData]:
        """In the order of their first use."""
        return list(map(ZoneData._make, await self._transaction.fetch(GetZoneData())))

    async def subjects(self, key: str) -> list[WhyJob]:
        """The jobs of a key, the newest first."""
        records = await self._transaction.fetch(GetSubjects(key=key, lost_after_ms=self._lost_after_ms))
        return list(map(WhyJob._make, records))

    async def spans_around(self, job_id: int, at: int, limit: int) -> list[Span]:
        """In order."""
        records = await self._transaction.fetch(GetSpansAround(job_id=job_id, instant=at, limit=limit))
        return list(map(Span._make, records))

    async def attempts(self, job_id: int, tick: int, limit: int) -> list[Attempt]:
        """At one tick; the latest first."""
        records = await self._transaction.fetch(GetAttemptsOfTick(job_id=job_id, tick=tick, limit=limit))
        return list(map(Attempt._make, records))

    async def run_before(self, job_id: int, instant: int) -> Attempt | None:
        """The latest run of a tick before `instant`."""
        records = await self._transaction.fetch(GetRunBefore(job_id=job_id, instant=instant))
        return Attempt._make(records[0]) if records else None

    async def run_after(self, job_id: int, instant: int) -> Attempt | None:
        """The first run by schedule of a tick after `instant`."""
        records = await self._transaction.fetch(GetRunAfter(job_id=job_id, instant=instant))
        return Attempt._make(records[0]) if records else None

    async def skip_at(self, job_id: int, tick: int) -> SkipFact | None:
        """The range that a tick is in."""
        records = await self._transaction.fetch(GetSkipAt(job_id=job_id, tick=tick))
        return SkipFact._make(records[0]) if records else None

    async def waiting(self, job_id: int, limit: int) -> list[WaitingRun]:
        """What waits beside the schedule, the next one first."""
        return list(map(WaitingRun._make, await self._transaction.fetch(GetWaiting(job_id=job_id, limit=limit))))

    async def actions_before(self, job_id: int, instant: int, limit: int) -> list[ActionFact]:
        """By operators; the latest first."""
        records = await self._transaction.fetch(GetActionsBefore(job_id=job_id, instant=instant, limit=limit))
        return [ActionFact._make((*record[:4], json.loads(record["details"]))) for record in records]


def _closed(record: asyncpg.Record) -> Closed:
    row = Closed._make(record)
    return row._replace(skipped=json.loads(record["skipped"]), outcomes=json.loads(record["outcomes"]))


def _added(before: RunCounts, record: asyncpg.Record) -> RunCounts:
    """Add what one more statement has counted of the job."""
    outcomes = Counter(dict(before.outcomes))
    outcomes.update({name: record[name] for name in OUTCOMES if record[name]})
    outcomes["running"] += record["executions"] - sum(record[name] for name in OUTCOMES)
    ahead_of_run = record["ahead_of_run"] // _MICROSECOND
    ahead_of_tick = record["ahead_of_tick"]
    return RunCounts(
        before.on_time + record["on_time"],
        before.late + record["late"],
        before.caught_up + record["caught_up"],
        before.running + record["running"],
        before.again + record["again"],
        before.backfills + record["backfills"],
        max(before.ahead_of_run, ahead_of_run),
        before.ahead_of_tick if ahead_of_tick is None else max(before.ahead_of_tick, ahead_of_tick // _MICROSECOND),
        tuple(sorted((name, executions) for name, executions in outcomes.items() if executions)),
    )
