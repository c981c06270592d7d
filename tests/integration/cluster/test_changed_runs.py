"""A job is changed while it runs, with overlap "skip": ticks of that time overlap, and the next one is on time."""

import asyncio
import time
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from cronring.client import AsyncClient
from cronring.client.model import Execution, JobSpec
from tests.support.cluster import Cluster
from tests.support.looking import look
from tests.support.waiting import wait_until

GATED = Path(__file__).parent / "modules" / "gated.py"
PERIOD = timedelta(seconds=3)
SCHEDULE = "*/3 * * * * *"
RAISED, TOGGLED, REDEPLOYED = "raised.hold:it", "toggled.hold:it", "redeployed.declared"


def module(folder: Path, name: str, timeout: str = "5m") -> Path:
    """A module of its own for each case: a deployment touches all jobs of its module."""
    file = folder / f"with_{timeout}" / f"{name}.py"
    file.parent.mkdir(exist_ok=True)
    text = GATED.read_text()
    if name != "redeployed":
        text = text.partition("@cron(")[0]
    file.write_text(text.replace('"5m"', f'"{timeout}"'))
    return file


async def runs(client: AsyncClient, key: str) -> bool:
    return bool(await client.executions.list(key, "running"))


async def ran_twice(client: AsyncClient, key: str) -> bool:
    return len(await client.executions.list(key, "completed")) >= 2


async def past_a_tick() -> None:
    """At least one tick passes, and there is time until the next."""
    period_s = PERIOD.total_seconds()
    passed_s = time.time() // period_s * period_s + period_s
    while time.time() < passed_s or not 0.2 < time.time() % period_s < 1.0:
        await asyncio.sleep(0.05)  # the clock can't be waited for otherwise


async def redeploy(cluster: Cluster, client: AsyncClient, folder: Path) -> None:
    cluster.start_runner(module(folder, "redeployed", timeout="4m"))

    async def is_active() -> bool:
        return len(await client.deployments.list(module="redeployed")) == 2

    await wait_until(is_active, "the second version is deployed", 40)


async def skipped(url: str, key: str) -> dict[datetime, str]:
    """Of each tick that was: why. A tick is there once."""
    connection = await look(url)
    try:
        rows = await connection.fetch(
            "SELECT s.* FROM cron_skips s JOIN cron_jobs j ON j.id = s.job_id WHERE j.key = $1", key
        )
    finally:
        await connection.close()
    ticks = [(row["first_tick"] + PERIOD * at, row["reason"]) for row in rows for at in range(row["ticks"])]
    assert len(dict(ticks)) == len(ticks), ticks
    return dict(ticks)


def judge(key: str, runs: list[Execution], why: dict[datetime, str]) -> None:
    """Of a job's first two runs."""
    first, second = runs[:2]
    assert first.tick is not None
    assert second.tick is not None
    assert first.ended_at is not None
    told = f"{key}: {first} {second} {why}"
    passed = [first.tick + PERIOD * at for at in range(1, (second.tick - first.tick) // PERIOD)]
    assert len(passed) >= 2, told
    assert {tick: why.get(tick) for tick in passed} == dict.fromkeys(passed, "overlap"), told
    assert (second.trigger, second.attempt) == ("schedule", 1), told
    assert first.ended_at < second.tick <= first.ended_at + 2 * PERIOD, told
    assert second.lateness_ms is not None
    assert second.lateness_ms < PERIOD / timedelta(milliseconds=1), told


async def test_ticks_during_a_run_overlap_whatever_is_changed_meanwhile(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    cluster.environment = cluster.environment | {"GATE": str(gate)}
    cluster.start_controller()
    cluster.start_controller()
    cluster.start_runner(*(module(tmp_path, name) for name in ("raised", "toggled", "redeployed")))
    async with AsyncClient([each.grpc for each in cluster.controllers]) as client:

        async def are_active() -> bool:
            return len(await client.deployments.list(active_only=True)) == 3

        await wait_until(are_active, "the modules are deployed", 40)
        spec = JobSpec(SCHEDULE, {"overlap": "skip"}, payload="it")
        for key in (RAISED, TOGGLED):
            await client.jobs.create(key.partition(".")[0], "hold", "it", spec)
        for key in (RAISED, TOGGLED, REDEPLOYED):
            await wait_until(partial(runs, client, key), f"{key} runs", 40)
        await past_a_tick()
        await client.jobs.pause(TOGGLED)
        await client.jobs.resume(TOGGLED)
        await client.jobs.update(RAISED, JobSpec(policy={"priority": 7}), ["policy.priority"])
        await redeploy(cluster, client, tmp_path)
        await past_a_tick()
        gate.touch()
        for key in (RAISED, TOGGLED, REDEPLOYED):
            await wait_until(partial(ran_twice, client, key), f"{key} has run again", 40)
            completed = await client.executions.list(key, "completed")
            judge(key, completed[::-1], await skipped(cluster.database_url, key))

        async def is_clean() -> bool:
            return (await client.ledger.audit(thorough=True)).clean

        await wait_until(is_clean, "the books close", poll_s=0.5)
