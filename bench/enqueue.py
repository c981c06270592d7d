"""Enqueue: as bench.burst, but each job's target is a queue. From the tick to the last message that is committed.

There are no runners: the claim of such a tick is its end.
"""

import asyncio
import statistics
from dataclasses import asdict
from typing import Any, Final

import click

from bench.burst import PERIOD_S, TIMES, Burst, ticks
from bench.fleet import Fleet, fleet
from bench.machine import machine
from bench.results import head, keep, rows
from cronring.client import AsyncClient
from cronring.client.many import JobToMake
from cronring.client.model import JobSpec

WORKSPACES: Final = 1_000
SPENT: Final = ("controllers_us", "postgresql_us")


async def make_jobs(running: Fleet, jobs: int) -> None:
    spec = JobSpec(f"0/{PERIOD_S} * * * * *", payload={"n": 1})
    wanted = [
        JobToMake("", "", f"job_{number}", spec, queue="bench", workspace=f"ws_{number % WORKSPACES}")
        for number in range(jobs)
    ]
    async with AsyncClient(running.cluster.addresses.split(","), timeout_s=60) as client:
        for at in range(0, jobs, 10_000):
            done = await client.jobs.create_many(wanted[at : at + 10_000])
            assert not done.failed, done.results[0]


def enqueue(jobs: int = 10_000, controllers: int = 3, rounds: int = 3) -> dict[str, Any]:
    """Run it; the result is JSON-ready. Medians over the rounds."""

    async def measure(running: Fleet) -> tuple[list[Burst], str]:
        await make_jobs(running, jobs)
        return await ticks(running, jobs, rounds)

    with fleet(controllers) as running:
        bursts, postgres = asyncio.run(measure(running))
    median = {name: statistics.median(getattr(each, name) for each in bursts) for name in asdict(bursts[0])}
    return {
        "name": "enqueue",
        "shape": {"jobs": jobs, "controllers": controllers},
        "machine": machine(postgres),
        "median": median,
        "figures": {name: median[name] for name in ("per_second", *TIMES, *SPENT)},
        "rounds": [asdict(each) for each in bursts],
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each round."""
    columns = ["per_second", "drained_ms", *TIMES, *SPENT]
    every = [("median", result["median"]), *((str(n), row) for n, row in enumerate(result["rounds"], 1))]
    return (
        "\n".join([*head(result), *rows(["round", *columns], [[n, *(r[c] for c in columns)] for n, r in every])]) + "\n"
    )


@click.command()
@click.option("--jobs", default=10_000, show_default=True, help="Jobs due in the same second.")
@click.option("--controllers", default=3, show_default=True)
@click.option("--rounds", default=3, show_default=True, help="Ticks measured, after one that warms up.")
def main(jobs: int, controllers: int, rounds: int) -> None:
    """Enqueue: N messages due in one second, to the last that is committed."""
    click.echo(f"{jobs} messages at once, {rounds} rounds of {PERIOD_S} s …", err=True)
    result = enqueue(jobs, controllers, rounds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
