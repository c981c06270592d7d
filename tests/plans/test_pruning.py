"""No statement that locks or changes rows prunes partitions before execution, or beside a lock (docs/decisions/0001).

PostgreSQL 18.4 dies by that, or finds no row, when somebody else has changed a row in the meantime.
"""

import re
from collections.abc import AsyncIterator

import pytest

from cronring import sql
from tests.support.databases import BETWEEN
from tests.support.plan_trees import Planner, planner, pruning

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", BETWEEN, "postgres15"])
QUERIES = {"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH"}
FILL = """
SELECT cron_add_partition('infinity') FROM generate_series(1, 5);
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas)
VALUES ('m@1', 'default', 'm', '1', '', 1);
INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, on_disconnect)
SELECT 'm.v' || i, 'default', 'm', 'v' || i, i, (SELECT min(id) FROM deployments), 'every 1h', now(), 300000, 'stop'
FROM generate_series(1, 100) i;
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, hard_deadline)
SELECT j.id, j.deployment_id, t, now(), now(), 'c1', 'r1', now() + interval '1 hour'
FROM cron_jobs j, generate_series(now() - interval '1 day', now() + interval '1 day', interval '8 hours') t;
"""
# Each of our functions of a language that plans by itself, called; a transaction's end calls the last.
TOUR = """
UPDATE cron_notifier SET position = 'x';
INSERT INTO cron_queue (namespace, queue, awaited) VALUES ('n', 'q', true);
UPDATE cron_queue SET ended_at = now(), outcome = 'completed';
SELECT cron_queue_put('q', '1'), cron_queue_listen('q');
SELECT cron_queue_take('q', 'c');
SELECT cron_queue_extend(currval('cron_queue_leases'));
UPDATE cron_queue_lanes SET ready_at = now();
SELECT cron_queue_take('q', 'c');
SELECT cron_queue_retry(currval('cron_queue_leases'), ARRAY(SELECT id FROM cron_queue), 'e');
UPDATE cron_queue_lanes SET ready_at = now();
SELECT cron_queue_take('q', 'c');
SELECT cron_queue_release(currval('cron_queue_leases'));
SELECT cron_queue_take('q', 'c');
SELECT cron_queue_done(currval('cron_queue_leases'), ARRAY(SELECT id FROM cron_queue)), cron_queue_names();
SELECT cron_queue_workspaces(NULL, '', '', 9);
INSERT INTO controllers (id, grpc_address, http_address, pid, version, lease_expires_at)
VALUES ('gone', '', '', 1, '', now());
UPDATE controllers SET lease_expires_at = now() + interval '1 day' WHERE id = 'gone';
INSERT INTO runners (id, hostname, pid, version, deployments, last_seen_at)
VALUES ('gone', '', 1, '', '{}', now() - interval '1 day');
UPDATE runners SET last_seen_at = now() WHERE id = 'gone';
UPDATE cron_jobs SET payload = '1' WHERE id = 1;
UPDATE cron_jobs SET labels = '{"a": "b"}' WHERE id = 1;
UPDATE cron_jobs SET paused_at = now(), paused_by = 'cronring', paused_note = '' WHERE id = 1;
SELECT cron_counted('{}', '{1}'), cron_merged('{1}', '{1}'), cron_attempts(1, now()), cron_tick(1, now()),
       cron_tenth_runs(1, now()), cron_fence('m.v1', 1);
SELECT cron_stage_kept(date_trunc('day', now(), 'UTC'), 1);
SELECT cron_swap_staged(date_trunc('day', now(), 'UTC'), 0, n.n, n.n)
FROM (SELECT 100 * (extract(epoch FROM now() - date_trunc('day', now(), 'UTC'))::bigint / 28800) AS n) n;
SELECT cron_drop_gone(), cron_add_partition('infinity');
SELECT cron_fence_commit(j.key, e.id) FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
ORDER BY e.id DESC LIMIT 1;
INSERT INTO cron_audit_log (principal, method, subject) VALUES ('p', 'm', 's');
UPDATE cron_audit_log SET seq = 1, hash = sha256('') WHERE seq IS NULL;
DELETE FROM cron_audit_log WHERE false;
"""
UNCALLED = """
SELECT p.proname FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cron_jobs'))
  AND p.prosqlbody IS NULL AND l.lanname IN ('plpgsql', 'sql')
  AND coalesce(pg_stat_get_function_calls(p.oid), 0) = 0
  AND p.proname NOT IN ('cron_audit_log_not_emptied', 'cron_refuse') -- these only raise: no count of calls is told
"""


@pytest.fixture(params=["empty", "full", "analysed"])
async def planning(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Planner]:
    planned = await planner(database_url, track_functions="all")
    if request.param != "empty":
        await planned.connection.execute(FILL)
    if request.param == "analysed":
        await planned.connection.execute("ANALYZE")
    yield planned
    await planned.connection.close()


def planned_statements() -> dict[str, str]:
    """All but those that are no queries (TRUNCATE, CREATE, DO...): these are not planned."""
    words = {name: re.sub(r"--.*", "", text).split(maxsplit=1)[0] for name, text in sql.statements().items()}
    return {name: text for name, text in sql.statements().items() if words[name].lstrip("(") in QUERIES}


async def test_no_statement_prunes_where_it_locks_or_changes(planning: Planner, postgres_name: str) -> None:
    complaints = []
    for name, text in planned_statements().items():
        (tree,) = await planning.plan(text)
        complaints += [f"{name}: {said}" for said in pruning(tree)]
    assert complaints == []


async def test_no_function_does_either(planning: Planner, postgres_name: str) -> None:
    fill = FILL
    for deployed, other in (("m.v", "n.v"), ("'m@1'", "'n@1'"), ("'m', '1'", "'n', '1'")):
        fill = fill.replace(deployed, other)
    await planning.connection.execute(fill)
    await planning.heard()
    async with planning.connection.transaction():
        for statement in TOUR.split(";\n"):
            if statement.strip():
                await planning.connection.execute(statement)
    await planning.connection.execute("SELECT pg_stat_force_next_flush()")
    assert await planning.connection.fetch(UNCALLED) == [], "call these in TOUR"
    planned = await planning.heard()
    assert len(planned) > 10
    assert [said for tree in planned for said in pruning(tree)] == []


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE cron_executions SET output = '' WHERE tick = $1", ["partitions are pruned before execution"]),
        ("DELETE FROM cron_executions WHERE tick < now()", ["partitions are pruned before execution"]),
        ("SELECT FROM cron_executions WHERE tick = $1 FOR UPDATE", ["partitions are pruned before execution"]),
        ("SELECT count(*) FROM cron_executions WHERE tick = $1", []),
        ("UPDATE cron_executions SET output = '' WHERE tick = (SELECT $1::timestamptz)", []),
        (
            "SELECT FROM cron_executions WHERE tick = (SELECT $1::timestamptz) FOR SHARE",
            ["partitions are pruned beside a lock"],
        ),
        (
            "SELECT (SELECT count(*) FROM cron_executions WHERE job_id = j.id AND tick = j.next_tick) "
            "FROM cron_jobs j FOR NO KEY UPDATE OF j",
            ["partitions are pruned beside a lock"],
        ),
    ],
)
async def test_it_tells_which_plans_may(planning: Planner, postgres_name: str, statement: str, said: list[str]) -> None:
    (tree,) = await planning.plan(statement)
    assert pruning(tree) == said
