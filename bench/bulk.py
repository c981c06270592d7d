"""Jobs in bulk: what it takes to make many by one call after the other, and whom that disturbs.

Three controllers, each with a watched loop, and a runner. CreateJobs makes so many jobs, up to 10,000 by a call. The
clock runs from the first call until the last answer. The last job of all ticks each second, the others once a month.
From that answer until that job has begun is what its first tick took.
A hold is how long a loop could not turn. Some of it is another process's, as there are more processes than cores: so
its thread's CPU in a hold stands beside.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import asyncpg
import click

from bench import loop_watch
from bench.fleet import NO_OP_MODULE, Fleet, fleet, until_deployed
from bench.machine import machine
from bench.results import head, rows, show
from cronring.client import AsyncClient
from cronring.client.many import JobToMake
from cronring.client.model import JobSpec
from tests.support.looking import look

SIZES: Final = (1_000, 10_000)
AT_ONCE: Final = 10_000  # jobs of a call
CONTROLLERS: Final = 3
STARTED_S: Final = 60.0
POLL_S: Final = 0.02
STARTED: Final = """
SELECT extract(epoch FROM e.started_at)::float8, extract(epoch FROM e.run_at)::float8
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id WHERE j.key = $1 AND e.started_at IS NOT NULL
ORDER BY e.id LIMIT 1
"""


def jobs(size: int) -> list[JobToMake]:
    """Hardly any is due meanwhile, but for the last one."""
    schedules = [f"{number % 60} {number % 24} 1 * *" for number in range(size - 1)] + ["every 1s"]
    specs = [
        JobSpec(schedule, payload={"n": number}, labels={"batch": str(size)})
        for number, schedule in enumerate(schedules)
    ]
    return [JobToMake("bulk", "run", f"n{size}-{number}", spec) for number, spec in enumerate(specs)]


class Bench:
    """A cluster under watch. `holds`: where its controllers' watches write."""

    def __init__(self, running: Fleet, connection: asyncpg.Connection, holds: Path) -> None:
        self._running = running
        self._connection = connection
        self._holds = holds

    async def made(self, client: AsyncClient, size: int) -> dict[str, Any]:
        """Make so many."""
        wanted = jobs(size)
        await asyncio.sleep(2)  # what went before is over
        began, spent, cpu_s = time.time(), self._running.spent_s(), self._running.controllers_cpu_s()
        for first in range(0, size, AT_ONCE):
            done = await client.jobs.create_many(wanted[first : first + AT_ONCE])
            assert done.changed == len(done.results), done.results[0]
        created = time.time()
        key = f"bulk.run:n{size}-{size - 1}"
        started, run_at = await self._started(key)
        await client.jobs.delete(key)
        await asyncio.sleep(1)
        held = [
            loop_watch.longest(self._holds, each.pid, began, time.time()) for each in self._running.cluster.controllers
        ]
        after = self._running.spent_s()
        return {
            "jobs": size,
            "created_s": round(created - began, 2),
            "tick_s": round(started - created, 2),
            "late_ms": round(1_000 * (started - run_at), 1),
            "hold_ms": [round(each[0]) for each in held],
            "held_cpu_ms": [round(each[1]) for each in held],
            "cpu_s": [
                round(now - before, 2) for now, before in zip(self._running.controllers_cpu_s(), cpu_s, strict=True)
            ],
            "postgresql_s": round(after["postgresql"] - spent["postgresql"], 2),
        }

    async def _started(self, key: str) -> tuple[float, float]:
        async with asyncio.timeout(STARTED_S):
            while (found := await self._connection.fetchrow(STARTED, key)) is None:
                await asyncio.sleep(POLL_S)
        return found[0], found[1]


async def measured(running: Fleet, holds: Path, sizes: tuple[int, ...]) -> dict[str, Any]:
    connection = await look(running.url)
    file = running.folder / "bulk.py"
    file.write_text(NO_OP_MODULE)
    running.start_runners(1, [file])
    try:
        async with AsyncClient(running.cluster.addresses.split(","), insecure=True) as client:
            await until_deployed(client, STARTED_S)
            bench = Bench(running, connection, holds)
            found = [await bench.made(client, size) for size in sizes]
        return {"machine": machine(str(await connection.fetchval("SHOW server_version"))), "cases": found}
    finally:
        await connection.close()


def bulk(sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    load = os.getloadavg()[0]
    with fleet(0) as running:
        holds = running.folder / "holds"
        watching = (sys.executable, loop_watch.__file__, str(holds))
        started = [running.cluster.start_controller(wait=False, wrapper=watching) for _ in range(CONTROLLERS)]
        for each in started:
            running.cluster.wait_ready(each)
        result = asyncio.run(measured(running, holds, sizes))
    return {
        "name": "bulk",
        "shape": {"controllers": CONTROLLERS, "jobs of a call": AT_ONCE},
        **result,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "figures": {
            f"{name}_{each['jobs']}": each[name] for each in result["cases"] for name in ("created_s", "tick_s")
        },
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each size."""
    columns = [
        "jobs", "created (s)", "first tick (s)", "late (ms)", "longest hold of each loop (ms)",
        "the most CPU in one (ms)", "CPU of each controller (s)", "of PostgreSQL (s)",
    ]  # fmt: skip
    cells = [
        [
            f"{each['jobs']:,}", f"{each['created_s']:g}", f"{each['tick_s']:g}", f"{each['late_ms']:g}",
            " / ".join(map(str, each["hold_ms"])), " / ".join(map(str, each["held_cpu_ms"])),
            " / ".join(f"{cpu_s:g}" for cpu_s in each["cpu_s"]), f"{each['postgresql_s']:g}",
        ]
        for each in result["cases"]
    ]  # fmt: skip
    return "\n".join([*head(result), *rows(columns, cells)]) + "\n"


@click.command()
@click.option("--jobs", "sizes", default=",".join(map(str, SIZES)), show_default=True, help="Sizes, by commas.")
@click.option("--keep", "kept", is_flag=True, help="Write bench/results/bulk.json and .md.")
def main(sizes: str, kept: bool) -> None:
    """What many jobs by few calls cost, and how late they make others.

    \b
    Examples:
      python -m bench.bulk                  1,000 and 10,000 jobs
      python -m bench.bulk --jobs 100000
    """
    result = bulk(tuple(int(each) for each in sizes.split(",")))
    show(result, table(result), kept=kept)


if __name__ == "__main__":
    main()
