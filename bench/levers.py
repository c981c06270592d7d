"""What a lever is worth: the burst, side by side in clusters that differ in one thing.

All clusters run at once, each on a PostgreSQL of its own, in turns: their jobs are due some seconds apart. So what
the machine does to one it does to all. Figures are medians over the rounds, and ratios to the first one's.
"""

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from bench.burst import PERIOD_S, SPENT, TIMES, Burst, measure, module, wait_deployed
from bench.fleet import Fleet, fleet
from bench.machine import machine
from bench.results import head, keep, rows
from tests.support.looking import look

LEVERS: Final = (
    "", "claims_in_flight=1", "claims_in_flight=4,ends_in_flight=4", "claim_batch=1000,end_batch=1000", "loop=asyncio"
)  # fmt: skip
CONTROLLERS: Final = 3
RUNNERS: Final = 2
LEAST_APART_S: Final = 3


@contextlib.contextmanager
def cluster(lever: str, tree: Path | None, jobs: int, second: int) -> Iterator[Fleet]:
    """Jobs are due so many seconds after each period's beginning. `tree`: of another checkout, whose code it runs."""
    wrapper = (sys.executable, "-m", "bench.lever", lever) if lever else ()
    with fleet(CONTROLLERS, wrapper, tree) as running:
        file = running.folder / "burst.py"
        file.write_text(module(jobs, second))
        running.start_runners(RUNNERS, [file], wrapper if "loop" in lever else ())
        yield running


async def take_turns(clusters: Sequence[Fleet], jobs: int, rounds: int) -> tuple[list[list[Burst]], str]:
    """Each cluster's bursts, and PostgreSQL's version. The ticks before the first round warm every path."""
    apart_s = PERIOD_S // len(clusters)
    connections = [await look(each.url) for each in clusters]
    try:
        for connection in connections:
            await wait_deployed(connection, jobs)
        first = (int(time.time()) // PERIOD_S + 2) * PERIOD_S
        bursts: list[list[Burst]] = [[] for _ in clusters]
        for round_ in range(rounds):
            for place, (running, connection) in enumerate(zip(clusters, connections, strict=True)):
                tick = first + round_ * PERIOD_S + place * apart_s
                bursts[place].append(await measure(connection, running, tick, jobs))
        return bursts, await connections[0].fetchval("SHOW server_version")
    finally:
        for connection in connections:
            await connection.close()


def levers(names: Sequence[str], tree: Path | None, jobs: int, rounds: int) -> dict[str, Any]:
    """Run it; the result is JSON-ready. With a `tree`, its cluster is the last one."""
    every: list[tuple[str, Path | None]] = [(name, None) for name in names]
    if tree is not None:
        every.append(("", tree))
    apart_s = PERIOD_S // len(every)
    if apart_s < LEAST_APART_S:
        raise click.UsageError(f"at most {PERIOD_S // LEAST_APART_S} clusters can take turns within {PERIOD_S} s")
    with contextlib.ExitStack() as stack:
        clusters = [
            stack.enter_context(cluster(lever, its_tree, jobs, place * apart_s))
            for place, (lever, its_tree) in enumerate(every)
        ]
        bursts, postgres = asyncio.run(take_turns(clusters, jobs, rounds))
    medians = [{name: statistics.median(getattr(b, name) for b in its) for name in asdict(its[0])} for its in bursts]
    return {
        "name": "levers",
        "shape": {"jobs": jobs, "controllers": CONTROLLERS, "runners": RUNNERS, "rounds": rounds},
        "machine": machine(postgres),
        "levers": [
            {"lever": "the other tree" if its_tree else lever or "as it is", **median}
            for (lever, its_tree), median in zip(every, medians, strict=True)
        ],
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each lever."""
    columns = ["lever", "per_second", *TIMES, *SPENT, "CPU us in all", "by the first"]
    spent_us = [sum(each[name] for name in SPENT) for each in result["levers"]]
    cells = [
        [
            each["lever"], *(round(each[name], 1) for name in ("per_second", *TIMES, *SPENT)), round(in_all, 1),
            round(in_all / spent_us[0], 2),
        ]
        for each, in_all in zip(result["levers"], spent_us, strict=True)
    ]  # fmt: skip
    return "\n".join([*head(result), *rows(columns, cells)]) + "\n"


@click.command()
@click.option("--levers", "names", default=";".join(LEVERS), help="What to change, by semicolons; empty: nothing.")
@click.option("--tree", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Another checkout, too.")
@click.option("--jobs", default=10_000, show_default=True, help="Jobs due in the same second, of each.")
@click.option("--rounds", default=5, show_default=True, help="Ticks measured of each, after one that warms up.")
def main(names: str, tree: Path | None, jobs: int, rounds: int) -> None:
    """What a lever is worth: bursts of clusters that differ in one thing, in turns.

    \b
    Examples:
      python -m bench.levers                                      the settings and the event loop
      python -m bench.levers --levers '' --tree ../before         this checkout and another one
      python -m bench.levers --levers ';claim_batch=200'
    """
    result = levers(names.split(";"), tree, jobs, rounds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
