"""Steady rates: so many no-op async verbs due each second, for a minute at each rate; all processes on this machine.

A job comes every 5 s, so a rate of 500/s is 2,500 jobs, a fifth of which is due each second. A pattern's smallest step
is a second, so those of one second are all due at its very beginning, at :00.000: a small herd each second, which is
the hardest way to have that rate. (`--jitter 900ms` spreads them over the second.) The rates come one after the other
in one cluster: runners bring the rate's module, it is measured from a few seconds after it is deployed on, and is
undeployed. Lateness is started_at - run_at as the books have it, the claim's is claimed_at - run_at. Every tick of the
measured seconds counts.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import asyncpg
import click

from bench.fleet import Fleet, end_runners, fleet
from bench.machine import machine
from bench.processes import machine_s
from bench.results import Part, head, keep, rows
from tests.support.looking import look

PERIOD_S: Final = 5  # of each job
WARM_S: Final = 2  # of ticks, at each rate, before anything counts
DEPLOYED_S: Final = 60.0
MARGIN_S: Final = 0.4  # the accounts are taken so long before the first tick, and before what follows the last
RATES: Final = ((25, 25), (100, 60), (500, 60), (1_000, 60))  # executions a second, and for how many
GOALS_MS: Final = {25: 15, 100: 25, 500: 100}  # lateness p99, of issue 6
RIVALS: Final = "APScheduler 18 ms, PgQueuer 118, graphile-worker and Procrastinate 500"
QUANTILES: Final = (0.5, 0.99, 1.0)

BOOKS: Final = """
SELECT count(*) AS executions,
       count(*) FILTER (WHERE outcome = 'completed') AS completed,
       extract(epoch FROM max(ended_at))::float8 AS last_end,
       percentile_cont($3::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM claimed_at - run_at)) AS claims,
       percentile_cont($3::float8[]) WITHIN GROUP (ORDER BY extract(epoch FROM started_at - run_at)) AS starts
FROM cron_executions WHERE tick BETWEEN to_timestamp($1) AND to_timestamp($2)
"""
DEPLOYED: Final = "SELECT count(*) FROM cron_jobs WHERE removed_at IS NULL AND module = $1"
UNFINISHED: Final = "SELECT count(*) FROM cron_jobs WHERE state <> 'idle' OR next_execution <= now()"
COMMITS: Final = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


class Phase(NamedTuple):
    """One rate: its first tick (seconds since 1970), and how many seconds have ticks."""

    rate: int
    begins: int
    seconds: int

    @property
    def ends(self) -> int:
        """Its last tick."""
        return self.begins + self.seconds - 1

    @property
    def due(self) -> int:
        return self.rate * self.seconds


def module(rate: int, jitter: str) -> str:
    """Its text: as many verbs as keep up the rate, each in its place of every few seconds; "off": without a jitter."""
    said = "" if jitter == "off" else f', jitter="{jitter}"'
    lines = ["from cronring import cron", ""]
    for number in range(rate * PERIOD_S):
        pattern = f"{number % PERIOD_S}/{PERIOD_S} * * * * *"
        lines += [f'@cron("{pattern}"{said})', f"async def job_{number}() -> None:", "    pass", ""]
    return "\n".join(lines)


class Spent(NamedTuple):
    """At one moment: CPU seconds by kind of process and of the whole machine, and transactions committed."""

    at_s: float
    cpu_s: dict[str, float]
    machine_s: float
    commits: int


def figures_of(phase: Phase, books: dict[str, Any], before: Spent, after: Spent) -> dict[str, Any]:
    """One rate's figures; JSON-ready. CPU in seconds per 1,000 executions, which is ms for each."""
    done = books["completed"]
    assert done, f"nothing of {phase.due} has run"
    took_s = max(phase.seconds, books["last_end"] - phase.begins)
    claims, starts = ([round(each * 1e3, 1) for each in books[name]] for name in ("claims", "starts"))
    return {
        "rate": phase.rate,
        "seconds": phase.seconds,
        "per_second": round(done / took_s, 1),
        "missed": phase.due - books["executions"],
        "not_completed": books["executions"] - done,
        **dict(zip(("claim_p50_ms", "claim_p99_ms", "claim_max_ms"), claims, strict=True)),
        **dict(zip(("p50_ms", "p99_ms", "max_ms"), starts, strict=True)),
        "cpu_s": {kind: round((after.cpu_s[kind] - before.cpu_s[kind]) / done * 1e3, 3) for kind in after.cpu_s},
        "other_cores": others(before, after),
        "commits": round((after.commits - before.commits) / done, 2),
    }


def others(before: Spent, after: Spent) -> float:
    """How many cores were busy with something else than what is measured."""
    ours = sum(after.cpu_s.values()) - sum(before.cpu_s.values())
    return round((after.machine_s - before.machine_s - ours) / (after.at_s - before.at_s), 2)


async def until(second: float) -> None:
    await asyncio.sleep(max(0.0, second - time.time()))


async def spent(connection: asyncpg.Connection, cluster: Fleet) -> Spent:
    return Spent(time.monotonic(), cluster.spent_s(), machine_s(), await connection.fetchval(COMMITS))


async def deploy(connection: asyncpg.Connection, running: Fleet, rate: int, jitter: str, runners: int) -> str:
    """The rate's module, and runners for it alone. Raises TimeoutError when it isn't deployed after a minute."""
    file = running.folder / f"rate_{rate}.py"
    file.write_text(module(rate, jitter))
    running.start_runners(runners, [file])
    async with asyncio.timeout(DEPLOYED_S):
        while await connection.fetchval(DEPLOYED, file.stem) < rate * PERIOD_S:
            await asyncio.sleep(0.1)
    return file.stem


async def undeploy(connection: asyncpg.Connection, running: Fleet, name: str) -> None:
    """Raises TimeoutError when what was due isn't done after ten seconds."""
    await asyncio.to_thread(running.cluster.cli, "undeploy", name, "--yes")
    async with asyncio.timeout(10):
        while await connection.fetchval(UNFINISHED):
            await asyncio.sleep(0.05)
    await asyncio.to_thread(end_runners, running.cluster.runners)


async def measure(
    running: Fleet, rates: Sequence[tuple[int, int]], runners: int, jitter: str
) -> tuple[list[dict[str, Any]], str]:
    """Each rate's figures, and PostgreSQL's version. Nothing is asked of the database while a rate is measured."""
    connection = await look(running.url)
    figures = []
    try:
        for rate, seconds in rates:
            name = await deploy(connection, running, rate, jitter, runners)
            phase = Phase(rate, int(time.time()) + 1 + WARM_S, seconds)
            click.echo(f"{rate} executions a second for {seconds} s …", err=True)
            await until(phase.begins - MARGIN_S)
            before = await spent(connection, running)
            await until(phase.begins + phase.seconds - MARGIN_S)
            after = await spent(connection, running)
            await undeploy(connection, running, name)
            books = await connection.fetchrow(BOOKS, phase.begins, phase.ends, QUANTILES)
            figures.append(figures_of(phase, dict(books or {}), before, after))
        return figures, await connection.fetchval("SHOW server_version")
    finally:
        await connection.close()


def steady(
    rates: Sequence[tuple[int, int]] = RATES, controllers: int = 3, runners: int = 1, jitter: str = "off"
) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    load = os.getloadavg()[0]
    with fleet(controllers) as running:
        every, postgres = asyncio.run(measure(running, rates, runners, jitter))
        audit = running.cluster.cli("audit")
    names = ("per_second", "p50_ms", "p99_ms", "max_ms")
    return {
        "name": "steady",
        "shape": {
            "executions/s": ", ".join(str(rate) for rate, _ in rates),
            "controllers": controllers,
            "runners": runners,
            "jitter": jitter,
        },
        "machine": machine(postgres),
        "rates": every,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "audit": audit,
        "figures": {f"{each['rate']}_{name}": each[name] for each in every for name in names}
        | {f"{each['rate']}_{kind}_cpu_ms": spent_ms for each in every for kind, spent_ms in each["cpu_s"].items()},
    }


def goal(each: dict[str, Any]) -> str:
    """A rate's goal beside what was measured; nothing where the issue names none."""
    wanted = GOALS_MS.get(each["rate"])
    if wanted is None:
        return ""
    return f"{wanted}: {'met' if each['p99_ms'] <= wanted else 'missed'}"


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each rate, and what the books add up to."""
    columns = [
        "due a second", "seconds", "done a second", "missed", "claimed, p50 ms", "p99", "started, p50 ms", "p99",
        "goal p99", "max", "controllers CPU s per 1,000", "runners", "PostgreSQL", "transactions for each",
        "cores busy with else",
    ]  # fmt: skip
    cells = [
        [
            f"{each['rate']:,}", each["seconds"], f"{each['per_second']:,}", each["missed"] + each["not_completed"],
            each["claim_p50_ms"], each["claim_p99_ms"], each["p50_ms"], each["p99_ms"], goal(each), each["max_ms"],
            *(each["cpu_s"][kind] for kind in ("controllers", "runners", "postgresql")), each["commits"],
            each["other_cores"],
        ]
        for each in result["rates"]
    ]  # fmt: skip
    audit, load, jitter = result["audit"], result["load"], result["shape"]["jitter"]
    spread = (
        "all that is due in a second is due at :00.000 of it"
        if jitter == "off"
        else f"what is due in a second is spread by a jitter of {jitter}"
    )
    wrong = ", ".join(f"{name} {audit[name]}" for name in ("unaccounted", "duplicates", "early", "undue"))
    lines = [
        *head(result),
        f"No-op async verbs, each job every {PERIOD_S} s; {spread}. Lateness in ms after run_at, of every tick. "
        "CPU is all that these processes spent meanwhile, beating and renewing included. "
        f"Load average {load['before']} before, {load['after']} after.",
        "",
        *rows(columns, cells),
        "",
        f"Audit of all {audit['ticks']:,} ticks: executed {audit['executed']:,}, {wrong}.",
        f"Others at 25 a second, p99, as issue 6 reports them and not of this run: {RIVALS}.",
    ]
    return "\n".join(lines) + "\n"


PART = Part("steady", 235, steady, table)


@click.command()
@click.option(
    "--rates", default="25:25,100:60,500:60,1000:60", show_default=True, help="Executions a second:seconds, ..."
)
@click.option("--controllers", default=3, show_default=True)
@click.option("--runners", default=1, show_default=True)
@click.option("--jitter", default="off", show_default=True, help="Of each job: 900ms spreads each second's over it.")
def main(rates: str, controllers: int, runners: int, jitter: str) -> None:
    """Steady rates, one after the other: lateness, missed ticks, and CPU time of each kind of process.

    \b
    Examples:
      python -m bench.steady
      python -m bench.steady --rates 25:20 --jitter 900ms    one rate, spread over each second
    """
    wanted = [tuple(map(int, each.split(":"))) for each in rates.split(",")]
    result = steady([(rate, seconds) for rate, seconds in wanted], controllers, runners, jitter)
    keep(result, table(result))


if __name__ == "__main__":
    main()
