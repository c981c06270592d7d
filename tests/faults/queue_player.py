"""Writers and consumers of a queue, as processes that note all they do: `python -m tests.faults.queue_player`.

`write URL JOURNAL NAME` puts numbers into fifty workspaces, and notes each that was committed. `consume URL JOURNAL
NAME` works on one message after the other, each in the transaction that ends it. A note is a line of JSON, appended by
one system call: who is killed has noted all that it did before.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import asyncpg

from cronring.controller.store.connect import Connection

WORKSPACES: Final = 50
BATCH: Final = 20
HOLD: Final = "2 s"
WRITE_PAUSE_S: Final = 0.3  # so that consumers keep up
PAUSE_S: Final = 0.02
AWAY: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


class Journal:
    def __init__(self, path: Path, name: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._name = name

    def note(self, event: str, **what: Any) -> None:
        os.write(self._file, json.dumps({"event": event, "who": self._name, **what}).encode() + b"\n")


async def write(connection: Connection, journal: Journal, number: int) -> int:
    """The next number of each workspace in turn, for ever; a number whose fate is unknown is not used again."""
    while True:
        numbers = range(number, number + BATCH)
        workspaces = [f"w{each % WORKSPACES}" for each in numbers]
        journal.note("putting", numbers=list(numbers))
        await connection.fetchval(
            "SELECT cron_queue_put_many('q', $1::text[]::json[], $2)", [str(each) for each in numbers], workspaces
        )
        journal.note("put", numbers=list(numbers))
        number += BATCH
        await asyncio.sleep(WRITE_PAUSE_S)


async def consume(connection: Connection, journal: Journal, name: str) -> None:
    while True:
        rows = await connection.fetch(
            f"SELECT * FROM cron_queue_take('q', $1, '{HOLD}', 10)",
            name,
        )
        for row in rows:
            what = {"number": int(row["payload"]), "workspace": row["workspace"], "lease": row["lease"]}
            held = await connection.fetch(f"SELECT id, state FROM cron_queue_extend($1, '{HOLD}')", row["lease"])
            if (row["id"], "held") not in {tuple(each) for each in held}:
                break
            journal.note("begun", **what, delivery=row["delivery"])
            async with connection.transaction():
                await connection.fetch(
                    "SELECT * FROM cron_queue_done($1, $2, strict => true)", row["lease"], [row["id"]]
                )
                await connection.execute("INSERT INTO queue_work (number, lease) VALUES ($1, $2)",
                                         what["number"], row["lease"])  # fmt: skip
            journal.note("done", **what)
        if not rows:
            await asyncio.sleep(PAUSE_S)


async def play(role: str, url: str, journal: Journal, name: str) -> None:
    """For ever, through whatever becomes of the server."""
    number = 0
    while True:
        try:
            connection = await asyncpg.connect(url, server_settings={"search_path": "cronring"}, timeout=5)
            if role == "consume":
                await consume(connection, journal, name)
            number = await connection.fetchval("SELECT last FROM queue_numbers")
            await connection.execute("UPDATE queue_numbers SET last = last + 1000000")
            await write(connection, journal, number)
        except AWAY as error:
            journal.note("away", why=str(error)[:200])
            await asyncio.sleep(PAUSE_S)


if __name__ == "__main__":
    asyncio.run(play(sys.argv[1], sys.argv[2], Journal(Path(sys.argv[3]), sys.argv[4]), sys.argv[4]))
