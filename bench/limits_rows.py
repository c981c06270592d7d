"""The bare row changes of executions, by no scheduler: claim (idle to executing, and a new execution), end of both.

Each is one statement and one transaction for a batch of jobs, on several connections at once, each with jobs of its
own. On our tables, as a migrated database has them, and on bare ones: the difference is what our columns, indexes,
constraints and partitions cost. Sessions have the settings of the product's, ticks travel as integers.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import asyncpg
import psutil

from bench.limits_table import Sample
from bench.processes import spent_s
from cronring.controller.store.pool import SESSION_SETTINGS, Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.module import Module, Verb
from tests.support.looking import look

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

AGO_S: Final = 3_600  # the first tick's age: a claim may not come before its tick, and each pass takes another one
CONNECTIONS_MAX: Final = 16
_MODULE_JOBS: Final = 5_000
_SEED_ROWS: Final = 1_000
# The product's, and one that leaves these shorter statements no plan but a look by id for each row.
_SETTINGS: Final = {**SESSION_SETTINGS, "enable_material": "off"}


class Variant(NamedTuple):
    rows: int  # in a transaction
    connections: int


VARIANTS: Final = (Variant(1, 1), Variant(1, 16), Variant(100, 2), Variant(500, 2), Variant(1_000, 2))


def statement(name: str) -> str:
    """Of limits.sql. Raises KeyError."""
    _, *parts = Path(__file__).with_name("limits.sql").read_text().split("-- name: ")
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}[name]


async def make_jobs(url: str, count: int) -> list[int]:
    """Deploy that many jobs, and make the bare tables with the same; their ids, ascending."""
    database = await Database.open(url, "bench", connections=1)
    connection = await look(url)
    try:
        store = PostgresStore(database)
        for first in range(0, count, _MODULE_JOBS):
            names = range(first, min(first + _MODULE_JOBS, count))
            module = Module(f"bench{first}", tuple(Verb(f"v{number}", schedule="1s") for number in names))
            await store.create_deployment(module, f"{first:064}", 1, 300_000, True)
        await connection.execute(statement("bare tables"))
        return [record[0] for record in await connection.fetch(statement("jobs"))]
    finally:
        await connection.close()
        await database.close()


class Rows:
    """One kind of tables ("ours" or "bare"), with connections of its own. `jobs`: ids, ascending."""

    def __init__(self, kind: str, jobs: list[int], connections: list[Connection]) -> None:
        self.kind = kind
        self.jobs = jobs
        self.connections = connections
        self.ticks: Iterator[int] = itertools.count(int(time.time()) - AGO_S)
        self._claim, self._end = statement(f"claim, {kind}"), statement(f"end, {kind}")

    @classmethod
    async def open(cls, url: str, kind: str, jobs: list[int], connections: int = CONNECTIONS_MAX) -> "Rows":
        """With an execution of each job in the tables already: a plan for empty tables is none for full ones."""
        settings: dict[str, Any] = dict(_SETTINGS)
        self = cls(kind, jobs, [await look(url, **settings) for _ in range(connections)])
        for first in range(0, len(jobs), _SEED_ROWS):
            await self.execute(self.connections[0], jobs[first : first + _SEED_ROWS], next(self.ticks))
        await self.vacuum()
        return self

    async def close(self) -> None:
        for connection in self.connections:
            await connection.close()

    async def vacuum(self) -> None:
        """What a round leaves behind is not the next one's burden."""
        prefix = "cron" if self.kind == "ours" else "bare"
        await self.connections[0].execute(f"VACUUM (ANALYZE) {prefix}_jobs, {prefix}_executions")

    async def execute(self, connection: Connection, jobs: list[int], tick: int) -> None:
        """Claim these jobs at that tick, and end them; the next tick is a second later. Raises AssertionError."""
        ticks = [tick] * len(jobs)
        claimed = await connection.fetch(self._claim, jobs, ticks)
        executions = [record[0] for record in claimed]
        ended = await connection.execute(
            self._end, executions, [record[1] for record in claimed], ticks, [tick + 1] * len(jobs)
        )
        assert ended == f"UPDATE {len(jobs)}", f"{len(jobs)} jobs, {len(claimed)} claimed, and then: {ended}"

    async def measure(self, variant: Variant, postmaster: psutil.Process, seconds: float) -> Sample:
        """What was done within these seconds: the last batches end a little later."""
        shares = [self.jobs[number :: variant.connections] for number in range(variant.connections)]
        work = [
            (connection, [share[first : first + variant.rows] for first in range(0, len(share), variant.rows)])
            for connection, share in zip(self.connections, shares, strict=False)
        ]
        served, spent, began = spent_s([postmaster.pid]), time.process_time(), time.perf_counter()
        done = await asyncio.gather(*(self._work(*each, began + seconds) for each in work))
        elapsed, spent = time.perf_counter() - began, time.process_time() - spent
        served = spent_s([postmaster.pid]) - served
        return Sample(sum(done), elapsed, {"postgresql": served, "python": spent})

    async def _work(self, connection: Connection, batches: list[list[int]], until: float) -> int:
        done = 0
        while True:
            tick = next(self.ticks)
            for batch in batches:
                await self.execute(connection, batch, tick)
                done += len(batch)
                if time.perf_counter() >= until:
                    return done
