"""PgQueuer: `prepare` makes its tables, `work` is one worker process, `enqueue` adds one-shots.

Settings, from its documentation (docs/guides, docs/comparisons):
- "Performance tuning": `batch_size` is to grow where jobs are short (default 10); 500 here, for one-shots.
  `max_concurrent_tasks` at least twice that. Durability "durable", the default. `pgq autovac` after installing.
  A direct asyncpg connection for a worker, not a pool ("Use a dedicated connection for LISTEN").
- "Deployment": `pgq install` once; several workers on one database.
- "Scheduling": `schedule(name, expression)`, six fields with the seconds last; an entrypoint for each job.
- "Benchmarks" (comparisons/benchmarks): asyncpg is 1.7 times as fast as psycopg; its own benchmark uses uvloop.
"""

import os
import time

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job, Schedule
from pgqueuer.queries import Queries

from bench.rivals.programs.starts import Starts

JOBS = int(os.environ["JOBS"])
STARTS = Starts(os.environ["STARTS"])
BATCH = 500


async def queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(os.environ["DATABASE_URL"])))


async def prepare() -> None:
    made = await queries()
    await made.install()
    await made.optimize_autovacuum()


def declare(queuer: PgQueuer, expression: str) -> None:
    for number in range(JOBS):

        async def no_op(schedule: Schedule, number: int = number) -> None:  # noqa: ARG001
            STARTS.note(number)

        queuer.schedule(f"job_{number}", expression, accepts_context=False)(no_op)


async def work() -> None:
    queuer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(os.environ["DATABASE_URL"]))

    async def no_op(job: Job) -> None:
        STARTS.note(int(job.payload or b"0"))

    queuer.entrypoint("no_op")(no_op)
    if "MINUTES" in os.environ:
        declare(queuer, f"{os.environ['MINUTES']} * * * * {os.environ['SECOND']}")
    await queuer.run(batch_size=BATCH, max_concurrent_tasks=2 * BATCH)


async def enqueue() -> None:
    numbers = range(JOBS)
    made = await queries()
    await made.enqueue(["no_op"] * JOBS, [b"%d" % number for number in numbers], [0] * JOBS)
    print(time.time())
