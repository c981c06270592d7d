"""Burst: N recurring jobs due in the same second, no-op async verbs, PostgreSQL and all processes on this machine.

From the tick to the last committed end, for several ticks in a row. Lateness is started_at - run_at as the books have
it. The commit of the last end is seen by asking every 10 ms. First a few jobs are asked for by their ids, as what reads
all of them takes a millisecond of the CPU that is measured. When those have moved on to a later tick, all are.
"""

import asyncio
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import asyncpg
import click

from bench.fleet import Fleet, fleet
from bench.machine import machine
from bench.results import Part, head, keep, rows
from tests.support.looking import look

PERIOD_S: Final = 15
EARLIER_S: Final = 0.3  # the accounts are taken so long before a tick

LATENESS = """
SELECT count(*) AS executions,
       count(*) FILTER (WHERE outcome = 'completed') AS completed,
       extract(epoch FROM min(claimed_at - run_at)) * 1000 AS first_claim_ms,
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
    """One tick's figures. CPU in microseconds for each execution, from just before the tick to the last end."""

    executions: int
    completed: int
    drained_ms: float
    per_second: float
    first_claim_ms: float  # committed
    first_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    controllers_us: float
    runners_us: float  # their children's among it
    postgresql_us: float


TIMES: Final = ("first_claim_ms", "first_ms", "p50_ms", "p99_ms", "max_ms")
SPENT: Final = ("controllers_us", "runners_us", "postgresql_us")


def module(jobs: int, second: int = 0) -> str:
    """Its text. `second`: of each period, at which all are due."""
    lines = ["from cronring import cron", ""]
    for number in range(jobs):
        lines += [f'@cron("{second}/{PERIOD_S} * * * * *")', f"async def job_{number}() -> None:", "    pass", ""]
    return "\n".join(lines)


async def drained(connection: asyncpg.Connection, tick: int) -> float:
    """The instant when its last end was committed. Raises TimeoutError after a period."""
    sample = [record[0] for record in await connection.fetch(SAMPLE)]
    await asyncio.sleep(max(0.0, tick - time.time()))
    async with asyncio.timeout(PERIOD_S - 1):
        while await connection.fetchval(LEFT_OF_SAMPLE, tick, sample):
            await asyncio.sleep(0.01)
        while await connection.fetchval(LEFT, tick):
            await asyncio.sleep(0.01)
    return time.time()


async def measure(connection: asyncpg.Connection, running: Fleet, tick: int, jobs: int) -> Burst:
    """Wait for the tick, then until its last end is committed."""
    await asyncio.sleep(max(0.0, tick - EARLIER_S - time.time()))
    before = running.spent_s()
    took_s = await drained(connection, tick) - tick
    after = running.spent_s()
    row = await connection.fetchrow(LATENESS, tick)
    assert row is not None
    times = {name: round(float(row[name]), 1) for name in TIMES}
    spent = {f"{kind}_us": round((after[kind] - before[kind]) / jobs * 1e6, 1) for kind in after}
    return Burst(row["executions"], row["completed"], round(took_s * 1000, 1), round(jobs / took_s), **times, **spent)


async def wait_deployed(connection: asyncpg.Connection, jobs: int) -> None:
    async with asyncio.timeout(60):
        while await connection.fetchval("SELECT count(*) FROM cron_jobs WHERE removed_at IS NULL") < jobs:
            await asyncio.sleep(0.1)


async def ticks(running: Fleet, jobs: int, rounds: int) -> tuple[list[Burst], str]:
    connection = await look(running.url)
    try:
        await wait_deployed(connection, jobs)
        first = (int(time.time()) // PERIOD_S + 2) * PERIOD_S  # the tick before it warms every path
        bursts = [await measure(connection, running, first + round_ * PERIOD_S, jobs) for round_ in range(rounds)]
        return bursts, str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()


def burst(jobs: int = 10_000, controllers: int = 3, runners: int = 2, rounds: int = 3) -> dict[str, Any]:
    """Run it; the result is JSON-ready. Medians over the rounds."""
    with fleet(controllers) as running:
        file = running.folder / "burst.py"
        file.write_text(module(jobs))
        running.start_runners(runners, [file])
        bursts, postgres = asyncio.run(ticks(running, jobs, rounds))
    median = {name: statistics.median(getattr(b, name) for b in bursts) for name in asdict(bursts[0])}
    return {
        "name": "burst",
        "shape": {"jobs": jobs, "controllers": controllers, "runners": runners},
        "machine": machine(postgres),
        "median": median,
        "figures": {name: median[name] for name in ("per_second", *TIMES, *SPENT)},
        "rounds": [asdict(b) for b in bursts],
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each round, and what became of two cores."""
    columns = ["per_second", "drained_ms", *TIMES, *SPENT]
    every = [("median", result["median"]), *((str(n), row) for n, row in enumerate(result["rounds"], 1))]
    cells = [[name, *(row[column] for column in columns)] for name, row in every]
    median = result["median"]
    spent_us = sum(median[name] for name in SPENT)
    busy = spent_us * median["executions"] / median["drained_ms"] / 1e3
    told = (
        f"{spent_us:.0f} us of CPU for each execution, {busy:.2f} cores all the time; 20,000/s on two cores would be "
        f"100 us. The first claim is committed {median['first_claim_ms']:.1f} ms after the tick, the first verb begins "
        f"{median['first_ms'] - median['first_claim_ms']:.1f} ms later."
    )
    return "\n".join([*head(result), *rows(["round", *columns], cells), "", told]) + "\n"


PART = Part("burst", 65, burst, table)


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
