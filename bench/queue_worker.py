"""Our consumers of bench.drain: `work` is one process, `enqueue` puts the messages."""

import asyncio
import os
import sys
import time
from typing import Final

import asyncpg
import uvloop

from bench.rivals.programs.starts import Starts

MOST: Final = 500
WORKSPACES: Final = 100
PUT: Final = """
SELECT cron_queue_put_many('no_op', array_agg(to_json(i) ORDER BY i), array_agg('w' || i % $2 ORDER BY i))
FROM generate_series(0, $1::integer - 1) i GROUP BY i / 1000
"""


async def connect() -> "asyncpg.Connection[asyncpg.Record]":
    return await asyncpg.connect(os.environ["DATABASE_URL"], server_settings={"search_path": "cronring"})


async def work() -> None:
    starts, connection = Starts(os.environ["STARTS"]), await connect()
    name = f"c{os.getpid()}"
    while True:
        rows = await connection.fetch("SELECT lease, id, payload FROM cron_queue_take('no_op', $1, '30 s', $2)",
                                      name, MOST)  # fmt: skip
        if not rows:
            await asyncio.sleep(0.05)
            continue
        for row in rows:
            starts.note(int(row["payload"]))
        await connection.fetch("SELECT cron_queue_done($1, $2)", rows[0]["lease"], [row["id"] for row in rows])


async def enqueue() -> None:
    connection = await connect()
    await connection.fetch(PUT, int(os.environ["JOBS"]), WORKSPACES)
    print(time.time())


if __name__ == "__main__":
    uvloop.run(work() if sys.argv[1] == "work" else enqueue())
