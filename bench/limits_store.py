"""Bare claims and ends through PostgresStore: what the database and its client cost an execution, with no scheduler.

    python -m bench.limits_store [--jobs 20000] [--batch 500] [--connections 2] [--seconds 10] [--partitions 34]

A durable PostgreSQL 18 (fsync and synchronous_commit on) on the same cores. Prints JSON.
"""

import argparse
import asyncio
import json
import statistics
import time

from bench.processes import spent_s
from cronring.controller.core.model import ClaimRequest, EndRequest, Job, RunnerInfo
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.execution import Outcome, Report
from cronring.schema.module import Module, Verb
from tests.support.databases import PostgresServer, running_server

CONTROLLER = ControllerInfo("bench", "127.0.0.1:1", "127.0.0.1:2", 1, "bench")
PAST = 3_600 * 1_000_000  # ticks are an hour old, so that each job has as many due as wanted


class Worker:
    """Claims and ends its own jobs, batch after batch, each job at one tick after another."""

    def __init__(self, store: PostgresStore, jobs: list[Job], batch: int) -> None:
        self.store = store
        self.batches = [sorted(jobs[first : first + batch]) for first in range(0, len(jobs), batch)]
        self.ticks = {job.job_id: job.next_tick or 0 for job in jobs}
        self.done = 0
        self.claims_ms: list[float] = []
        self.ends_ms: list[float] = []

    async def run(self, until: float) -> None:
        while time.perf_counter() < until:
            for batch in self.batches:
                await self.one(batch)
                if time.perf_counter() >= until:
                    return

    async def one(self, batch: list[Job]) -> None:
        ticks = self.ticks
        requests = [
            ClaimRequest(job.job_id, ticks[job.job_id], ticks[job.job_id], ticks[job.job_id], "r1", job.deployment, ())
            for job in batch
        ]
        started = time.perf_counter()
        _, claimed = await self.store.start_cron_jobs("bench", requests, 30_000)
        claimed_at = time.perf_counter()
        ends = []
        for result in claimed:
            assert result.execution_id is not None, result
            ticks[result.job_id] += 1_000_000
            at = result.claimed_at
            report = Report(
                result.execution_id, result.job_id, at, Outcome.COMPLETED, at, at, "", "", "a line of output\n"
            )
            ends.append(
                EndRequest(
                    report,
                    ticks[result.job_id] - 1_000_000,
                    result.revision,
                    ticks[result.job_id],
                    ticks[result.job_id],
                    (),
                )
            )
        ending = time.perf_counter()
        ended = await self.store.end_cron_jobs("bench", ends)
        assert all(result.ended for result in ended)
        self.claims_ms.append((claimed_at - started) * 1e3)
        self.ends_ms.append((time.perf_counter() - ending) * 1e3)
        self.done += len(batch)


async def prepare(store: PostgresStore, connection: Connection, jobs: int, partitions: int) -> list[Job]:
    await connection.execute("SELECT cron_add_partition('infinity') FROM generate_series(5, $1)", partitions)
    await store.renew_lease(CONTROLLER, False, 3_600_000, (), 8_750)
    await store.register_runner(RunnerInfo("r1", "bench", 1, "bench", ()))
    for first in range(0, jobs, 5_000):
        verbs = tuple(Verb(f"v{number}", schedule="1s") for number in range(first, min(first + 5_000, jobs)))
        module = Module(f"bench{first}", verbs)
        await store.create_deployment(module, f"{first:064}", 1, 300_000, True)
    await connection.execute(
        "UPDATE cron_jobs SET next_tick = next_tick - $1 * interval '1 microsecond', "
        "next_execution = next_execution - $1 * interval '1 microsecond'",
        PAST,
    )
    await connection.execute("VACUUM ANALYZE cron_jobs")
    _, found = await store.get_cron_jobs(tuple(range(4096)), 0)
    return found


async def measure(
    server: PostgresServer, jobs: int, batch: int, connections: int, seconds: float, partitions: int
) -> dict[str, object]:
    url = server.url(server.create_database())
    database = await Database.open(url, "bench", connections=connections + 1)
    connection = await connect(url, "bench scene")
    try:
        store = PostgresStore(database)
        found = await prepare(store, connection, jobs, partitions)
        assert len(found) == jobs
        workers = [Worker(store, found[number::connections], batch) for number in range(connections)]
        cpu, started = time.process_time(), time.perf_counter()
        served = spent_s([server.pid])
        await asyncio.gather(*(worker.run(started + seconds) for worker in workers))
        elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu
        served = spent_s([server.pid]) - served
        done = sum(worker.done for worker in workers)
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        updates = await connection.fetchrow(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'cron_jobs'"
        )
        assert updates is not None
        return {
            "executions_per_s": round(done / elapsed),
            "python_us_per_execution": round(cpu / done * 1e6, 1),
            "postgres_us_per_execution": round(served / done * 1e6, 1),
            "claim_ms_p50": round(statistics.median(ms for worker in workers for ms in worker.claims_ms), 1),
            "end_ms_p50": round(statistics.median(ms for worker in workers for ms in worker.ends_ms), 1),
            "job_updates": updates[0],
            "job_updates_heap_only": updates[1],
            "executions": done, "jobs": jobs, "batch": batch, "connections": connections, "partitions": partitions,
        }  # fmt: skip
    finally:
        await connection.close()
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--partitions", type=int, default=34, help="days of history")
    options = parser.parse_args()
    with running_server("postgres18", durable=True) as server:
        result = asyncio.run(
            measure(server, options.jobs, options.batch, options.connections, options.seconds, options.partitions)
        )
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
