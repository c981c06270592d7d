"""What certificates and tokens cost: the burst in a cluster that has them, beside one with --insecure.

Both run at once, each on a PostgreSQL of its own, and take turns: their jobs are due half a period apart. So what the
machine does to one it does to the other. All connections of the secured one are TLS, with certificates at both ends
between members. Each cluster answers a client besides, which asks all the while: there by a token. The ratio of a round
is of two bursts that follow each other; the median of these is the result.
"""

import asyncio
import contextlib
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

import click

from bench.burst import PERIOD_S, SPENT, TIMES, Burst, module
from bench.fleet import Fleet, fleet
from bench.levers import CONTROLLERS, RUNNERS, take_turns
from bench.machine import machine
from bench.results import head, keep, rows
from cronring.client import AsyncClient
from tests.support.secured import SecuredCluster

ASK_S: Final = 0.1
NAMES: Final = ("insecure", "certificates and tokens")
GOAL: Final = 0.95


class Asking:
    """A client of one cluster, on a thread of its own. `answers`: how many it got."""

    def __init__(self, running: Fleet) -> None:
        self._cluster = running.cluster
        self._over = threading.Event()
        self.answers = 0

    @contextlib.contextmanager
    def going_on(self) -> Iterator["Asking"]:
        thread = threading.Thread(target=lambda: asyncio.run(self._ask()), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()

    def _client(self) -> AsyncClient:
        if isinstance(self._cluster, SecuredCluster):
            return self._cluster.client()
        return AsyncClient(self._cluster.addresses.split(","), insecure=True)

    async def _ask(self) -> None:
        """What fails, fails the measurement: its count would be too small."""
        async with self._client() as client:
            while not self._over.is_set():
                await client.jobs.list(limit=1)
                self.answers += 1
                await asyncio.sleep(ASK_S)


@contextlib.contextmanager
def cluster(jobs: int, second: int, *, secured: bool) -> Iterator[Fleet]:
    """Jobs are due so many seconds after each period's beginning."""
    with fleet(CONTROLLERS, secured=secured) as running:
        file = running.folder / "burst.py"
        file.write_text(module(jobs, second))
        running.start_runners(RUNNERS, [file])
        yield running


def figures(bursts: Sequence[Sequence[Burst]]) -> dict[str, float]:
    """Of the plain ones and the secured ones: medians of the rounds' ratios, the secured one's by the other's."""
    rounds = list(zip(*bursts, strict=True))

    def ratio(of: Callable[[Burst], float]) -> float:
        return round(statistics.median(of(secured) / of(plain) for plain, secured in rounds), 3)

    return {
        "per_second_ratio": ratio(lambda each: each.per_second),
        "p99_ratio": ratio(lambda each: each.p99_ms),
        "cpu_ratio": ratio(lambda each: each.controllers_us + each.runners_us + each.postgresql_us),
    }


def trust_cost(jobs: int, rounds: int) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    with contextlib.ExitStack() as stack:
        clusters = [
            stack.enter_context(cluster(jobs, place * (PERIOD_S // 2), secured=bool(place))) for place in (0, 1)
        ]
        asking = [stack.enter_context(Asking(each).going_on()) for each in clusters]
        bursts, postgres = asyncio.run(take_turns(clusters, jobs, rounds))
        answers = [each.answers for each in asking]
    assert min(answers) >= rounds, f"a client stopped asking: {answers}"
    medians = [{name: statistics.median(getattr(b, name) for b in its) for name in asdict(its[0])} for its in bursts]
    return {
        "name": "trust_cost",
        "shape": {"jobs": jobs, "controllers": CONTROLLERS, "runners": RUNNERS, "rounds": rounds},
        "machine": machine(postgres),
        "figures": figures(bursts),
        "clusters": [
            {"cluster": name, "answers": count, **median}
            for name, count, median in zip(NAMES, answers, medians, strict=True)
        ],
        "rounds": [
            {"plain": asdict(plain), "secured": asdict(secured)} for plain, secured in zip(*bursts, strict=True)
        ],
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each cluster, and for each round's ratio."""
    columns = ("per_second", *TIMES, *SPENT)
    cells = [
        [each["cluster"], each["answers"], *(round(each[name], 1) for name in columns)] for each in result["clusters"]
    ]
    each_round = ", ".join(
        f"{each['secured']['per_second'] / each['plain']['per_second']:.3f}" for each in result["rounds"]
    )
    found = result["figures"]
    told = (
        f"With certificates and tokens {found['per_second_ratio']:.3f} as many runs a second (the goal is {GOAL}),"
        f" {found['cpu_ratio']:.3f} times the CPU, {found['p99_ratio']:.3f} times the p99. By rounds: {each_round}."
    )
    return "\n".join([*head(result), *rows(["cluster", "answers", *columns], cells), "", told]) + "\n"


@click.command()
@click.option("--jobs", default=10_000, show_default=True, help="Jobs due in the same second, of each.")
@click.option("--rounds", default=9, show_default=True, help="Ticks measured of each, after one that warms up.")
def main(jobs: int, rounds: int) -> None:
    """What certificates and tokens cost: bursts with them and with --insecure, in turns."""
    click.echo(f"{rounds} rounds of {PERIOD_S} s, of {jobs} jobs each …", err=True)
    result = trust_cost(jobs, rounds)
    keep(result, table(result))


if __name__ == "__main__":
    main()
