"""Retention on real partitions: what is dropped is in the closed books, what is kept is there, and claims go on."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import pytest

from cronring.controller.ports.maintenance import DAY_MS, Maintained, Retention
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.maintenance import maintain
from cronring.controller.store.pool import Database
from tests.conformance.harness import GRACE_MS, SECOND, PostgresScene, World, claim_of, end_of
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
MINUTE = 60 * SECOND
DAY = 1_440 * MINUTE
BOOKS = """
SELECT j.key, b.until_at, b.due, b.executed, b.caught_up, b.late, b.skipped::text AS skipped, b.executions,
       b.outcomes::text AS outcomes
FROM cron_closed_books b JOIN cron_jobs j ON j.id = b.job_id ORDER BY j.key
"""


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[tuple[World, Connection]]:
    database = await Database.open(database_url, "retention")
    connection = await connect(database_url, "scene")
    yield World(PostgresScene(database, connection)), connection
    await connection.close()
    await database.close()


async def history(connection: Connection, days: int) -> None:
    """A job that runs every hour, one every day, one that skips, and one that still runs, since so many days."""
    await connection.execute(
        """
        CREATE TEMPORARY TABLE t AS SELECT date_trunc('day', now(), 'UTC') - $1 * interval '1 day' AS day;
        """.replace("$1", str(days))
    )
    await connection.execute(
        f"""
        DO $$ DECLARE first timestamptz := (SELECT day FROM t); BEGIN
            EXECUTE format('ALTER TABLE cron_executions DETACH PARTITION cron_executions_kept');
            EXECUTE format('ALTER TABLE cron_executions ATTACH PARTITION cron_executions_kept '
                           'FOR VALUES FROM (MINVALUE) TO (%L)', first);
            UPDATE cron_partitions SET until_at = first WHERE from_at = '-infinity';
            FOR n IN 0..{days - 1} LOOP
                PERFORM cron_make_partition(first + n * interval '1 day', first + (n + 1) * interval '1 day');
            END LOOP;
        END $$;
        UPDATE cron_schedules SET from_at = (SELECT day FROM t) - interval '1 microsecond',
                                  anchor = (SELECT day FROM t) - interval '1 hour';
        UPDATE cron_jobs SET created_at = (SELECT day FROM t), anchor = (SELECT day FROM t) - interval '1 hour';
        INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                                     controller_id, runner_id, hard_deadline, number, trigger)
        SELECT j.id, j.deployment_id, x.tick, x.tick, x.tick, x.tick + (x.n % 7) * interval '3 s',
               x.tick + interval '1 minute', CASE WHEN x.n % 3 = 0 THEN 'failed' ELSE 'completed' END, 'c1', 'r1',
               x.tick, x.n, CASE WHEN x.n % 5 = 0 THEN 'catch_up' ELSE 'schedule' END
        FROM cron_jobs j, LATERAL (
            SELECT tick, row_number() OVER (ORDER BY tick) AS n
            FROM generate_series((SELECT day FROM t), now() - interval '1 hour',
                                 CASE j.verb WHEN 'daily' THEN interval '1 day' ELSE interval '1 hour' END) tick
            WHERE j.verb <> 'skips' OR NOT tick BETWEEN (SELECT day FROM t) + interval '2 days'
                                                    AND (SELECT day FROM t) + interval '5 days'
        ) x;
        UPDATE cron_jobs j SET executions = (SELECT count(*) FROM cron_executions e WHERE e.job_id = j.id);
        INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
        SELECT j.id, 'paused', t.day + interval '2 days', t.day + interval '5 days', 73, 'c1'
        FROM cron_jobs j, t WHERE j.verb = 'skips';
        UPDATE cron_executions SET outcome = NULL, ended_at = NULL, started_at = NULL
        WHERE number = 1 AND job_id = (SELECT id FROM cron_jobs WHERE verb = 'runs');
        """
    )


async def every_row(connection: Connection) -> list[asyncpg.Record]:
    rows: list[asyncpg.Record] = await connection.fetch(
        "SELECT j.key, e.id, e.tick, e.number, e.outcome, e.trigger, e.run_at, e.started_at FROM cron_executions e "
        "JOIN cron_jobs j ON j.id = e.job_id ORDER BY e.id"
    )
    return rows


def retention_of(days: int, runs: int) -> Retention:
    return Retention(days * DAY_MS, runs, 400 * DAY_MS)


async def maintained(url: str, retention: Retention) -> Maintained:
    done = await maintain(url, retention)
    while done.waiting:
        done = await maintain(url, retention)
    return done


async def test_what_goes_is_in_the_books_and_the_newest_stay(
    scene: tuple[World, Connection], database_url: str
) -> None:
    world, connection = scene
    await world.jobs("hourly", "skips", "runs")
    await history(connection, 12)
    before = await every_row(connection)
    # First of the twelve days, then of two more: the sums are cumulative, and a range of skips is cut twice.
    for days in (9, 8, 4):
        done = await maintained(database_url, retention_of(days, 50))
        assert done.ours
        boundary: int = await connection.fetchval("SELECT until_at FROM cron_partitions WHERE from_at = '-infinity'")
        after = await every_row(connection)
        books = {record["key"]: record for record in await connection.fetch(BOOKS)}
        assert "billing.runs" not in books, "one is unfinished there"
        for key in ("billing.hourly", "billing.skips"):
            rows = [row for row in before if row["key"] == key]
            closed = [row for row in rows if row["tick"] <= books[key]["until_at"]]
            newest = {row["id"] for row in sorted(rows, key=lambda row: row["number"])[-50:]}
            until = books[key]["until_at"]
            # A range of skips that goes on closes only with rows that go; see FillClosings.
            assert until == boundary - 1 or (key == "billing.skips" and days == 8)
            assert {row["id"] for row in after if row["key"] == key} == newest | {
                row["id"] for row in rows if row["tick"] > until
            }
            assert books[key]["executed"] == books[key]["executions"] == len(closed)
            assert json.loads(books[key]["outcomes"]) == Counter(row["outcome"] for row in closed)
            assert books[key]["caught_up"] == sum(row["trigger"] == "catch_up" for row in closed)
            late = [row for row in closed if row["trigger"] == "schedule"]
            assert books[key]["late"] == sum(row["started_at"] - row["run_at"] > 10 * SECOND for row in late)
            first: int = await connection.fetchval("SELECT day FROM t")
            assert books[key]["due"] == (until + 1 - first) // (60 * MINUTE)
        skipped = json.loads(books["billing.skips"]["skipped"]).get("paused", 0)
        left = await connection.fetchval("SELECT coalesce(sum(ticks), 0)::bigint FROM cron_skips")
        assert skipped + left == 73
        assert skipped == min(73, (until + 1 - first - 2 * DAY) // (60 * MINUTE))
        assert books["billing.skips"]["due"] == books["billing.skips"]["executed"] + skipped
        assert [row["id"] for row in after if row["key"] == "billing.runs"] == [
            row["id"] for row in before if row["key"] == "billing.runs"
        ]


async def test_claims_go_on_while_partitions_go(scene: tuple[World, Connection], database_url: str) -> None:
    world, connection = scene
    await world.controller("c1")
    await world.runner("r1")
    jobs = await world.jobs("hourly", "claimed")
    await history(connection, 12)
    job = next(job for job in jobs if job.key == "billing.claimed")
    slowest_s, claims, done = 0.0, 0, asyncio.Event()
    loop = asyncio.get_running_loop()

    async def claim() -> None:
        nonlocal slowest_s, claims
        tick = (await world.scene.now()) // SECOND * SECOND - 3_000 * SECOND
        while not done.is_set() or claims < 20:
            tick += SECOND
            await world.controller("c1")
            await world.scene.set_next_tick(job.job_id, tick)
            began_s = loop.time()
            request = claim_of(job._replace(next_tick=tick, next_run_at=tick))
            _, (claimed,) = await world.store.start_cron_jobs("c1", [request], GRACE_MS)
            assert claimed.updated
            assert claimed.execution_id is not None
            (execution,) = await world.store.get_unfinished((claimed.execution_id,))
            (ended,) = await world.store.end_cron_jobs("c1", [end_of(execution)])
            assert ended.ended
            slowest_s = max(slowest_s, loop.time() - began_s)
            claims += 1

    async def retire() -> None:
        for days in range(11, 2, -1):
            await maintained(database_url, retention_of(days, 10))
        done.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(claim())
        group.create_task(retire())
    assert slowest_s < TIMEOUT_S / 2, "it waits for a lock no longer than that is held"
    boundary = await connection.fetchval("SELECT until_at FROM cron_partitions WHERE from_at = '-infinity'")
    assert boundary > await world.scene.now() - 4 * DAY
    assert await connection.fetchval("SELECT count(*) FROM pg_class WHERE relname LIKE 'cron\\_gone%'") == 0
