"""As tests/conformance/test_storms.py, of statements that lock rows and read no partitions.

They are cheaper to try: all in one copy of the scene, as each is rolled back after it.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import NamedTuple

import asyncpg
import pytest

from cronring import sql
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import SESSION_SETTINGS
from tests.conformance.test_storms import ALONE, STORMED
from tests.support.storms import READ, SCENE, change_of, masked, record_of, until_blocked

IDS = "array_agg(id ORDER BY id)"
NOTHING = "NULL::timestamptz"
OF_ALL = "FROM cron_jobs WHERE id < 10"
# By what a query answers, in one row: a column for each parameter. Without one: nothing.
ARGUMENTS = {
    "OwnJobs": f"SELECT {IDS} AS job_ids, 'new' AS name, '' AS was, 'somebody' AS actor {OF_ALL}",
    "RemoveController": "SELECT 'c1' AS controller_id",
    "HoldDrill": "SELECT 'c1' AS controller_id, 1000 AS for_ms, true AS forced",
    "ClaimAgain": "SELECT 'c2' AS controller_id",
    "MoveAnchors": f"""
        SELECT {IDS} AS job_ids, array_agg(now()) AS anchors, array_agg(now()) AS closes_ats FROM cron_jobs""",
    "TakePlaces": "SELECT array_agg(id) AS limit_ids, array_agg(1) AS places FROM cron_limits",
    "AdvanceBackfills": "SELECT array_agg(id) AS activation_ids, array_agg(now()) AS next_ticks FROM cron_activations",
    "DropActivations": f"""
        SELECT (SELECT array_agg(id) FROM cron_activations) AS activation_ids, {IDS} AS failed_job_ids,
               array_agg(1) AS failures FROM cron_jobs""",
    "DeleteActivation": "SELECT id AS activation_id, job_id FROM cron_activations LIMIT 1",
    "LockCronJobs": "SELECT 'default' AS namespace, 'm' AS module, 'm.' AS low_key, 'm/' AS high_key",
    "CarryCronJobsOver": f"""
        SELECT 1 AS deployment_id, array_agg(now()) AS closes_ats, {IDS} AS job_ids,
               array_agg(1000) AS timeouts_ms, array_agg('stop'::text) AS on_disconnects,
               array_agg(''::text) AS payloads, array_agg(true) AS rescheduled,
               array_agg('every 2h'::text) AS schedules, array_agg(now()) AS anchors,
               array_agg(now()) AS next_ticks, array_agg(now()) AS next_run_ats,
               array_agg(''::text) AS policies, array_agg(0) AS concurrencies, array_agg(0) AS pause_afters,
               array_agg({NOTHING}) AS paused_ticks, array_agg({NOTHING}) AS ahead_froms,
               array_agg({NOTHING}) AS ahead_untils, array_agg({NOTHING}) AS orphaned_ticks
        FROM cron_jobs WHERE id < 40""",
    "RemoveCronJobs": """
        SELECT array_agg(id) AS job_ids, now() AS now, array_agg(now()) AS closes_ats
        FROM cron_jobs WHERE id < 40""",
    "OrphanCronJobs": f"SELECT now() AS now, {IDS} AS job_ids, array_agg(now()) AS orphaned_ticks {OF_ALL}",
    "BringCronJobsBack": f"""
        SELECT 1 AS deployment_id, now() AS now, {IDS} AS job_ids, array_agg(now()) AS next_ticks,
               array_agg(now()) AS next_run_ats {OF_ALL}""",
    "RememberFingerprint": "SELECT 1 AS deployment_id, 'f' AS fingerprint",
    "ActivateDeployment": "SELECT 1 AS deployment_id, 2 AS min_replicas, now() AS now",
    "SetMinReplicas": "SELECT 1 AS deployment_id, 2 AS min_replicas",
    "DeactivateDeployment": "SELECT 1 AS deployment_id, now() AS now",
    "HastenRetry": "SELECT job_id, tick, 'somebody' AS actor, NULL AS payload FROM cron_activations LIMIT 1",
    "LockJob": "SELECT 'm.v1' AS key",
    "LabelJobs": f"""
        SELECT {IDS} AS job_ids, array_agg('{{\"a\": \"b\"}}'::text) AS labels, 'somebody' AS actor {OF_ALL}""",
    "OrderJobs": f"""
        SELECT now() AS now, 'somebody' AS actor, {IDS} AS job_ids, array_agg(true) AS forgets,
               array_agg(now()) AS next_ticks, array_agg(now()) AS next_run_ats,
               array_agg({NOTHING}) AS paused_ats, array_agg({NOTHING}) AS paused_ticks,
               array_agg({NOTHING}) AS paused_untils, array_agg(NULL::text) AS paused_bys,
               array_agg(NULL::text) AS paused_notes, array_agg({NOTHING}) AS cancelled_ats,
               array_agg(NULL::text) AS cancelled_bys, array_agg(NULL::text) AS cancelled_notes,
               array_agg({NOTHING}) AS ahead_froms, array_agg({NOTHING}) AS ahead_untils,
               array_agg({NOTHING}) AS orphaned_ticks {OF_ALL}""",
    "TakeBackSkips": f"""
        SELECT {IDS} AS job_ids, array_agg(now() - interval '9 days') AS from_ticks, now() AS now,
               '{{paused}}'::text[] AS reasons {OF_ALL}""",
    "CloseBooks": f"SELECT {IDS} AS job_ids, array_agg(now()) AS closes_ats {OF_ALL}",
    "ForgetActivations": "SELECT array_agg(job_id) AS job_ids FROM cron_activations",
    "LockJobsOfLimit": "SELECT 'default' AS namespace, 'm' AS module",
    "SetLimit": """
        SELECT 'default' AS namespace, 'm' AS module, '' AS label, 5 AS max_concurrent, 'somebody' AS actor,
               '' AS note""",
    "SetValues": "SELECT min(rule) AS limit_id, 7 AS max_concurrent FROM cron_limits",
    "DropValues": "SELECT min(rule) AS limit_id FROM cron_limits",
    "LockCutSkips": "",
    "CutSkips": """
        SELECT array_agg(id) AS skip_ids, array_agg(last_tick) AS first_ticks, array_agg(1) AS tick_counts
        FROM cron_skips""",
    "AddToClosedBooks": """
        SELECT array_agg(job_id) AS job_ids, array_agg(3) AS due, array_agg(job_id) AS cut_job_ids,
               array_agg('paused'::text) AS cut_reasons, array_agg(2) AS cut_tick_counts FROM cron_closings""",
    "ForgetActions": "SELECT 1000 AS history_ms",
    "ForgetLives": "SELECT 1000 AS history_ms",
    "ForgetIdentities": "SELECT 1000 AS kept_ms",
    "UseToken": "SELECT secret_hash FROM cron_tokens WHERE name = 't1'",
    "RevokeToken": "SELECT id AS token_id, 'somebody' AS actor FROM cron_tokens WHERE name = 't1'",
    "TakeJoin": "SELECT secret_hash FROM cron_runner_grants WHERE name = 'g1'",
    "RevokeRunnerGrant": "SELECT id AS grant_id, 'somebody' AS actor FROM cron_runner_grants WHERE name = 'g1'",
    "UseSession": "SELECT secret_hash, 1000 AS idle_ms FROM cron_sessions ORDER BY id LIMIT 1",
    "RevokeSession": "SELECT id AS session_id, 'somebody' AS actor FROM cron_sessions ORDER BY id LIMIT 1",
    "RevokeSessionOf": "SELECT secret_hash FROM cron_sessions ORDER BY id LIMIT 1",
    "RecordMaintenance": "",
    "SaveNotifier": "SELECT 'c1' AS controller_id, 1000 AS lease_ms, 'y' AS position",
    "LeaveNotifier": "SELECT 'c1' AS controller_id",
    "LockNotifier": "",
    "ForgetNotices": "",
    "SetFailing": f"SELECT {IDS} AS job_ids, array_agg(7) AS execution_ids, array_agg(now()) AS ticks {OF_ALL}",
    "ClearFailing": f"SELECT {IDS} AS job_ids {OF_ALL}",
    "TakePauses": "",
    "TakeOrphanings": "",
    "SetLate": f"SELECT {IDS} AS job_ids, array_agg(now()) AS ticks {OF_ALL}",
    "FinishDeliveries": """
        SELECT array_agg(id) AS delivery_ids, array_agg(attempts) AS attempts,
               array_agg('delivered'::text) AS states, array_agg(0) AS waits_ms, array_agg(200) AS statuses,
               array_agg(''::text) AS errors FROM cron_deliveries""",
    "DisableWebhook": "SELECT min(id) AS webhook_id, 'why' AS reason FROM cron_webhooks",
    "ForgetDeliveries": "SELECT 1000 AS kept_ms, 100 AS limit",
    "ForgetRemovedJobs": "",
    "SetPosition": "SELECT 'y' AS position",
    "EnableWebhook": "SELECT 'w2' AS name",
    "ReplaceEncrypted": "SELECT id, encrypted AS before, encrypted AS after FROM cron_webhooks WHERE name = 'w1'",
    "LockWebhook": "SELECT 'w1' AS name",
    "RemoveWebhook": "SELECT 'w1' AS name",
    "Redeliver": "SELECT 'w1' AS name, 0 AS delivery_id",
    "RegisterRunner": "SELECT 'r1' AS runner_id, 'h' AS hostname, 2 AS pid, '' AS version, '{}'::text[] AS deployments,"
    " 1 AS sync_places, 1 AS async_places",
    "UpdateTemplate": """
        SELECT id AS template_id, revision, 'd' AS description, '' AS schedule, NULL::timestamptz AS anchor,
               '' AS policy, '' AS payload, '{}' AS labels, 0 AS timeout_ms, '' AS on_disconnect,
               'somebody' AS actor FROM cron_templates""",
    "BeginRequest": """
        SELECT principal, method, key, request_hash, 9 AS kept_ms FROM cron_request_keys WHERE key = 'old'""",
    "EndRequest": """
        SELECT principal, method, key, begun_at, '\\x01'::bytea AS answer FROM cron_request_keys WHERE key = 'new'""",
    "ForgetRequest": "SELECT principal, method, key, begun_at FROM cron_request_keys WHERE key = 'new'",
    "ForgetRequests": "",
    "ForgetVerbCalls": "",
    "DeleteTemplate": "SELECT 'default' AS namespace, 't' AS name, NULL AS template_id, NULL AS revision",
    "SetIntervalJob": "SELECT 1 AS job_id, 's' AS source_id, '{\"a\": 1}' AS terms",
    "ForgetRetries": "SELECT job_id FROM cron_activations LIMIT 1",
}


# The scene has no queues. Consumers, claims and ends that meet there are tried by tests/integration/queues and by
# tests/conformance/test_messages.py.
QUEUES = {
    "DeleteMessages", "DropWorkspaceMessages", "FindDeadLetters", "FindDeadLettersOfWorkspace",
    "ForgetDeadLetters", "ForgetLanes", "ForgetListeners", "LockMessages", "RemoveDeadLetters",
    "ReplayDeadLetters", "SetQueue",
}  # fmt: skip


class Sessions(NamedTuple):
    statement: Connection
    changer: Connection
    watcher: Connection


@pytest.fixture
async def sessions(database_url: str) -> AsyncIterator[Sessions]:
    made = Sessions(*[await connect(database_url, "storm", dict(SESSION_SETTINGS)) for _ in range(3)])
    await made.changer.execute(SCENE)
    yield made
    for each in made:
        each.terminate()


async def _came_to(sessions: Sessions, name: str, *, calm: bool) -> tuple[list[str], dict[str, list[str]]]:
    """The answer, and all rows after it; both are taken back. It has to wait: it wants rows that are being changed."""
    statement, changer, watcher = sessions
    record = record_of(name, await changer.fetchrow(ARGUMENTS[name]) if ARGUMENTS[name] else None)
    transaction, change = statement.transaction(), changer.transaction()
    await transaction.start()
    await change.start()
    await changer.execute(change_of())
    if calm:
        await change.commit()
    running = asyncio.ensure_future(statement.fetch(*record))
    if not calm:
        pids = [await each.fetchval("SELECT pg_backend_pid()") for each in (changer, watcher)]
        await until_blocked(watcher, statement.get_server_pid(), pids[0])
        await change.commit()
    answer = await running
    began = await statement.fetchval("SELECT now()")
    rows = {table: _told(await statement.fetch(f"SELECT * FROM {table}"), began) for table in READ}
    await transaction.rollback()
    return _told(answer, began), rows


def _told(rows: list[asyncpg.Record], began: int) -> list[str]:
    return sorted(repr(masked(row, began)) for row in rows)


@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres16", "postgres15"])
async def test_each_comes_to_the_same_if_all_rows_change_under_it(sessions: Sessions) -> None:
    for name in ARGUMENTS:
        (answer, rows), (of_storm, stormy) = [await _came_to(sessions, name, calm=calm) for calm in (True, False)]
        assert (name, answer) == (name, of_storm)
        differing = {table: sorted({*rows[table]} ^ {*stormy[table]}) for table in READ if rows[table] != stormy[table]}
        assert not differing, name


def test_every_statement_that_locks_rows_is_stormed() -> None:
    locks = re.compile(r"\bUPDATE\b|\bDELETE\b|\bFOR (KEY )?SHARE\b")
    found = {name for name, text in sql.statements().items() if locks.search(re.sub(r"--.*", "", text))}
    # CreateSession's row has a new id each time, so no two of its answers are the same (test_web_sessions.py).
    # One row, which all that change it lock first. Of two at once one sees the other's: test_rest_etags.py.
    # Rows of sets: applies at once are tried by tests/conformance/test_sets.py.
    others = {"FormatGrants", "GetPartition", "CreateSession", "TakeSet", "ForgetEmptySet"} | QUEUES
    others |= {"LockDefaults", "SetDefaults"}
    assert found - set(STORMED) - ALONE - others == set(ARGUMENTS)
