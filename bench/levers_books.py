"""What single levers would take off an execution's cost in PostgreSQL, each beside the books as they are.

    python -m bench.levers_books [--rounds 30] [--jobs 2000] [--batch 500 --batch 20] [--only NAME ...]

A scratch database for each lever on one durable PostgreSQL: as migrated, and then changed as levers_books.sql says, or
under statements that say something else. The same claims and ends go through the real store, by one connection, in
turn. "As it is" stands there twice, so that the second one tells what is noise. Most of these would take a protection
away: they are here to be known, not to be taken. Beside them, barely: history by COPY, and jobs with hot columns only.
"""

import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import asyncpg
import click

from bench.limits_store import Worker, prepare
from bench.machine import machine
from bench.results import head, keep, rows
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import SESSION_SETTINGS, Database
from cronring.controller.store.store import PostgresStore
from cronring.sql.records import Statement
from tests.support.databases import PostgresServer, running_server

SLOTS: Final = tuple(range(4_096))
BATCHES: Final = (500, 20)  # a herd's, and those of an ordinary second
BARE_ROWS: Final = 500  # in a statement
BARE_STATEMENTS: Final = 6  # in a round
FIRST_ID: Final = 1_000_000_000  # above those of executions that were claimed
DAY_S: Final = 86_400
HISTORY: Final = (
    "id", "job_id", "deployment_id", "tick", "run_at", "claimed_at", "controller_id", "runner_id", "hard_deadline",
    "trigger", "missed", "previous_tick", "previous_success", "holds_job", "counted", "number",
)  # fmt: skip
# What is updated, of jobs that hold the same.
TABLES: Final = {
    "wide_jobs": "claim and end of all columns of a job, three indexes",
    "narrow_jobs": "claim and end of the hot columns alone, three indexes",
    "keyless_jobs": "claim and end of the hot columns alone, and no key beside them: two indexes",
}
WAL: Final = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
BACKEND: Final = "SELECT pid FROM pg_stat_activity WHERE application_name = 'bench' AND datname = current_database()"
HEAP_ONLY: Final = """
SELECT coalesce(sum(n_tup_hot_upd) / nullif(sum(n_tup_upd), 0), 0) FROM pg_stat_user_tables WHERE relname LIKE $1 || '%'
"""
# What is vacuumed is vacuumed between rounds, and a checkpoint would make whole pages due again.
QUIET: Final = ("autovacuum = off", "max_wal_size = '8GB'", "checkpoint_timeout = '1h'")
UNLOCKED: Final = (("StartCronJobs", "        FOR NO KEY UPDATE SKIP LOCKED\n", ""),)


class Lever(NamedTuple):
    """`changed`: what is done to the database (levers_books.sql). `said`: (statement, its words, others for them)."""

    name: str
    words: str
    changed: tuple[str, ...] = ()
    said: tuple[tuple[str, str, str], ...] = ()
    partitions: int = 34  # days of history


LEVERS: Final = (
    Lever("as_is", "as it is"),
    Lever("again", "the same again"),
    Lever("no_note", "jobs: no trigger that notes pauses", ("no note",)),
    Lever("no_foreign_key", "jobs: no foreign key to deployments", ("no foreign key",)),
    Lever("no_checks", "no CHECK of either table", ("no checks",)),
    Lever("long_checks", "all that must hold of a row in its CHECK", ("no checks", "long checks")),
    Lever("no_due", "jobs: no index of due ones, so that ends of jobs are HOT", ("no due",)),
    Lever("no_of_runner", "executions: no index by runner", ("no of_runner",)),
    Lever("no_unfinished", "executions: no index of unfinished ones", ("no unfinished",)),
    Lever("room", "executions: room on each page for ends", ("room",)),
    Lever("heap_only", "executions: room, and no index on outcome, so that ends are HOT", ("room", "no outcome")),
    Lever("few_partitions", "executions: partitions of five days, not of 34", partitions=5),
    Lever("cached_ids", "executions' ids drawn 100 at a time", ("cached ids",)),
    Lever("unlocked", "rows of jobs not locked before a claim updates them", said=UNLOCKED),
)


def change(name: str) -> str:
    """Of levers_books.sql. Raises KeyError."""
    _, *parts = Path(__file__).with_suffix(".sql").read_text().split("-- name: ")
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}[name]


def said(lever: Lever, name: str, text: str) -> str:
    """A statement's text as this lever has it. Raises ValueError where it doesn't hold what is to be replaced."""
    for of, words, others in lever.said:
        if of == name:
            if words not in text:
                raise ValueError(f"{lever.name}: {name} does not say {words!r} any more")
            text = text.replace(words, others)
    return text


class _Saying(Database):
    """Runs claims and ends as a lever has them."""

    lever: Lever

    async def fetch(self, statement: Statement) -> list[asyncpg.Record]:
        text, *arguments = statement
        async with self._connection(statement.name) as connection:
            records: list[asyncpg.Record] = await connection.fetch(said(self.lever, statement.name, text), *arguments)
            return records


def on_cpu_us(pid: int) -> float:
    """What a process has spent: of so short a round the kernel's clock ticks would say little."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e3


class Round(NamedTuple):
    """Of an execution (or, barely, of a row)."""

    us: float
    wal: float


async def spent(
    backend: int, session: Connection, work: Sequence[Callable[[], Awaitable[None]]], executions: int
) -> Round:
    """What that backend spends on this work."""
    wal, us = await session.fetchval(WAL), on_cpu_us(backend)
    for each in work:
        await each()
    us = on_cpu_us(backend) - us
    return Round(us / executions, (await session.fetchval(WAL) - wal) / executions)


class Bench:
    """One lever's database, and a worker that claims and ends its jobs."""

    def __init__(self, url: str, database: _Saying, backend: int, session: Connection, worker: Worker) -> None:
        self.url = url
        self.lever = database.lever
        self.database = database
        self.backend = backend
        self.session = session
        self.worker = worker
        self.rounds: list[Round] = []

    async def round(self) -> None:
        """Each job once. VACUUM makes plans due again: the first batch pays for them, and is not counted."""
        await self.session.execute("VACUUM cron_jobs, cron_executions")
        first, *batches = self.worker.batches
        await self.worker.one(first)
        work = [partial(self.worker.one, batch) for batch in batches]
        self.rounds.append(await spent(self.backend, self.session, work, sum(map(len, batches))))

    async def figures(self, as_is: Sequence[Round]) -> dict[str, Any]:
        """Medians over the rounds; `saved_us`: of the differences to the same round as it is."""
        async with self.database._connection("counting") as own:  # noqa: SLF001  # it tells after a second, unless asked
            await own.execute("SELECT pg_stat_force_next_flush()")
        await self.session.execute("SELECT pg_stat_clear_snapshot()")
        jobs, executions = [await self.session.fetchval(HEAP_ONLY, name) for name in ("cron_jobs", "cron_executions")]
        return {
            "name": self.lever.name,
            "words": self.lever.words,
            "batch": len(self.worker.batches[0]),
            "us": round(median(each.us for each in self.rounds), 1),
            "saved_us": round(median(base.us - each.us for base, each in zip(as_is, self.rounds, strict=True)), 1),
            "wal_bytes": round(min(each.wal for each in self.rounds)),
            "jobs_heap_only": round(float(jobs), 2),
            "executions_heap_only": round(float(executions), 2),
        }


@asynccontextmanager
async def scene(server: PostgresServer, lever: Lever, jobs: int, batch: int) -> AsyncIterator[Bench]:
    """A scratch database of that lever, with jobs that are due."""
    url = server.url(server.create_database())
    session = await connect(url, "bench scene", {})
    try:
        database = await _Saying.open(url, "bench", connections=1)
        assert isinstance(database, _Saying)
        database.lever = lever
        try:
            store = PostgresStore(database)
            await prepare(store, session, jobs + batch, lever.partitions)
            for name in lever.changed:
                await session.execute(change(name))
            _, found = await store.get_cron_jobs(SLOTS, 0)
            yield Bench(url, database, await session.fetchval(BACKEND), session, Worker(store, found, batch))
        finally:
            await database.close()
    finally:
        await session.close()


async def in_turn(server: PostgresServer, levers: Sequence[Lever], jobs: int, batch: int, rounds: int) -> Any:
    """The levers' figures, those of the first one as it is. The first two rounds warm up."""
    async with AsyncExitStack() as stack:
        benches = [await stack.enter_async_context(scene(server, lever, jobs, batch)) for lever in levers]
        for number in range(-2, rounds):
            if number == 0:
                for bench in benches:
                    bench.rounds.clear()
            first = number % len(benches)
            for bench in [*benches[first:], *benches[:first]]:
                await bench.round()
        return [await bench.figures(benches[0].rounds) for bench in benches]


class Bare:
    """The barest of tables and statements, in one scratch database, and what is done to them."""

    def __init__(self, session: Connection, own: Connection, ids: list[int]) -> None:
        self.session = session
        self.own = own
        self.ids = ids
        self.numbers = itertools.count(1)
        self.tick = (int(time.time()) // DAY_S + 1) * DAY_S * 1_000_000  # in tomorrow's partition
        self.work: dict[str, Callable[[], Awaitable[None]]] = {
            "history by INSERT ... SELECT FROM unnest, as a claim writes it": self.insert,
            "history by COPY (binary)": self.copy,
            **{words: partial(self.update, table) for table, words in TABLES.items()},
        }

    def history(self) -> list[tuple[Any, ...]]:
        """Rows as claims write them."""
        number = next(self.numbers)
        at = self.tick + number
        return [
            (FIRST_ID + number * BARE_ROWS + place, job, 1, at, at, at, "bench", "r1", at, "schedule", 0, at, at, True,
             False, number)
            for place, job in enumerate(self.ids)
        ]  # fmt: skip

    async def insert(self) -> None:
        await self.own.execute(change("history"), *map(list, zip(*self.history(), strict=True)))

    async def copy(self) -> None:
        await self.own.copy_records_to_table("cron_executions", records=self.history(), columns=HISTORY)

    async def update(self, table: str) -> None:
        """Claim and end."""
        for name in ("claim", "end"):
            await self.own.execute(change(name).replace("hot_jobs", table), self.ids)

    async def round(self) -> list[Round]:
        """Of each kind of work; its first statement is not counted."""
        await self.session.execute("VACUUM cron_executions, " + ", ".join(TABLES))
        backend, done = self.own.get_server_pid(), []
        for work in self.work.values():
            await work()
            done.append(await spent(backend, self.session, [work] * BARE_STATEMENTS, BARE_STATEMENTS * BARE_ROWS))
        return done


async def barely(server: PostgresServer, rounds: int) -> list[dict[str, Any]]:
    """What a row costs by each kind of work: medians over interleaved rounds, two of them to warm up."""
    async with scene(server, LEVERS[0], BARE_ROWS, BARE_ROWS) as bench:
        await bench.session.execute(change("bare tables"))
        own = await connect(bench.url, "bare", SESSION_SETTINGS)
        try:
            bare = Bare(bench.session, own, sorted(job.job_id for job in bench.worker.batches[0]))
            samples = [await bare.round() for _ in range(rounds + 2)][2:]
        finally:
            await own.close()
    return [
        {
            "words": words,
            "us": round(median(each.us for each in taken), 1),
            "wal_bytes": round(min(each.wal for each in taken)),
        }
        for words, taken in zip(bare.work, zip(*samples, strict=True), strict=True)
    ]


async def measure(
    server: PostgresServer, levers: Sequence[Lever], jobs: int, batches: Sequence[int], rounds: int
) -> dict[str, Any]:
    """All of it; JSON-ready."""
    found = []
    for batch in batches:
        click.echo(f"{len(levers)} levers, {rounds} rounds, {batch} in a statement …", err=True)
        found += await in_turn(server, levers, jobs, batch, rounds)
    session = await connect(server.url(), "bench")
    try:
        version = str(await session.fetchval("SHOW server_version"))
    finally:
        await session.close()
    return {"machine": machine(version), "levers": found, "rows": await barely(server, rounds)}


def levers_books(
    jobs: int = 2_000, batches: Sequence[int] = BATCHES, rounds: int = 30, only: Sequence[str] = ()
) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    load = os.getloadavg()[0]
    levers = [lever for lever in LEVERS if not only or lever.name in {"as_is", "again", *only}]
    with (
        tempfile.TemporaryDirectory(prefix="cronring-bench-") as folder,
        running_server("postgres18", Path(folder), durable=True) as server,
    ):
        for setting in QUIET:
            server.execute(f"ALTER SYSTEM SET {setting}")
        server.execute("SELECT pg_reload_conf()")
        result = asyncio.run(measure(server, levers, jobs, batches, rounds))
    return {
        "name": "levers_books",
        "shape": {"jobs": jobs, "rounds": rounds, "levers": len(levers)},
        **result,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "figures": {f"{each['name']}_{each['batch']}_us": each["us"] for each in result["levers"]},
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each lever and size of batches, and one for each kind of bare work."""
    load = result["load"]
    columns = [
        "", "in a statement", "PostgreSQL µs", "µs less than as it is", "bytes of WAL", "jobs HOT", "executions HOT",
    ]  # fmt: skip
    levers = [
        [each["words"], each["batch"], each["us"], each["saved_us"], f"{each['wal_bytes']:,}", each["jobs_heap_only"],
         each["executions_heap_only"]]
        for each in result["levers"]
    ]  # fmt: skip
    lines = [
        *head(result),
        "Of an execution: claim and end through the real store, one connection, fsync on; CPU of the backend alone. "
        f"Load average {load['before']} before, {load['after']} after.",
        "",
        *rows(columns, levers),
        "",
        f"Of a row, {BARE_ROWS} in a statement, and nothing else:",
        "",
        *rows(["", "PostgreSQL µs", "bytes of WAL"], [list(each.values()) for each in result["rows"]]),
    ]
    return "\n".join(lines) + "\n"


@click.command()
@click.option("--jobs", default=2_000, show_default=True, help="Of each lever; each is claimed and ended once a round.")
@click.option("--batch", "batches", multiple=True, default=BATCHES, show_default=True, help="Rows in a statement.")
@click.option("--rounds", default=30, show_default=True)
@click.option("--only", multiple=True, type=click.Choice([lever.name for lever in LEVERS]))
def main(jobs: int, batches: tuple[int, ...], rounds: int, only: tuple[str, ...]) -> None:
    """Single levers on what an execution costs PostgreSQL, each beside the tables and statements as they are."""
    result = levers_books(jobs, batches, rounds, only)
    keep(result, table(result))


if __name__ == "__main__":
    main()
