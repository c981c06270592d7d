"""Queues: how fast two consumers drain messages that wait, beside pg-boss, graphile-worker and PgQueuer.

`python -m bench.drain`: each contender has a database of its own on the same durable PostgreSQL, and its turn alone.
Its messages are put before two processes of its consumers start. The time runs from the first message that one of them
begins to when its own tables have nothing left. So no process's start is in it. Every message is noted in a file by one
system call, and needs no more work. Settings of the others are those that they recommend, at the head of their programs
in bench/rivals/programs. Ours take 500 messages at once by plain SQL, of 100 workspaces, each in order.

What can't be installed (npm, PyPI) is left out with its reason.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import asyncpg
import click

from bench.machine import machine
from bench.results import head, rows, show
from bench.rivals.contenders import QUEUES, Rival, Scene, Spec
from bench.rivals.install import Installed, install
from bench.rivals.measure import NotDrainedError, StartLog, watch
from bench.rivals.part import postgres_version
from tests.support.databases import TEMPLATE, PostgresServer, running_server

SIZES: Final = (10_000, 100_000)
CONSUMERS: Final = 2
ROUNDS: Final = 2
DRAIN_S: Final = 600.0
OURS: Final = Spec("cronring", "SELECT EXISTS (SELECT FROM cronring.cron_queue)")
NAMES: Final = ("pg-boss", "graphile-worker", "pgqueuer")


class OurConsumers(Rival):
    """bench/queue_worker.py, by this process's own Python."""

    def _command(self, verb: str) -> list[str]:
        return [sys.executable, "-m", "bench.queue_worker", verb]

    def prepare(self) -> None:
        """The tables come with the database."""


def lacks(spec: Spec, installed: Installed) -> str:
    if spec is OURS:
        return ""
    return installed.node_lacks if spec.node else installed.python_lacks


async def drain(server: PostgresServer, spec: Spec, installed: Installed, messages: int, folder: Path) -> float:
    """Messages a second. Raises NotDrainedError, AssertionError."""
    url = server.url(server.create_database(TEMPLATE if spec is OURS else "template0"))
    scene = Scene(url, folder, messages, CONSUMERS, None)
    contender = (OurConsumers if spec is OURS else Rival)(spec, installed, scene)
    contender.prepare()
    contender.enqueue(messages)
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM ANALYZE")
        contender.start()
        starts, drained = await watch(
            StartLog(scene.starts), connection, contender.unfinished, messages, time.time() + DRAIN_S
        )
        assert len(starts) == messages, f"{spec.name} began {len(starts):,} messages, of {messages:,}"
        return round(messages / (drained - min(instant for instant, _ in starts)))
    except NotDrainedError as error:
        raise NotDrainedError(f"{error}; {contender.died()}") from error
    finally:
        contender.stop()
        await connection.close()


async def measure(sizes: Sequence[int], rounds: int, only: Sequence[str]) -> dict[str, Any]:
    """JSON-ready. Each round has all contenders in turn."""
    installed = install(cron=False)
    specs = [OURS, *(spec for name in NAMES for spec in QUEUES if spec.name == name and (not only or name in only))]
    reasons = {spec.name: reason for spec in specs if (reason := lacks(spec, installed))}
    found: dict[str, dict[str, list[float]]] = {spec.name: {str(size): [] for size in sizes} for spec in specs}
    with contextlib.ExitStack() as stack:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-queue-")))
        server = stack.enter_context(running_server("postgres18", durable=True))
        for size, number in ((size, number) for size in sizes for number in range(rounds)):
            for spec in specs:
                if spec.name in reasons:
                    continue
                folder = parent / f"{spec.name}-{size}-{number}"
                folder.mkdir()
                try:
                    rate = await drain(server, spec, installed, size, folder)
                except (AssertionError, NotDrainedError, OSError) as error:
                    reasons[spec.name] = str(error)
                    continue
                found[spec.name][str(size)].append(rate)
                click.echo(f"{size:,} messages, round {number + 1}: {spec.name} {rate:,}/s", err=True)
        version = await postgres_version(server)
    return {
        "name": "queue",
        "shape": {"messages": " and ".join(f"{size:,}" for size in sizes), "consumers": CONSUMERS, "rounds": rounds},
        "machine": machine(version),
        "figures": {
            f"{name}_{size}_per_second": max(rates)
            for name, by_size in found.items() for size, rates in by_size.items() if rates
        },
        "rates": found,
        "versions": installed.versions,
        "left_out": reasons,
    }  # fmt: skip


def table(result: dict[str, Any]) -> str:
    sizes = list(next(iter(result["rates"].values())))
    columns = ["messages/s, best of the rounds (all)", *(f"{int(size):,}" for size in sizes)]
    cells = [
        [f"{name} {result['versions'].get(name, '')}".strip(), *(_rates(by_size[size]) for size in sizes)]
        for name, by_size in result["rates"].items()
    ]
    lines = [*head(result), *rows(columns, cells)]
    lines += [f"\n{name} is left out: {reason}" for name, reason in result["left_out"].items()]
    return "\n".join(lines) + "\n"


def _rates(rates: Sequence[float]) -> str:
    return f"{max(rates):,} ({', '.join(f'{rate:,}' for rate in rates)})" if rates else "-"


@click.command()
@click.option("--messages", multiple=True, type=int, help="Instead of 10,000 and 100,000; may be given again.")
@click.option("--rounds", default=ROUNDS, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(NAMES), help="Of the others; may be given again.")
@click.option("--keep", "keeps", is_flag=True, help="Keep the result in bench/results: on a quiet machine only.")
def main(messages: tuple[int, ...], rounds: int, only: tuple[str, ...], keeps: bool) -> None:
    """Drain queues, each contender in its turn."""
    result = asyncio.run(measure(messages or SIZES, rounds, only))
    show(result, table(result), kept=keeps)


if __name__ == "__main__":
    main()
