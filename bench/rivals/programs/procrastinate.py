"""Procrastinate: `prepare` makes its schema, `work` is one worker process, `enqueue` defers one-shots.

Settings, from its documentation (docs/howto):
- "Launch a task periodically" (advanced/cron): one task with many schedules, told apart by `periodic_id`; seconds in
  the 6th column. Each worker defers every period, and the database lets the first one win.
- "Execute multiple jobs at the same time" (production/concurrency): `concurrency=30`, the page's own figure.
- "Limit the number of opened connections" (production/connections): the pool's default. LISTEN/NOTIFY on, the default.
- "Delete finished jobs" (production/delete_finished_jobs): kept, the default, as ours keeps a row for each execution.
- "Batch defer multiple jobs" (basics/batch_defer): one-shots in one call.
PsycopgConnector, the async one that workers need, with psycopg's wheels in C. uvloop, as ours.
"""

import os
import time

from procrastinate import App, PsycopgConnector

from bench.rivals.programs.starts import Starts

JOBS = int(os.environ["JOBS"])
STARTS = Starts(os.environ["STARTS"])
CONCURRENCY = 30

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


async def no_op(number: int, timestamp: int = 0) -> None:  # noqa: ARG001  (its periodic tasks are given their tick)
    STARTS.note(number)


task = app.task(name="no_op")(no_op)


def declare_periodic() -> None:
    cron = f"{os.environ['MINUTES']} * * * * {os.environ['SECOND']}"
    for number in range(JOBS):
        app.periodic(cron=cron, periodic_id=f"job_{number}", task_kwargs={"number": number})(task)


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def work() -> None:
    if "MINUTES" in os.environ:
        declare_periodic()
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY)


async def enqueue() -> None:
    async with app.open_async():
        await task.batch_defer_async(*({"number": number} for number in range(JOBS)))
        print(time.time())
