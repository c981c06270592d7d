"""Claims and ends through the real store on a real PostgreSQL, 2,000 in a burst and 500 in a batch: what they cost it.

One connection, no other work, no autovacuum: rows, buffers and bytes of WAL are the same each time, to a few percent.
"""

import asyncio
import time
from typing import Any, Final, NamedTuple

import asyncpg

from cronring.controller.core.model import ClaimRequest, ClaimResult, EndRequest, Job, RunnerInfo
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.execution import Outcome, Report
from cronring.schema.module import Module, Verb
from tests.proxies.statements import CountingServer, Tables, counted, counting_server

JOBS: Final = 2_000
BATCH: Final = 500
WARM: Final = 3  # bursts, until pages are as full as they stay
PERIOD_US: Final = 10_000_000
WINDOW_JOBS: Final = 10_000
WINDOW_DUE: Final = 100
SLOTS: Final = tuple(range(4_096))
TO = "UPDATE cron_jobs SET next_tick = $1, next_execution = $1"
NOT_TODAY = """
UPDATE cron_jobs SET next_tick = next_tick + interval '1 day', next_execution = next_execution + interval '1 day'
WHERE id > $1
"""
ME: Final = ControllerInfo("proxies", "host:1", "host:2", 1, "1")


class Burst(NamedTuple):
    claims: Tables
    ends: Tables


class Books:
    """A store with jobs that are due every ten seconds, and a session that looks on."""

    def __init__(self, database: Database, session: asyncpg.Connection) -> None:
        self._database = database
        self.store = PostgresStore(database)
        self.session = session
        self._deployment = ""

    async def deploy(self, jobs: int, first_tick: int) -> None:
        verbs = tuple(Verb(f"job_{number}", schedule="*/10 * * * * *", is_async=True) for number in range(jobs))
        module = Module("proxies", verbs)
        self._deployment = (await self.store.create_deployment(module, "a" * 64, 1, 300_000, True)).key
        await self.store.register_runner(RunnerInfo("r1", "host", 1, "1", (self._deployment,)))
        await self.session.execute(TO, first_tick)
        await self.session.execute("VACUUM ANALYZE")
        await self.store.renew_lease(ME, False, 60_000, ("r1",), 8_750)

    async def counted(self) -> Tables:
        async with self._database._connection("counting") as own:
            return await counted(self.session, own)

    async def burst(self, tick: int) -> Burst:
        """All that are due at that tick: claimed, then ended."""
        _, jobs = await self.store.get_cron_jobs(SLOTS, 0)
        assert len(jobs) == JOBS
        jobs.sort()
        before = await self.counted()
        claimed = await self._claim(jobs, tick)
        between = await self.counted()
        ends = [self._end(job, each, tick) for job, each in zip(jobs, claimed, strict=True)]
        for first in range(0, JOBS, BATCH):
            results = await self.store.end_cron_jobs(ME.controller_id, ends[first : first + BATCH])
            assert all(each.ended for each in results)
        after = await self.counted()
        return Burst(between.since(before), after.since(between))

    async def _claim(self, jobs: list[Job], tick: int) -> list[ClaimResult]:
        claimed: list[ClaimResult] = []
        for first in range(0, JOBS, BATCH):
            claims = [
                ClaimRequest(job.job_id, tick, tick, tick, "r1", self._deployment, (), revision=job.revision)
                for job in jobs[first : first + BATCH]
            ]
            claimed += (await self.store.start_cron_jobs(ME.controller_id, claims, 30_000))[1]
        assert all(each.updated for each in claimed)
        return claimed

    def _end(self, job: Job, claimed: ClaimResult, tick: int) -> EndRequest:
        at, execution_id = claimed.claimed_at, claimed.execution_id
        assert at is not None
        assert execution_id is not None
        report = Report(
            execution_id, job.job_id, at, Outcome.COMPLETED, at + 300, at + 400, "", "", "",
            cpu_us=70, memory_peak_bytes=30_000_000, memory_shared=True,
        )  # fmt: skip
        return EndRequest(report, tick, job.revision, tick + PERIOD_US, tick + PERIOD_US, ())


async def _with_books(url: str, jobs: int, first_tick: int, work: Any) -> Any:
    database = await Database.open(url, "cronring proxies", connections=1)
    session = await connect(url, "looks on", {})
    try:
        books = Books(database, session)
        await books.deploy(jobs, first_tick)
        return await work(books)
    finally:
        await session.close()
        await database.close()


def _burst(server: CountingServer) -> Burst:
    first = int(time.time()) * 1_000_000 - (WARM + 2) * PERIOD_US

    async def work(books: Books) -> Burst:
        for number in range(WARM):
            await books.burst(first + number * PERIOD_US)
        return await books.burst(first + WARM * PERIOD_US)

    found: Burst = asyncio.run(_with_books(server.new_database(), JOBS, first, work))
    return found


def _window(server: CountingServer) -> Tables:
    """A refetch of all slots: 10,000 jobs, of which 100 are due."""

    async def work(books: Books) -> Tables:
        middle = await books.session.fetchval("SELECT min(id) + $1 - 1 FROM cron_jobs", WINDOW_DUE)
        await books.session.execute(NOT_TODAY, middle)
        await books.session.execute("VACUUM ANALYZE cron_jobs")
        before = await books.counted()
        _, jobs = await books.store.get_cron_jobs(SLOTS, 90_000)
        assert len(jobs) == WINDOW_DUE
        return (await books.counted()).since(before)

    found: Tables = asyncio.run(_with_books(server.new_database(), WINDOW_JOBS, int(time.time()) * 1_000_000, work))
    return found


def measure() -> dict[str, float]:
    """Of one execution: what PostgreSQL does for its claim and its end. Of a refetch: for each job that is due."""
    with counting_server() as server:
        (claims, ends), window = _burst(server), _window(server)
    figures: dict[str, float] = {}
    for name, tables in (("claim", claims), ("end", ends)):
        figures[f"{name}_buffers"] = tables.total("buffers") / JOBS
        figures[f"{name}_wal_bytes"] = tables.wal_bytes / JOBS
        figures[f"{name}_rows_read"] = tables.total("read") / JOBS
        figures[f"{name}_rows_inserted"] = tables.total("inserted") / JOBS
        figures[f"{name}_rows_updated"] = tables.total("updated") / JOBS
        figures[f"{name}_rows_moved"] = tables.total("moved") / JOBS
    figures["refetch_rows_per_due"] = window.tables["cron_jobs"]["read"] / WINDOW_DUE
    figures["refetch_buffers_per_due"] = window.tables["cron_jobs"]["buffers"] / WINDOW_DUE
    return figures
