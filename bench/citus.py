"""What of cronring's SQL runs on Citus with slot as the distribution column: tried out, in a scratch database.

It takes a PostgreSQL into which Citus was built and installed, as Debian and PyPI have none (docs/scaling.md says how).
No part of `make bench`, and no figure of speed: one node, eight shards. Each named statement of sql/ is planned there
with parameters that are null; then the forms of claims and ends that bench/citus.sql names are run for one slot.
"""

import asyncio
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import asyncpg
import click

from bench.machine import machine
from bench.results import head, keep, rows
from cronring import sql
from cronring.controller.store.migrate import migrate
from tests.support.databases import SERVERS, PostgresServer
from tests.support.looking import look

EXPERIMENT: Final = (Path(__file__).parent / "citus.sql").read_text()
NAME: Final = re.compile(r"^-- name: (.+)$", re.MULTILINE)
HOT: Final = ("StartCronJobs", "EndCronJob", "RenewLease", "GetCronJobs", "SkipTicks", "StartActivations")
PORT: Final = 5_432


class Tried(NamedTuple):
    """`refused`: why, or empty. `shards`: how many it goes to."""

    name: str
    refused: str
    shards: int


def script(text: str) -> tuple[list[str], dict[str, str]]:
    """The statements that set the scene, and the forms by name."""
    scene, *parts = NAME.split(text)
    bare = re.sub(r"^--.*$", "", scene, flags=re.MULTILINE)
    statements = [statement.strip() for statement in bare.split(";\n") if statement.strip()]
    return statements, {name: form.strip() for name, form in zip(parts[::2], parts[1::2], strict=True)}


async def set_scene(connection: asyncpg.Connection, url: str, sockets: Path, statements: list[str]) -> str:
    """Citus, our schema, and it distributed; Citus's version."""
    await connection.execute("CREATE EXTENSION citus")
    await connection.execute(
        "SELECT citus_set_coordinator_host($1, $2)".replace("$1", f"'{sockets}'").replace("$2", str(PORT))
    )
    await connection.fetch("SELECT citus_set_node_property($1, $2, 'shouldhaveshards', true)", str(sockets), PORT)
    await migrate(url)
    for statement in statements:
        await connection.execute(statement)
    return str(await connection.fetchval("SELECT citus_version()"))


async def planned(connection: asyncpg.Connection, name: str) -> Tried | None:
    """One named statement, as it is. None: it is about tables that a session makes itself, or makes some."""
    text = sql.statement(name)
    transaction = connection.transaction()
    await transaction.start()
    try:
        prepared = await connection.prepare(text)
        nulls = ", ".join(["NULL"] * len(prepared.get_parameters()))
        await connection.execute(f"PREPARE tried_{name} AS {text}")
        await connection.execute(f"EXPLAIN EXECUTE tried_{name}{f'({nulls})' if nulls else ''}")
    except (asyncpg.UndefinedTableError, asyncpg.PostgresSyntaxError):
        return None
    except asyncpg.PostgresError as error:
        return Tried(name, reason(error), 0)
    finally:
        await transaction.rollback()
    return Tried(name, "", 0)


async def run(connection: asyncpg.Connection, name: str, form: str) -> Tried:
    """One form, for the jobs of slot 3."""
    jobs = await connection.fetch("SELECT id, next_tick FROM cron_jobs WHERE slot = 3 ORDER BY id")
    arguments = [job[0] for job in jobs], [job[1] for job in jobs]
    transaction = connection.transaction()
    await transaction.start()
    try:
        lines = [record[0] for record in await connection.fetch(f"EXPLAIN {form}", *arguments)]
        await connection.fetch(form, *arguments)
    except asyncpg.PostgresError as error:
        return Tried(name, reason(error), 0)
    finally:
        await transaction.rollback()
    counts = [int(line.rpartition(":")[2]) for line in lines if "Task Count" in line]
    return Tried(name, "", max(counts, default=0))


def reason(error: asyncpg.PostgresError) -> str:
    """Its words in one line."""
    return " ".join(f"{error.args[0]} {getattr(error, 'detail', None) or ''}".split())


async def _try(server: PostgresServer) -> dict[str, Any]:
    statements, forms = script(EXPERIMENT)
    url = server.url("citus")
    connection = await look(url)
    try:
        version = await set_scene(connection, url, server.sockets, statements)
        named = [tried for name in sql.statements() if (tried := await planned(connection, name)) is not None]
        tried_forms = [await run(connection, name, form) for name, form in forms.items()]
        return {
            "name": "citus",
            "shape": {"node": 1, "shards": 8},
            "machine": {
                **machine(await connection.fetchval("SHOW server_version")),
                "citus": version.split(" on ")[0].removeprefix("Citus "),
            },
            "statements": {"planned": sum(not each.refused for each in named), "tried": len(named)},
            "refused": {each.name: each.refused for each in named if each.refused},
            "forms": [each._asdict() for each in tried_forms],
            "figures": {"statements_refused": sum(bool(each.refused) for each in named)},
        }
    finally:
        await connection.close()


def citus(folder: Path) -> dict[str, Any]:
    """`folder`: where that PostgreSQL's programs are."""
    _, user = SERVERS["postgres18"]()
    with tempfile.TemporaryDirectory(prefix="cronring-citus-") as name:
        server = PostgresServer(folder, user, Path(name), durable=False)
        server.settings |= {"shared_preload_libraries": "citus", "max_prepared_transactions": "50"}
        try:
            server.start()
            server.execute("CREATE DATABASE citus")
            return asyncio.run(_try(server))
        finally:
            server.close()


def table(result: dict[str, Any]) -> str:
    """Markdown: the forms, the hot statements, and why others are refused."""
    counts, refused = result["statements"], result["refused"]
    why: dict[str, list[str]] = defaultdict(list)
    for name, words in refused.items():
        why[words].append(name)
    shards = result["shape"]["shards"]
    forms = [
        [each["name"], each["refused"] or (f"{each['shards']} of {shards}" if each["shards"] else "the coordinator")]
        for each in result["forms"]
    ]
    lines = [
        *head(result),
        *rows(["a form of a claim or an end", "shards, or why it is refused"], forms),
        "",
        f"Of the statements of sql/ as they are {counts['planned']} of {counts['tried']} are planned.",
        "",
        *rows(["hot", ""], [[name, refused.get(name, "planned")] for name in HOT]),
        "",
        *rows(["refused as", "statements"], [[words, ", ".join(names)] for words, names in sorted(why.items())]),
    ]
    return "\n".join(lines) + "\n"


@click.command()
@click.option(
    "--bin", "folder", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Programs of a PostgreSQL that has Citus.",
)  # fmt: skip
def main(folder: Path) -> None:
    """Which statements Citus takes when jobs are distributed by slot."""
    result = citus(folder)
    keep(result, table(result))


if __name__ == "__main__":
    main()
