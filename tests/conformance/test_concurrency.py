"""Several controllers at once on real PostgreSQL: exactly one wins each claim and each end, and nobody deadlocks."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.job_writes import JobWrites
from cronring.controller.core.model import Activation, ActivationRequest, ClaimRequest, Execution, Job, RunnerInfo
from cronring.controller.ports.caller import calling
from cronring.controller.ports.store import Backfill, ControllerInfo
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.control import PostgresControl
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.controller.store.store import PostgresStore
from cronring.controller.store.templates import PostgresTemplates
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.cronring.v1.jobs_pb2 import JobSpec
from cronring.protos.cronring.v1.schema_pb2 import Policy
from cronring.schema.execution import Outcome
from cronring.schema.identity import LOCAL
from cronring.schema.module import Module, Verb
from tests.conformance.harness import GRACE_MS, LEASE_MS, LOST_AFTER_MS, TIMEOUT_MS, claim_of, end_of
from tests.support.boxes import BOX
from tests.support.waiting import TIMEOUT_S

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


class Race:
    """One job that is due, with a retry of its tick before, and everybody after it."""

    def __init__(self, stores: list[PostgresStore], job: Job, retry: Activation) -> None:
        self.stores = stores
        self.job = job
        self.retry = retry

    async def start(self, number: int) -> bool:
        request = ActivationRequest(
            self.retry.activation_id, self.job.job_id, self.retry.tick, "r1", self.job.deployment, None
        )
        name = CONTROLLERS[number]
        _, (result,) = await self.stores[number].start_activations(name, [request], GRACE_MS)
        return result.execution is not None

    async def claim(self, number: int) -> bool:
        _, (result,) = await self.stores[number].start_cron_jobs(CONTROLLERS[number], [claim_of(self.job)], GRACE_MS)
        return result.updated


async def a_failed_run(scene: Connection, store: PostgresStore, digest: str) -> Execution:
    """Of a job of its own, claimed a while after its tick."""
    module = Module(f"m{digest}", (Verb("a", schedule="every 1h"),))
    (job,) = (await store.create_deployment(module, digest * 64, 1, TIMEOUT_MS, True)).jobs
    tick = await scene.fetchval(
        "UPDATE cron_jobs SET next_tick = date_trunc('second', now()) - interval '1 minute', "
        "next_execution = date_trunc('second', now()) - interval '1 minute' WHERE id = $1 RETURNING next_tick",
        job.job_id,
    )
    _, (result,) = await store.start_cron_jobs(
        "c1", [claim_of(job._replace(next_tick=tick, next_run_at=tick))], GRACE_MS
    )
    assert result.execution_id is not None
    (execution,) = await store.get_unfinished((result.execution_id,))
    return execution


async def race(scene: Connection, stores: list[PostgresStore], digest: str) -> Race:
    execution = await a_failed_run(scene, stores[0], digest)
    tick = execution.tick + 1_000_000
    end = end_of(execution, Outcome.FAILED)._replace(next_tick=tick, next_run_at=tick, retry_at=execution.claimed_at)
    await stores[0].end_cron_jobs("c1", [end])
    _, waiting = await stores[0].get_activations((execution.job.slot,), 0)
    (retry,) = [each for each in waiting if each.job.job_id == execution.job.job_id]
    return Race(stores, retry.job, retry)


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "scene")
    yield connection
    await connection.close()


async def test_of_many_that_claim_one_activation_one_wins(scene: Connection, stores: list[PostgresStore]) -> None:
    for digest in "abcdef":
        that = await race(scene, stores, digest)
        won = await asyncio.gather(*(that.start(number % 3) for number in range(9)))
        assert sum(won) == 1


async def test_of_the_tick_and_the_retry_at_once_one_runs(scene: Connection, stores: list[PostgresStore]) -> None:
    for digest in "abcdef":
        that = await race(scene, stores, digest)
        won = await asyncio.gather(that.start(0), that.claim(1), that.start(1), that.claim(2), that.start(2))
        assert sum(won) == 1
        running = await scene.fetchval(
            "SELECT count(*) FROM cron_executions WHERE job_id = $1 AND outcome IS NULL", that.job.job_id
        )
        assert running == 1


async def test_a_pause_holds_whether_it_comes_before_or_after_the_end(
    scene: Connection, stores: list[PostgresStore], database_url: str
) -> None:
    database = await Database.open(database_url, "cronring control")
    control = PostgresControl(database)
    try:
        for digest in "abcdef":
            execution = await a_failed_run(scene, stores[0], digest)
            first = stores[0].end_cron_jobs("c1", [end_of(execution)])
            second = control.pause_job(execution.job.key, "me", "")
            if digest in "ace":
                _, (ended,) = await asyncio.gather(second, first)
            else:
                (ended,), _ = await asyncio.gather(first, second)
            if ended.stale:  # the pause came first: it is looked up, and reckoned anew
                (execution,) = await stores[0].get_unfinished((execution.execution_id,))
                await stores[0].end_cron_jobs("c1", [end_of(execution)])
            row = await scene.fetchrow(
                "SELECT state, next_tick, paused_tick FROM cron_jobs WHERE id = $1", execution.job.job_id
            )
            assert row is not None
            assert (row["state"], row["next_tick"]) == ("idle", None)
            assert row["paused_tick"] > execution.tick
    finally:
        await database.close()


async def test_two_backfills_of_one_tick_are_two_attempts(
    scene: Connection, stores: list[PostgresStore], database_url: str
) -> None:
    database = await Database.open(database_url, "cronring control")
    control = PostgresControl(database)
    try:
        module = Module("m", (Verb("a", schedule="* * * * *"),))
        (job,) = (await stores[0].create_deployment(module, "a" * 64, 1, TIMEOUT_MS, True)).jobs
        now = await scene.fetchval("SELECT now()")
        last = now - now % 60_000_000
        wanted = Backfill(last - 600_000_000, last - 540_000_000, beside=True, again=True)
        both = [await control.backfill_job(job.key, "me", wanted) for _ in range(2)]
        requests = [
            ActivationRequest(each.activation_id, job.job_id, each.tick, "r1", job.deployment, None)
            for each in both
            if each is not None
        ]
        started = await asyncio.gather(
            *(
                store.start_activations(name, [request], GRACE_MS)
                for store, name, request in zip(stores, CONTROLLERS, requests, strict=False)
            )
        )
        first = [result.execution for _, (result,) in started if result.execution is not None]
        assert len(first) == 1, "the other waits for the tick's run to end"
        await stores[0].end_cron_jobs("c1", [end_of(first[0])])
        _, results = await stores[0].start_activations("c1", requests, GRACE_MS)
        (second,) = [result.execution for result in results if result.execution is not None]
        assert (first[0].attempt, second.attempt, second.tick) == (1, 2, first[0].tick)
    finally:
        await database.close()


class Caller:
    """As much of a call's context as the service asks for."""

    def peer(self) -> str:
        return "test"


async def test_of_operators_who_change_a_job_at_once_nobody_loses_anything(
    database_url: str, stores: list[PostgresStore]
) -> None:
    await stores[0].create_deployment(Module("m", (Verb("a"),)), "a" * 64, 1, TIMEOUT_MS, True)
    database = await Database.open(database_url, "cronring control")
    try:
        reads = PostgresReads(database, LOST_AFTER_MS)
        writes = JobWrites(
            PostgresControl(database),
            reads,
            PostgresTemplates(database),
            Defaults(TIMEOUT_MS, ""),
            lambda _: None,
            BOX,
        )
        context: Any = Caller()
        create = jobs_pb2.CreateJobRequest(module="m", verb="a", name="x", spec=JobSpec(schedule="every 1h"))
        with calling(LOCAL):
            await writes.CreateJob(create, context)
        changes = [(f"labels.k{number}", JobSpec(labels={f"k{number}": "v"})) for number in range(10)]
        changes += [
            ("policy.retries", JobSpec(policy=Policy(retries=3))),
            ("policy.overlap", JobSpec(policy=Policy(overlap="allow"))),
            ("schedule", JobSpec(schedule="every 2h")),
        ]
        requests = [
            jobs_pb2.UpdateJobRequest(key="m.a:x", spec=spec, update_mask=FieldMask(paths=[path]))
            for path, spec in changes
        ]
        with calling(LOCAL):
            await asyncio.gather(*(writes.UpdateJob(request, context) for request in requests))
        row = await reads.get_job("m.a:x")
        assert row.spec.labels == {f"k{number}": "v" for number in range(10)}
        assert (row.spec.schedule, row.spec.policy) == ("every 2h", '{"overlap":"allow","retries":3}')
    finally:
        await database.close()


async def waits_for(scene: Connection, blocker: int) -> bool:
    found: bool = await scene.fetchval(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid)))", blocker
    )
    return found


@pytest.mark.parametrize("column", ["cancel_requested_by = 'bob'", "controller_id = 'c2'"])
async def test_an_end_that_meets_another_change_of_its_execution_still_ends_it(
    scene: Connection, stores: list[PostgresStore], database_url: str, column: str
) -> None:
    """Pruned by parameters, PostgreSQL 18 found no partition any more when it looked at the changed row again."""
    execution = await a_failed_run(scene, stores[0], "a")
    other = await connect(database_url, "other")
    try:
        async with other.transaction():
            await other.execute(
                f"UPDATE cron_executions SET {column} WHERE id = $1 AND tick = $2",
                execution.execution_id, execution.tick,
            )  # fmt: skip
            ending = asyncio.create_task(stores[0].end_cron_jobs("c1", [end_of(execution)]))
            async with asyncio.timeout(TIMEOUT_S):
                while not await waits_for(scene, other.get_server_pid()):
                    await asyncio.sleep(0.01)
        (result,) = await ending
        assert result.ended
    finally:
        await other.close()
