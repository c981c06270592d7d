"""What slows the hot tables down without being wrong: plans for partitions that ANALYZE saw empty, and columns."""

import json

import pytest

from cronring import sql
from cronring.sql.loader import loaded
from tests.plans.explained import array, execution, nodes, session, timestamps
from tests.support.looking import look

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])

RUNNING = 5_000
ENDING = 200
TOMORROW = "date_trunc('day', now(), 'UTC') + interval '36 hours'"
JOBS = f"""
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas)
VALUES ('m@1', 'default', 'm', '1', '', 1);
INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, on_disconnect,
                       next_tick, next_execution)
SELECT 'm.v' || i, 'default', 'm', 'v' || i, i % 4096, (SELECT min(id) FROM deployments), 'every 1h', now(), 300000,
       'stop', {TOMORROW}, {TOMORROW}
FROM generate_series(1, {RUNNING}) i;
VACUUM ANALYZE
"""
EXECUTIONS = f"""
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, hard_deadline)
SELECT id, deployment_id, {TOMORROW}, now(), now(), 'c1', 'r1', now() + interval '1 hour' FROM cron_jobs
"""


HELD = """
UPDATE cron_jobs j SET state = 'executing', start_time = e.claimed_at, execution_id = e.id
FROM cron_executions e WHERE e.job_id = j.id
"""


@pytest.mark.parametrize("ends", ["EndCronJob", "EndAnyRun"])
async def test_ends_look_up_their_own_executions_where_analyze_saw_none(database_url: str, ends: str) -> None:
    """A nightly VACUUM ANALYZE finds tomorrow's partition empty, and plans are made before anybody looks again."""
    connection = await session(database_url)
    try:
        for statement in JOBS.split(";"):
            await connection.execute(statement)
        name = await connection.fetchval(
            f"SELECT name FROM cron_partitions WHERE from_at < {TOMORROW} AND until_at > {TOMORROW}"
        )
        await connection.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = off)")  # it would look, in time
        text = sql.statement(ends).replace("cron_executions e", f"{name} e")
        await connection.execute(f"PREPARE ending AS {text}")
        await connection.execute(f"EXPLAIN {execution('ending', ends)}")  # that is the plan from now on
        await connection.execute(EXECUTIONS)
        await connection.execute(HELD)
        records = await connection.fetch(
            f"SELECT id, job_id, claimed_at FROM cron_executions ORDER BY job_id LIMIT {ENDING}"
        )
        ids, jobs = array([record[0] for record in records]), array([record[1] for record in records])
        names = loaded()[ends].names
        told = {
            "execution_ids": ids, "job_ids": jobs,
            "claimed_ats": timestamps([record[2] for record in records]), "outcomes": array(["completed"] * ENDING),
            "started_ats": f"array_fill(now(), ARRAY[{ENDING}])", "ended_ats": f"array_fill(now(), ARRAY[{ENDING}])",
            "revisions": array([1] * ENDING), "missed": array([0] * ENDING),
            "ticks": f"array_fill({TOMORROW}, ARRAY[{ENDING}])",
        }  # fmt: skip
        given = {each: told.get(each, array(["NULL"] * ENDING)) for each in names}
        explain = "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON)"
        found = json.loads(await connection.fetchval(f"{explain} {execution('ending', ends, given)}"))
        looked = [node for node in nodes(found[0]["Plan"]) if node.get("Relation Name") == name]
        assert sum(node["Actual Loops"] for node in looked) >= ENDING, "the partition was not looked into"
        wasted = sum(node.get("Rows Removed by Filter", 0) * node["Actual Loops"] for node in looked)
        assert wasted == 0, [(node["Index Name"], node["Index Cond"]) for node in looked]
    finally:
        await connection.close()


# docs/decisions/0004: why
async def test_no_generated_column_is_in_the_way_of_updates(database_url: str) -> None:
    """PostgreSQL reads the expression of one anew for every row that an update leaves it alone in: 8 us each."""
    connection = await look(database_url)
    try:
        found = await connection.fetch(
            "SELECT attrelid::regclass::text, attname FROM pg_attribute "
            "WHERE attgenerated <> '' AND attrelid IN ('cron_jobs'::regclass, 'cron_executions'::regclass)"
        )
        assert found == []
    finally:
        await connection.close()
