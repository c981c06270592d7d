"""All of it as one result: the short form for `make bench`, the long one for `make bench-rivals`."""

import asyncio
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg

from bench.machine import machine
from bench.results import Part
from bench.rivals import pg_cron
from bench.rivals.contenders import PG_CRON, QUEUES, RECURRING, Spec
from bench.rivals.install import FOLDER, Installed, install
from bench.rivals.run import Form, Stage, queue, recurring
from bench.rivals.table import figures, table
from tests.support.databases import PostgresServer, running_server

SHORT = Form(one_shots=10_000, rounds=2, short=True)


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


def chosen(specs: tuple[Spec, ...], only: Sequence[str]) -> list[Spec]:
    return [spec for spec in specs if not only or spec.name in only]


def rivals(form: Form = SHORT, only: Sequence[str] = ()) -> dict[str, Any]:
    """Measure both parts; JSON-ready."""
    installed = install()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-rivals-")))
        server = stack.enter_context(running_server("postgres18", durable=True))
        cron = None
        if PG_CRON in {spec.name for spec in chosen(RECURRING, only)} and not (form.short or installed.cron_lacks):
            cron = stack.enter_context(pg_cron.server(folder / "pg_cron-server"))
        stage = Stage(server, installed, folder, form, cron)
        parts = [recurring(stage, chosen(RECURRING, only))]
        if form.one_shots:
            parts.append(queue(stage, chosen(QUEUES, only)))
        return {
            "name": "rivals" if form.short else "rivals_long",
            "shape": {
                "recurring jobs": form.jobs, "one-shots": form.one_shots, "processes at most": form.processes,
                "rounds": form.rounds,
            },
            "machine": machine(asyncio.run(postgres_version(server))),
            "figures": figures(parts),
            "versions": installed.versions,
            "note_us": what_notes_cost(installed, folder),
            "parts": parts,
        }  # fmt: skip


PART = Part("rivals", 300, rivals, table)
