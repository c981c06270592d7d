"""What `cronring audit` costs: 10,000 jobs with a day of books, through PostgresLedger, with no scheduler beside it.

    python -m bench.audit [--jobs 10000] [--ticks 96] [--wrong 10]

A job comes each quarter of an hour, in UTC or in a zone. Of each 16 ticks one is skipped, in a range of its own.
`--wrong` jobs miss a tick. Prints JSON.
"""

import argparse
import asyncio
import json
import resource
import time
from typing import Any

from bench.machine import machine
from cronring.controller.core.ledger.audit import LATE_AFTER_US
from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.ledger import PostgresLedger
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.support.databases import running_server

QUARTER_US = 15 * 60 * 1_000_000
HOUR_US = 3_600 * 1_000_000
_JOBS_OF_A_MODULE = 2_000
_ZONE = Policy(timezone="Europe/Berlin")
_OPEN = "UPDATE cron_schedules SET from_at = $1"
_JOBS = "UPDATE cron_jobs SET last_tick = $1, next_tick = $2, next_execution = $2"
_RUNS = """
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             controller_id, runner_id, hard_deadline)
SELECT j.id, j.deployment_id, t.tick, t.tick, t.tick, t.tick, t.tick, 'completed', 'c', 'r', t.tick
FROM cron_jobs j
CROSS JOIN generate_series(0, $2::integer - 1) n
CROSS JOIN LATERAL (SELECT $1::timestamptz + n * interval '15 minutes' AS tick) t
WHERE n % 16 <> 7
"""
_SKIPS = """
INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
SELECT j.id, 'overlap', t.tick, t.tick, 1, 'c'
FROM cron_jobs j
CROSS JOIN generate_series(7, $2::integer - 1, 16) n
CROSS JOIN LATERAL (SELECT $1::timestamptz + n * interval '15 minutes' AS tick) t
"""
_LOSE = "DELETE FROM cron_executions WHERE tick = $1 AND job_id IN (SELECT id FROM cron_jobs ORDER BY id DESC LIMIT $2)"


async def fill(database: Database, connection: Connection, jobs: int, ticks: int) -> tuple[int, int]:
    """The books; their first and last tick."""
    store = PostgresStore(database)
    for first in range(0, jobs, _JOBS_OF_A_MODULE):
        verbs = tuple(
            Verb(f"job_{number}", schedule="*/15 * * * *", policy=_ZONE if number % 4 == 0 else Policy())
            for number in range(first, min(first + _JOBS_OF_A_MODULE, jobs))
        )
        await store.create_deployment(Module(f"bench_{first}", verbs), f"{first:064}", 1, 60_000, True)
    now: int = await connection.fetchval("SELECT now()")
    last = now - now % QUARTER_US
    opens = last - ticks * QUARTER_US
    await connection.execute(_OPEN, opens)
    await connection.execute(_JOBS, last, last + QUARTER_US)
    await connection.execute(_RUNS, opens + QUARTER_US, ticks)
    await connection.execute(_SKIPS, opens + QUARTER_US, ticks)
    await connection.execute("ANALYZE")
    return opens + QUARTER_US, last


async def timed(ledger: PostgresLedger, since: int | None, *, thorough: bool, rounds: int = 3) -> dict[str, Any]:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        found = (await ledger.audit(AuditRequest(since, None, "", LATE_AFTER_US, thorough))).audit
        taken.append(time.perf_counter() - started)
    return {
        "seconds": round(sorted(taken)[rounds // 2], 2), "ticks": found.ticks, "walked": found.walked,
        "unaccounted": found.unaccounted, "us_per_job": round(min(taken) / found.jobs * 1e6),
    }  # fmt: skip


async def measure(url: str, jobs: int, ticks: int, wrong: int) -> dict[str, Any]:
    database = await Database.open(url, "cronring bench")
    connection = await connect(url, "cronring bench")
    try:
        first, last = await fill(database, connection, jobs, ticks)
        ledger = PostgresLedger(database, 10_000)
        before_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found: dict[str, Any] = {
            "counted": await timed(ledger, None, thorough=False),
            "counted, of the last hour": await timed(ledger, last - HOUR_US, thorough=False),
            "thorough": await timed(ledger, None, thorough=True, rounds=1),
        }
        await connection.execute(_LOSE, first, wrong)
        found[f"counted, {wrong} jobs wrong"] = await timed(ledger, None, thorough=False)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before_mib
        found["memory_grown_mib"] = round(grown, 1)
        found["machine"] = machine(str(await connection.fetchval("SHOW server_version")))
        return found
    finally:
        await connection.close()
        await database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--ticks", type=int, default=96)
    parser.add_argument("--wrong", type=int, default=10)
    options = parser.parse_args()
    with running_server("postgres18") as server:
        url = server.url(server.create_database())
        print(json.dumps(asyncio.run(measure(url, options.jobs, options.ticks, options.wrong)), indent=1))


if __name__ == "__main__":
    main()
