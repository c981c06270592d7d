"""History by job on real partitions: its own policy says what stays; of jobs that are gone altogether sums stay."""

import asyncpg
import pytest

from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.store.connect import Connection
from cronring.controller.store.ledger import PostgresLedger
from cronring.controller.store.pool import Database
from cronring.controller.store.statistics import PostgresStatistics
from tests.conformance.harness import SECOND, World
from tests.conformance.test_retention import DAY, every_row, history, maintained, retention_of, scene

__all__ = ["scene"]
pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
THREE_DAYS = retention_of(3, 50)
POLICIES = {
    "long": '{"history":"400d"}',
    "medium": '{"history":"8d","history_runs":3}',
    "few": '{"history_runs":5}',
    "short": '{"history":"1h"}',
}


async def fill_histories(connection: Connection) -> None:
    for verb, policy in POLICIES.items():
        await connection.execute("UPDATE cron_jobs SET policy = $2 WHERE verb = $1", verb, policy)
        await connection.execute(
            "UPDATE cron_schedules SET policy = $2 WHERE job_id = (SELECT id FROM cron_jobs WHERE verb = $1)",
            verb,
            policy,
        )
    # As if the latest row was the latest tick: what comes after it waits.
    await connection.execute(
        "UPDATE cron_jobs j SET last_tick = t.tick, next_tick = t.tick + interval '1 hour', "
        "next_execution = t.tick + interval '1 hour' "
        "FROM (SELECT job_id, max(tick) AS tick FROM cron_executions GROUP BY job_id) t WHERE t.job_id = j.id"
    )


async def audited(database_url: str) -> tuple[object, ...]:
    database = await Database.open(database_url, "audit")
    try:
        request = AuditRequest(None, None, "", 10 * SECOND, False)
        found = (await PostgresLedger(database, 8_750).audit(request)).audit
    finally:
        await database.close()
    assert found.unaccounted == found.duplicates == found.early == found.undue == 0, found.findings
    return found.ticks, found.on_time, found.late, found.caught_up, found.skipped, found.outcomes


async def test_what_a_policy_says_stays_and_nothing_of_others(
    scene: tuple[World, Connection], database_url: str
) -> None:
    world, connection = scene
    await world.jobs("hourly", "long", "medium", "few", "short", "skips")
    await history(connection, 12)
    await fill_histories(connection)
    before, books_before = await every_row(connection), await audited(database_url)
    # Twice: what stays is copied again, and is still there. (A day passes by keeping a day less.)
    for days in (4, 3):
        assert (await maintained(database_url, retention_of(days, 50))).ours
    boundary: int = await connection.fetchval("SELECT until_at FROM cron_partitions WHERE from_at = '-infinity'")
    now = await world.scene.now()
    after = await every_row(connection)
    books = {
        record[0]: record[1]
        for record in await connection.fetch(
            "SELECT j.verb, b.until_at FROM cron_closed_books b JOIN cron_jobs j ON j.id = b.job_id"
        )
    }

    def kept(rows: list[asyncpg.Record], verb: str) -> set[int]:
        return {row["id"] for row in rows if row["key"] == f"billing.{verb}"}

    def of(verb: str, newest: int, since: int) -> set[int]:
        rows = sorted((row for row in before if row["key"] == f"billing.{verb}"), key=lambda row: row["number"])
        return {row["id"] for row in rows[-newest:]} | {row["id"] for row in rows if row["tick"] >= since}

    assert kept(after, "hourly") == of("hourly", 50, boundary) < kept(before, "hourly")
    assert kept(after, "short") == of("short", 50, boundary)
    assert kept(after, "few") == of("few", 5, boundary) < of("few", 50, boundary - 2 * DAY)
    assert kept(after, "long") == kept(before, "long"), "it costs its own rows"
    assert "long" not in books, "and they are its books"
    assert kept(after, "medium") == of("medium", 3, books["medium"] + 1)
    assert now - 8 * DAY - 60 * SECOND < books["medium"] < now - 8 * DAY
    assert books["hourly"] == books["few"] == boundary - 1
    assert await audited(database_url) == books_before, "the audit's sums are as they were"


async def test_of_jobs_long_gone_sums_stay(scene: tuple[World, Connection], database_url: str) -> None:
    world, connection = scene
    await world.jobs("hourly", "gone", "skips", "lately")
    await history(connection, 12)
    await fill_histories(connection)
    await connection.execute(
        """
        CREATE TEMPORARY TABLE r AS SELECT id, CASE verb WHEN 'lately' THEN now() - interval '2 days'
            ELSE now() - interval '7 days' END AS removed_at FROM cron_jobs WHERE verb <> 'hourly';
        DELETE FROM cron_executions e USING r WHERE e.job_id = r.id AND e.tick > r.removed_at;
        UPDATE cron_jobs j SET removed_at = r.removed_at, next_tick = NULL, next_execution = NULL,
            executions = (SELECT count(*) FROM cron_executions WHERE job_id = j.id)
        FROM r WHERE j.id = r.id;
        UPDATE cron_schedules s SET until_at = r.removed_at FROM r WHERE s.job_id = r.id;
        """
    )
    books_before = await audited(database_url)
    database = await Database.open(database_url, "figures")
    try:
        figures = (await PostgresStatistics(database, 10_000).scheduler()).figures
        await maintained(database_url, THREE_DAYS)
        assert await connection.fetchval("SELECT array_agg(verb ORDER BY verb) FROM cron_jobs") == ["hourly", "lately"]
        rows = await connection.fetch("SELECT job_id FROM cron_closed_books ORDER BY 1")
        assert len(rows) == 3, "two that are there, and one row for all that are not"
        assert rows[0][0] == 0
        assert await audited(database_url) == books_before
        later = (await PostgresStatistics(database, 10_000).scheduler()).figures
        assert (later.executions, later.outcomes) == (figures.executions, figures.outcomes)
        # The next one that goes is added to these.
        await connection.execute(
            "UPDATE cron_schedules SET until_at = until_at - interval '5 days' FROM r WHERE job_id = r.id"
        )
        await connection.execute("DELETE FROM cron_executions USING r WHERE job_id = r.id")
        await connection.execute("DELETE FROM cron_schedules USING r WHERE job_id = r.id")
        await connection.execute(
            "UPDATE cron_jobs SET removed_at = removed_at - interval '5 days' WHERE verb = 'lately'"
        )
        due = await connection.fetchval("SELECT sum(due)::bigint FROM cron_closed_books")
        await maintained(database_url, THREE_DAYS)
        assert await connection.fetchval("SELECT array_agg(verb) FROM cron_jobs") == ["hourly"]
        assert await connection.fetchval("SELECT sum(due)::bigint FROM cron_closed_books") == due
        assert await connection.fetchval("SELECT gone_jobs FROM cron_maintenance") == 3
    finally:
        await database.close()
