"""`cronring doctor`'s checks of a database, on the oldest and the newest PostgreSQL that we have."""

import re

import pytest

from cronring.controller.core.doctor import tables
from cronring.controller.core.doctor.finding import Finding, Verdict
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.store.doctor import examine
from tests.support.faked_clocks import unless_clock_is_faked
from tests.support.looking import look

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])


async def findings(url: str) -> dict[str, Finding]:
    return {finding.check: finding for finding in (await examine(url, ClusterSettings())).findings}


async def execute(url: str, *statements: str) -> None:
    connection = await look(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_migrated_database_has_every_index_that_is_expected_and_no_other(database_url: str) -> None:
    connection = await look(database_url)
    try:
        rows = await connection.fetch(
            "SELECT c.relname, i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid "
            "JOIN pg_class c ON c.oid = x.indrelid "
            "WHERE c.relnamespace = 'cronring'::regnamespace AND NOT c.relispartition"
        )
    finally:
        await connection.close()
    there = {(table, index) for table, index in rows}
    expected = {(table, index) for table, names in tables.INDEXES.items() for index in names}
    assert there == expected, "cronring.controller.core.doctor.tables.INDEXES names what the migrations make"


async def test_all_is_well_but_that_nobody_is_there(database_url: str) -> None:
    found = await findings(database_url)
    ill = {check for check, finding in found.items() if finding.verdict is not Verdict.OK}
    assert ill == {"leases", "durability"}, "no controller runs, and this server of tests has fsync off"
    assert "no controller holds a lease" in found["leases"].seen


async def test_a_database_without_tables_is_told_from_one_that_is_away(empty_database_url: str) -> None:
    found = await findings(empty_database_url)
    assert found["schema"].verdict is Verdict.PROBLEM
    assert "cronring migrate" in found["schema"].advice
    assert found["indexes"].verdict is Verdict.UNCHECKED
    assert found["overdue ticks"].verdict is Verdict.UNCHECKED
    assert found["timeouts"].verdict is Verdict.OK


async def test_an_invalid_index_of_partitions_is_seen_and_mended_as_advised(database_url: str) -> None:
    """One that a partition lacks is not valid as a whole."""
    await execute(
        database_url,
        "DROP INDEX cron_executions_troubled",
        "CREATE INDEX cron_executions_troubled ON ONLY cron_executions (outcome, id) WHERE outcome <> 'completed'",
    )
    found = await findings(database_url)
    assert "index cron_executions_troubled of cron_executions is not valid" in found["indexes"].seen
    await execute(database_url, *filter(None, found["indexes"].advice.split(";")))
    assert (await findings(database_url))["indexes"].verdict is Verdict.OK


async def test_one_check_that_cannot_be_made_hides_no_other(database_url: str) -> None:
    await execute(database_url, "ALTER TABLE cron_limits RENAME COLUMN running TO running_now")
    found = await findings(database_url)
    assert found["limits"].verdict is Verdict.UNCHECKED
    assert "running" in found["limits"].seen
    assert found["webhooks"].verdict is Verdict.OK


@unless_clock_is_faked
async def test_a_lock_on_a_table_does_not_make_it_hang(database_url: str) -> None:
    connection = await look(database_url)
    try:
        await connection.execute("BEGIN; LOCK TABLE cron_webhooks IN ACCESS EXCLUSIVE MODE")
        found = await findings(database_url)
    finally:
        connection.terminate()
    assert found["webhooks"].verdict is Verdict.UNCHECKED
    assert "lock timeout" in found["webhooks"].seen


async def test_what_the_tables_say(database_url: str) -> None:
    """Leases over, runners gone, ticks overdue, executions past their time, limits full, webhooks disabled."""
    await execute(
        database_url,
        "INSERT INTO controllers (id, grpc_address, http_address, pid, version, lease_expires_at) "
        "VALUES ('c1', 'h:1', 'h:2', 1, '0.1.0', now() - interval '40 s')",
        "INSERT INTO runners (id, hostname, pid, version, deployments, last_seen_at) "
        "VALUES ('r1', 'h', 1, '0.1.0', '{m@1}', now() - interval '1 minute')",
        "INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas) "
        "VALUES ('m@1', 'default', 'm', 'd', '', 1)",
        "INSERT INTO cron_limits (namespace, module, max_concurrent, running) VALUES ('default', 'x', 2, 2)",
        "INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, "
        "on_disconnect, next_tick, next_execution) "
        "SELECT 'm.' || v, 'default', 'm', v, 1, d.id, '', now(), 1000, 'stop', "
        "now() - interval '50 s', now() - interval '50 s' FROM deployments d, unnest('{a,b}'::text[]) v",
        "INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, "
        "hard_deadline) SELECT id, deployment_id, now() - interval '2 minutes', now() - interval '2 minutes', "
        "now() - interval '2 minutes', 'c1', 'r1', now() - interval '1 minute' FROM cron_jobs WHERE key = 'm.a'",
        "INSERT INTO cron_webhooks (name, origin, encrypted, disabled_at, disabled_reason) "
        "VALUES ('ops', 'http://h', 'cronring1$plain$$', now(), 'HTTP 410')",
    )
    found = await findings(database_url)
    said = {check: finding.seen for check, finding in found.items() if finding.verdict is not Verdict.OK}
    assert "1 executions still carry its id" in said["leases"]
    assert "runner r1 (h, pid 1) was not seen for" in said["runners"]
    # Half a minute may pass on a busy machine until it looks.
    assert re.search(r"m@1 has no runner: none of its 2 jobs runs, the next tick due for [5-7]\d", said["deployments"])
    assert re.search(r"2 jobs of m@1 are due for up to [5-7]\d", said["overdue ticks"])
    assert "execution 1 of m.a on r1 is 1m past its hard timeout" in said["hard timeouts"]
    assert "default/x runs 2 of 2" in said["limits"]
    assert "webhook ops is disabled: HTTP 410" in said["webhooks"]
