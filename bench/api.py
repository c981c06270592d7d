"""What calls of the API do to ticks: is a process of its own for them worth having?

A steady rate of no-op async verbs on three controllers, while all calls go to one of them: lists of 100 executions and
of 100 jobs, by gRPC, so many a second. In the same seconds what that controller claimed is compared with what the other
two did: both share the cores and the PostgreSQL with the calls, but only the first shares its event loop with them. The
phases come in rounds. Lateness is started_at - run_at as the books have it.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

import asyncpg
import click

from bench.fleet import Fleet, fleet
from bench.machine import machine
from bench.results import head, keep, rows
from bench.steady import WARM_S, Phase, deploy, undeploy, until
from cronring.client.client import Client
from tests.support.looking import look

RATE: Final = 100  # executions a second
CALLS: Final = (0, 20, 100)  # a second
LISTED: Final = 100  # rows that a call asks for

BOOKS: Final = """
SELECT percentile_cont($3::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - run_at) * 1000) AS ms
FROM cron_executions WHERE tick BETWEEN to_timestamp($1) AND to_timestamp($2) AND (controller_id = $4) = $5
"""
CALLED: Final = "SELECT id FROM controllers WHERE grpc_address = $1"
QUANTILES: Final = (0.5, 0.99, 1.0)


async def call(client: Client, a_second: int, seconds: float) -> list[float]:
    """Calls one after the other's time, in ms; those that are late begin at once."""
    began, took = time.monotonic(), []
    for number in range(int(a_second * seconds)):
        await asyncio.sleep(max(0.0, began + number / a_second - time.monotonic()))
        started = time.monotonic()
        await (client.jobs.list(limit=LISTED) if number % 2 else client.executions.list(limit=LISTED))
        took.append((time.monotonic() - started) * 1e3)
    return took


async def measure(running: Fleet, rounds: int, seconds: int) -> tuple[dict[int, list[dict[str, Any]]], str]:
    """By calls a second, a phase's figures for each round; PostgreSQL's version."""
    connection = await look(running.url)
    address = running.cluster.controllers[0].grpc
    found: dict[int, list[dict[str, Any]]] = {calls: [] for calls in CALLS}
    try:
        called = await connection.fetchval(CALLED, address)
        name = await deploy(connection, running, RATE, "off", runners=1)
        async with Client([address]) as client:
            for calls in CALLS * rounds:
                phase = Phase(RATE, int(time.time()) + 1 + WARM_S, seconds)
                await until(phase.begins - 1)
                took = await call(client, calls, seconds + 1)
                await until(phase.begins + seconds)
                found[calls].append(await figures_of(connection, phase, called, took))
        await undeploy(connection, running, name)
        return found, await connection.fetchval("SHOW server_version")
    finally:
        await connection.close()


async def figures_of(
    connection: asyncpg.Connection, phase: Phase, called: str, took: Sequence[float]
) -> dict[str, Any]:
    """Lateness in ms (p50, p99, max) of what the called one claimed, and of what the others did."""
    ours, others = [
        await connection.fetchval(BOOKS, phase.begins, phase.ends, QUANTILES, called, own) for own in (True, False)
    ]
    return {"called": ours, "others": others, "call_ms": statistics.median(took) if took else 0.0, "calls": len(took)}


def api(rounds: int = 3, seconds: int = 10) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    with fleet(3) as running:
        found, postgres = asyncio.run(measure(running, rounds, seconds))
    figures: dict[str, float] = {}
    for calls, every in found.items():
        for who in ("called", "others"):
            for place, name in enumerate(("p50", "p99", "max")):
                each = [one[who][place] for one in every]
                figures[f"{calls}_{who}_{name}_ms"] = round(statistics.median(each), 1)
        figures[f"{calls}_call_p50_ms"] = round(statistics.median(one["call_ms"] for one in every), 1)
    return {
        "name": "api",
        "shape": {"executions/s": RATE, "controllers": 3, "rounds": rounds, "seconds each": seconds},
        "machine": machine(postgres),
        "figures": figures,
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each rate of calls."""
    figures = result["figures"]
    columns = [
        "calls a second",
        "a call, p50 ms",
        "called one's ticks: p50 ms",
        "p99",
        "max",
        "others': p50",
        "p99",
        "max",
    ]
    cells = [
        [
            calls, figures[f"{calls}_call_p50_ms"],
            *(figures[f"{calls}_{who}_{name}_ms"] for who in ("called", "others") for name in ("p50", "p99", "max")),
        ]
        for calls in CALLS
    ]  # fmt: skip
    lines = [
        *head(result),
        f"All calls go to one controller, for {LISTED} rows each. Medians of {result['shape']['rounds']} rounds.",
        "",
        *rows(columns, cells),
    ]
    return "\n".join(lines) + "\n"


@click.command()
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=10, show_default=True, help="Of each phase.")
def main(rounds: int, seconds: int) -> None:
    """What calls of the API do to the ticks of the controller that answers them."""
    result = api(rounds, seconds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
