"""One scene, and a change of all its rows that comes between a statement's snapshot and its locks."""

import asyncio
from typing import Any, NamedTuple

import asyncpg

from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import SESSION_SETTINGS
from cronring.sql import parameters
from cronring.sql.records import Statement
from tests.support.waiting import TIMEOUT_S

NOW_US = 600_000_000  # what is so near to the statement's own time differs between two runs
# Jobs 1 to 9 run, for ticks of yesterday, today and tomorrow. 31 to 36 follow 1 to 6; 7 to 9 are under no limit either.
# 11 to 19 are due; 21 to 29 have failed and wait for a retry. 41 to 49 were removed, and 51 to 59 have given up.
SCENE = """
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas)
VALUES ('m@1', 'default', 'm', '1', '', 1);
INSERT INTO controllers (id, grpc_address, http_address, pid, version, lease_expires_at)
SELECT 'c' || i, '', '', 1, '', now() + interval '1 hour' FROM generate_series(1, 2) i;
INSERT INTO runners (id, hostname, pid, version, deployments, last_seen_at)
SELECT 'r' || i, '', 1, '', '{}', now() + interval '1 hour' FROM generate_series(1, 3) i;
INSERT INTO cron_limits (namespace, module, label, max_concurrent)
VALUES ('default', 'm', '', 100), ('default', '', 'tenant', 100);
INSERT INTO cron_limits (namespace, module, label, rule, value, max_concurrent)
SELECT namespace, module, label, id, v, max_concurrent FROM cron_limits, unnest('{a,b}'::text[]) v
WHERE label > '';
INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, on_disconnect,
                       next_tick, next_execution)
SELECT 'm.v' || i, 'default', 'm', 'v' || i, i, (SELECT min(id) FROM deployments), 'every 1h', now(), 300000, 'stop',
       t.tick, t.tick
FROM generate_series(1, 60) i, LATERAL (SELECT date_trunc('second', now()) - interval '1 minute' AS tick) t;
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, from_at)
SELECT id, 1, schedule, anchor, created_at - interval '9 days' FROM cron_jobs WHERE id NOT BETWEEN 41 AND 49;
INSERT INTO cron_followers (job_id, after) SELECT i + 30, 'm.v' || i FROM generate_series(1, 6) i;
UPDATE cron_jobs SET limits = NULL WHERE id BETWEEN 7 AND 9;
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             controller_id, runner_id, hard_deadline, holds_job)
SELECT j.id, j.deployment_id, t.tick, now() - interval '1 minute', now(), e.at, e.at,
       CASE WHEN j.id > 9 THEN 'failed' END,
       'c1', 'r1', now() + interval '1 hour', true
FROM cron_jobs j, LATERAL (SELECT date_trunc('second', now()) + (j.id % 3 - 1) * interval '1 day' AS tick) t,
     LATERAL (SELECT CASE WHEN j.id > 9 THEN now() END AS at) e
WHERE j.id < 10 OR j.id BETWEEN 21 AND 29 OR j.id BETWEEN 51 AND 59;
UPDATE cron_jobs j SET state = 'executing', start_time = e.claimed_at, execution_id = e.id, last_tick = e.tick
FROM cron_executions e WHERE e.job_id = j.id AND e.outcome IS NULL;
UPDATE cron_jobs
SET removed_at = now() - interval '9 days', next_tick = NULL, next_execution = NULL, limits = NULL
WHERE id BETWEEN 41 AND 49;
INSERT INTO cron_activations (job_id, slot, trigger, tick, attempt, run_at)
SELECT job_id, job_id, 'retry', tick, 2, now() FROM cron_executions WHERE job_id BETWEEN 21 AND 29;
INSERT INTO cron_retrying SELECT job_id, tick, 1 FROM cron_executions WHERE job_id BETWEEN 51 AND 59;
UPDATE cron_notifier SET position = 'x', holder = 'c1', lease_until = now() + interval '1 hour';
INSERT INTO cron_webhooks (name, origin, encrypted)
SELECT 'w' || i, '', 'cronring1$plain$$' FROM generate_series(1, 2) i;
UPDATE cron_webhooks SET disabled_at = now() WHERE name = 'w2';
INSERT INTO cron_deliveries (webhook_id, event_id, event, body, state, created_at)
SELECT w.id, 'e' || i, '', '', CASE WHEN i > 4 THEN 'failed' ELSE 'waiting' END, now() - interval '9 days'
FROM cron_webhooks w, generate_series(1, 9) i;
INSERT INTO cron_failing SELECT id, 0, now() FROM cron_jobs WHERE id < 50;
INSERT INTO cron_late SELECT id, now() FROM cron_jobs WHERE id < 50;
INSERT INTO cron_pauses (job_id, paused_at, failures, note) SELECT id, now(), 1, '' FROM cron_jobs WHERE id < 10;
INSERT INTO cron_figures SELECT id, '{1,0,0,0,0,0,0}', 1, 1, '{1}', '{1}' FROM cron_jobs WHERE id < 50;
INSERT INTO cron_unfolded SELECT id, job_id, tick FROM cron_executions WHERE job_id < 10;
INSERT INTO cron_interval_jobs (job_id, id, namespace, terms)
SELECT id, 'i' || id, namespace, '{}' FROM cron_jobs WHERE id < 50;
INSERT INTO cron_templates (namespace, name, created_at, created_by, changed_at, changed_by)
VALUES ('default', 't', now(), '', now(), '');
INSERT INTO cron_tokens (name, secret_hash, grants, created_by, revoked_at)
SELECT 't' || i, sha256(convert_to('t' || i, 'UTF8')), '[]', '', CASE WHEN i > 4 THEN now() - interval '9 days' END
FROM generate_series(1, 9) i;
INSERT INTO cron_runner_grants (name, namespace, secret_hash, uses_left, created_by, revoked_at)
SELECT 'g' || i, 'default', sha256(convert_to('g' || i, 'UTF8')), 3, '',
       CASE WHEN i > 4 THEN now() - interval '9 days' END
FROM generate_series(1, 9) i;
INSERT INTO cron_sessions (secret_hash, token_id, principal, origin, last_used_at, idle_at, expires_at, revoked_at)
SELECT secret_hash, id, 'token:t' || i % 3, '', now() - interval '9 days', now() + interval '1 hour', 'infinity',
       CASE WHEN i > 4 THEN now() - interval '9 days' END
FROM cron_tokens, LATERAL (SELECT substr(name, 2)::integer AS i) numbered;
INSERT INTO cron_request_keys (principal, method, key, request_hash, begun_at, expires_at)
SELECT 'token:t', '/m', key, sha256('x'), now() - interval '2 days', expires_at
FROM (VALUES ('old', now() - interval '1 day'), ('new', 'infinity')) k (key, expires_at);
INSERT INTO cron_verb_calls (execution_id, number, made_at)
SELECT i, 1, now() - i * interval '1 day' FROM generate_series(1, 3) i;
INSERT INTO cron_actions (at, job_id, action, actor, untold)
SELECT now() - interval '9 days', id, 'orphan', '', id < 10 FROM cron_jobs;
INSERT INTO cron_lives (kind, member, from_at, until_at, departed, address, version)
SELECT 'runner', 'r' || i, now() - interval '9 days', now() - interval '8 days', false, '', ''
FROM generate_series(1, 9) i;
INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
SELECT id, 'paused', now() - interval '5 hours', now() + interval '5 hours', 11, '' FROM cron_jobs WHERE id < 20;
INSERT INTO cron_closings (job_id, closed_at, until_at)
SELECT id, now() - interval '9 days', now() FROM cron_jobs WHERE id < 20;
INSERT INTO cron_closed_books (job_id, until_at) SELECT job_id, closed_at FROM cron_closings WHERE job_id > 9;
UPDATE controllers SET drill_until = now() + interval '1 hour' WHERE id = 'c2';
"""
FULL = """
SELECT cron_add_partition('infinity') FROM generate_series(1, 30);
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             controller_id, runner_id, hard_deadline)
SELECT 60, 1, t, now() - interval '1 day', now(), now(), now(), 'completed', 'c1', 'r1', now()
FROM generate_series(now() - interval '1 day', now() + interval '20 days', interval '17 minutes') t;
"""
# Each table, and a column of it that is set to what it is.
CHANGED = {
    "cron_executions": "output", "cron_jobs": "labels",
    "cron_activations": "payload", "cron_limits": "running", "controllers": "version",
    "runners": "version", "cron_retrying": "attempt", "cron_schedules": "policy", "cron_maintenance": "width",
    "deployments": "module", "cron_webhooks": "origin", "cron_deliveries": "body", "cron_failing": "execution_id",
    "cron_late": "tick", "cron_pauses": "note", "cron_templates": "payload",
    "cron_actions": "note", "cron_skips": "reason", "cron_closings": "until_at", "cron_closed_books": "until_at",
    "cron_notifier": "holder", "cron_followers": "after", "cron_figures": "duration_us",
    "cron_interval_jobs": "terms", "cron_lives": "address",
    "cron_tokens": "created_by", "cron_runner_grants": "created_by", "cron_sessions": "origin",
    "cron_request_keys": "answer", "cron_verb_calls": "made_at",
}  # fmt: skip
# How far figures are folded is passed over while somebody holds it: nobody does.
READ = (*CHANGED, "cron_folding", "cron_unfolded", "cron_queue")
# A statement that waits for no row is held at a table that it reads before it locks: as a view, that asks here first.
GATE = """
CREATE FUNCTION storm_gate() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_lock_shared(42);
    PERFORM pg_advisory_unlock_shared(42);
    RETURN true;
END $$;
ALTER TABLE {table} RENAME TO gated;
CREATE VIEW {table} AS SELECT * FROM gated WHERE (SELECT storm_gate());
"""


class Stormed(NamedTuple):
    """`arguments`: a query of one row, with a column for each parameter.

    `gate`: the table at which it is held, if it waits for no row. `text`: of what is no named statement.
    """

    arguments: str
    gate: str = ""
    text: str = ""


async def until_blocked(watcher: Connection, pid: int, by: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while by not in await watcher.fetchval("SELECT pg_blocking_pids($1)", pid):
            await asyncio.sleep(0.005)


def change_of(gate: str = "") -> str:
    """Every row has a new version, in which nothing is new."""
    return ";".join(
        f"UPDATE {'gated' if table == gate else table} SET {column} = {column}" for table, column in CHANGED.items()
    )


def record_of(name: str, row: asyncpg.Record | None) -> Statement:
    """A statement, with what a query answers for its parameters; None for one without any."""
    record: Statement = getattr(parameters, name)(**dict(row or {}))
    return record


class Storm:
    """Four sessions of one copy of the scene: the statement's, who changes, who holds the gate, and who watches."""

    def __init__(self, url: str, gate: str) -> None:
        self.url = url
        self.gate = gate

    async def run(self, name: str, stormed: Stormed, *, calm: bool) -> tuple[Any, Any]:
        """`name`: of a statement, perhaps with more words behind a comma."""
        sessions = [await connect(self.url, "storm", dict(SESSION_SETTINGS)) for _ in range(4)]
        statement, changer, _, watcher = sessions
        try:
            if self.gate:
                await changer.execute(GATE.format(table=self.gate))
            row = await changer.fetchrow(stormed.arguments)
            call = (stormed.text, *(row or ())) if stormed.text else tuple(record_of(name.partition(",")[0], row))
            began = await changer.fetchval("SELECT now()")
            if calm:
                await changer.execute(change_of(self.gate))
                answer = await statement.fetch(*call)
            else:
                answer = await self._meet(sessions, call)
            books = {
                table: sorted(map(repr, (masked(row, began) for row in await watcher.fetch(f"SELECT * FROM {table}"))))
                for table in READ
            }
            return sorted(repr(masked(row, began)) for row in answer), books
        finally:
            for each in sessions:
                each.terminate()

    async def _meet(self, sessions: list[Connection], call: tuple[Any, ...]) -> list[asyncpg.Record]:
        """The change is committed after the statement's snapshot, and before its first lock."""
        statement, changer, keeper, watcher = sessions
        pids = [await each.fetchval("SELECT pg_backend_pid()") for each in sessions]
        if self.gate:
            await keeper.execute("SELECT pg_advisory_lock(42)")
        transaction = changer.transaction()
        if not self.gate:
            await transaction.start()
            await changer.execute(change_of(self.gate))
        running = asyncio.ensure_future(statement.fetch(*call))
        await until_blocked(watcher, pids[0], pids[2] if self.gate else pids[1])
        if self.gate:
            await changer.execute(change_of(self.gate))
            await keeper.execute("SELECT pg_advisory_unlock(42)")
        else:
            await transaction.commit()
        return await running


def masked(row: asyncpg.Record, began: int) -> dict[str, Any]:
    def one(value: Any) -> Any:
        recent = isinstance(value, int) and not isinstance(value, bool) and abs(value - began) < NOW_US
        return "now" if recent else value

    return {key: "now" if key in ("now_ms", "age_ms") else one(value) for key, value in row.items()}
