"""Registering: what a module of many verbs costs when its runner starts, and whom it disturbs.

Three controllers, each with a watched loop, and a runner whose jobs are due every second, the herd. For each size a
runner is started on files that are new to the cluster. It hosts so many verbs, up to 10,000 in a file. The clock runs
from the start of its process until every controller has welcomed it: then all its jobs are there. Then further runners
host the same files, as replicas do. None of the new jobs is due meanwhile. Before both,
`cronring check` reads the same files and tells nobody: what a process that takes a core does to the herd.

Each is done several times, with other files. CPU is that of each controller, less what the herd alone took of it, the
busiest first. A hold is how long its loop could not turn. Some of it is another process's, as there are more processes
than cores: so its thread's CPU in a hold stands beside, and the quiet figures above.
Lateness is started_at - run_at, as the books have it: of all runs of the herd, and of the last one at each tick, which
waits for all others. A few dozen ticks fall into a case: a p99 would be the slowest of them.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import sub
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import asyncpg
import click

from bench import loop_watch
from bench.fleet import Fleet, end_runners, fleet
from bench.machine import machine
from bench.results import head, rows, show
from cronring.schema.validate import VERBS_LIMIT
from tests.support.cluster import Process
from tests.support.looking import look

SIZES: Final = (1_000, 5_000, 20_000)
ROUNDS: Final = 3
CASES: Final = ("checked", "new", "known")
CONTROLLERS: Final = 3
HERD: Final = 200
QUIET_S: Final = 10.0
AFTERWARDS_S: Final = 2.0  # of which a hold still counts
DEPLOYED_S: Final = 180.0
POLL_S: Final = 0.05

LATENESS: Final = """
SELECT e.tick, (extract(epoch FROM e.started_at - e.run_at) * 1000)::float8
FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
WHERE j.module = 'others' AND e.run_at >= to_timestamp($1) AND e.run_at < to_timestamp($2)
"""
JOBS: Final = "SELECT count(*) FROM cron_jobs WHERE module = ANY($1) AND removed_at IS NULL"
# Between them, what authors write.
VERBS: Final = (
    '@cron("{minute} {hour} * * *")\nasync def job_{number}() -> None:\n    """Every day."""\n',
    '@cron("{minute} {hour} * * 1-5", timezone="Europe/Berlin", retries=3)\n'
    "async def job_{number}(context: Context) -> None:\n    pass\n",
    '@every("1d", anchor="{anchor}", timeout="5m", on_missed="skip")\nasync def job_{number}() -> None:\n    pass\n',
    '@cron("{minute} {hour} 1 * *", payload={{"order": {number}}})\n'
    "async def job_{number}(of: Order) -> None:\n    pass\n",
)


class Spent(NamedTuple):
    """A while of the cluster. Lists: one entry for each controller."""

    seconds: float
    cpu_s: list[float]
    hold_ms: list[float]  # the longest
    held_cpu_ms: list[float]  # the most CPU that the loop's thread had in one
    late_ms: list[list[float]]  # of each run of the herd, by tick


class Registered(NamedTuple):
    """What a process that reads the files did to the cluster. Seconds: from its start, until it has read them, and on.

    The second one of a process that tells nobody is when it ended.
    """

    read_s: float
    deployed_s: float
    spent: Spent


def files(folder: Path, verbs: int, turn: int) -> list[Path]:
    """As many as so many verbs take; all due in some six hours."""
    due = datetime.now(UTC) + timedelta(hours=6)
    written = []
    for first in range(0, verbs, VERBS_LIMIT):
        lines = ["from dataclasses import dataclass", "", "from cronring import Context, cron, every", ""]
        lines += ["@dataclass", "class Order:", "    order: int", "    note: str = ''", ""]
        for number in range(first, min(first + VERBS_LIMIT, verbs)):
            at = due + timedelta(minutes=number % 240)
            lines.append(
                VERBS[number % len(VERBS)].format(
                    number=number, minute=at.minute, hour=at.hour, anchor=f"{at:%Y-%m-%d %H:%M}"
                )
            )
        written.append(folder / f"many_{verbs}_{turn}_{first}.py")
        written[-1].write_text("\n".join(lines))
    return written


def others(folder: Path) -> Path:
    """The herd."""
    lines = ["from cronring import cron", ""]
    for number in range(HERD):
        lines += ['@cron("* * * * * *")', f"async def job_{number}() -> None:", "    pass", ""]
    file = folder / "others.py"
    file.write_text("\n".join(lines))
    return file


class Bench:
    """A cluster under watch. `holds`: where its controllers' watches write."""

    def __init__(self, running: Fleet, connection: asyncpg.Connection, holds: Path) -> None:
        self._running = running
        self._connection = connection
        self._holds = holds

    async def during(self, began: float, cpu_before: Sequence[float]) -> Spent:
        """From `began` until now."""
        ended = time.time()
        cpu_s = [after - before for after, before in zip(self._running.controllers_cpu_s(), cpu_before, strict=True)]
        await asyncio.sleep(1.5)  # until the herd's last tick is in the books
        books = await self._connection.fetch(LATENESS, began, ended)
        longest = [
            loop_watch.longest(self._holds, each.pid, began, ended) for each in self._running.cluster.controllers
        ]
        hold_ms, held_cpu_ms = ([each[place] for each in longest] for place in (0, 1))
        ticks: dict[Any, list[float]] = {}
        for tick, late_ms in books:
            ticks.setdefault(tick, []).append(late_ms)
        return Spent(ended - began, cpu_s, hold_ms, held_cpu_ms, list(ticks.values()))

    async def quiet(self) -> Spent:
        """The herd alone."""
        began, cpu_s = time.time(), self._running.controllers_cpu_s()
        await asyncio.sleep(QUIET_S)
        return await self.during(began, cpu_s)

    async def checking(self, written: list[Path]) -> Registered:
        """Read these files in processes that tell nobody, one for each, as a runner does."""
        began, cpu_s = time.time(), self._running.controllers_cpu_s()
        commands = [(sys.executable, "-m", "cronring.cli.main", "check", file) for file in written]
        silent = asyncio.subprocess.DEVNULL
        checking = [await asyncio.create_subprocess_exec(*each, stdout=silent) for each in commands]
        assert not any([await each.wait() for each in checking])
        read_s = time.time() - began
        await asyncio.sleep(AFTERWARDS_S)
        return Registered(read_s, read_s, await self.during(began, cpu_s))

    async def registering(self, written: list[Path], verbs: int) -> tuple[Process, Registered]:
        """Start a runner on these files, and wait until it is welcome everywhere."""
        began, cpu_s = time.time(), self._running.controllers_cpu_s()
        runner = self._running.cluster.start_runner(*written)
        read_s = await self._told(runner, "runner_started", 1, began)
        deployed_s = await self._told(runner, "module_registered", len(written) * CONTROLLERS, began)
        assert await self._connection.fetchval(JOBS, [file.stem for file in written]) == verbs
        await asyncio.sleep(AFTERWARDS_S)
        return runner, Registered(read_s, deployed_s, await self.during(began, cpu_s))

    async def round(self, written: list[Path], verbs: int) -> tuple[Registered, Registered, Registered]:
        """By whom nobody is told; unknown to the cluster; known."""
        checked = await self.checking(written)
        first, new = await self.registering(written, verbs)
        second, known = await self.registering(written, verbs)
        end_runners([first, second])
        for each in (first, second):
            self._running.cluster.runners.remove(each)
        return checked, new, known

    async def _told(self, runner: Process, event: str, times: int, began: float) -> float:
        """Seconds until the runner's log has so many lines of it."""
        async with asyncio.timeout(DEPLOYED_S):
            while runner.log.read_text().count(event) < times:
                assert runner.alive(), runner.tail()
                await asyncio.sleep(POLL_S)
        return time.time() - began


def told(rounds: Sequence[Spent]) -> dict[str, Any]:
    """Of all these rounds."""
    ticks = [tick for each in rounds for tick in each.late_ms]
    last_ms = [max(tick) for tick in ticks]
    return {
        "hold_ms": [round(max(each)) for each in zip(*(each.hold_ms for each in rounds), strict=True)],
        "held_cpu_ms": [round(max(each)) for each in zip(*(each.held_cpu_ms for each in rounds), strict=True)],
        "late_p50_ms": round(median(late for tick in ticks for late in tick), 1),
        "last_p50_ms": round(median(last_ms), 1),
        "last_max_ms": round(max(last_ms), 1),
        "ticks": len(ticks),
    }


def case(what: str, verbs: int, rounds: Sequence[Registered], quiet: Spent) -> dict[str, Any]:
    """Medians over the rounds; the longest hold of any."""
    more = []
    for _, _, spent in rounds:
        herd_alone = [each * spent.seconds / quiet.seconds for each in quiet.cpu_s]
        more.append(sorted(map(sub, spent.cpu_s, herd_alone), reverse=True))
    return {
        "what": what,
        "verbs": verbs,
        "read_s": round(median(each.read_s for each in rounds), 2),
        "deployed_s": round(median(each.deployed_s for each in rounds), 2),
        "cpu_s": [round(median(each), 2) for each in zip(*more, strict=True)],
        **told([each.spent for each in rounds]),
    }


async def measured(running: Fleet, holds: Path, sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    """The herd alone, then each size."""
    connection = await look(running.url)
    try:
        bench = Bench(running, connection, holds)
        running.start_runners(1, [others(running.folder)])
        async with asyncio.timeout(DEPLOYED_S):
            while await connection.fetchval(JOBS, ["others"]) < HERD:
                await asyncio.sleep(POLL_S)
        await asyncio.sleep(5)  # every path is warm
        quiet = await bench.quiet()
        found = []
        for verbs in sizes:
            click.echo(f"{verbs} verbs …", err=True)
            taken = [await bench.round(files(running.folder, verbs, turn), verbs) for turn in range(rounds)]
            for what, each in zip(CASES, zip(*taken, strict=True), strict=True):
                found.append(case(what, verbs, each, quiet))
        version = str(await connection.fetchval("SHOW server_version"))
        return {"machine": machine(version), "quiet": told([quiet]), "cases": found}
    finally:
        await connection.close()


def registering(sizes: Sequence[int] = SIZES, rounds: int = ROUNDS, tree: Path | None = None) -> dict[str, Any]:
    """Run it; the result is JSON-ready. `tree`: another checkout, whose code the cluster runs."""
    load = os.getloadavg()[0]
    with fleet(0, tree=tree) as running:
        holds = running.folder / "holds"
        watching = (sys.executable, loop_watch.__file__, str(holds))  # by its path: a tree may have none
        started = [running.cluster.start_controller(wait=False, wrapper=watching) for _ in range(CONTROLLERS)]
        for each in started:
            running.cluster.wait_ready(each)
        result = asyncio.run(measured(running, holds, sizes, rounds))
    return {
        "name": "registering",
        "shape": {"controllers": CONTROLLERS, "jobs of others each second": HERD, "rounds": rounds},
        **result,
        "load": {"before": round(load, 2), "after": round(os.getloadavg()[0], 2)},
        "figures": {
            f"{each['what']}_{each['verbs']}_{name}": each[name]
            for each in result["cases"]
            for name in ("deployed_s", "last_p50_ms", "last_max_ms")
        },
    }


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for the herd alone, and one for each case."""
    columns = [
        "verbs", "files read (s)", "registered everywhere (s)", "CPU of each controller (s)", "longest hold (ms)",
        "the most CPU in one (ms)", "ticks of the herd", "late p50 (ms)", "the last of a tick, p50", "max",
    ]  # fmt: skip

    def last(each: dict[str, Any]) -> list[str]:
        late = (f"{each[f'{name}_ms']:g}" for name in ("late_p50", "last_p50", "last_max"))
        return [*(" / ".join(map(str, each[name])) for name in ("hold_ms", "held_cpu_ms")), str(each["ticks"]), *late]

    cells = [["none", "-", "-", "-", *last(result["quiet"])]]
    for each in result["cases"]:
        cpu = " / ".join(f"{cpu_s:g}" for cpu_s in each["cpu_s"])
        name = f"{each['verbs']:,} {each['what']}"
        cells.append([name, f"{each['read_s']:g}", f"{each['deployed_s']:g}", cpu, *last(each)])
    return "\n".join([*head(result), *rows(columns, cells)]) + "\n"


@click.command()
@click.option("--verbs", default=",".join(map(str, SIZES)), show_default=True, help="Sizes, by commas.")
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True, help="Of each size.")
@click.option("--tree", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Another checkout's code.")
@click.option("--keep", "kept", is_flag=True, help="Write bench/results/registering.json and .md.")
def main(verbs: str, rounds: int, tree: Path | None, kept: bool) -> None:
    """What registering costs, and how late it makes others.

    \b
    Examples:
      python -m bench.registering                       1,000, 5,000 and 20,000 verbs
      python -m bench.registering --verbs 5000          one size
      python -m bench.registering --tree ../before      by the code of another checkout
    """
    result = registering([int(each) for each in verbs.split(",")], rounds, tree)
    show(result, table(result), kept=kept)


if __name__ == "__main__":
    main()
