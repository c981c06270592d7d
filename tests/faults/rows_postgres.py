"""PostgreSQL that is restarted, killed, away, full, slow or locked, and connections that end all the time."""

import random
import time
from collections.abc import Callable

from tests import drawing
from tests.faults.missed import judge_missed
from tests.faults.row import row
from tests.faults.small_disks import ServerOnDisks, cannot_mount
from tests.faults.stage import Stage
from tests.faults.weighing import Scales
from tests.support.server_faults import Storm, held, kill_backend, kill_nine, wait_until_it_answers

PAUSE_S = 4.5  # between two faults: everything due is on time again, and is judged for a while
KEPT = "no result lost, overdue ticks by policy, memory bounded while it is away"
GROWTH_MAX_MIB = 24.0
HOT_TABLES = ("cron_jobs", "cron_executions", "cron_skips", "controllers", "runners")
FULL_S = 5.0
SLOW_MS = 250  # of a statement, in the row about statement timeouts; the product's own limit is 8 s


def _until_over(stage: Stage, draw: random.Random, act: Callable[[], None]) -> None:
    """Over and over, each time at another instant of a second, for as long as the row lasts."""
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        stage.pass_time(PAUSE_S + draw.random())
        act()


@row("postgres-restart", fault="PostgreSQL is restarted, fast shutdown", promise=KEPT, short_s=10, long_s=120)
def postgres_restart(stage: Stage) -> None:
    draw = random.Random(drawing.seed(31))
    stage.start()

    def restart() -> None:
        began = time.time()
        stage.fault("restart")
        stage.server.stop()
        stage.pass_time(draw.uniform(0.0, 2.0))
        stage.server.start()
        stage.excuse(began, "PostgreSQL was restarted")

    _until_over(stage, draw, restart)


@row(
    "postgres-kill", fault="kill -9 of PostgreSQL, whole or one backend; immediate shutdown", promise=KEPT,
    short_s=14, long_s=120,
)  # fmt: skip
def postgres_kill(stage: Stage) -> None:
    draw = random.Random(drawing.seed(32))
    stage.start()
    database = stage.cluster.database_url.partition("?")[0].rpartition("/")[2]
    count = 0

    def strike() -> None:
        nonlocal count
        began, how = time.time(), ("kill -9", "kill -9 of a backend", "immediate shutdown")[count % 3]
        count += 1
        stage.fault(how)
        if how == "kill -9 of a backend":
            kill_backend(stage.server, database)
        else:
            kill_nine(stage.server) if how == "kill -9" else stage.server.kill()
            stage.pass_time(draw.random())
            stage.server.start()
        wait_until_it_answers(stage.cluster.database_url)
        stage.excuse(began, "PostgreSQL recovered")

    _until_over(stage, draw, strike)


@row(
    "database-away", fault="PostgreSQL away: 8 s, in make soak 60 s, stopped and then standing still", promise=KEPT,
    short_s=8, long_s=60,
)  # fmt: skip
def database_away(stage: Stage) -> None:
    stage.start()
    stage.pass_time(PAUSE_S)
    for how in ("stopped", "standing still") if stage.seconds > 30 else ("stopped",):
        scales = Scales(stage)
        # One that ends while nobody can take its result.
        stage.wait_until("a run of some seconds", lambda: bool(stage.going_on("longer_than_its_period")), 15)
        began = time.time()
        stage.fault(f"away, {how}")
        stage.server.stop() if how == "stopped" else stage.server.freeze()
        stage.pass_time(min(2.0, stage.seconds / 4))
        scales.weigh("the outage's beginning")
        stage.pass_time(stage.seconds - (time.time() - began))
        scales.weigh("its end")
        scales.expect_growth_below(GROWTH_MAX_MIB)
        back = time.time()
        stage.server.start() if how == "stopped" else stage.server.thaw()
        stage.pass_time(PAUSE_S)
        stage.excuse(began, "PostgreSQL was away", recovery_s=-1.0)
        judge_missed(stage, began, back)


@row(
    "storm", fault="`pg_terminate_backend` of every connection each second", promise=KEPT, short_s=12, long_s=120,
)  # fmt: skip
def storm(stage: Stage) -> None:
    stage.start()
    stage.pass_time(PAUSE_S)
    scales = Scales(stage)
    began = time.time()
    scales.weigh("its beginning")
    with Storm(stage.cluster.database_url) as blowing:
        stage.pass_time(stage.seconds)
    scales.weigh("its end")
    scales.expect_growth_below(GROWTH_MAX_MIB)
    stage.excuse(began, "connections ended all the time")
    stage.faults["terminated everything"] += blowing.blows
    stage.measured["connections ended"] = str(blowing.ended)
    stage.expect(blowing.ended >= blowing.blows, f"only {blowing.ended} connections were there to be ended")
    stage.pass_time(PAUSE_S)


@row(
    "disk-full", fault="no space left, for tables, then for the write-ahead log (PostgreSQL panics)", promise=KEPT,
    short_s=5, long_s=30, needs=cannot_mount,
)  # fmt: skip
def disk_full(stage: Stage) -> None:
    disks = ServerOnDisks(stage)
    stage.start()
    stage.pass_time(PAUSE_S)
    for fill, what in ((disks.tables_full, "tables"), (disks.wal_full, "write-ahead log")):
        began = time.time()
        stage.fault(f"no space for {what}")
        told = fill(stage.seconds)
        stage.tell(f"PostgreSQL said: {told}")
        wait_until_it_answers(stage.cluster.database_url)
        stage.excuse(began, f"no space for {what}")
        stage.pass_time(PAUSE_S)


@row(
    "statement-timeouts", fault=f"statements end after {SLOW_MS} ms (ALTER by URL) while sessions hold hot tables",
    promise=KEPT, short_s=12, long_s=90,
)  # fmt: skip
def statement_timeouts(stage: Stage) -> None:
    url = stage.cluster.database_url
    stage.cluster.controllers_database_url = f"{url}&options=-c%20statement_timeout%3D{SLOW_MS}"
    stage.start()
    _lock_in_turn(stage, url, 33, (1.0, 3.0))
    failed = sum(each.log.read_text().count("statement timeout") for each in stage.cluster.controllers)
    stage.measured["statements timed out"] = str(failed)
    stage.expect(failed > 0, "no statement timed out")


@row(
    "locks", fault="sessions hold locks on hot tables and rows, in make soak past the statements' own timeout (8 s)",
    promise=KEPT, short_s=12, long_s=150,
)  # fmt: skip
def locks(stage: Stage) -> None:
    stage.start()
    _lock_in_turn(stage, stage.cluster.database_url, 34, (9.0, 13.0) if stage.seconds > 60 else (2.0, 4.0))


def _lock_in_turn(stage: Stage, database_url: str, salt: int, lasts_s: tuple[float, float]) -> None:
    """Tables whole, as a careless migration does; and all rows of jobs and executions, as a careless report does."""
    draw = random.Random(drawing.seed(salt))
    wanted = [(table, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE") for table in HOT_TABLES]
    wanted += [(f"rows of {table}", f"SELECT FROM {table} FOR UPDATE") for table in HOT_TABLES[:2]]
    draw.shuffle(wanted)
    deadline = time.monotonic() + stage.seconds
    while time.monotonic() < deadline:
        what, statement = wanted[0]
        wanted = [*wanted[1:], wanted[0]]
        stage.pass_time(PAUSE_S / 2)
        began = time.time()
        with held(database_url, statement):
            stage.fault("locked", what)
            stage.pass_time(draw.uniform(*lasts_s))
        stage.excuse(began, f"{what} locked")
    stage.pass_time(PAUSE_S)
