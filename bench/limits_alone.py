"""What one backend spends on a claim and an end, by the store's statements and by the bare row changes, side by side.

One connection, and nothing else that runs: what many processes spend on waking each other up is in none of these. The
store's are those of `bench.levers_books`, the others those of `bench.limits`, in rounds by turns.
"""

from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

from bench.levers_books import LEVERS, Bench, scene, spent
from bench.limits_rows import Rows
from cronring.controller.store.connect import Connection
from tests.support.databases import PostgresServer

SIZES: Final = (1, 20, 500)  # rows in a statement
BATCHES: Final = 500  # in a round, if there are jobs for so many
WARM: Final = 1  # rounds that are not counted


class Round(NamedTuple):
    """CPU of the backend, in µs of an execution; `nothing`: of two statements that say SELECT 1."""

    store: float
    ours: float
    bare: float
    nothing: float


async def _changes(each: Rows, size: int, session: Connection) -> float:
    """As a round of the store's: VACUUM makes plans due again, so the first batch is not counted."""
    await each.vacuum()
    connection, jobs = each.connections[0], each.jobs[: size * (BATCHES + 1)]
    first, *batches = [jobs[at : at + size] for at in range(0, len(jobs), size)]
    tick = next(each.ticks)
    await each.execute(connection, first, tick)
    work = [partial(each.execute, connection, batch, tick) for batch in batches]
    return (await spent(connection.get_server_pid(), session, work, sum(map(len, batches)))).us


async def _nothing(connection: Connection, session: Connection) -> float:
    async def ask() -> None:
        await connection.execute("SELECT 1")

    return (await spent(connection.get_server_pid(), session, [ask] * (2 * BATCHES), BATCHES)).us


async def _round(bench: Bench, tables: list[Rows], size: int) -> Round:
    await bench.round()
    ours, bare = [await _changes(each, size, bench.session) for each in tables]
    return Round(bench.rounds[-1].us, ours, bare, await _nothing(tables[0].connections[0], bench.session))


async def alone(server: PostgresServer, tables: list[Rows], rounds: int, partitions: int) -> list[dict[str, Any]]:
    """Medians over the rounds, for each size of statements. `tables`: ours, and bare ones."""
    found = []
    for size in SIZES:
        lever = LEVERS[0]._replace(partitions=partitions)
        async with scene(server, lever, min(len(tables[0].jobs), size * BATCHES), size) as bench:
            taken = [await _round(bench, tables, size) for _ in range(WARM + rounds)][WARM:]
        medians = [round(median(us), 1) for us in zip(*taken, strict=True)]
        of_ours = round(median(each.store / each.ours for each in taken), 2)
        names = [f"{name}_us" for name in Round._fields]
        found.append({"rows": size, **dict(zip(names, medians, strict=True)), "of_ours": of_ours})
    return found
