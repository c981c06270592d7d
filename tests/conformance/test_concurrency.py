"""Several controllers at once on real PostgreSQL: exactly one wins each claim and each end, and nobody deadlocks."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from controller.core.model import ClaimRequest, Execution, RunnerInfo
from controller.ports import ControllerInfo
from controller.store.connect import connect
from controller.store.pool import Database
from controller.store.store import PostgresStore
from schema.module import Module, Verb
from tests.conformance.harness import GRACE_MS, LEASE_MS, LOST_AFTER_MS, TIMEOUT_MS, end_of

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])

CONTROLLERS = ["c1", "c2", "c3"]
JOBS = 300
ROUNDS = 5


@pytest.fixture
async def stores(database_url: str) -> AsyncIterator[list[PostgresStore]]:
    databases = [await Database.open(database_url, f"cronring {name}") for name in CONTROLLERS]
    stores = [PostgresStore(database) for database in databases]
    for name, store in zip(CONTROLLERS, stores, strict=True):
        await renew(store, name)
        await store.register_runner(RunnerInfo(f"r-{name}", "host", 1, "0.1.0", ()))
    yield stores
    for database in databases:
        await database.close()


async def renew(store: PostgresStore, name: str) -> None:
    runners = tuple(f"r-{each}" for each in CONTROLLERS)
    await store.renew_lease(ControllerInfo(name, "a", "b", 1, "0.1.0"), False, LEASE_MS * 10, runners, LOST_AFTER_MS)


async def due_requests(database_url: str, store: PostgresStore) -> list[ClaimRequest]:
    """All jobs came due a moment ago."""
    connection = await connect(database_url, "scene")
    try:
        await connection.execute(
            "UPDATE cron_jobs SET next_tick = t.tick, next_execution = t.tick FROM (SELECT greatest(max(last_tick), "
            "date_trunc('second', now()) - interval '1 hour') + interval '1 second' AS tick FROM cron_jobs) t"
        )
        now = await connection.fetchval("SELECT now()")
    finally:
        await connection.close()
    _, jobs = await store.get_cron_jobs(tuple(range(4096)), 0)
    assert len(jobs) == JOBS
    requests = []
    for job in jobs:
        assert job.next_tick is not None
        assert job.next_tick <= now
        requests.append(ClaimRequest(job.job_id, job.next_tick, job.next_tick, job.next_tick, "r1", job.deployment, ()))
    return requests


async def deploy(store: PostgresStore, digest: str) -> None:
    verbs = tuple(Verb(f"v{number}", schedule="every 1h") for number in range(JOBS))
    await store.create_deployment(Module("billing", verbs), digest * 64, 1, TIMEOUT_MS, True)


async def test_every_claim_and_every_end_has_one_winner(database_url: str, stores: list[PostgresStore]) -> None:
    await deploy(stores[0], "a")
    chance = random.Random(1)
    for _ in range(ROUNDS):
        requests = await due_requests(database_url, stores[0])
        claimed = await asyncio.gather(
            *(
                store.start_cron_jobs(name, chance.sample(requests, len(requests)), GRACE_MS)
                for name, store in zip(CONTROLLERS, stores, strict=True)
            )
        )
        winners = [result.job_id for _, results in claimed for result in results if result.updated]
        assert len(winners) == len(set(winners)) == JOBS
        ids = [result.execution_id for _, results in claimed for result in results if result.execution_id is not None]
        executions = await stores[0].get_unfinished(tuple(ids))
        assert len(executions) == JOBS
        ended = await asyncio.gather(
            *(
                store.end_cron_jobs(name, [end_of(each) for each in chance.sample(executions, len(executions))])
                for name, store in zip(CONTROLLERS, stores, strict=True)
            )
        )
        finished = [result.execution_id for results in ended for result in results if result.ended]
        assert len(finished) == len(set(finished)) == JOBS


async def test_ends_adoptions_renewals_and_redeployments_never_deadlock(
    database_url: str, stores: list[PostgresStore]
) -> None:
    await deploy(stores[0], "a")
    chance = random.Random(2)

    async def end_in_batches(name: str, store: PostgresStore, executions: list[Execution]) -> None:
        mixed = chance.sample(executions, len(executions))
        for first in range(0, len(mixed), 50):
            await store.end_cron_jobs(name, [end_of(each) for each in mixed[first : first + 50]])

    async def adopt(name: str, store: PostgresStore) -> None:
        for _ in range(10):
            await store.adopt_executions(name, tuple(CONTROLLERS))
            await renew(store, name)

    for digest in "bcd":
        requests = await due_requests(database_url, stores[0])
        _, results = await stores[0].start_cron_jobs("c1", requests, GRACE_MS)
        assert all(result.updated for result in results)
        executions = await stores[0].get_unfinished(tuple(each.execution_id or 0 for each in results))
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            for name, store in zip(CONTROLLERS, stores, strict=True):
                group.create_task(end_in_batches(name, store, executions))
                group.create_task(adopt(name, store))
            group.create_task(deploy(stores[1], digest))
        assert await stores[0].get_unfinished(tuple(each.execution_id for each in executions)) == []


async def test_a_claim_does_not_wait_for_a_locked_row(database_url: str, stores: list[PostgresStore]) -> None:
    await deploy(stores[0], "a")
    requests = await due_requests(database_url, stores[0])
    other = await connect(database_url, "other")
    try:
        async with other.transaction():
            await other.execute("SELECT FROM cron_jobs WHERE id = $1 FOR UPDATE", requests[7].job_id)
            _, results = await stores[0].start_cron_jobs("c1", requests, GRACE_MS)
        assert [result.job_id for result in results if not result.updated] == [requests[7].job_id]
        _, (again,) = await stores[0].start_cron_jobs("c1", [requests[7]], GRACE_MS)
        assert again.updated
    finally:
        await other.close()
