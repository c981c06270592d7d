"""Statements that lock, while somebody else has just changed every row that they want (docs/decisions/0001).

Each is run twice on copies of one scene: when a change of all rows is committed before it begins, and when that is
committed after its snapshot and before its locks. Nothing but the instant differs, so it must come to the same.
"""

import re
from collections.abc import Iterator

import pytest

from cronring import sql
from tests.support.databases import BETWEEN, PostgresServer, running_server
from tests.support.storms import FULL, SCENE, Storm, Stormed

COMPLETED = """
SELECT array_agg(id) AS execution_ids, array_agg(job_id) AS job_ids, array_agg(claimed_at) AS claimed_ats,
       array_agg(claimed_at) AS started_ats, array_agg(claimed_at) AS ended_ats, array_agg(n) AS outputs,
       array_agg(1) AS revisions, array_agg(tick) AS ticks, array_agg(later) AS next_ticks,
       array_agg(later) AS next_run_ats, array_agg(n::bigint) AS cpu_us, array_agg(n::bigint) AS memory_peak_bytes,
       array_agg(n::boolean) AS memory_shared, array_agg(n) AS metrics
FROM (SELECT *, NULL::text AS n, run_at + interval '1 hour' AS later FROM cron_executions
      WHERE outcome IS NULL ORDER BY job_id, id) e
"""
ENDS = """
SELECT array_agg(id) AS execution_ids, array_agg(job_id) AS job_ids,
       array_agg(claimed_at) AS claimed_ats, array_agg('completed'::text) AS outcomes,
       array_agg(claimed_at) AS started_ats, array_agg(claimed_at) AS ended_ats, array_agg(n) AS error_types,
       array_agg(n) AS error_messages, array_agg(n) AS outputs, array_agg(1) AS revisions,
       array_agg(later) AS next_ticks, array_agg(later) AS next_run_ats, array_agg(never) AS retry_ats,
       array_agg(never) AS anchors,
       array_agg(n) AS stacks, array_agg(n::bigint) AS cpu_us, array_agg(n::bigint) AS memory_peak_bytes,
       array_agg(n::boolean) AS memory_shared, array_agg(n) AS metrics, array_agg(0) AS missed
FROM (SELECT *, NULL::text AS n, NULL::timestamptz AS never, run_at + interval '1 hour' AS later FROM cron_executions
      WHERE outcome IS NULL ORDER BY id) e
"""
CLAIMS = """
SELECT 'c1' AS controller_id, array_agg(id) AS job_ids, array_agg(next_tick) AS expected_ticks,
       array_agg(next_tick) AS ticks, array_agg(next_tick) AS run_ats, array_agg('r1'::text) AS runner_ids,
       array_agg('m@1'::text) AS deployments, array_agg('schedule'::text) AS triggers, array_agg(0) AS missed,
       array_agg(NULL::timestamptz) AS next_ticks, array_agg(NULL::timestamptz) AS next_run_ats,
       array_agg(1) AS revisions, {placed} AS placed, 30000 AS hard_grace_ms,
       '{{}}'::text[] AS places
FROM (SELECT * FROM cron_jobs WHERE id BETWEEN 11 AND 19 ORDER BY id) j
"""
SKIPS = """
SELECT 'c1' AS controller_id, array_agg(id) AS job_ids, array_agg(next_tick) AS expected_ticks,
       array_agg(1) AS revisions, array_agg(later) AS next_ticks, array_agg(later) AS next_run_ats,
       array_agg('no_runner'::text) AS reasons, array_agg(next_tick) AS first_ticks,
       array_agg(next_tick) AS last_ticks, array_agg(1) AS tick_counts, '{}'::bigint[] AS further_job_ids,
       '{}'::text[] AS further_reasons, '{}'::timestamptz[] AS further_first_ticks,
       '{}'::timestamptz[] AS further_last_ticks, '{}'::bigint[] AS further_tick_counts, array_agg(0) AS missed
FROM (SELECT *, next_tick + interval '1 hour' AS later FROM cron_jobs WHERE id BETWEEN 11 AND 19 ORDER BY id) j
"""
RETRIES = """
SELECT 'c1' AS controller_id, array_agg(id) AS activation_ids, array_agg(tick) AS expected_ticks,
       array_agg('r1'::text) AS runner_ids, array_agg('m@1'::text) AS deployments,
       array_agg(NULL::timestamptz) AS next_ticks, {placed} AS placed, 30000 AS hard_grace_ms,
       '{{}}'::text[] AS places
FROM (SELECT * FROM cron_activations ORDER BY id) a
"""
MESSAGES = """
SELECT 'c1' AS controller_id, {whole} AS whole, array_agg(id) AS job_ids, array_agg(next_tick) AS expected_ticks,
       array_agg(next_tick) AS ticks, array_agg(next_tick) AS run_ats, array_agg('m@1'::text) AS deployments,
       array_agg('schedule'::text) AS triggers, array_agg(0) AS missed, array_agg(1) AS missed_after,
       array_agg(later) AS next_ticks, array_agg(later) AS next_run_ats, array_agg(1) AS revisions
FROM (SELECT *, next_tick + interval '1 hour' AS later FROM cron_jobs WHERE id BETWEEN 11 AND 19 ORDER BY id) j
"""
STORMED = {
    "EndCronJob": Stormed(COMPLETED),
    "EndAnyRun": Stormed(ENDS),
    "StartCronJobs": Stormed(CLAIMS.format(placed=False), gate="controllers"),
    "StartCronJobs, placed": Stormed(CLAIMS.format(placed=True), gate="controllers"),
    "EnqueueCronJobs": Stormed(MESSAGES.format(whole=False), gate="controllers"),
    "EnqueueCronJobs, whole": Stormed(MESSAGES.format(whole=True), gate="controllers"),
    "SkipTicks": Stormed(SKIPS, gate="controllers"),
    "StartActivations": Stormed(RETRIES.format(placed=False), gate="controllers"),
    "StartActivations, placed": Stormed(RETRIES.format(placed=True), gate="controllers"),
    "LockSeenRunners": Stormed("SELECT array_agg(id) AS runner_ids, 8750 AS lost_after_ms FROM runners"),
    "LockPlaces": Stormed("SELECT array_agg(id) AS limit_ids FROM cron_limits"),
    "GivePlacesBack": Stormed("SELECT array_agg(id) AS limit_ids, array_agg(1) AS places FROM cron_limits"),
    "AdoptExecutions": Stormed("SELECT 'c2' AS controller_id, '{c1}'::text[] AS from_ids, NULL AS runner_ids"),
    "CancelExecutionsOfJobs": Stormed(
        "SELECT array_agg(id) AS job_ids, 'somebody' AS actor, 'why' AS note FROM cron_jobs WHERE id < 10",
    ),
    "MarkCancelled": Stormed(
        """
        SELECT max(id) AS execution_id, 'somebody' AS actor, 'why' AS note
        FROM cron_executions WHERE outcome IS NULL""",
    ),
    "KeepVerbCall": Stormed(
        """
        SELECT max(id) AS execution_id, max(runner_id) AS runner_id, 9 AS number
        FROM cron_executions WHERE outcome IS NULL""",
    ),
    "LockJobOfExecution": Stormed("SELECT max(id) AS execution_id FROM cron_executions WHERE outcome IS NULL"),
    "LockJobsById": Stormed("SELECT array_agg(id) AS job_ids FROM cron_jobs WHERE id < 10"),
    "BindExecutions": Stormed(
        """
        SELECT array_agg(id) AS execution_ids, array_agg(1) AS places
        FROM (SELECT id FROM cron_executions WHERE outcome IS NULL ORDER BY id) e""",
    ),
    "CountPlaces": Stormed("SELECT min(id) AS limit_id FROM cron_limits WHERE max_concurrent IS NOT NULL"),
    "RenewLease": Stormed(
        """
        SELECT 'c1' AS controller_id, '' AS grpc_address, '' AS peer_address, '' AS http_address, 1 AS pid,
               '' AS version, '' AS zone_data, false AS draining, 60000 AS lease_ms, '{r1,r2}'::text[] AS runner_ids,
               8750 AS lost_after_ms, '{}'::bigint[] AS cancelling""",
    ),
    "LeaveRunner": Stormed("SELECT 'r3' AS runner_id"),
    "GetRetriesGivenUp": Stormed("SELECT"),
    "TakeNotifier": Stormed("SELECT 'c1' AS controller_id", gate="cron_notifier"),
    "ClaimDeliveries": Stormed(
        """
        SELECT 1000 AS held_ms, 'c1' AS controller_id, '{}'::bigint[] AS busy_ids,
               '{}'::integer[] AS busy_limits, 9 AS each_limit, 9 AS limit""",
        gate="cron_webhooks",
    ),
    # Its trigger asks at the commit, which is this statement's own.
    "cron_fence_commit": Stormed(
        "SELECT 'm.v1', min(id) FROM cron_executions WHERE outcome IS NULL", text="SELECT cron_fence_commit($1, $2)"
    ),
    "FoldGone": Stormed("SELECT 3600000 AS history_ms, 1000 AS limit", gate="cron_schedules"),
}
# They change rows that nobody else has: those of maintenance, of folding and of the audit log's chain, one round at a
# time (the chain's: test_audit_log.py), and what the transaction of an end or a claim has locked or made.
ALONE = {
    "FillClosings", "SumClosings", "TakeFolding", "FoldFigures", "MoveFolding", "AddRetries", "PauseFailing",
    "AddMessages", "DecideExecutions", "BindJobs",
    "DropIdleValues", "TakeAuditChain", "SealRows", "MoveAuditHead", "CutAuditChain", "DropCutRows",
}  # fmt: skip


@pytest.fixture(scope="module", params=["postgres18", BETWEEN, "postgres15"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """What it has freed is overwritten, so that whoever reads it is found out."""
    with running_server(request.param) as made:
        made.stop()
        made.environment["MALLOC_PERTURB_"] = "165"
        made.start()
        yield made


@pytest.fixture(scope="module", params=["few partitions, never analysed", "many, full, analysed"])
def scene(request: pytest.FixtureRequest, server: PostgresServer) -> str:
    name = server.create_database()
    if request.param.startswith("many"):
        server.execute(SCENE + FULL, name)
        server.execute("VACUUM ANALYZE", name)
    else:
        server.execute(SCENE, name)
    return name


@pytest.mark.parametrize("name", STORMED)
async def test_it_comes_to_the_same_if_all_rows_change_under_it(server: PostgresServer, scene: str, name: str) -> None:
    came = []
    for calm in (True, False):
        copy = server.create_database(template=scene)
        try:
            storm = Storm(server.url(copy), STORMED[name].gate)
            came.append(await storm.run(name, STORMED[name], calm=calm))
        finally:
            server.drop_database(copy)
    finds = STORMED[name].gate or name == "EndCronJob"  # the others have waited for what they found
    assert came[0][0] or not finds, "it found nothing to do"
    assert came[0] == came[1]


def test_all_are_stormed_that_read_partitions_and_lock_or_change() -> None:
    changes = re.compile(r"\bUPDATE\b|\bDELETE\b|\bFOR SHARE\b|\bINSERT INTO\b")
    found = {
        name
        for name, text in sql.statements().items()
        if re.search(r"\bcron_executions\b", code := re.sub(r"--.*", "", text)) and changes.search(code)
    }
    assert found <= set(STORMED) | ALONE
