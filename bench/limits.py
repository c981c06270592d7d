"""The floor: what PostgreSQL, asyncpg and grpc.aio do on this machine with no scheduler at all.

    python -m bench.limits [--rounds 3] [--seconds 0.5] [--jobs 10000]

The row changes of an execution are made in batches of several sizes, on our tables and on bare ones, by default
durability. On one connection alone the store's own claims and ends stand beside them. Runs and reports go between two
processes. What cronring does is to be seen beside this, of the same run of the machine.
"""

import contextlib
import os
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import psutil
import uvloop

from bench.limits_alone import alone
from bench.limits_disk import fdatasync_us
from bench.limits_grpc import EXCHANGES, Answering, answering, item_bytes
from bench.limits_rows import VARIANTS, Rows, make_jobs, statement
from bench.limits_table import Sample, figure, table
from bench.machine import machine
from bench.results import Part, keep
from tests.support.databases import PostgresServer, running_server

KINDS: Final = ("ours", "bare")
SYNCS: Final = 60  # in each round
WARM_S: Final = 0.1


class Options(NamedTuple):
    rounds: int
    seconds: float  # of each variant in each round
    jobs: int


DEFAULTS: Final = Options(rounds=3, seconds=0.5, jobs=10_000)


class Measured(NamedTuple):
    """One line of a table, and how a round of so many seconds of it is measured."""

    what: dict[str, Any]
    measure: Callable[[float], Awaitable[Sample]]


def measured_rows(tables: list[Rows], postmaster: psutil.Process) -> list[Measured]:
    return [
        Measured({"tables": each.kind, **variant._asdict()}, partial(each.measure, variant, postmaster))
        for variant in VARIANTS
        for each in tables  # what is compared comes one after the other
    ]


def measured_grpc(other: Answering) -> list[Measured]:
    return [
        Measured(
            {"exchange": exchange.name, "items": exchange.items, "in_flight": exchange.in_flight},
            partial(other.measure, exchange),
        )
        for exchange in EXCHANGES
    ]


async def in_rounds(
    lines: list[Measured], rounds: int, seconds: float, between: Callable[[], Awaitable[None]]
) -> list[list[Sample]]:
    """Each line's samples. A short round that is not counted warms every path."""
    for line in lines:
        await line.measure(min(WARM_S, seconds))
    samples: list[list[Sample]] = [[] for _ in lines]
    for number in range(1, rounds + 1):
        click.echo(f"round {number} of {rounds}: {len(lines)} variants, {seconds:g} s each …", err=True)
        await between()
        for line, taken in zip(lines, samples, strict=True):
            taken.append(await line.measure(seconds))
    return samples


async def measure(server: PostgresServer, folder: Path, other: Answering, options: Options) -> dict[str, Any]:
    url = server.url(server.create_database())
    jobs = await make_jobs(url, options.jobs)
    tables: list[Rows] = []
    syncs_us: list[float] = []

    async def between() -> None:
        syncs_us.extend(fdatasync_us(folder, SYNCS))
        for each in tables:
            await each.vacuum()

    try:
        tables.extend([await Rows.open(url, kind, jobs) for kind in KINDS])
        rows, grpc = measured_rows(tables, psutil.Process(server.pid)), measured_grpc(other)
        samples = await in_rounds([*rows, *grpc], options.rounds, options.seconds, between)
        partitions = await tables[0].connections[0].fetchval(statement("partitions"))
        click.echo("one connection alone …", err=True)
        ours_alone = await alone(server, tables, options.rounds, partitions)
        figures = [figure(line.what, taken) for line, taken in zip([*rows, *grpc], samples, strict=True)]
        connection = tables[0].connections[0]
        return {
            "shape": {**options._asdict(), "partitions": partitions},
            "machine": machine(str(await connection.fetchval("SHOW server_version"))),
            "settings": {record[0]: record[1] for record in await connection.fetch(statement("settings"))},
            "fdatasync_us": {
                "median": round(statistics.median(syncs_us)),
                "p99": round(statistics.quantiles(syncs_us, n=100)[-1]),
                "count": len(syncs_us),
            },
            "item_bytes": item_bytes(),
            "rows": figures[: len(rows)],
            "alone": ours_alone,
            "grpc": figures[len(rows) :],
        }
    finally:
        for each in tables:
            await each.close()


def figures(result: dict[str, Any]) -> dict[str, float]:
    """Those that others are seen beside: rows in batches of 500, and items one or a hundred a message."""
    rows = {each["tables"]: each["per_second"] for each in result["rows"] if each["rows"] == 500}
    items = {each["items"]: each["per_second"] for each in result["grpc"] if each["exchange"] == "one stream"}
    return {
        "rows_per_second": rows["ours"],
        "bare_rows_per_second": rows["bare"],
        **{f"stream_of_{items_}_per_second": rate for items_, rate in items.items()},
        "fdatasync_us": result["fdatasync_us"]["median"],
    }


def limits(options: Options = DEFAULTS) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    before = os.getloadavg()[0]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-bench-")))
        database = folder / "database"
        database.mkdir()
        other = stack.enter_context(answering())
        server = stack.enter_context(running_server("postgres18", database, durable=True))
        result = uvloop.run(measure(server, folder, other, options))
    load = {"before": round(before, 2), "after": round(os.getloadavg()[0], 2)}
    return {"name": "limits", **result, "figures": figures(result), "load": load}


PART = Part("limits", 60, limits, table)


@click.command()
@click.option("--rounds", default=DEFAULTS.rounds, show_default=True)
@click.option("--seconds", default=DEFAULTS.seconds, show_default=True, help="Of each variant in each round.")
@click.option("--jobs", default=DEFAULTS.jobs, show_default=True)
def main(rounds: int, seconds: float, jobs: int) -> None:
    """The floor: bare row changes through asyncpg, and grpc.aio, with no scheduler."""
    click.echo("limits: a durable PostgreSQL is made …", err=True)
    result = limits(Options(rounds, seconds, jobs))
    keep(result, table(result))


if __name__ == "__main__":
    main()
