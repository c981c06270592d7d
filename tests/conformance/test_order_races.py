"""Operators against the cluster and against each other, on real PostgreSQL: one outcome, and nobody deadlocks."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import asyncpg
import pytest

from cronring.controller.core.model import ClaimResult, Execution, Job, RunnerInfo
from cronring.controller.core.orders.orders import Cancel, Pause, Restore, Resume, SkipNext
from cronring.controller.errors import Conflict
from cronring.controller.ports.store import ActivatedDeployment, Controlled, ControllerInfo, Deployed
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.control import PostgresControl
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import GRACE_MS, LEASE_MS, LOST_AFTER_MS, SECOND, TIMEOUT_MS, claim_of, end_of
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])

ROUNDS = 12
JOBS = 120
OFF = Policy(jitter="off")


class Scene:
    """One connection, which several tasks use in turn."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    async def fetchval(self, statement: str, *arguments: object) -> Any:
        async with self._turn:
            return await self._connection.fetchval(statement, *arguments)

    async def change_job(self, job_id: int, statement: str) -> Any:
        """Its row is locked first: else the statement's subqueries don't see what those wrote for whom it waited."""
        async with self._turn, self._connection.transaction():
            await self._connection.execute("SELECT FROM cron_jobs WHERE id = $1 FOR UPDATE", job_id)
            return await self._connection.fetchval(statement, job_id)

    async def fetch(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        async with self._turn:
            records: list[asyncpg.Record] = await self._connection.fetch(statement, *arguments)
            return records


class Racers:
    """Three controllers, each with operators; and a look into the books."""

    def __init__(self, databases: list[Database], scene: Scene) -> None:
        self.stores = [PostgresStore(database) for database in databases]
        self.controls = [PostgresControl(database) for database in databases]
        self.scene = scene
        self.chance = random.Random(7)

    async def join(self) -> None:
        for number, store in enumerate(self.stores):
            info = ControllerInfo(f"c{number}", "a", "b", 1, "0.1.0")
            await store.register_runner(RunnerInfo(f"r{number}", "host", 1, "0.1.0", ()))
            await store.renew_lease(info, False, LEASE_MS * 20, ("r0", "r1", "r2"), LOST_AFTER_MS)

    async def job(self, module: str, *verbs: str) -> list[Job]:
        declared = Module(module, tuple(Verb(name, schedule="every 1h", policy=OFF) for name in verbs or ("a",)))
        return (await self.stores[0].create_deployment(declared, "a" * 64, 1, TIMEOUT_MS, True)).jobs

    async def due(self, job: Job) -> Job:
        """A second ago, by a schedule that counts from the day before."""
        tick = await self.scene.fetchval(
            "UPDATE cron_jobs SET next_tick = t.tick, next_execution = t.tick, anchor = t.tick - interval '1 day' "
            "FROM (SELECT date_trunc('second', now()) - interval '1 second' AS tick) t WHERE id = $1 "
            "RETURNING next_tick",
            job.job_id,
        )
        return job._replace(next_tick=tick, next_run_at=tick, anchor=tick - 86_400 * SECOND)

    async def claim(self, number: int, job: Job) -> ClaimResult:
        _, (result,) = await self.stores[number].start_cron_jobs(f"c{number}", [claim_of(job, "r0")], GRACE_MS)
        return result

    async def running(self, job: Job) -> Execution:
        result = await self.claim(0, await self.due(job))
        assert result.execution_id is not None
        (execution,) = await self.stores[0].get_unfinished((result.execution_id,))
        return execution

    async def booked(self, job: Job, tick: int) -> tuple[int, list[str]]:
        """Executions of the tick, and the reasons for which it was skipped."""
        executions: int = await self.scene.fetchval(
            "SELECT count(*) FROM cron_executions WHERE job_id = $1 AND tick = $2", job.job_id, tick
        )
        reasons = await self.scene.fetch(
            "SELECT reason FROM cron_skips WHERE job_id = $1 AND $2 BETWEEN first_tick AND last_tick", job.job_id, tick
        )
        return executions, [record["reason"] for record in reasons]


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


async def outcome(attempt: Awaitable[Controlled]) -> Controlled | Conflict:
    try:
        return await attempt
    except Conflict as error:
        return error


async def test_a_pause_and_the_claim_have_one_outcome(racers: Racers) -> None:
    seen = set()
    for number in range(ROUNDS):
        (job,) = await racers.job(f"m{number}")
        due = await racers.due(job)
        assert due.next_tick is not None
        until = due.next_tick + 3600 * SECOND * 24
        pausing = racers.controls[1].order_job(job.key, Pause("", until), "me")
        attempts = [racers.claim(0, due), pausing] if number % 2 else [pausing, racers.claim(0, due)]
        done = await asyncio.gather(*attempts)
        claimed = any(isinstance(each, ClaimResult) and each.updated for each in done)
        executions, reasons = await racers.booked(job, due.next_tick)
        assert (executions, reasons) == ((1, []) if claimed else (0, ["paused"]))
        (row,) = await racers.scene.fetch("SELECT next_tick, paused_tick FROM cron_jobs WHERE id = $1", job.job_id)
        assert row["next_tick"] >= until, "paused, whether it runs or not"
        assert (row["paused_tick"] > due.next_tick) == claimed
        seen.add(claimed)
    assert seen, "at least one of the two orders"


async def test_of_many_who_skip_a_tick_and_its_claim_one_has_it(racers: Racers) -> None:
    for number in range(ROUNDS):
        (job,) = await racers.job(f"m{number}")
        due = await racers.due(job)
        assert due.next_tick is not None
        skipping = [outcome(control.order_job(job.key, SkipNext(due.next_tick), "me")) for control in racers.controls]
        attempts: list[Awaitable[object]] = [*skipping, racers.claim(0, due)]
        racers.chance.shuffle(attempts)
        done = await asyncio.gather(*attempts)
        claims = sum(isinstance(each, ClaimResult) and each.updated for each in done)
        skips = sum(isinstance(each, Controlled) and each.changed for each in done)
        assert claims + skips == 1
        assert await racers.booked(job, due.next_tick) == ((1, []) if claims else (0, ["cancelled"]))
        for each in done:
            if isinstance(each, Conflict):
                assert claims
                assert "has begun as execution" in str(each)
        following = await racers.scene.fetchval("SELECT next_tick FROM cron_jobs WHERE id = $1", job.job_id)
        assert following == due.next_tick or following < due.next_tick + 7200 * SECOND, "one tick, and not two"


async def test_a_cancelled_job_and_the_end_of_its_run_have_one_outcome(racers: Racers) -> None:
    for number in range(ROUNDS):
        (job,) = await racers.job(f"m{number}")
        execution = await racers.running(job)
        cancelling = [control.order_job(job.key, Cancel(), "me") for control in racers.controls[1:]]
        ending = racers.stores[0].end_cron_jobs("c0", [end_of(execution)])
        async with asyncio.timeout(TIMEOUT_S):
            *cancelled, ended = await asyncio.gather(*cancelling, ending)
        assert sum(isinstance(each, Controlled) and each.changed for each in cancelled) == 1
        assert isinstance(ended, list)
        if ended[0].stale:  # the order came first
            (known,) = await racers.stores[0].get_unfinished((execution.execution_id,))
            ended = await racers.stores[0].end_cron_jobs("c0", [end_of(known)])
        assert ended[0].ended
        (row,) = await racers.scene.fetch(
            "SELECT state, next_tick, cancelled_at FROM cron_jobs WHERE id = $1", job.job_id
        )
        assert (row["state"], row["next_tick"], row["cancelled_at"] is None) == ("idle", None, False)


async def test_whatever_was_claimed_before_a_job_is_cancelled_is_told_to_stop(racers: Racers) -> None:
    for number in range(ROUNDS):
        (job,) = await racers.job(f"m{number}")
        due = await racers.due(job)
        cancelling = racers.controls[1].order_job(job.key, Cancel(), "me")
        claimed, done = await asyncio.gather(racers.claim(0, due), cancelling)
        marked = await racers.scene.fetchval(
            "SELECT count(*) FROM cron_executions WHERE job_id = $1 AND cancel_requested_at IS NOT NULL", job.job_id
        )
        assert marked == done.cancelling == int(claimed.updated)


async def test_orders_to_many_and_a_busy_cluster_never_deadlock(racers: Racers) -> None:
    jobs = await racers.job("busy", *(f"v{number}" for number in range(JOBS)))
    ids = [job.job_id for job in jobs]

    async def order(number: int) -> None:
        for order in (Pause("x"), Resume(), SkipNext(), Cancel(), Restore()) * 2:
            mixed = racers.chance.sample(ids, len(ids))
            for first in range(0, len(mixed), 40):
                await racers.controls[number].order_jobs(mixed[first : first + 40], order, f"operator {number}")

    async def claim_and_end(number: int) -> None:
        for _ in range(6):
            due = [await due_now(racers, job) for job in racers.chance.sample(jobs, 20)]
            requests = [claim_of(job, "r0") for job in sorted(job for job in due if job is not None)]
            _, results = await racers.stores[number].start_cron_jobs(f"c{number}", requests, GRACE_MS)
            claimed = tuple(result.execution_id for result in results if result.execution_id is not None)
            executions = await racers.stores[number].get_unfinished(claimed)
            await racers.stores[number].adopt_executions(f"c{number}", ("c0", "c1", "c2"))
            await racers.stores[number].end_cron_jobs(f"c{number}", [end_of(each) for each in executions])

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(order(number))
        for number in range(3):
            group.create_task(claim_and_end(number))
    double = await racers.scene.fetchval(
        "SELECT count(*) FROM cron_skips a JOIN cron_skips b ON a.job_id = b.job_id AND a.id < b.id "
        "AND a.first_tick <= b.last_tick AND b.first_tick <= a.last_tick"
    )
    assert double == 0


async def due_now(racers: Racers, job: Job) -> Job | None:
    """The scene moves ticks of jobs that may have one now, and that nobody has told to skip one."""
    tick = await racers.scene.change_job(
        job.job_id,
        "UPDATE cron_jobs j SET next_tick = t.tick, next_execution = t.tick, anchor = t.tick - interval '1 day' "
        "FROM (SELECT date_trunc('second', now()) - interval '1 second' AS tick) t "
        "WHERE id = $1 AND next_tick IS NOT NULL AND state = 'idle' AND paused_at IS NULL AND ahead_until IS NULL "
        "AND (last_tick IS NULL OR last_tick < t.tick) AND NOT EXISTS (SELECT FROM cron_skips s "
        "WHERE s.job_id = j.id AND s.last_tick >= t.tick - interval '5 seconds') RETURNING next_tick",
    )
    return None if tick is None else job._replace(next_tick=tick, next_run_at=tick)


async def test_of_two_versions_one_is_active_whoever_activates_them(racers: Racers) -> None:
    verbs = {digest: (Verb("a", schedule="every 1h", policy=OFF), Verb(f"only_{digest}")) for digest in "abc"}
    versions = [
        await racers.stores[0].create_deployment(Module("m", verbs[digest]), digest * 64, 1, TIMEOUT_MS, True)
        for digest in "abc"
    ]

    async def activate(store: PostgresStore, version: Deployed) -> ActivatedDeployment:
        return await store.activate_deployment(version.key, 1, TIMEOUT_MS, "", "me", "")

    async def once_deployed(store: PostgresStore, digest: str) -> Deployed:
        return await store.create_deployment(Module("m", verbs[digest]), digest * 64, 1, TIMEOUT_MS, True)

    for _ in range(ROUNDS):
        attempts: list[Awaitable[object]] = [
            activate(store, racers.chance.choice(versions)) for store in racers.stores for _ in range(2)
        ]
        attempts.append(once_deployed(racers.stores[1], racers.chance.choice("abc")))
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*attempts)
        active = await racers.scene.fetch("SELECT id, key FROM deployments WHERE min_replicas > 0")
        assert len(active) == 1
        of = await racers.scene.fetch("SELECT DISTINCT deployment_id FROM cron_jobs WHERE removed_at IS NULL")
        assert [record["deployment_id"] for record in of] == [active[0]["id"]]
        (job,) = (await racers.stores[0].get_cron_jobs(tuple(range(4096)), 86_400_000))[1]
        due = await racers.due(job)
        claims = [racers.claim(number % 3, due._replace(deployment=version.key)) for number, version in
                  enumerate(versions)]  # fmt: skip
        results = await asyncio.gather(*claims)
        won = [version.key for version, result in zip(versions, results, strict=True) if result.updated]
        assert won in ([active[0]["key"]], []), "only a runner of the active version gets the tick"
        for result in results:
            if result.execution_id is not None:
                (execution,) = await racers.stores[0].get_unfinished((result.execution_id,))
                await racers.stores[0].end_cron_jobs("c0", [end_of(execution)])
