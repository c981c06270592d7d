"""Idle: what a cluster costs whose jobs are not due for a day, from a thousand of them to a million.

Three controllers and a runner, as processes, on a durable PostgreSQL. The first job is made through the API, the others
by SQL as copies of it, spread over all slots. (So a slot isn't its key's hash; nothing here asks for that.) For each
size the controllers are stopped and started anew, in turn, with `SOON` jobs in the window. Then the window is read
again `REFETCHES` times, each by a NOTIFY; and then nothing happens for `QUIET_S`. A minute of idling is 60 s of that,
and one refetch. A round of maintenance, which each controller has every ten minutes, is measured by itself.

Statements are counted by the server's log. Rows are all that anybody reads of cron_jobs from the restart to the end, by
PostgreSQL's statistics. They are divided by how often a window was read in that time. Two thirds of `SOON` is what a
window of three controllers holds. Jobs that idle ought to cost nothing but their rows: figures are to be the same at
every size.
"""

import asyncio
import contextlib
import os
import re
import signal
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import asyncpg
import click
import psutil

from bench.machine import machine
from bench.processes import cpu_s, spent_s
from bench.results import Part, head, keep, rows
from bench.statement_log import LOGGED, Spent, spent
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.maintenance import DAY_MS, Retention
from cronring.controller.store.maintenance import maintain
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.keys import SLOTS
from tests.support.cluster import Cluster, Process
from tests.support.databases import PostgresServer, running_server
from tests.support.looking import look
from tests.support.waiting import wait_until

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
SOON: Final = 100  # jobs that are due within the window while it is read
REFETCHES: Final = 10
GAP_S: Final = 0.2
LOOKS: Final = 5
QUIET_S: Final = 11.0  # a session tells PostgreSQL's statistics what it did 10 s later at the latest
REFETCH_EVERY_S: Final = 60.0
READY_S_MAX: Final = 3.0  # from the start of the process, at any size
SOON_US: Final = 80_000_000  # inside the window of 90 s, and not due before it is put away again

MODULE: Final = "from cronring import verb\n\n\n@verb\nasync def nothing() -> None:\n    pass\n"
FIRST: Final = "idle.nothing:first"
# What a refetch asks for.
OF_REFETCH: Final = ("GetCronJobs", "GetActivations")
GROW: Final = """
WITH created AS (
    INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms,
                           on_disconnect, next_tick, next_execution, policy, concurrency, pause_after, payload, labels,
                           source, changed_by, created_at, changed_at)
    SELECT 'idle.nothing:' || n, namespace, module, verb, n % 4096, deployment_id, schedule, anchor, timeout_ms,
           on_disconnect, next_tick + n % 3600 * interval '1 second', next_execution + n % 3600 * interval '1 second',
           policy, concurrency, pause_after, payload, labels, source, changed_by, created_at, changed_at
    FROM cron_jobs, generate_series($1::integer, $2::integer) n
    WHERE key = 'idle.nothing:first'
    RETURNING id, revision, schedule, anchor, policy, created_at
)
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at)
SELECT id, revision, schedule, anchor, policy, created_at FROM created
"""
# No trigger looks up what stands there already, the deployment: that is more than half of what an insertion costs.
UNCHECKED: Final = "SET session_replication_role = replica"
# Of the first jobs, so many: due in $2 microseconds.
MOVE: Final = """
UPDATE cron_jobs SET next_tick = now() + $2::bigint * interval '1 microsecond',
                     next_execution = now() + $2::bigint * interval '1 microsecond'
WHERE id IN (SELECT id FROM cron_jobs ORDER BY id LIMIT $1)
"""
READ: Final = """
SELECT (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) AS commits,
       coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS rows_read
FROM pg_stat_user_tables WHERE relname = 'cron_jobs'
"""
DAY_US: Final = 86_400_000_000


class Options(NamedTuple):
    sizes: tuple[int, ...] = SIZES
    controllers: int = 3
    quiet_s: float = QUIET_S


class Span(NamedTuple):
    """What a while cost."""

    seconds: float
    statements: dict[str, Spent]
    commits: int  # as far as sessions have told
    controllers_cpu_s: float  # all of them
    postgres_cpu_s: float


def minute(quiet: Span, read: Span, controllers: int) -> dict[str, Any]:
    """Figures of a minute of idling: one of `quiet`, and one refetch by each controller, as in `read`."""
    window = read.statements["GetCronJobs"]
    per_s = {name: each.calls / quiet.seconds for name, each in quiet.statements.items() if name not in OF_REFETCH}
    per_s |= {name: controllers / REFETCH_EVERY_S for name in OF_REFETCH if name in read.statements}

    def cpu(idle_s: float, reading_s: float) -> tuple[float, float]:
        """ms in a second of idling, and ms that one refetch takes beside that."""
        idle_ms = 1_000 * idle_s / quiet.seconds
        return idle_ms, max(0.0, (1_000 * reading_s - idle_ms * read.seconds) / window.calls)

    controller, refetch = cpu(quiet.controllers_cpu_s, read.controllers_cpu_s)
    postgres, refetch_of_postgres = cpu(quiet.postgres_cpu_s, read.postgres_cpu_s)
    return {
        "statements_per_s": round(sum(per_s.values()), 2),
        "commits_per_s": round(quiet.commits / quiet.seconds, 2),
        "controller_cpu_ms_per_s": round(controller / controllers + refetch / REFETCH_EVERY_S, 1),
        "postgres_cpu_ms_per_s": round(postgres + controllers * refetch_of_postgres / REFETCH_EVERY_S, 1),
        "refetch_cpu_ms": round(refetch, 1),
        "refetch_ms": round(window.total_ms / window.calls, 2),
        "per_s": {name: round(rate, 2) for name, rate in per_s.items()},
    }


class Idle:
    """A cluster on a server of its own."""

    def __init__(self, server: PostgresServer, cluster: Cluster, connection: asyncpg.Connection, runner: Path) -> None:
        self._server = server
        self._cluster = cluster
        self._connection = connection
        self._module = runner
        self._jobs = 0

    async def begin(self, controllers: int) -> None:
        """Deploy a module as a runner does, and make the first job as a caller does."""
        for _ in range(controllers):
            self._cluster.start_controller()
        self._cluster.start_runner(self._module)
        for controller in self._cluster.controllers:
            await self._wait(controller, "node_runners", 1)
        self._cluster.cli("jobs", "create", "idle.nothing", "--name", "first", "--every", "1d")
        await self._maintain_ms()  # the first one makes partitions
        self._jobs = 1

    async def size(self, jobs: int, quiet_s: float) -> dict[str, Any]:
        """Grow to so many jobs, and measure."""
        begun = time.monotonic()
        await self._connection.execute(GROW, self._jobs, jobs - 1, timeout=120)
        self._jobs = jobs
        for statement in ("VACUUM ANALYZE cron_jobs", "VACUUM ANALYZE cron_schedules", "CHECKPOINT"):
            await self._connection.execute(statement, timeout=120)
        grown = time.monotonic()
        await self._connection.execute(MOVE, SOON, SOON_US)
        logged, (_, rows_before) = self._logged(), await self._statistics()
        started = [await self._restart(each) for each in list(self._cluster.controllers)]
        restarted = time.monotonic()
        read = await self._span(self._refetch_often())
        quiet = await self._span(asyncio.sleep(quiet_s))
        rows_read, windows = (await self._statistics())[1] - rows_before, self._spent(logged)["GetCronJobs"].calls
        await self._connection.execute(MOVE, SOON, DAY_US)
        rss = [psutil.Process(each.pid).memory_info().rss / 2**20 for each in self._cluster.controllers]
        done = time.monotonic()
        found = {
            "jobs": jobs,
            **minute(quiet, read, len(rss)),
            "rows_per_refetch": round(rows_read / windows, 1),
            "controller_rss_mib": round(statistics.median(rss), 1),
            **{name: statistics.median(each[name] for each in started) for name in started[0]},
            "maintenance_ms": round(await self._maintain_ms(), 1),
            "overdue_ms": round(await self._overdue_ms(), 2),
            "load": os.getloadavg()[0],
            "took_s": {
                "growing": round(grown - begun, 1),
                "restarting": round(restarted - grown, 1),
                "idling": round(done - restarted, 1),
            },
        }
        click.echo(f"  {jobs:,} jobs: {found['took_s']}, {found['statements_per_s']} statements/s", err=True)
        return found

    async def _maintain_ms(self) -> float:
        """A round with its connection, as each controller has one every ten minutes, and 30 s after its start."""
        settings = ClusterSettings()
        kept_ms, audit_log_ms = settings.history_days * DAY_MS, settings.audit_log_days * DAY_MS
        retention = Retention(kept_ms, settings.history_runs, audit_log_ms)
        found = []
        for _ in range(LOOKS):
            begun = time.monotonic()
            assert (await maintain(self._cluster.database_url, retention)).ours
            found.append((time.monotonic() - begun) * 1_000)
        return statistics.median(found)

    async def _overdue_ms(self) -> float:
        """A backup's look at all its slots, there and back; in a cluster it looks where something was due, and then."""
        found = []
        database = await Database.open(self._cluster.database_url, "cronring bench")
        try:
            for _ in range(LOOKS + 1):  # the first one plans
                begun = time.monotonic()
                _, jobs = await PostgresStore(database).get_overdue_jobs(tuple(range(0, SLOTS, 3)), 450, 1_000)
                found.append((time.monotonic() - begun) * 1_000)
                assert not jobs, "nothing is due"
        finally:
            await database.close()
        return statistics.median(found[1:])

    async def _restart(self, leaving: Process) -> dict[str, float]:
        """A controller leaves, and comes back: until it is ready, has read its window, and has its runner."""
        leaving.send(signal.SIGTERM)
        assert leaving.popen.wait(timeout=30) == 0, leaving.tail()
        begun = time.monotonic()
        starting = self._cluster.restart_controller(leaving)
        self._cluster.wait_ready(starting)
        found = {"ready_s": time.monotonic() - begun}
        await self._wait(starting, "node_window_jobs", 1)
        found["window_s"] = time.monotonic() - begun
        await self._wait(starting, "node_runners", 1)
        found["runner_s"] = time.monotonic() - begun
        for controller in self._cluster.controllers:
            await self._wait(controller, "ring_members", len(self._cluster.controllers))
        return {name: round(value, 2) for name, value in found.items()}

    async def _wait(self, controller: Process, name: str, value: float) -> None:
        """Until that gauge is so high."""

        def reached() -> bool:
            assert controller.alive(), controller.tail()
            with contextlib.suppress(OSError):
                return gauge(self._cluster.http(controller, "/metrics")[1], name) >= value
            return False

        await wait_until(reached, lambda: f"{controller.name}: {name} isn't {value}\n{controller.tail()}", 60, 0.05)

    async def _notify(self) -> None:
        await self._connection.execute("SELECT pg_notify('cronring.jobs', 'idle')")

    async def _refetch_often(self) -> None:
        for _ in range(REFETCHES):
            await self._notify()
            await asyncio.sleep(GAP_S)  # they come by themselves, a fiftieth of a second after; how many did is counted

    async def _span(self, waiting: Any) -> Span:
        pids = [controller.pid for controller in self._cluster.controllers]
        logged, (commits, _) = self._logged(), await self._statistics()
        begun, cpu, postgres = time.monotonic(), cpu_s(pids), spent_s([self._server.pid])
        await waiting
        seconds, cpu, postgres = time.monotonic() - begun, cpu_s(pids) - cpu, spent_s([self._server.pid]) - postgres
        statements = self._spent(logged)
        return Span(seconds, statements, (await self._statistics())[0] - commits, cpu, max(0.0, postgres))

    def _logged(self) -> int:
        return self._server.log.stat().st_size

    def _spent(self, since: int) -> dict[str, Spent]:
        with self._server.log.open("rb") as log:
            log.seek(since)
            return spent(log.read().decode(errors="replace"))

    async def _statistics(self) -> tuple[int, int]:
        """Commits, and rows of cron_jobs that were read, as far as sessions have told."""
        await self._connection.execute("SELECT pg_stat_force_next_flush()")  # of this one's own
        row = await self._connection.fetchrow(READ)
        assert row is not None
        return row["commits"], row["rows_read"]


def gauge(text: str, name: str) -> float:
    """One figure of /metrics without labels. Raises AssertionError."""
    found = re.search(rf"^cronring_{name} (\S+)$", text, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


async def sizes(server: PostgresServer, cluster: Cluster, url: str, module: Path, options: Options) -> dict[str, Any]:
    connection = await look(url)
    try:
        database = await connection.fetchval("SELECT current_database()")
        for name, value in LOGGED.items():
            await connection.execute(f"ALTER DATABASE {database} SET {name} = {value}")
        await connection.execute(UNCHECKED)
        idle = Idle(server, cluster, connection, module)
        await idle.begin(options.controllers)
        found = [await idle.size(jobs, options.quiet_s) for jobs in options.sizes]
        return {"postgres": str(await connection.fetchval("SHOW server_version")), "sizes": found}
    finally:
        await connection.close()


def idle(options: Options = Options()) -> dict[str, Any]:  # noqa: B008  immutable
    """Run it; the result is JSON-ready."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-bench-")))
        (folder / "database").mkdir()
        server = stack.enter_context(running_server("postgres18", folder / "database", durable=True))
        url = server.url(server.create_database())
        module = folder / "idle.py"
        module.write_text(MODULE)
        cluster = stack.enter_context(Cluster(url, folder))
        found = asyncio.run(sizes(server, cluster, url, module, options))
    return {
        "name": "idle",
        "shape": {"controllers": options.controllers, "runner": 1, "jobs at most": max(options.sizes)},
        "machine": machine(found["postgres"]),
        "sizes": found["sizes"],
        "figures": {
            f"{each['jobs']}_jobs_{line.name}": each[line.name]
            for each in found["sizes"]
            for line in LINES
            if line.figure
        },
    }


class Line(NamedTuple):
    """One of the table. `figure`: it is one by which runs are compared."""

    name: str
    words: str
    goal: str
    figure: bool = False


LINES: Final = (
    Line("statements_per_s", "statements per second, whole cluster", "flat", figure=True),
    Line("postgres_cpu_ms_per_s", "CPU of PostgreSQL, ms per second", "flat"),
    Line("controller_cpu_ms_per_s", "CPU of a controller, ms per second", "flat", figure=True),
    Line("controller_rss_mib", "RSS of a controller, MiB", "flat", figure=True),
    Line("ready_s", "from a controller's start until it is ready, s", f"<= {READY_S_MAX:g}", figure=True),
    Line("window_s", "until it has read its window, s", "flat"),
    Line("runner_s", "until it has its runner, s", "flat"),
    Line("rows_per_refetch", f"rows read for a window ({SOON} jobs due, each in two windows)", "flat", figure=True),
    Line("refetch_ms", "reading it, ms in PostgreSQL", "a page for each slot at most"),
    Line("refetch_cpu_ms", "reading it, ms of the controller's CPU", "flat"),
    Line("overdue_ms", "a backup's look at all its slots, ms", "a page for each slot at most"),
    Line("maintenance_ms", "a round of maintenance, ms", "flat"),
)


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each figure, a column for each size, the last size's by the first one's, and the goal."""
    found: Sequence[dict[str, Any]] = result["sizes"]
    columns = [f"{each['jobs']:,} jobs" for each in found]
    cells = [[line.words, *(each[line.name] for each in found), _times(found, line.name), line.goal] for line in LINES]
    names = sorted(
        {name for each in found for name in each["per_s"]}, key=lambda name: (-found[0]["per_s"].get(name, 0), name)
    )
    by_name = [[name, *(each["per_s"].get(name, 0) for each in found)] for name in names]
    return "\n".join(
        [
            *head(result),
            *rows(["", *columns, "last by first", "goal"], cells),
            "",
            "Statements per second, of all controllers together:",
            "",
            *rows(["statement", *columns], by_name),
            "",
            f"Load average {found[0]['load']:.1f} at the first size, {found[-1]['load']:.1f} at the last.",
        ]
    ) + "\n"  # fmt: skip


def _times(found: Sequence[dict[str, Any]], name: str) -> str:
    first, last = found[0][name], found[-1][name]
    return f"{last / first:.2f}" if first else "-"


PART = Part("idle", 110, idle, table)


@click.command()
@click.option("--jobs", multiple=True, type=int, default=SIZES, show_default=True, help="Ascending.")
@click.option("--controllers", default=3, show_default=True)
@click.option("--quiet", default=QUIET_S, show_default=True, help="Seconds in which nothing happens.")
def main(jobs: tuple[int, ...], controllers: int, quiet: float) -> None:
    """Idle: what jobs cost that are not due for a day, from a thousand of them to a million.

    Example: python -m bench.idle --jobs 1000 --jobs 100000
    """
    click.echo(f"idling with {', '.join(f'{each:,}' for each in jobs)} jobs …", err=True)
    result = idle(Options(jobs, controllers, quiet))
    keep(result, table(result))


if __name__ == "__main__":
    main()
