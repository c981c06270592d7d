"""Overload at three times what the runners have room for: what is claimed runs at once, what isn't waits in its row.

`overload(cluster, seconds)` needs a cluster whose environment has JOURNAL and `environment(...)` in it. As a command:
python -m tests.faults.overload_load --seconds 3600
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import asyncpg
import psutil

from tests.support.cluster import Cluster, Process
from tests.support.databases import running_server
from tests.support.judge import Circumstances, JournalRun, Verdict, judge, read_journal
from tests.support.looking import look

MODULE: Final = Path(__file__).parent / "modules" / "overload.py"
CONTROLLERS: Final = 3
CHILDREN: Final = 2  # sync runs at once
RUN_S: Final = 0.2
OVERLOAD: Final = 3
JOBS: Final = round(OVERLOAD * CHILDREN / RUN_S)  # each due every second
WARM_UP_S: Final = 10.0
SETTLE_S: Final = 20.0
MIB: Final = 1 << 20

WAITS = """
SELECT extract(epoch FROM e.started_at - e.claimed_at)::float8 AS waited,
       extract(epoch FROM e.claimed_at - e.run_at)::float8 AS late
FROM cron_executions e WHERE e.claimed_at >= to_timestamp($1) AND e.claimed_at < to_timestamp($2)
  AND e.started_at IS NOT NULL
"""


@dataclass(frozen=True)
class Figures:
    """`room`: runs that the children could do meanwhile, by how long the runs themselves say that they took.

    Lateness and waits in seconds: a tick waits in its job's row until its claim (late), then on its runner (waited).
    """

    seconds: float
    ticks_due: int
    ran: int
    room: float
    used: float
    waited_p50_s: float
    waited_p99_s: float
    waited_max_s: float
    late_p50_s: float
    late_max_s: float
    jobs_that_ran: int
    most_claimed_at_once: int
    waiting_for_place: float
    grew_mib: dict[str, float]
    skipped: dict[str, int]
    guilty: dict[str, int]


def environment(journal: Path) -> dict[str, str]:
    """What the module needs."""
    return {"JOURNAL": str(journal), "OVERLOAD_JOBS": str(JOBS), "OVERLOAD_RUN_S": str(RUN_S)}


def start(cluster: Cluster) -> None:
    for _ in range(CONTROLLERS):
        cluster.start_controller()
    cluster.start_runner(MODULE, extra=("--sync-children", str(CHILDREN)))


def overload(cluster: Cluster, seconds: float) -> Figures:
    """Start three controllers and a runner of two children in it, overload them for so long, and judge."""
    journal = Path(cluster.environment["JOURNAL"])
    start(cluster)
    _wait_until_all_ran(journal)
    time.sleep(WARM_UP_S)  # imports and caches are part of nobody's growth
    began, weights = time.time(), _weigh(cluster)
    gauge = most = 0.0
    while (left_s := began + seconds - time.time()) > 0:
        time.sleep(min(1.0, left_s))
        gauge = max(gauge, sum(_metric(each, "cronring_node_waiting_for_place") for each in cluster.controllers))
        most = max(most, sum(_metric(each, "cronring_node_held") for each in cluster.controllers))
    ended = time.time()
    grew = {name: mib - weights[name] for name, mib in _weigh(cluster).items()}
    verdict, rows = asyncio.run(_judged(cluster, journal, began, ended))
    waited, late = sorted(row["waited"] for row in rows), sorted(row["late"] for row in rows)
    runs = [run for run in read_journal(journal) if began <= run.started_at < ended and run.ended_at is not None]
    room = _room(runs, ended - began)
    return Figures(
        round(ended - began, 1), round((ended - began) * JOBS), len(runs), round(room, 1), round(len(runs) / room, 3),
        _quantile(waited, 0.5), _quantile(waited, 0.99), _quantile(waited, 1.0), _quantile(late, 0.5),
        _quantile(late, 1.0), len({run.verb for run in runs}), round(most), gauge,
        {name: round(mib, 1) for name, mib in grew.items()}, dict(sorted(verdict.skipped.items())),
        {kind: len(found) for kind, found in verdict.guilty().items()},
    )  # fmt: skip


def _room(runs: Iterable[JournalRun], seconds: float) -> float:
    """How many such runs the children have room for, if they do nothing else."""
    took = [run.ended_at - run.started_at for run in runs if run.ended_at is not None]
    return CHILDREN * seconds / (sum(took) / len(took))


def _wait_until_all_ran(journal: Path) -> None:
    deadline = time.monotonic() + 60
    while len({run.verb for run in read_journal(journal)}) < JOBS:
        assert time.monotonic() < deadline, "not every job has run within a minute"
        time.sleep(0.1)


async def _judged(cluster: Cluster, journal: Path, began: float, ended: float) -> tuple[Verdict, list[asyncpg.Record]]:
    """Until nobody is guilty: what had been claimed takes a moment to come to its end."""
    periods = {f"busy_{number:02}": 1 for number in range(JOBS)}
    deadline = time.monotonic() + SETTLE_S
    while True:
        verdict = await judge(cluster.database_url, periods, ended - 5, journal, Circumstances())
        if not verdict.guilty() or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.5)
    connection = await look(cluster.database_url)
    try:
        return verdict, await connection.fetch(WAITS, began, ended)
    finally:
        await connection.close()


def _weigh(cluster: Cluster) -> dict[str, float]:
    every: list[Process] = cluster.controllers + cluster.runners
    return {each.name: psutil.Process(each.pid).memory_info().rss / MIB for each in every}


def _metric(controller: Process, name: str) -> float:
    with urllib.request.urlopen(f"http://{controller.http}/metrics", timeout=60) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    return 0.0


def _quantile(values: list[float], part: float) -> float:
    return round(values[min(len(values) - 1, int(len(values) * part))], 3) if values else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cronring-overload-"))
    with running_server("postgres18") as server:
        url = server.url(server.create_database())
        with Cluster(url, folder, os.environ | environment(folder / "journal")) as cluster:
            print(json.dumps(asdict(overload(cluster, arguments.seconds)), indent=2))


if __name__ == "__main__":
    main()
