"""pg_cron as one more contender: cron inside PostgreSQL. It runs SQL: its no-op is `SELECT 1`, and nobody's own code.

On a PostgreSQL 15 of its own, as Debian has it for that (postgresql-15-cron). Settings, from its README
(https://github.com/citusdata/pg_cron):
- "Setting up pg_cron": shared_preload_libraries; background workers in place of connections
  (cron.use_background_workers), and max_worker_processes raised to as many as may run at once.
- "Extension settings": cron.max_running_jobs 32, the default with connections: 500 jobs on a loaded machine took 10.1 s
  with 8 background workers, 5.0 s with 32, 6.7 s with 64. cron.log_run on, the default, so that each run leaves a row
  in cron.job_run_details, as ours do; cron.log_statement off.
- "What is pg_cron?": five fields, the least of which is the minute.
A run's start and end are those of its row.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg

from bench.rivals.contenders import Scene
from bench.rivals.measure import POLL_S, NotDrainedError, Start
from tests.support.databases import PostgresServer, run_coroutine, running_server

AT_ONCE = 32
OTHERS = 8  # workers of PostgreSQL itself
SETTINGS = {
    "shared_preload_libraries": "pg_cron", "cron.use_background_workers": "on",
    "cron.max_running_jobs": str(AT_ONCE), "max_worker_processes": str(AT_ONCE + OTHERS),
    "cron.log_run": "on", "cron.log_statement": "off",
}  # fmt: skip
SCHEDULE = "SELECT cron.schedule('job_' || i, $1, 'SELECT 1') FROM generate_series(0, $2::integer - 1) i"
ENDED = "SELECT count(*) FROM cron.job_run_details WHERE start_time >= to_timestamp($1) AND end_time IS NOT NULL"
RUNS = """
SELECT date_part('epoch', d.start_time), substr(j.jobname, 5)::integer, date_part('epoch', d.end_time)
FROM cron.job_run_details d JOIN cron.job j USING (jobid) WHERE d.start_time >= to_timestamp($1)
"""


@contextlib.contextmanager
def server(folder: Path) -> Iterator[PostgresServer]:
    """A PostgreSQL 15 with pg_cron in its database `postgres`."""
    folder.mkdir()
    with running_server("postgres15", folder, durable=True) as made:
        made.stop()
        made.settings |= SETTINGS
        made.start()
        made.execute("CREATE EXTENSION pg_cron")
        yield made


class PgCron:
    """Its processes are PostgreSQL's."""

    unfinished = "SELECT EXISTS (SELECT FROM cron.job_run_details WHERE end_time IS NULL)"

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @property
    def pids(self) -> list[int]:
        return []

    def prepare(self) -> None:
        """Nothing: jobs that are scheduled run."""

    def start(self) -> None:
        run_coroutine(self._schedule())

    async def _schedule(self) -> None:
        connection = await asyncpg.connect(self._scene.database_url)
        try:
            assert self._scene.slot is not None
            await connection.execute("SET statement_timeout = '60s'")
            await connection.fetch(SCHEDULE, f"{self._scene.slot.minutes} * * * *", self._scene.jobs)
        finally:
            await connection.close()

    def enqueue(self, jobs: int) -> float:
        raise AssertionError(f"it has no queue for {jobs} one-shots")

    def died(self) -> str:
        return ""

    def stop(self) -> None:
        """Nothing: its server is stopped by whoever has started it."""

    async def watch(
        self, connection: asyncpg.Connection, tick: float, jobs: int, deadline: float
    ) -> tuple[list[Start], float]:
        """Starts, and when the last one ended. Raises NotDrainedError after the deadline."""
        while (ended := await connection.fetchval(ENDED, tick)) < jobs:
            if time.time() > deadline:
                raise NotDrainedError(f"{ended} of {jobs} had ended")
            await asyncio.sleep(POLL_S)
        runs = await connection.fetch(RUNS, tick)
        return [(start, number) for start, number, _ in runs], max(end for _, _, end in runs)
