"""Burst: N recurring jobs due in the same second, no-op async verbs, PostgreSQL and all processes on this machine.

From the tick to the last committed end, for several ticks in a row. Lateness is started_at - run_at as the books have
it. The commit of the last end is seen by asking every 10 ms: first for a few jobs by their ids, as what reads all of
them takes a millisecond of the CPU that is measured, and when those have moved on to a later tick for all.
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg
import click

from bench.machine import machine
from bench.results import Part, head, keep, rows
from tests.support.cluster import Cluster
from tests.support.databases import running_server

PERIOD_S = 15

LATENESS = """
SELECT count(*) AS executions,
       count(*) FILTER (WHERE outcome = 'completed') AS completed,
       extract(epoch FROM min(started_at - run_at)) * 1000 AS first_ms,
       extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY started_at - run_at)) * 1000 AS p50_ms,
       extract(epoch FROM percentile_cont(0.99) WITHIN GROUP (ORDER BY started_at - run_at)) * 1000 AS p99_ms,
       extract(epoch FROM max(started_at - run_at)) * 1000 AS max_ms
FROM cron_executions WHERE tick = to_timestamp($1)
"""
SAMPLE = "SELECT id FROM cron_jobs ORDER BY id % 97, id DESC LIMIT 20"
LEFT_OF_SAMPLE = "SELECT EXISTS (SELECT FROM cron_jobs WHERE id = ANY($2) AND next_tick <= to_timestamp($1))"
LEFT = "SELECT EXISTS (SELECT FROM cron_jobs WHERE next_tick <= to_timestamp($1))"


@dataclass
class Burst:
    """One tick's figures."""

    executions: int
    completed: int
    drained_ms: float
    per_second: float
    first_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float


def write_module(path: Path, jobs: int) -> None:
    lines = ["from cronring import cron", ""]
    for number in range(jobs):
        lines += [f'@cron("*/{PERIOD_S} * * * * *")', f"async def job_{number}() -> None:", "    pass", ""]
    path.write_text("\n".join(lines))


async def measure(connection: asyncpg.Connection, tick: int, jobs: int) -> Burst:
    """Wait for the tick, then until its last end is committed. Raises TimeoutError after a period."""
    sample = [record[0] for record in await connection.fetch(SAMPLE)]
    await asyncio.sleep(max(0.0, tick - time.time()))
    async with asyncio.timeout(PERIOD_S - 1):
        while await connection.fetchval(LEFT_OF_SAMPLE, tick, sample):
            await asyncio.sleep(0.01)
        while await connection.fetchval(LEFT, tick):
            await asyncio.sleep(0.01)
    drained_s = time.time() - tick
    row = await connection.fetchrow(LATENESS, tick)
    assert row is not None
    figures = {name: round(float(row[name]), 1) for name in ("first_ms", "p50_ms", "p99_ms", "max_ms")}
    return Burst(row["executions"], row["completed"], round(drained_s * 1000, 1), round(jobs / drained_s), **figures)


async def wait_deployed(connection: asyncpg.Connection, jobs: int) -> None:
    async with asyncio.timeout(60):
        while await connection.fetchval("SELECT count(*) FROM cron_jobs WHERE removed_at IS NULL") < jobs:
            await asyncio.sleep(0.1)


async def ticks(url: str, jobs: int, rounds: int) -> tuple[list[Burst], str]:
    connection = await asyncpg.connect(url)
    try:
        await wait_deployed(connection, jobs)
        first = (int(time.time()) // PERIOD_S + 2) * PERIOD_S  # the tick before it warms every path
        bursts = [await measure(connection, first + round_ * PERIOD_S, jobs) for round_ in range(rounds)]
        return bursts, str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()


def burst(jobs: int = 10_000, controllers: int = 3, runners: int = 2, rounds: int = 3) -> dict[str, Any]:
    """Run it; the result is JSON-ready. Medians over the rounds."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-bench-")))
        database = folder / "database"
        database.mkdir()
        server = stack.enter_context(running_server("postgres18", database, durable=True))
        url = server.url(server.create_database())
        module = folder / "burst.py"
        write_module(module, jobs)
        with Cluster(url, folder) as cluster:
            for _ in range(controllers):
                cluster.start_controller()
            for _ in range(runners):
                cluster.start_runner(module)
            bursts, postgres = asyncio.run(ticks(url, jobs, rounds))
    median = {name: statistics.median(getattr(b, name) for b in bursts) for name in asdict(bursts[0])}
    return {
        "name": "burst",
        "shape": {"jobs": jobs, "controllers": controllers, "runners": runners},
        "machine": machine(postgres),
        "median": median,
        "figures": {name: median[name] for name in ("per_second", "first_ms", "p50_ms", "p99_ms", "max_ms")},
        "rounds": [asdict(b) for b in bursts],
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each round."""
    columns = ["per_second", "drained_ms", "first_ms", "p50_ms", "p99_ms", "max_ms"]
    every = [("median", result["median"]), *((str(n), row) for n, row in enumerate(result["rounds"], 1))]
    cells = [[name, *(row[column] for column in columns)] for name, row in every]
    return "\n".join([*head(result), *rows(["round", *columns], cells)]) + "\n"


PART = Part("burst", 90, burst, table)


@click.command()
@click.option("--jobs", default=10_000, show_default=True, help="Jobs due in the same second.")
@click.option("--controllers", default=3, show_default=True)
@click.option("--runners", default=2, show_default=True)
@click.option("--rounds", default=3, show_default=True, help="Ticks measured, after one that warms up.")
def main(jobs: int, controllers: int, runners: int, rounds: int) -> None:
    """Burst: N no-op jobs due in one second, to the last committed end."""
    click.echo(f"burst of {jobs} jobs, {rounds} rounds of {PERIOD_S} s …", err=True)
    result = burst(jobs, controllers, runners, rounds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
