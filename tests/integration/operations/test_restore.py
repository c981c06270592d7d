"""An old dump is restored, as docs/operations.md says: what becomes of the ticks between, and of fences."""

import asyncio
import json
import re
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cronring.schema.timetable import MISSED_AFTER
from tests.integration.cluster import trial
from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer
from tests.support.looking import look
from tests.support.waiting import until

MODULE = Path(__file__).parent / "modules" / "restored.py"
# docs/decisions/0037: why sequences are moved on
PAGE = Path(__file__).resolve().parents[3] / "docs" / "operations.md"
GAP_S = 5  # of ticks that ran after the dump
MISSED_S = MISSED_AFTER / 1_000_000


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path, {"JOURNAL": str(tmp_path / "journal")}) as empty:
        yield empty


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "journal").read_text().splitlines()]


def program(server: PostgresServer, name: str, *arguments: str) -> None:
    done = subprocess.run([server.bin_folder / name, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def back_up_between_runs(server: PostgresServer, url: str, dump: str) -> None:
    """Ticks that pass while a run holds its job are an overlap, and what runs in the dump does so until it is lost."""
    connection = await look(url)
    try:
        deadline = time.monotonic() + 30
        while True:
            async with connection.transaction(isolation="repeatable_read"):
                if not await connection.fetchval("SELECT count(*) FROM cron_executions WHERE ended_at IS NULL"):
                    seen = await connection.fetchval("SELECT pg_export_snapshot()")
                    options = ("--format=custom", f"--snapshot={seen}", f"--file={dump}", url)
                    await asyncio.to_thread(program, server, "pg_dump", *options)
                    return
            assert time.monotonic() < deadline, "something always runs"
            await asyncio.sleep(0.02)
    finally:
        await connection.close()


def stop(cluster: Cluster) -> None:
    """All of it, as the page says: runners, too."""
    for process in [*cluster.runners, *cluster.controllers]:
        process.send(signal.SIGTERM)
    for process in [*cluster.runners, *cluster.controllers]:
        process.popen.wait(timeout=60)
    cluster.runners.clear()
    cluster.controllers.clear()


def advice() -> list[str]:
    """The statements that the page gives for after a restore."""
    section = PAGE.read_text().partition("## Backup and restore")[2]
    block = re.search(r"```sql\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return [statement for statement in block[1].strip().split("\n") if statement]


def wait_for(cluster: Cluster, verb: str, tick: float) -> None:
    """Until a later tick of the verb than that has run."""
    until(
        lambda: "\n".join(p.tail() for p in cluster.controllers + cluster.runners),
        lambda: any(entry["verb"] == verb and entry["tick"] > tick for entry in journal(cluster.folder)),
    )


@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
def test_ticks_between_follow_the_missed_policy_and_fences_go_on(
    cluster: Cluster, postgres: PostgresServer, tmp_path: Path
) -> None:
    trial.start(cluster, controllers=1, runners=1, module=MODULE)
    trial.wait_for_runs(cluster, tmp_path / "journal", at_least=12)
    dump = str(tmp_path / "dump")
    asyncio.run(back_up_between_runs(postgres, cluster.database_url, dump))
    dumped = time.time()
    wait_for(cluster, "last", dumped + GAP_S)
    stop(cluster)
    stopped, before = time.time(), journal(tmp_path)

    name = urlsplit(cluster.database_url).path.removeprefix("/")
    postgres.drop_database(name)
    postgres.execute(f"CREATE DATABASE {name}")
    program(postgres, "pg_restore", f"--dbname={cluster.database_url}", "--exit-on-error", dump)
    for statement in advice():
        postgres.execute(statement, name)
    # What is younger isn't missed, and runs. A quick machine is back before that.
    time.sleep(max(0.0, stopped + MISSED_S - time.time()))
    trial.start(cluster, controllers=1, runners=0)
    cluster.cli("jobs", "pause", "restored.paused")
    cluster.start_runner(MODULE)
    for verb in ("last", "every", "none"):
        wait_for(cluster, verb, time.time())
    cluster.cli("jobs", "resume", "restored.paused")
    wait_for(cluster, "paused", time.time())

    after = journal(tmp_path)[len(before) :]
    again: dict[str, set[float]] = defaultdict(set)
    for entry in after:
        if entry["tick"] in {earlier["tick"] for earlier in before if earlier["verb"] == entry["verb"]}:
            again[entry["verb"]].add(entry["tick"])
    ran_in_gap = {entry["tick"] for entry in before if entry["verb"] == "every" and entry["tick"] > dumped + 1}
    assert len(ran_in_gap) >= GAP_S - 1
    assert again["every"] >= ran_in_gap, "run_all runs them again"
    assert not again["none"], "skip runs none of them"
    assert not again["paused"], "nor does what is paused before runners come"
    assert max((tick for tick in again["last"]), default=0.0) <= stopped
    assert len(again["last"]) <= 1, "run_last runs the latest missed one at most"
    assert min(entry["fence"] for entry in after) > max(entry["fence"] for entry in before)
    audit = trial.audit_when_settled(cluster)
    assert audit.clean, audit.findings
