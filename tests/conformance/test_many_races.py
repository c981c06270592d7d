"""Many jobs by one call against deployments, claims, and each other, on real PostgreSQL: one outcome, no deadlock."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from cronring.controller.core.model import Job
from cronring.controller.ports.many import JobChange, JobDone, NewJob, Outcome
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.harness import GRACE_MS, TIMEOUT_MS, claim_of, end_of
from tests.conformance.test_order_races import Racers, Scene, due_now

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])

SPEC = JobSpec("every 1h", timeout_ms=1_000, on_disconnect="stop", policy='{"jitter":"off"}')
ROUNDS = 6
JOBS = 60
RACE_S = 120


@pytest.fixture
async def racers(database_url: str) -> AsyncIterator[Racers]:
    databases = [await Database.open(database_url, f"cronring {number}") for number in range(3)]
    scene = await connect(database_url, "scene")
    racers = Racers(databases, Scene(scene))
    await racers.join()
    yield racers
    await scene.close()
    for database in databases:
        await database.close()


def wanted(module: str, count: int = JOBS) -> list[NewJob]:
    return [NewJob("default", module, "a", f"n{number}", SPEC) for number in range(count)]


def keys(jobs: list[NewJob]) -> list[str]:
    return [f"{job.module}.{job.verb}:{job.name}" for job in jobs]


def made(outcomes: list[Outcome]) -> int:
    return sum(isinstance(each, JobDone) and not each.unchanged for each in outcomes)


async def test_of_many_who_make_the_same_jobs_each_is_made_once(racers: Racers) -> None:
    for number in range(ROUNDS):
        names = f"m{number}", f"o{number}"
        for name in names:
            await racers.job(name)
        both = wanted(names[0]) + wanted(names[1])
        turned = wanted(names[1]) + wanted(names[0])
        async with asyncio.timeout(RACE_S):
            done = await asyncio.gather(
                racers.controls[0].create_jobs(both, "c0"),
                racers.controls[1].create_jobs(turned, "c1", whole=True),
                racers.controls[2].create_jobs(both, "c2"),
            )
        assert sum(map(made, done)) == 2 * JOBS
        assert all(isinstance(each, JobDone) and each.job_id for outcomes in done for each in outcomes)


async def test_jobs_are_made_for_the_version_that_is_active_or_orphaned_by_the_next(racers: Racers) -> None:
    """Of a call and a deployment that takes the verb away, one comes first; no job is left with a verb that is gone."""
    for number in range(ROUNDS):
        name = f"m{number}"
        await racers.job(name)
        without = Module(name, (Verb("b", schedule="every 1h"),))
        making = racers.controls[0].create_jobs(wanted(name), "me")
        deploying = racers.stores[1].create_deployment(without, "b" * 64, 1, TIMEOUT_MS, True)
        async with asyncio.timeout(RACE_S):
            if number % 2:
                outcomes, _ = await asyncio.gather(making, deploying)
            else:
                _, outcomes = await asyncio.gather(deploying, making)
        stray = await racers.scene.fetchval(
            "SELECT count(*) FROM cron_jobs WHERE module = $1 AND source = 'api' AND orphaned_at IS NULL", name
        )
        orphaned = await racers.scene.fetchval(
            "SELECT count(*) FROM cron_jobs WHERE module = $1 AND orphaned_at IS NOT NULL", name
        )
        assert (stray, orphaned) == (0, made(outcomes))
        assert made(outcomes) in {0, JOBS}, "one transaction sees one version"


async def test_what_is_deleted_while_it_is_claimed_runs_once_or_not_at_all(racers: Racers) -> None:
    for number in range(ROUNDS):
        name = f"m{number}"
        await racers.job(name)
        jobs = wanted(name, 20)
        await racers.controls[0].create_jobs(jobs, "me")
        due = [await racers.due(job) for job in await _jobs(racers, name)]
        claiming = racers.stores[0].start_cron_jobs("c0", [claim_of(job, "r0") for job in sorted(due)], GRACE_MS)
        deleting = racers.controls[1].delete_jobs(keys(jobs), "me")
        async with asyncio.timeout(RACE_S):
            (_, claimed), deleted = await asyncio.gather(claiming, deleting)
        assert made(deleted) == len(jobs)
        started = sum(each.updated for each in claimed)
        booked = [await racers.booked(job, job.next_tick or 0) for job in due]
        assert sum(executions for executions, _ in booked) == started
        assert all((executions, reasons) in [(1, []), (0, ["cancelled"])] for executions, reasons in booked)


async def test_changes_to_many_and_a_busy_cluster_never_deadlock(racers: Racers) -> None:
    await racers.job("busy")
    jobs = wanted("busy")
    await racers.controls[0].create_jobs(jobs, "me")

    async def change(number: int) -> None:
        for turn in range(4):
            mixed = racers.chance.sample(keys(jobs), JOBS)
            hours = JobChange.to(schedule=f"every {turn + 2}h", labels={"by": str(number)})
            await racers.controls[number].update_jobs(dict.fromkeys(mixed, hours), "me")

    async def renew() -> None:
        for _ in range(4):
            part = racers.chance.sample(jobs, JOBS // 2)
            await racers.controls[2].delete_jobs(keys(part), "me")
            await racers.controls[2].create_jobs(part, "me")

    async def claim_and_end() -> None:
        for _ in range(6):
            due = [await due_now(racers, job) for job in racers.chance.sample(await _jobs(racers, "busy"), 10)]
            requests = [claim_of(job, "r0") for job in sorted(job for job in due if job is not None)]
            _, results = await racers.stores[0].start_cron_jobs("c0", requests, GRACE_MS)
            claimed = tuple(each.execution_id for each in results if each.execution_id is not None)
            executions = await racers.stores[0].get_unfinished(claimed)
            await racers.stores[0].end_cron_jobs("c0", [end_of(each) for each in executions])

    async with asyncio.timeout(RACE_S), asyncio.TaskGroup() as group:
        for work in (change(0), change(1), renew(), claim_and_end()):
            group.create_task(work)
    twice = await racers.scene.fetchval(
        "SELECT count(*) FROM (SELECT key FROM cron_jobs WHERE removed_at IS NULL GROUP BY key HAVING count(*) > 1) k"
    )
    open_books = await racers.scene.fetchval(
        "SELECT count(*) FROM cron_jobs j WHERE removed_at IS NULL AND (SELECT count(*) FROM cron_schedules s "
        "WHERE s.job_id = j.id AND s.until_at IS NULL) <> 1"
    )
    assert (twice, open_books) == (0, 0)


async def _jobs(racers: Racers, module: str) -> list[Job]:
    ids = await racers.scene.fetch(
        "SELECT id FROM cron_jobs WHERE module = $1 AND source = 'api' AND removed_at IS NULL ORDER BY id", module
    )
    _, found = await racers.stores[0].get_cron_jobs(tuple(range(4096)), 10**9)
    wanted_ids = {record[0] for record in ids}
    return [job for job in found if job.job_id in wanted_ids]


async def test_who_makes_what_is_there_waits_for_nobody_who_holds_its_row(racers: Racers) -> None:
    """And so no claim waits for an import that is repeated."""
    await racers.job("m")
    jobs = wanted("m", 3)
    await racers.controls[0].create_jobs(jobs, "me")
    await racers.scene.fetch("BEGIN")
    await racers.scene.fetch("SELECT FROM cron_jobs FOR UPDATE")
    async with asyncio.timeout(RACE_S):
        again = await racers.controls[1].create_jobs(jobs, "me")
    await racers.scene.fetch("ROLLBACK")
    assert [isinstance(each, JobDone) and each.unchanged for each in again] == [True] * 3
