"""`python -m bench.rivals`: cronring beside others, in turns. Prints a table, and keeps it in bench/results/."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import asyncpg
import click

from bench.machine import machine
from bench.results import save
from bench.rivals.contenders import QUEUES, RECURRING, Spec
from bench.rivals.install import FOLDER, Installed, install
from bench.rivals.run import Stage, queue, recurring
from bench.rivals.table import OURS, table
from tests.support.databases import PostgresServer, running_server


def what_notes_cost(installed: Installed, folder: Path) -> dict[str, float]:
    """Microseconds of a note of a start, in each language."""
    programs = FOLDER / "programs"
    commands = {"Python": [sys.executable, str(programs / "starts.py")]}
    if not installed.node_lacks:
        commands["Node"] = [installed.node, str(programs / "starts.mjs")]
    return {
        name: float(
            subprocess.run([*command, str(folder / "notes")], check=True, capture_output=True, text=True).stdout
        )
        for name, command in commands.items()
    }


async def postgres_version(server: PostgresServer) -> str:
    connection = await asyncpg.connect(server.url())
    try:
        return str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()


def chosen(specs: tuple[Spec, ...], only: tuple[str, ...]) -> list[Spec]:
    return [spec for spec in specs if not only or spec.name in only]


@click.command()
@click.option("--jobs", default=2000, show_default=True, help="Recurring jobs due in the same second.")
@click.option("--one-shots", default=20_000, show_default=True, help="Jobs in a queue; 0: no queues.")
@click.option("--processes", default=6, show_default=True, help="Of each contender.")
@click.option("--rounds", default=3, show_default=True, help="Measured, after one that warms up.")
@click.option("--only", multiple=True, help="A rival's name; may be given again. cronring always takes part.")
def main(jobs: int, one_shots: int, processes: int, rounds: int, only: tuple[str, ...]) -> None:
    """A burst of recurring jobs, and queues of one-shots, beside other schedulers on the same PostgreSQL."""
    known = {spec.name for spec in RECURRING + QUEUES}
    if unknown := set(only) - known - {OURS}:
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(sorted(known))}", param_hint="--only")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends with us
    installed = install()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-rivals-")))
        server = stack.enter_context(running_server("postgres18", durable=True))
        stage = Stage(server, installed, folder, processes, rounds)
        result: dict[str, Any] = {
            "machine": machine(asyncio.run(postgres_version(server))),
            "versions": installed.versions,
            "note_us": what_notes_cost(installed, folder),
            "parts": [recurring(stage, chosen(RECURRING, only), jobs)],
        }
        save("rivals", result, table(result))  # the rest takes minutes more
        if one_shots:
            result["parts"].append(queue(stage, chosen(QUEUES, only), one_shots))
            save("rivals", result, table(result))
    click.echo(table(result))


if __name__ == "__main__":
    main()
