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
from tests.support.storms import READ, SCENE, change_of, masked, until_blocked

IDS = "array_agg(id ORDER BY id)"
NOTHING = "NULL::timestamptz"
OF_ALL = "FROM cron_jobs WHERE id < 10"
# By what a query answers, in one row. Without one: nothing.
ARGUMENTS = {
    "RemoveController": "SELECT 'c1'",
    "StandDown": "SELECT 'c1', 1000, true",
    "ClaimAgain": "SELECT 'c2'",
    "DeleteActivation": "SELECT id, job_id FROM cron_activations LIMIT 1",
    "LockCronJobs": "SELECT 'default', 'm', 'm.', 'm/'",
    "CarryCronJobsOver": f"""
        SELECT 1, array_agg(now()), {IDS}, array_agg(1000), array_agg('stop'::text), array_agg(''::text),
               array_agg(true), array_agg('every 2h'::text), array_agg(now()), array_agg(now()), array_agg(now()),
               array_agg(''::text), array_agg(0), array_agg(0), array_agg({NOTHING}), array_agg({NOTHING}),
               array_agg({NOTHING}), array_agg({NOTHING}) FROM cron_jobs WHERE id < 40""",
    "RemoveCronJobs": "SELECT array_agg(id), now(), array_agg(now()) FROM cron_jobs WHERE id < 40",
    "OrphanCronJobs": f"SELECT now(), {IDS}, array_agg(now()) {OF_ALL}",
    "BringCronJobsBack": f"SELECT 1, now(), {IDS}, array_agg(now()), array_agg(now()) {OF_ALL}",
    "ActivateDeployment": "SELECT 1, 2, now()",
    "SetMinReplicas": "SELECT 1, 2",
    "DeactivateDeployment": "SELECT 1, now()",
    "HastenRetry": "SELECT job_id, tick, 'somebody' FROM cron_activations LIMIT 1",
    "LockJob": "SELECT 'm.v1'",
    "LabelJob": "SELECT 1, '{\"a\": \"b\"}', 'somebody'",
    "OrderJobs": f"""
        SELECT now(), 'somebody', {IDS}, array_agg(true), array_agg(now()), array_agg(now()), array_agg({NOTHING}),
               array_agg({NOTHING}), array_agg({NOTHING}), array_agg(NULL::text), array_agg(NULL::text),
               array_agg({NOTHING}), array_agg(NULL::text), array_agg(NULL::text), array_agg({NOTHING}),
               array_agg({NOTHING}), array_agg({NOTHING}) {OF_ALL}""",
    "TakeBackSkips": f"SELECT {IDS}, array_agg(now() - interval '9 days'), now(), '{{paused}}'::text[] {OF_ALL}",
    "CloseBooks": f"SELECT {IDS}, array_agg(now()) {OF_ALL}",
    "ForgetActivations": "SELECT array_agg(job_id) FROM cron_activations",
    "LockJobsOfLimit": "SELECT 'default', 'm'",
    "SetLimit": "SELECT 'default', 'm', 5, 'somebody', ''",
    "BindJobs": f"SELECT 99, {IDS}, true, true {OF_ALL}",
    "LockCutSkips": "",
    "CutSkips": "SELECT array_agg(id), array_agg(last_tick), array_agg(1) FROM cron_skips",
    "AddToClosedBooks": """
        SELECT array_agg(job_id), array_agg(3), array_agg(job_id), array_agg('paused'::text), array_agg(2)
        FROM cron_closings""",
    "ForgetActions": "SELECT 1000",
    "RecordMaintenance": "",
    "SaveNotifier": "SELECT 'c1', 1000, 'y'",
    "LeaveNotifier": "SELECT 'c1'",
    "LockNotifier": "",
    "ForgetNotices": "",
    "SetFailing": f"SELECT {IDS}, array_agg(7), array_agg(now()) {OF_ALL}",
    "ClearFailing": f"SELECT {IDS} {OF_ALL}",
    "TakePauses": "",
    "TakeOrphanings": "",
    "SetLate": f"SELECT {IDS}, array_agg(now()) {OF_ALL}",
    "FinishDeliveries": """
        SELECT array_agg(id), array_agg(attempts), array_agg('delivered'::text), array_agg(0), array_agg(200),
               array_agg(''::text) FROM cron_deliveries""",
    "DisableWebhook": "SELECT min(id), 'why' FROM cron_webhooks",
    "ForgetDeliveries": "SELECT 1000, 100",
    "ForgetRemovedJobs": "",
    "SetPosition": "SELECT 'y'",
    "EnableWebhook": "SELECT 'w2'",
    "RemoveWebhook": "SELECT 'w1'",
    "Redeliver": "SELECT 'w1', 0",
    "RegisterRunner": "SELECT 'r1', 'h', 2, '', '{}'::text[]",
    "UpdateTemplate": "SELECT id, revision, 'd', '', NULL::timestamptz, '', '', '{}', 0, '', 'somebody' "
    "FROM cron_templates",
    "DeleteTemplate": "SELECT 'default', 't'",
}


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
    given = tuple(await changer.fetchrow(ARGUMENTS[name]) or ()) if ARGUMENTS[name] else ()
    text = sql.statement(name)
    transaction, change = statement.transaction(), changer.transaction()
    await transaction.start()
    await change.start()
    await changer.execute(change_of())
    if calm:
        await change.commit()
    running = asyncio.ensure_future(statement.fetch(text, *given))
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
        calm, stormy = [await _came_to(sessions, name, calm=calm) for calm in (True, False)]
        assert calm == stormy, name


def test_every_statement_that_locks_rows_is_stormed() -> None:
    locks = re.compile(r"\bUPDATE\b|\bDELETE\b|\bFOR (KEY )?SHARE\b")
    found = {name for name, text in sql.statements().items() if locks.search(re.sub(r"--.*", "", text))}
    assert found - set(STORMED) - ALONE - {"FormatGrants"} == set(ARGUMENTS)
