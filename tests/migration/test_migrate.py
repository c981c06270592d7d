"""What `cronring migrate` and the check at start do with databases of every age."""

import asyncio

import asyncpg
import pytest

from cronring import sql
from cronring.controller.errors import SchemaVersionError
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.migrate import check_version, migrate
from cronring.controller.store.pool import Database
from cronring.controller.store.store import PostgresStore
from tests.conformance.harness import claim_of, end_of
from tests.support.releases import EXPANDS

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])


async def run(url: str, *statements: str) -> None:
    connection: Connection = await connect(url, "test")
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def check(url: str) -> None:
    connection = await connect(url, "test")
    try:
        await check_version(connection)
    finally:
        await connection.close()


async def test_an_empty_database_is_migrated_and_then_accepted(empty_database_url: str) -> None:
    applied: list[int] = []
    count = await migrate(empty_database_url, lambda migration: applied.append(migration.version))
    assert applied == [migration.version for migration in sql.migrations()]
    assert count == len(applied)
    await check(empty_database_url)


async def test_days_are_cut_in_utc_whatever_zone_the_database_has(empty_database_url: str) -> None:
    """In a zone whose clocks change tomorrow, `+ interval '1 day'` is another instant."""
    connection = await asyncpg.connect(empty_database_url)
    try:
        day = await connection.fetchval("SELECT extract(doy FROM now() AT TIME ZONE 'UTC')::integer") % 365 + 1
        name = await connection.fetchval("SELECT quote_ident(current_database())")
        await connection.execute(f"ALTER DATABASE {name} SET timezone = 'STD0DST,J{day}/12,J{(day + 60) % 365 + 1}/12'")
        await migrate(empty_database_url)
        cut = await connection.fetch(
            "SELECT from_at AT TIME ZONE 'UTC' AS start, until_at - from_at AS width FROM cronring.cron_partitions "
            "WHERE from_at > '-infinity'"
        )
    finally:
        await connection.close()
    assert {(str(row["start"].time()), row["width"].total_seconds()) for row in cut} == {("00:00:00", 86_400.0)}


async def test_migrating_again_changes_nothing(database_url: str) -> None:
    applied: list[str] = []
    assert await migrate(database_url, lambda migration: applied.append(migration.name)) == 0
    assert applied == []


async def test_many_migrators_at_once_apply_each_migration_once(empty_database_url: str) -> None:
    counts = await asyncio.gather(*(migrate(empty_database_url) for _ in range(8)))
    assert sum(counts) == len(sql.migrations())
    await check(empty_database_url)


async def test_an_empty_database_is_refused_with_the_command_that_mends_it(empty_database_url: str) -> None:
    with pytest.raises(SchemaVersionError, match="no tables of cronring in the schema cronring: run `cronring migrate"):
        await check(empty_database_url)


async def test_an_older_schema_is_refused_with_the_command_that_mends_it(database_url: str) -> None:
    await run(
        database_url, "DELETE FROM cronring_migrations WHERE version = (SELECT max(version) FROM cronring_migrations)"
    )
    with pytest.raises(SchemaVersionError, match="run `cronring migrate"):
        await check(database_url)


async def test_a_newer_schema_is_refused_by_both(database_url: str) -> None:
    await run(
        database_url, "INSERT INTO cronring_migrations SELECT max(version) + 1, 'x', 'x' FROM cronring_migrations"
    )
    with pytest.raises(SchemaVersionError, match="upgrade"):
        await check(database_url)
    with pytest.raises(SchemaVersionError, match="upgrade"):
        await migrate(database_url)


async def test_a_newer_schema_that_says_so_is_worked_on(database_url: str) -> None:
    """The release before may be started again after `cronring migrate` with the next one."""
    known = len(sql.migrations())
    insert = "INSERT INTO cronring_migrations (version, name, checksum, works_with) VALUES ({}, 'x', 'x', {})"
    await run(database_url, insert.format(known + 1, known), insert.format(known + 2, known - 1))
    await check(database_url)
    assert await migrate(database_url) == 0
    await run(database_url, insert.format(known + 3, known + 1))
    with pytest.raises(SchemaVersionError, match="upgrade"):
        await check(database_url)


async def test_what_is_new_says_which_releases_it_leaves_working(empty_database_url: str) -> None:
    """Expand, then contract: each after the first says so, and none leaves the release just before it behind."""
    await migrate(empty_database_url)
    for migration in sql.migrations()[1:]:
        assert migration.works_with is not None, f"{migration.name}: say `-- works with: N` (CONTRIBUTING.md)"
        assert migration.works_with < migration.version
    connection = await connect(empty_database_url, "test")
    try:
        noted = await connection.fetch("SELECT version, works_with FROM cronring_migrations ORDER BY version")
    finally:
        await connection.close()
    assert {each["version"]: each["works_with"] for each in noted} == {
        migration.version: migration.works_with for migration in sql.migrations()
    }


async def test_a_schema_made_by_other_scripts_is_refused_by_both(database_url: str) -> None:
    await run(database_url, "UPDATE cronring_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(SchemaVersionError, match="checksum"):
        await check(database_url)
    with pytest.raises(SchemaVersionError, match="checksum"):
        await migrate(database_url)


async def test_a_database_of_another_line_of_releases_is_not_taken_for_a_newer_one(database_url: str) -> None:
    """As one that was migrated by the 21 scripts from which the first release's was made."""
    await run(
        database_url,
        "UPDATE cronring_migrations SET checksum = 'other', name = 'core'",
        "INSERT INTO cronring_migrations (version, name, checksum, works_with) VALUES (99, 'x', 'x', 98)",
    )
    advice = r"migration 1 \(core\) .*another checksum\): use the cronring release that .*or.* empty database.*--schema"
    with pytest.raises(SchemaVersionError, match=advice):
        await check(database_url)
    with pytest.raises(SchemaVersionError, match=advice):
        await migrate(database_url)


async def test_a_migration_that_fails_leaves_no_trace(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = sql.migrations()
    broken = first._replace(script=first.script + "; SELECT 1 / 0")
    monkeypatch.setattr(sql, "migrations", lambda: (broken,))
    with pytest.raises(Exception, match="division by zero"):
        await migrate(empty_database_url)
    monkeypatch.undo()
    assert await migrate(empty_database_url) == len(sql.migrations())


ROWS_OF_THE_FIRST_SCHEMA = """
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas)
VALUES ('m@1', 'default', 'm', '1', '', 1);
INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, on_disconnect,
                       state, next_tick, next_execution, start_time, execution_id, last_tick)
VALUES ('m.idle', 'default', 'm', 'idle', 1, 1, 'every 1h', now(), 1000, 'stop', 'idle', now() - interval '1 minute',
        now() - interval '1 minute', NULL, NULL, NULL),
       ('m.runs', 'default', 'm', 'runs', 2, 1, 'every 1h', now(), 1000, 'stop', 'executing', now(), now(), now(),
        nextval('cron_execution_ids'), now());
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, from_at)
SELECT id, revision, schedule, anchor, anchor FROM cron_jobs;
INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                             hard_deadline)
SELECT execution_id, id, 1, last_tick, last_tick, start_time, 'c1', 'r1', now() + interval '1 hour'
FROM cron_jobs WHERE state = 'executing';
INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
VALUES (1, 'no_runner', now(), now(), 1, 'c1');
"""


async def test_what_the_first_schema_holds_goes_on_in_the_next(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = sql.migrations()
    monkeypatch.setattr(sql, "migrations", lambda: known[:1])
    assert await migrate(empty_database_url) == 1
    await run(empty_database_url, ROWS_OF_THE_FIRST_SCHEMA)
    made_up = sql.Migration(len(known) + 1, "made_up", "made up", EXPANDS, len(known))
    monkeypatch.setattr(sql, "migrations", lambda: (*known, made_up))
    assert await migrate(empty_database_url) == len(known)
    database = await Database.open(empty_database_url, "test")
    try:
        store = PostgresStore(database)
        await store.renew_lease(ControllerInfo("c1", "a", "b", 1, "0.1.0"), False, 5_000, (), 8_750)
        _, jobs = await store.get_cron_jobs((1, 2), 0)
        idle, running = sorted(jobs)
        assert (idle.executing, running.executing, idle.policy, idle.payload) == (False, True, "", "")
        _, (claimed,) = await store.start_cron_jobs("c1", [claim_of(idle)], 30_000)
        assert claimed.updated
        (execution,) = await store.get_unfinished((1,))
        assert (execution.holds_job, execution.missed, execution.trigger) == (True, 0, "schedule")
        (ended,) = await store.end_cron_jobs("c1", [end_of(execution)])
        assert (ended.ended, ended.next_tick) == (True, execution.tick + 3_600_000_000)
    finally:
        await database.close()


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ("state = 'executing'", True),  # with nothing that runs
        ("state = 'resting'", True),
        ("next_tick = NULL", True),  # but not its run_at
        ("next_execution = next_tick - interval '1 second'", False),  # an interval's jitter
        ("removed_at = now()", True),  # with a next tick
        ("paused_at = now()", True),
        ("paused_at = now(), next_tick = NULL, next_execution = NULL, paused_tick = next_tick", False),
        ("paused_tick = now()", True),
        ("paused_until = now()", True),
        ("paused_at = now(), paused_until = now()", False),
        ("cancelled_at = now()", True),
        ("orphaned_at = now()", True),
        ("orphaned_at = now(), next_tick = NULL, next_execution = NULL, orphaned_tick = next_tick", False),
        ("orphaned_tick = now()", True),
        (
            "orphaned_at = now(), paused_at = now(), next_tick = NULL, next_execution = NULL, orphaned_tick = now()",
            True,
        ),
        ("start_time = now()", True),
        ("execution_id = 1", True),
        ("running = -1", True),
        ("running = 2", False),
        ("running = 1, state = 'executing', start_time = now(), execution_id = 1", True),
        ("state = 'executing', start_time = now(), execution_id = 1", False),
        ("slot = 4096", True),
        ("timeout_ms = 0", True),
        ("on_disconnect = 'x'", True),
        ("key = ''", True),
    ],
)
async def test_a_job_that_contradicts_itself_is_refused(database_url: str, change: str, refused: bool) -> None:
    await run(database_url, ROWS_OF_THE_FIRST_SCHEMA)
    outcome = None
    try:
        await run(database_url, f"UPDATE cron_jobs SET {change} WHERE key = 'm.idle'")
    except asyncpg.CheckViolationError as error:
        outcome = error.constraint_name
    assert outcome == ("cron_jobs_sound" if refused else None)


async def test_no_job_is_made_that_contradicts_itself(database_url: str) -> None:
    await run(database_url, ROWS_OF_THE_FIRST_SCHEMA)
    for column, wrong in (("slot", "4096"), ("timeout_ms", "0"), ("on_disconnect", "'x'"), ("key", "''")):
        values = {"key": "'m.new'", "slot": "1", "timeout_ms": "1", "on_disconnect": "'stop'"} | {column: wrong}
        made = (
            "INSERT INTO cron_jobs (namespace, module, verb, deployment_id, schedule, anchor, "
            f"{', '.join(values)}) VALUES ('default', 'm', 'new', 1, 'manual', now(), {', '.join(values.values())})"
        )
        with pytest.raises(asyncpg.CheckViolationError, match="cron_jobs_sound"):
            await run(database_url, made)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ("outcome = 'completed', ended_at = now(), started_at = claimed_at", None),
        ("outcome = 'completed'", "cron_executions_sound"),
        ("ended_at = now()", "cron_executions_sound"),
        ("outcome = 'lost', ended_at = claimed_at - interval '1 s', started_at = claimed_at", "cron_executions_sound"),
        ("outcome = 'odd', ended_at = now(), started_at = claimed_at", "cron_outcome_known"),
        ("started_at = claimed_at - interval '1 s', outcome = 'lost', ended_at = now()", "cron_executions_sound"),
        ("run_at = claimed_at + interval '1 s'", "cron_executions_sound"),
        ("attempt = 0", "cron_executions_sound"),
        ("controller_id = ''", "cron_executions_sound"),
        ("runner_id = ''", None),  # a tick whose target is a queue has no runner
        ("counted = true", "cron_executions_sound"),
        ("counted = true, holds_job = false", None),
    ],
)
async def test_an_execution_that_contradicts_itself_is_refused(
    database_url: str, change: str, refused: str | None
) -> None:
    await run(database_url, ROWS_OF_THE_FIRST_SCHEMA)
    outcome = None
    try:
        await run(database_url, f"UPDATE cron_executions SET {change}")
    except asyncpg.CheckViolationError as error:
        outcome = error.constraint_name
    assert outcome == refused


async def test_history_is_cut_by_tick(database_url: str) -> None:
    """Each row is in its day's partition, the older ones are together, and so are those far ahead."""
    await run(
        database_url,
        ROWS_OF_THE_FIRST_SCHEMA,
        "INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome, "
        "controller_id, runner_id, hard_deadline) "
        "SELECT 1, 1, t, t, t, t + interval '1 s', t + interval '3 s', 'completed', 'c1', 'r1', t "
        "FROM generate_series(now() - interval '40 days', now() + interval '5 days', interval '1 day') t",
    )
    connection = await connect(database_url, "test")
    try:
        rows = await connection.fetch(
            "SELECT e.tableoid::regclass::text AS part, p.from_at, p.until_at, e.tick "
            "FROM cron_executions e LEFT JOIN cron_partitions p ON p.name = e.tableoid::regclass::text "
            "WHERE job_id = 1 ORDER BY e.id"
        )
        assert len(rows) == 46
        parts = [row["part"] for row in rows]
        assert parts[:40] == ["cron_executions_kept"] * 40
        assert len(set(parts[40:43])) == 3
        assert parts[43:] == ["cron_executions_later"] * 3
        assert all(row["from_at"] is None or row["from_at"] <= row["tick"] < row["until_at"] for row in rows)
        # What was claimed far ahead moves when its day comes nearer.
        while await connection.fetchval("SELECT cron_add_partition(now() + interval '9 days')"):
            pass
        assert await connection.fetchval("SELECT count(*) FROM cron_executions_later") == 0
        assert await connection.fetchval("SELECT count(*) FROM cron_executions") == 47
    finally:
        await connection.close()
