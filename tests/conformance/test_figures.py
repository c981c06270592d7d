"""Figures of jobs, folded and not yet folded, held against a recount of every execution."""

import math
import random
from collections.abc import AsyncIterator

import pytest

from cronring.controller.core.figures import BUCKETS_PER_OCTAVE, quantile_us
from cronring.controller.core.model import ActivationRequest, EndRequest, Execution
from cronring.controller.store.connect import connect
from cronring.controller.store.folding import fold
from cronring.controller.store.pool import Database
from cronring.controller.store.statistics import PostgresStatistics
from cronring.schema.execution import Outcome
from cronring.schema.policy import Policy
from tests.conformance.harness import GRACE_MS, SECOND, PostgresScene, World, end_of

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])


@pytest.fixture
async def opened(database_url: str) -> AsyncIterator[tuple[World, Database]]:
    database = await Database.open(database_url, "figures")
    connection = await connect(database_url, "scene")
    yield World(PostgresScene(database, connection)), database
    await connection.close()
    await database.close()


@pytest.mark.parametrize("policy", [Policy(), Policy(overlap="allow", max_concurrent=50)], ids=["held", "several"])
async def test_ends_of_all_kinds_are_counted_once(opened: tuple[World, Database], policy: Policy) -> None:
    """Held, several at once in one statement, and beside; with what waits to be added, and when it has been."""
    world, database = opened
    seed = random.Random(4)
    statistics = PostgresStatistics(database, 5_000)
    executions = await _run(world, "job", policy, 30)
    ended = await world.store.end_cron_jobs("c1", [_end(execution, seed) for execution in executions])
    assert sum(result.ended for result in ended) == len(executions)
    before = await statistics.job("billing.job")
    assert await _fold_all(database, at_once=7) == len(executions)
    assert await statistics.job("billing.job") == before
    assert await _fold_all(database, at_once=7) == 0
    await _compare(world, database, statistics, "billing.job")


CLAIMED = """
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             controller_id, runner_id, hard_deadline)
SELECT id, deployment_id, now() - $1 * interval '1 minute', now(), now(), now(), now(), 'completed', 'c1', 'r1', now()
FROM cron_jobs WHERE key = 'billing.job' RETURNING id
"""


async def test_what_is_committed_late_is_counted_too(opened: tuple[World, Database], database_url: str) -> None:
    """Of two claims under way, the one whose transaction began first draws its id last, and commits first."""
    world, database = opened
    await world.jobs("job")
    first, second = [await connect(database_url, "claims") for _ in range(2)]
    begun = [each.transaction() for each in (first, second)]
    for transaction, connection in zip(begun, (first, second), strict=True):
        await transaction.start()
        await connection.execute("SELECT pg_current_xact_id()")
    late = await second.fetchval(CLAIMED, 1)
    early = await first.fetchval(CLAIMED, 2)
    assert late < early
    await begun[0].commit()
    assert await _fold_all(database, at_once=7) == 0
    await begun[1].commit()
    assert await _fold_all(database, at_once=7) == 2
    figures = (await PostgresStatistics(database, 5_000).job("billing.job")).figures
    assert figures.outcomes["completed"] == 2
    await first.close()
    await second.close()


async def _fold_all(database: Database, at_once: int) -> int:
    """How many ended executions were folded. The first round only finds out how far the next ones can go."""
    folded = quiet = 0
    while quiet < 2:
        async with database.transaction("folding") as transaction:
            done = await fold(transaction.fetch, at_once)
        assert done is not None
        assert done.executions <= at_once
        folded, quiet = folded + done.executions, 0 if done.executions else quiet + 1
    return folded


async def _run(world: World, name: str, policy: Policy, runs: int) -> list[Execution]:
    (first,) = await world.running("c1", name, policy=policy, seconds_ago=3_000)
    executions = [first]
    if policy.overlap == "allow":
        executions += [await _next(world, first) for _ in range(runs // 2)]
    for _ in range(runs // 2):
        activation = await world.control.trigger_job(first.job.key, "t", None)
        executions.append(await _beside(world, activation.activation_id, activation.tick, first))
    return executions


async def _next(world: World, first: Execution) -> Execution:
    row = await world.scene.job(first.job.job_id)
    tick = (row.last_tick or 0) + SECOND
    await world.scene.set_next_tick(first.job.job_id, tick)
    (claimed,) = await world.claim("c1", first.job._replace(next_tick=tick, next_run_at=tick, revision=row.revision))
    assert claimed.execution_id is not None
    (execution,) = await world.store.get_unfinished((claimed.execution_id,))
    return execution


async def _beside(world: World, activation_id: int, tick: int, first: Execution) -> Execution:
    scene = world.scene
    assert isinstance(scene, PostgresScene)
    await scene._run(
        "UPDATE cron_activations SET beside = true, tick = now() - $2 * interval '1 second' WHERE id = $1",
        activation_id,
        activation_id,
    )
    (waiting,) = [each for each in await scene.activations() if each.activation_id == activation_id]
    request = ActivationRequest(activation_id, first.job.job_id, waiting.tick, "r1", first.deployment, None)
    _, (result,) = await world.store.start_activations("c1", [request], GRACE_MS)
    assert result.execution is not None
    return result.execution


def _end(execution: Execution, seed: random.Random) -> EndRequest:
    request = end_of(execution, seed.choice(list(Outcome)))
    claimed_at = execution.claimed_at
    started_at = claimed_at - seed.randrange(10)  # is taken for the claim
    return request._replace(report=request.report._replace(started_at=started_at, ended_at=claimed_at + 1))


async def _compare(world: World, database: Database, statistics: PostgresStatistics, key: str) -> None:
    scene = world.scene
    assert isinstance(scene, PostgresScene)
    rows = await scene._fetch(
        "SELECT e.number, e.outcome, e.run_at, e.started_at, e.ended_at FROM cron_executions e "
        "JOIN cron_jobs j ON j.id = e.job_id WHERE j.key = $1 ORDER BY e.number",
        key,
    )
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    told = await statistics.job(key)
    assert told.figures.executions == told.figures.ended == len(rows)
    for outcome, count in told.figures.outcomes.items():
        assert count == sum(row["outcome"] == outcome for row in rows)
    for spread, lengths in (
        (told.duration, sorted(row["ended_at"] - row["started_at"] for row in rows)),
        (told.lateness, sorted(row["started_at"] - row["run_at"] for row in rows)),
    ):
        assert spread is not None
        assert spread.average_us == pytest.approx(sum(lengths) / len(lengths), abs=1)
        for share, estimate in ((0.5, spread.p50_us), (0.95, spread.p95_us), (0.99, spread.p99_us)):
            true = lengths[math.ceil(len(lengths) * share) - 1]
            assert estimate == pytest.approx(max(true, 1), rel=0.0906)


async def test_buckets_are_the_same_in_sql(opened: tuple[World, Database], postgres_name: str) -> None:
    world, _ = opened
    scene = world.scene
    assert isinstance(scene, PostgresScene)
    seed = random.Random(1)
    lengths = [0, 1, 2, 3, 999, 1_000, 3_600_000_000, *(int(2 ** seed.uniform(0, 45)) for _ in range(500))]
    rows = await scene._fetch("SELECT cron_bucket(us) FROM unnest($1::bigint[]) AS us", lengths)
    assert [row[0] for row in rows] == [math.floor(math.log2(max(us, 1)) * BUCKETS_PER_OCTAVE) for us in lengths]
    assert quantile_us({}, 0.5) is None
