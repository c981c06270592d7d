"""What scaling by slot would cost: cron_jobs in partitions by hash of slot, beside cron_jobs as it is.

Three scratch databases on one durable PostgreSQL: as migrated; with cron_jobs in eight partitions by hash of slot,
under the statements as they are, which name jobs by id alone; and so again, under statements that name the slot beside
the id. The same claims and ends through the real store, in turn, so that ratios hold whatever else the machine does.
Also what an execution leaves on the disk, and what a refetch of jobs that are due costs. docs/scaling.md says what
follows.
"""

import asyncio
import os
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import asyncpg
import click

from bench.limits_store import Worker, prepare
from bench.machine import machine
from bench.processes import spent_s
from bench.results import Part, head, keep, rows
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.sql.parameters import EndCronJob, StartCronJobs
from cronring.sql.records import Statement
from tests.proxies.statements import Tables, counted
from tests.support.databases import PostgresServer, running_server

PARTITIONS: Final = 8
REFETCHES: Final = 10
REFETCH: Final = ("window_job_bytes", "refetch_postgresql_us", "refetch_python_us")
SLOTS: Final = tuple(range(4_096))
BATCH: Final = 500
EXPERIMENT: Final = (Path(__file__).parent / "slots.sql").read_text()
# In the scratch databases a job's slot is computed from its id, so that a statement can name it without a parameter.
SLOT_OF_ID: Final = "UPDATE cron_jobs SET slot = id % 4096"
STORED: Final = """
SELECT (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('cron_executions') WHERE isleaf)
       / (SELECT count(*) FROM cron_executions) AS execution,
       pg_total_relation_size('cron_jobs') / (SELECT count(*) FROM cron_jobs) AS job
"""
# Where the two statements look a job up by its id, and the same with its slot.
BY_ID: Final = (
    ("WHERE id = w.job_id AND", "WHERE id = w.job_id AND slot = (w.job_id % 4096)::integer AND"),
    ("WHERE j.id = due.id\n", "WHERE j.id = due.id AND j.slot = (due.id % 4096)::integer\n"),
    (
        "LEFT JOIN cron_jobs j ON j.id = CASE WHEN a.execution_id IS NULL THEN a.job_id END",
        "LEFT JOIN cron_jobs j ON j.id = CASE WHEN a.execution_id IS NULL THEN a.job_id END\n"
        "  AND j.slot = CASE WHEN a.execution_id IS NULL THEN (a.job_id % 4096)::integer END",
    ),
    (
        "FROM cron_jobs j WHERE j.id = r.job_id) IS TRUE",
        "FROM cron_jobs j WHERE j.id = r.job_id AND j.slot = (r.job_id % 4096)::integer) IS TRUE",
    ),
    (
        "FROM cron_jobs WHERE id = u.job_id\n",
        "FROM cron_jobs WHERE id = u.job_id AND slot = (u.job_id % 4096)::integer\n",
    ),
    ("WHERE j.id = s.job_id\n", "WHERE j.id = s.job_id AND j.slot = (s.job_id % 4096)::integer\n"),
    (
        "FROM cron_jobs WHERE id = CASE WHEN a.freed_id IS NULL THEN a.job_id END",
        "FROM cron_jobs WHERE id = CASE WHEN a.freed_id IS NULL THEN a.job_id END\n"
        "      AND slot = CASE WHEN a.freed_id IS NULL THEN (a.job_id % 4096)::integer END",
    ),
)


class Variant(NamedTuple):
    name: str
    words: str
    partitions: int
    names_slot: bool


VARIANTS: Final = (
    Variant("whole", "cron_jobs as it is", 0, False),
    Variant("by_id", f"{PARTITIONS} partitions by slot, statements as they are", PARTITIONS, False),
    Variant("by_slot", f"{PARTITIONS} partitions by slot, statements name the slot", PARTITIONS, True),
)


def naming_slot(text: str) -> str:
    """The statement, with each look-up of a job by its slot as well."""
    for by_id, by_slot in BY_ID:
        text = text.replace(by_id, by_slot)
    return text


class _Naming(Database):
    """Runs claims and ends with slots named."""

    async def fetch(self, statement: Statement) -> list[asyncpg.Record]:
        if not isinstance(statement, StartCronJobs | EndCronJob):
            return await super().fetch(statement)
        text, *arguments = statement
        async with self._connection(statement.name) as connection:
            records: list[asyncpg.Record] = await connection.fetch(naming_slot(text), *arguments)
            return records


class Round(NamedTuple):
    """One round of one variant."""

    done: int
    seconds: float
    cost: Tables


class Bench:
    """One variant's database, and a worker that claims and ends its jobs."""

    def __init__(self, variant: Variant, database: Database, session: asyncpg.Connection, worker: Worker) -> None:
        self.variant = variant
        self.database = database
        self.session = session
        self.worker = worker
        self.rounds: list[Round] = []

    async def _counted(self) -> Tables:
        async with self.database._connection("counting") as own:  # noqa: SLF001  # the one that did the work has to tell
            return await counted(self.session, own)

    async def round(self, seconds: float) -> None:
        before = await self._counted()
        done, begun = self.worker.done, time.perf_counter()
        await self.worker.run(begun + seconds)
        took = time.perf_counter() - begun
        cost = (await self._counted()).since(before)
        self.rounds.append(Round(self.worker.done - done, took, cost))

    async def refetch(self, postmaster: int) -> dict[str, float]:
        """Of reading a job that is due: CPU time in us, PostgreSQL's and this process's; and its size in memory."""
        spent, served, read = time.process_time(), spent_s([postmaster]), 0
        for _ in range(REFETCHES):
            read += len((await self.worker.store.get_cron_jobs(SLOTS, 0))[1])
        spent, served = time.process_time() - spent, spent_s([postmaster]) - served
        tracemalloc.start()
        _, jobs = await self.worker.store.get_cron_jobs(SLOTS, 0)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return {
            "window_job_bytes": round(held / len(jobs)),
            "refetch_postgresql_us": round(served / read * 1e6, 1),
            "refetch_python_us": round(spent / read * 1e6, 1),
        }


@asynccontextmanager
async def scene(server: PostgresServer, variant: Variant, jobs: int) -> AsyncIterator[Bench]:
    """A scratch database of that variant, with jobs that are due."""
    url = server.url(server.create_database())
    session = await connect(url, "bench scene")
    try:
        if variant.partitions:
            await session.execute(EXPERIMENT)
            await session.execute("SELECT slots_partition($1)", variant.partitions)
        database = await (_Naming if variant.names_slot else Database).open(url, "bench", connections=1)
        try:
            store = PostgresStore(database)
            await prepare(store, session, jobs, 5)
            await session.execute(SLOT_OF_ID)
            await session.execute("VACUUM ANALYZE cron_jobs")
            _, found = await store.get_cron_jobs(SLOTS, 0)
            yield Bench(variant, database, session, Worker(store, found, BATCH))
        finally:
            await database.close()
    finally:
        await session.close()


async def _measure(server: PostgresServer, jobs: int, rounds: int, seconds: float) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        benches = [await stack.enter_async_context(scene(server, variant, jobs)) for variant in VARIANTS]
        for bench in benches:  # warms up
            await bench.round(seconds)
            bench.rounds.clear()
        for _ in range(rounds):
            for bench in benches:
                await bench.round(seconds)
        session = benches[0].session
        stored = await session.fetchrow(STORED)
        assert stored is not None
        return {
            "machine": machine(await session.fetchval("SHOW server_version")),
            "variants": [figures_of(bench.variant, bench.rounds, benches[0].rounds) for bench in benches],
            "execution_bytes": round(stored["execution"]),
            "job_bytes": round(stored["job"]),
            **await benches[0].refetch(server.pid),
        }


def figures_of(variant: Variant, own: list[Round], whole: list[Round]) -> dict[str, Any]:
    """Of an execution, over all rounds; the ratio is the median over rounds that were measured side by side."""
    done = sum(each.done for each in own)
    ratios = [mine.done / mine.seconds / (base.done / base.seconds) for mine, base in zip(own, whole, strict=True)]
    return {
        "name": variant.name,
        "words": variant.words,
        "per_second": round(median(each.done / each.seconds for each in own)),
        "of_whole": round(median(ratios), 2),
        "buffers": round(sum(each.cost.total("buffers") for each in own) / done, 1),
        # The least: later rounds may hold images of pages that a checkpoint has made due again.
        "wal_bytes": round(min(each.cost.wal_bytes / each.done for each in own)),
    }


def slots(jobs: int = 5_000, rounds: int = 5, seconds: float = 0.5) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="cronring-bench-") as folder,
        running_server("postgres18", Path(folder), durable=True) as server,
    ):
        result = asyncio.run(_measure(server, jobs, rounds, seconds))
    figures = {f"{name}_{each['name']}": each[name] for each in result["variants"] for name in ("of_whole", "buffers")}
    return {
        "name": "slots",
        "shape": {"jobs": jobs, "rounds": rounds, "seconds": seconds, "partitions": PARTITIONS},
        **result,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "figures": {
            **figures,
            "wal_bytes_each": result["variants"][0]["wal_bytes"],
            "execution_bytes": result["execution_bytes"],
            **{name: result[name] for name in ("job_bytes", *REFETCH)},
        },
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each variant."""
    cells = [
        [each["words"], f"{each['per_second']:,}", each["of_whole"], each["buffers"], f"{each['wal_bytes']:,}"]
        for each in result["variants"]
    ]
    load = result["load"]
    lines = [
        *head(result),
        f"Claims and ends of {BATCH} in a statement, one connection, fsync on. Load average {load['before']} before, "
        f"{load['after']} after.",
        "",
        *rows(["", "executions/s", "of cron_jobs as it is", "blocks touched each", "bytes of WAL each"], cells),
        "",
        f"On the disk, indexes included: {result['execution_bytes']} bytes an execution, {result['job_bytes']:,} a job "
        f"that has had some. A refetch takes {result['refetch_postgresql_us']} µs of PostgreSQL's CPU time and "
        f"{result['refetch_python_us']} µs of the controller's for each job that is due within its window, and "
        f"{result['window_job_bytes']} bytes there.",
    ]
    return "\n".join(lines) + "\n"


PART = Part("slots", 20, slots, table)


@click.command()
@click.option("--jobs", default=5_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=0.5, show_default=True, help="Of each round of each variant.")
def main(jobs: int, rounds: int, seconds: float) -> None:
    """Claims and ends with cron_jobs in partitions by slot, beside cron_jobs as it is."""
    click.echo(f"{len(VARIANTS)} variants, {rounds} rounds of {seconds} s each …", err=True)
    result = slots(jobs, rounds, seconds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
