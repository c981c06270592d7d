"""What the ring buys: the same load with three controllers and one runner, by three rules for who attempts which job.

everybody: every controller attempts every job. leader: the member with the lowest id attempts all, the next one is the
backup of all. ring: the product, where each slot has a primary and a backup of its own. The first two are made by
bench/ring_rules.py, out of the same controllers.

Each gets a small load, a large one, and the large one through a kill -9 just before a tick. The controller with the
lowest id is killed, the leader. Jobs run each second, no-op async verbs; PostgreSQL durable, and all on this machine.
"""

import contextlib
import math
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asyncpg
import click

from bench.machine import machine
from bench.processes import cpu_s, spent_s
from bench.results import Part, head, keep, rows
from tests.support.cluster import Cluster, Process
from tests.support.databases import PostgresServer, run_coroutine, running_server
from tests.support.looking import look

RULES: Final = ("everybody", "leader", "ring")
CONTROLLERS: Final = 3
BETWEEN_TICKS_S: Final = 0.6  # after a tick: its work is done by then, and figures are read
KILLED_BEFORE_S: Final = 0.3
SETTLED_S: Final = 1.5  # after a deployment
LATE_MS: Final = 250
ROOT: Final = Path(__file__).parents[1]

DEPLOYED: Final = "SELECT count(*) FROM cron_jobs WHERE removed_at IS NULL AND last_tick IS NOT NULL"
CONTROLLERS_BY_ID: Final = "SELECT pid FROM controllers ORDER BY id"
RUNS: Final = """
SELECT count(*) AS executions,
       count(*) FILTER (WHERE started_at - run_at > $3 * interval '1 millisecond') AS late,
       extract(epoch FROM percentile_cont(0.5) WITHIN GROUP (ORDER BY started_at - run_at)) * 1000 AS p50_ms,
       extract(epoch FROM percentile_cont(0.99) WITHIN GROUP (ORDER BY started_at - run_at)) * 1000 AS p99_ms,
       extract(epoch FROM max(started_at - run_at)) * 1000 AS max_ms
FROM cron_executions WHERE tick >= to_timestamp($1) AND tick < to_timestamp($2)
"""
COUNTERS: Final = ("claims_attempted", "claims_won", "claims_early", "statements")

# Differences below are the machine's own; CPU time is counted in steps of 10 ms, which are much of a small load's.
SAME: Final = {"small": 0.5, "large": 0.2, "killed": 0.2}
MEASURES: Final = {  # the less the better
    "small": {
        "wasted": "claims wasted",
        "controllers_cpu_ms": "controllers' CPU ms",
        "postgres_cpu_ms": "PostgreSQL's CPU ms",
        "p99_ms": "p99 ms",
    },
    "large": {
        "wasted": "claims wasted",
        "statements_per_s": "statements/s",
        "controllers_cpu_ms": "controllers' CPU ms",
        "busiest_cpu_ms": "the busiest controller's CPU ms",
        "postgres_cpu_ms": "PostgreSQL's CPU ms",
        "p99_ms": "p99 ms",
    },
    "killed": {"late": "late runs", "max_ms": "the latest, ms"},
}

Figures = dict[str, float]


@dataclass
class Seen:
    """What processes had spent and counted until then."""

    counters: dict[str, float]
    controllers_cpu_s: list[float]
    postgres_cpu_s: float


class Trial:
    """One rule's cluster on a database of its own."""

    def __init__(self, rule: str, cluster: Cluster, server: PostgresServer) -> None:
        self.rule = rule
        self.cluster = cluster
        self.server = server
        self.module = cluster.folder / "load.py"
        wrapper = () if rule == "ring" else (sys.executable, "-m", "bench.ring_rules", rule)
        for _ in range(CONTROLLERS):
            cluster.start_controller(wait=False, wrapper=wrapper)
        for controller in cluster.controllers:
            cluster.wait_ready(controller)

    def deploy(self, jobs: int) -> None:
        """The load's next version, by a new runner in place of the old one; returns when each job has run."""
        for runner in self.cluster.runners:
            runner.send(signal.SIGTERM)
            runner.popen.wait(timeout=10)
        self.cluster.runners.clear()
        write_module(self.module, jobs)
        self.cluster.start_runner(self.module)
        deadline = time.monotonic() + 30
        while self.ask(DEPLOYED)[0]["count"] < jobs:
            assert time.monotonic() < deadline, self.cluster.runners[0].tail()
            time.sleep(0.1)
        time.sleep(SETTLED_S)

    def ask(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        async def fetch() -> list[asyncpg.Record]:
            connection = await look(self.cluster.database_url)
            try:
                return list(await connection.fetch(statement, *arguments))
            finally:
                await connection.close()

        return run_coroutine(fetch())

    def calm(self, seconds: int) -> Figures:
        """So many ticks, each with all that followed from it."""
        first = math.ceil(time.time() + 1 - BETWEEN_TICKS_S)
        sleep_until(first - 1 + BETWEEN_TICKS_S)
        before = self.look()
        sleep_until(first - 1 + seconds + BETWEEN_TICKS_S)
        after = self.look()
        return spent(before, after, seconds) | self.runs(first, seconds)

    def killed(self, jobs: int, seconds: int) -> Figures:
        """The ticks after the death of the controller with the lowest id."""
        victim = self.lowest()
        first = math.ceil(time.time() + KILLED_BEFORE_S)
        sleep_until(first - KILLED_BEFORE_S)
        victim.kill()
        sleep_until(first - 1 + seconds + BETWEEN_TICKS_S)
        found = self.runs(first, seconds)
        return found | {"not_run": jobs * seconds - found["executions"]}

    def lowest(self) -> Process:
        pid = self.ask(CONTROLLERS_BY_ID)[0]["pid"]
        return next(controller for controller in self.cluster.controllers if controller.pid == pid)

    def runs(self, first: int, seconds: int) -> Figures:
        found = self.ask(RUNS, first, first + seconds, LATE_MS)[0]
        return {name: round(float(value), 1) for name, value in found.items()}

    def look(self) -> Seen:
        controllers = self.cluster.controllers
        texts = [self.cluster.http(controller, "/metrics")[1] for controller in controllers]
        counters = {name: sum(counter(text, f"cronring_node_{name}_total") for text in texts) for name in COUNTERS}
        return Seen(counters, [cpu_s([each.pid]) for each in controllers], spent_s([self.server.pid]))


def write_module(path: Path, jobs: int) -> None:
    lines = ["from cronring import cron", ""]
    for number in range(jobs):
        lines += ['@cron("* * * * * *")', f"async def job_{number}() -> None:", "    pass", ""]
    path.write_text("\n".join(lines))


def sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))


def counter(text: str, name: str) -> float:
    """Of what /metrics says; 0 where it says nothing of it."""
    return next((float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} ")), 0.0)


def spent(before: Seen, after: Seen, seconds: int) -> Figures:
    """What claims came of it, and at what cost. Attempts that came early are no waste: they come again."""
    counted = {name: after.counters[name] - before.counters[name] for name in COUNTERS}
    each = [late - soon for soon, late in zip(before.controllers_cpu_s, after.controllers_cpu_s, strict=True)]
    won = counted["claims_won"]
    return {
        "runs_per_s": round(won / seconds, 1),
        "attempted": counted["claims_attempted"],
        "wasted": counted["claims_attempted"] - won - counted["claims_early"],
        "statements_per_s": round(counted["statements"] / seconds, 1),
        "controllers_cpu_ms": per_thousand(sum(each), won),
        "postgres_cpu_ms": per_thousand(after.postgres_cpu_s - before.postgres_cpu_s, won),
        "busiest_cpu_ms": per_thousand(max(each), won),
    }


def per_thousand(cpu_s: float, runs: float) -> float:
    """CPU milliseconds of 1,000 executions."""
    return round(cpu_s * 1_000_000 / runs) if runs else 0.0


def trial(rule: str, server: PostgresServer, folder: Path, loads: Sequence[int]) -> dict[str, Figures]:
    small, large = loads
    folder.mkdir()
    click.echo(f"ring: {rule}, {small} jobs each second, then {large}, then a death …", err=True)
    url = server.url(server.create_database())
    with Cluster(url, folder, {"PYTHONPATH": str(ROOT)}) as cluster:
        measured = Trial(rule, cluster, server)
        measured.deploy(small)
        of_small = measured.calm(4)
        measured.deploy(large)
        of_large = measured.calm(5)
        return {"small": of_small, "large": of_large, "killed": measured.killed(large, 4)}


def measure(small: int = 20, large: int = 500, rules: Sequence[str] = RULES) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-bench-")))
        database = folder / "database"
        database.mkdir()
        server = stack.enter_context(running_server("postgres18", database, durable=True))
        found = {}
        for rule in rules:
            found[rule] = trial(rule, server, folder / rule, (small, large))
        postgres = run_coroutine(version(server.url()))
    return {
        "name": "ring",
        "shape": {"controllers": CONTROLLERS, "runner": 1, "jobs each second": large, "in the small load": small},
        "machine": machine(postgres),
        "figures": figures(found),
        "rules": found,
    }


async def version(url: str) -> str:
    connection = await look(url)
    try:
        return str(await connection.fetchval("SHOW server_version"))
    finally:
        await connection.close()


def figures(found: dict[str, dict[str, Figures]]) -> Figures:
    """Flat names, for comparisons with the run before."""
    kept = ("statements_per_s", "controllers_cpu_ms", "postgres_cpu_ms", "busiest_cpu_ms", "p50_ms", "p99_ms")
    flat: Figures = {}
    for rule, of in found.items():
        flat |= {f"{rule}_{name}": of["large"][name] for name in kept}
        flat[f"{rule}_wasted_percent"] = wasted_percent(of["large"])
        flat |= {f"{rule}_killed_{name}": of["killed"][name] for name in ("max_ms", "late")}
    return flat


def wasted_percent(of: Figures) -> float:
    return round(100 * of["wasted"] / of["attempted"], 1) if of["attempted"] else 0.0


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each load and rule, the deaths, and what all that says."""
    columns = [
        "load", "rule", "runs/s", "claims attempted", "wasted", "statements/s", "CPU ms of 1,000 runs: controllers",
        "the busiest one", "PostgreSQL", "p50 ms", "p99 ms", "max ms",
    ]  # fmt: skip
    found = result["rules"]
    calm = [calm_cells(load, rule, found[rule][load]) for load in ("small", "large") for rule in found]
    lines = [*head(result), *rows(columns, calm), "", "Ticks after a kill -9 of the controller with the lowest id:", ""]
    lines += rows(
        ["rule", "latest, ms", f"runs later than {LATE_MS} ms", "ticks not run"], map(death_cells, found.items())
    )
    return "\n".join([*lines, "", *notes(found)]) + "\n"


def calm_cells(load: str, rule: str, of: Figures) -> list[str]:
    whole = [
        f"{of[name]:.0f}" for name in ("statements_per_s", "controllers_cpu_ms", "busiest_cpu_ms", "postgres_cpu_ms")
    ]
    late = [f"{of[name]:.1f}" for name in ("p50_ms", "p99_ms", "max_ms")]
    claims = [f"{of['attempted']:,.0f}", f"{of['wasted']:,.0f} ({wasted_percent(of):.0f} %)"]
    return [load, rule, f"{of['runs_per_s']:.0f}", *claims, *whole, *late]


def death_cells(found: tuple[str, dict[str, Figures]]) -> list[str]:
    rule, of = found[0], found[1]["killed"]
    return [rule, f"{of['max_ms']:.0f}", f"{of['late']:,.0f} of {of['executions']:,.0f}", f"{of['not_run']:,.0f}"]


def notes(found: dict[str, dict[str, Figures]]) -> list[str]:
    """Where the ring pays and where it doesn't, by the figures alone."""
    if "ring" not in found:
        return []
    lines = [line for rule, of in found.items() if rule != "ring" for line in (*beside(rule, of, found["ring"]), "")]
    busiest = ", ".join(f"{rule} {of['large']['busiest_cpu_ms']:.0f}" for rule, of in found.items())
    return [
        *lines,
        f"CPU ms that the busiest controller spends on 1,000 runs of the large load: {busiest}. How much more several "
        "controllers carry than one is not measured here: all processes share this machine's cores.",
    ]


def beside(rule: str, theirs: dict[str, Figures], ring: dict[str, Figures]) -> list[str]:
    """How the ring differs from that rule."""
    better: list[str] = []
    same: list[str] = []
    worse: list[str] = []
    for load, names in MEASURES.items():
        for name, words in names.items():
            here, there = ring[load][name], theirs[load][name]
            if abs(here - there) <= SAME[load] * max(here, there):
                same.append(f"{words} ({load})")
            else:
                (better if here < there else worse).append(f"{words} ({load}) {here:,.0f} instead of {there:,.0f}")
    parts = [("is better", better), ("is worse", worse), ("is much the same", same)]
    return [f"- Beside {rule} the ring {what}: {', '.join(words) or 'nowhere'}." for what, words in parts]


PART = Part("ring", 75, measure, table)


@click.command()
@click.option("--small", default=20, show_default=True, help="Jobs of the small load, each due every second.")
@click.option("--jobs", default=500, show_default=True, help="Jobs of the large load, each due every second.")
@click.option("--rule", "rules", multiple=True, type=click.Choice(RULES), help="Only this one; may be given again.")
def main(small: int, jobs: int, rules: tuple[str, ...]) -> None:
    """Who attempts which job: everybody, a leader, or the ring; claims wasted, CPU, lateness, and a death of one."""
    result = measure(small, jobs, rules or RULES)
    keep(result, table(result))


if __name__ == "__main__":
    main()
