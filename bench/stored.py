"""What an execution leaves behind, and what a refetch costs: bytes of WAL, bytes on the disk, CPU time of a look.

Claims and ends go through the real store in full batches, by one connection, on a durable PostgreSQL. Then the jobs
that are due are read, as a controller does each minute. docs/scaling.md reckons with these.
"""

import asyncio
import os
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any, Final

import asyncpg
import click

from bench.limits_store import Worker, prepare
from bench.machine import machine
from bench.processes import spent_s
from bench.results import Part, head, keep
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from tests.proxies.statements import Tables, counted
from tests.support.databases import PostgresServer, running_server

REFETCHES: Final = 10
SLOTS: Final = tuple(range(4_096))
BATCH: Final = 500
STORED: Final = """
SELECT (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('cron_executions') WHERE isleaf)
       / (SELECT count(*) FROM cron_executions) AS execution,
       pg_total_relation_size('cron_jobs') / (SELECT count(*) FROM cron_jobs) AS job
"""


async def _wal_bytes(worker: Worker, database: Database, session: asyncpg.Connection, seconds: float) -> float:
    """Of an execution, in one round."""

    async def now() -> Tables:
        async with database._connection("counting") as own:  # noqa: SLF001  # the one that did the work has to tell
            return await counted(session, own)

    before, done = await now(), worker.done
    await worker.run(time.perf_counter() + seconds)
    return (await now()).since(before).wal_bytes / (worker.done - done)


async def _refetch(store: PostgresStore, postmaster: int) -> dict[str, float]:
    """Of reading a job that is due: CPU time in us, PostgreSQL's and this process's; and its size in memory."""
    spent, served, read = time.process_time(), spent_s([postmaster]), 0
    for _ in range(REFETCHES):
        read += len((await store.get_cron_jobs(SLOTS, 0))[1])
    spent, served = time.process_time() - spent, spent_s([postmaster]) - served
    tracemalloc.start()
    _, jobs = await store.get_cron_jobs(SLOTS, 0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "window_job_bytes": round(held / len(jobs)),
        "refetch_postgresql_us": round(served / read * 1e6, 1),
        "refetch_python_us": round(spent / read * 1e6, 1),
    }


async def _measure(server: PostgresServer, jobs: int, rounds: int, seconds: float) -> dict[str, Any]:
    url = server.url(server.create_database())
    session = await connect(url, "bench scene")
    database = await Database.open(url, "bench", connections=1)
    try:
        store = PostgresStore(database)
        await prepare(store, session, jobs, 5)
        await session.execute("VACUUM ANALYZE cron_jobs")
        worker = Worker(store, (await store.get_cron_jobs(SLOTS, 0))[1], BATCH)
        await worker.run(time.perf_counter() + seconds)  # warms up
        # The least: later rounds may hold images of pages that a checkpoint has made due again.
        wal_bytes = min([await _wal_bytes(worker, database, session, seconds) for _ in range(rounds)])
        stored = await session.fetchrow(STORED)
        assert stored is not None
        return {
            "machine": machine(await session.fetchval("SHOW server_version")),
            "figures": {
                "wal_bytes_each": round(wal_bytes),
                "execution_bytes": round(stored["execution"]),
                "job_bytes": round(stored["job"]),
                **await _refetch(store, server.pid),
            },
        }
    finally:
        await database.close()
        await session.close()


def stored(jobs: int = 5_000, rounds: int = 5, seconds: float = 0.5) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="cronring-bench-") as folder,
        running_server("postgres18", Path(folder), durable=True) as server,
    ):
        result = asyncio.run(_measure(server, jobs, rounds, seconds))
    return {
        "name": "stored",
        "shape": {"jobs": jobs, "rounds": rounds, "seconds": seconds},
        **result,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
    }


def table(result: dict[str, Any]) -> str:
    """Markdown."""
    load, figures = result["load"], result["figures"]
    lines = [
        *head(result),
        f"Claims and ends of {BATCH} in a statement, one connection, fsync on. Load average {load['before']} before, "
        f"{load['after']} after.",
        "",
        f"An execution writes {figures['wal_bytes_each']:,} bytes of WAL. On the disk, indexes included: "
        f"{figures['execution_bytes']} bytes an execution, {figures['job_bytes']:,} a job that has had some. A refetch "
        f"takes {figures['refetch_postgresql_us']} µs of PostgreSQL's CPU time and {figures['refetch_python_us']} µs "
        f"of the controller's for each job that is due within its window, and {figures['window_job_bytes']} bytes.",
    ]
    return "\n".join(lines) + "\n"


PART = Part("stored", 10, stored, table)


@click.command()
@click.option("--jobs", default=5_000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--seconds", default=0.5, show_default=True, help="Of each round.")
def main(jobs: int, rounds: int, seconds: float) -> None:
    """Bytes of WAL and on the disk of an execution, and what a refetch costs."""
    result = stored(jobs, rounds, seconds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
