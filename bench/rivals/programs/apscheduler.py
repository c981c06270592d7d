"""APScheduler 4: `prepare` makes its tables and schedules, `work` is one scheduler process that also runs jobs.

Settings, from its user guide (docs/userguide.rst):
- "Using persistent data stores": SQLAlchemyDataStore on asyncpg, as in examples/standalone/async_postgres.py; explicit
  ids and `ConflictPolicy.replace`.
- "Using multiple schedulers": a shared event broker; AsyncpgEventBroker.from_async_sqla_engine, as in
  examples/separate_worker/async_worker.py. Each scheduler in both roles, the default.
- "Explicitly assigning an identity to the scheduler": each has one.
- A task for each schedule, as 2,000 verbs are: a task's row is locked by whoever takes its jobs, so that one task for
  all would leave one process of them at work.
- `max_concurrent_jobs` stays at its default of 100; a process takes so many at once. Batches of schedules are fixed
  at 100. Its pages say nothing else of throughput. uvloop, as ours.
- 4.0 is a pre-release, and says that it is not for production.
"""

import os

from apscheduler import AsyncScheduler, ConflictPolicy
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.eventbrokers.asyncpg import AsyncpgEventBroker
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy.ext.asyncio import create_async_engine

from bench.rivals.programs.starts import Starts

JOBS = int(os.environ["JOBS"])
STARTS = Starts(os.environ["STARTS"])


async def no_op(number: int) -> None:
    STARTS.note(number)


def scheduler() -> AsyncScheduler:
    engine = create_async_engine(os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+asyncpg:", 1))
    broker = AsyncpgEventBroker(os.environ["DATABASE_URL"])
    return AsyncScheduler(SQLAlchemyDataStore(engine), broker, identity=f"scheduler-{os.getpid()}")


async def prepare() -> None:
    trigger = {"minute": os.environ["MINUTES"], "second": os.environ["SECOND"], "timezone": "UTC"}
    async with scheduler() as one:
        for number in range(JOBS):
            task = await one.configure_task(f"job_{number}", func=no_op)
            await one.add_schedule(
                task, CronTrigger(**trigger), id=f"job_{number}", args=(number,),
                conflict_policy=ConflictPolicy.replace,
            )  # fmt: skip


async def work() -> None:
    async with scheduler() as one:
        await one.run_until_stopped()
