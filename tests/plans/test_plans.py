"""Plans of the hot statements, as the store's sessions make them: by index, whatever the batch and the tables' size."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from cronring import sql
from cronring.controller.store.connect import Connection
from cronring.sql.loader import loaded
from tests.plans.explained import array, execution, plan, session, timestamps
from tests.support.databases import run_coroutine

JOBS = 100_000
EXECUTIONS = 50_000
GROWING = {
    "cron_jobs", "cron_executions", "cron_skips", "cron_schedules", "cron_activations", "cron_actions", "cron_tokens",
    "cron_runner_grants", "cron_sessions", "cron_audit_log", "cron_request_keys", "cron_payloads", "cron_interval_jobs",
    "cron_verb_calls", "cron_queue", "cron_queue_lanes", "cron_queue_wakes", "cron_dead_letters", "cron_lives",
}  # fmt: skip
HOT = [
    "GetCronJobs", "GetOverdueJobs", "StartCronJobs", "EndCronJob", "SkipTicks", "RenewLease", "AdoptExecutions",
    "GetUnfinished", "GetLost", "GetOverdueExecutions", "LockCronJobs", "GetModuleJobs", "CarryCronJobsOver",
    "RemoveCronJobs", "FindDeadLetters", "ReplayDeadLetters", "RemoveDeadLetters", "ListMessages",
    "ListDeadLetters", "ListLane", "ListDeadLettersOfWorkspace", "FindDeadLettersOfWorkspace", "ListJobs", "GetJob",
    "GetJobsById", "GetSkippedTicks", "GetExecution", "ListExecutions", "ListTroubledExecutions",
    "ListJobExecutions", "FindExecutionBefore", "GetLastIds", "GetUnfinishedIds", "GetChanges", "ListDeployments",
    "GetDeployment", "GetActivations", "StartActivations", "ListActivations", "DeleteActivation", "LockJob",
    "GetJobId", "GetCronJobsById", "LabelJobs", "FindJobIds", "GetJobsByKey", "CreateApiJobs", "GetSpecs",
    "ListRunningAt", "ListTroubles", "ListDeeds", "LockJobsById", "OrderJobs", "TakeBackSkips", "CloseBooks",
    "OpenBooks", "ForgetActivations", "CancelExecutionsOfJobs", "GetFateOfTick", "FindJobs", "ListActions",
    "ListJobActions", "ListDeploymentActions", "MarkCancelled", "LockJobOfExecution", "GetAttempts", "HastenRetry",
    "CreateRetry", "GetExecutionChanges", "GetLatestStarts", "ListDue", "ListTemplateActions", "FindChosenJobs",
    "FindChosenByKey", "CountChosenJobs", "GetTemplate", "DeleteTemplate", "CountWorkspace",
    "DropWorkspaceMessages", "ListQueues", "FollowExecutions", "FollowSkips", "FindOverdue", "GetRetriesGivenUp",
    "TakePauses", "FindOverdueByDefault", "GetLabelFigures", "TakeOrphanings", "EnqueueCronJobs", "AddMessages",
    "DecideExecutions", "DeleteMessages", "GetQueueReports", "GetLeft", "RunJobsByHand", "GetActivationsById",
    "CreateBackfill", "AddActions", "AddSkips", "GetJobIds", "ListTickRuns", "GetFollowers", "GetFollowed",
    "CreateCronJobs", "OrphanCronJobs", "BringCronJobsBack", "CountRunningOfOthers", "ActivateDeployment",
    "CountPlaces", "BindJobs", "GetJobFigures", "GetUnfolded", "TakeFolding", "FoldFigures", "MoveFolding",
    "UpdateTemplate", "AddRetries", "FollowTicks", "MoveAnchors", "PauseFailing", "DropActivations",
    "AdvanceBackfills", "UseToken", "TakeJoin", "GetRunnerGrant", "CreateSession", "UseSession", "GetSession",
    "RevokeSession", "RevokeSessionOf", "ListSessions", "CountUnsealed", "GetUnsealedRows", "SealRows",
    "GetAuditChain", "ReadAuditChain", "GetAuditHash", "ListAuditLog", "NoteRefusals", "CutAuditChain",
    "DropCutRows", "FindExecutionsEnd", "RankExecutions", "CountExecutions", "FindTroubledEnd",
    "RankTroubledExecutions", "CountTroubledExecutions", "GetJobsForExecutions", "FindJobExecutionsEnd",
    "CountJobTicks", "RankJobExecutions", "CountJobExecutions", "RankJobs", "BeginRequest", "CountRequestKeys",
    "GetRequest", "EndRequest", "ForgetRequest", "AddIntervalJob", "SetIntervalJob", "ForgetRetries",
    "GetIntervalJob", "GetIntervalJobs", "ListIntervalExecutions", "CountIntervalExecutions",
    "GetIntervalExecution", "GetVerbCall", "KeepVerbCall", "GetReadyQueues", "LockMessages", "EndAnyRun",
]  # fmt: skip
# What the audit and "why" ask; GetTwins, which looks at all jobs once, has a test of its own.
LEDGER = [
    "GetStandings", "GetSpans", "GetClosedBooks", "CountRuns", "CountSkips", "GetRunsInOrder", "GetSkipsInOrder",
    "GetSkipBefore", "GetSubjects", "GetSpansAround", "GetAttemptsOfTick", "GetRunBefore", "GetRunAfter", "GetSkipAt",
    "GetWaiting", "GetActionsBefore",
]  # fmt: skip
# In order of an index, until the page is full: bounded by LIMIT, not by a condition.
IN_ORDER = {
    "cron_jobs_key", "cron_jobs_pkey", "cron_executions_pkey", "cron_skips_pkey", "cron_actions_pkey",
    "cron_actions_untold", "cron_sessions_pkey",
}  # fmt: skip
# Of what waits to be sealed, or settled, alone; and bounded by LIMIT.
OF_WHAT_WAITS = {"cron_audit_log_unsealed", "cron_queue_ended"}
FILL = f"""
SELECT cron_add_partition('infinity') FROM generate_series(5, 34);
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas)
SELECT 'm' || i || '@1', 'default', 'm' || i, '1', '', 1 FROM generate_series(1, 100) i;
INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, on_disconnect,
                       next_tick, next_execution)
SELECT 'm' || i % 100 + 1 || '.v' || i, 'default', 'm' || i % 100 + 1, 'v' || i, i * 2654435761 % 4096, i % 100 + 1,
       'every 1h', now(), 300000, 'stop', t.tick, t.tick
FROM generate_series(1, {JOBS}) i,
     LATERAL (SELECT date_trunc('second', now()) + (i % 3600 - 10) * interval '1 second' AS tick) t;
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, from_at)
SELECT id, 1, schedule, anchor, created_at FROM cron_jobs;
INSERT INTO cron_interval_jobs (job_id, id, namespace, terms)
SELECT id, 'i' || id, namespace, '{{}}' FROM cron_jobs WHERE id % 10 = 0;
INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, started_at, ended_at, outcome,
                             controller_id, runner_id, hard_deadline)
SELECT i % 1000 + 1, 1, t.tick, t.tick, t.tick, t.tick, t.tick, 'completed', 'c1', 'r1', t.tick + interval '1 hour'
FROM generate_series(1, {EXECUTIONS}) i,
     LATERAL (SELECT date_trunc('second', now()) - ({EXECUTIONS} - i) * interval '1 second' AS tick) t;
INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
SELECT i, 'overlap', now(), now(), 1, 'c1' FROM generate_series(1, 10000) i;
INSERT INTO cron_activations (job_id, slot, trigger, tick, attempt, run_at)
SELECT i, i * 2654435761 % 4096, 'retry', now(), 2, now() + (i % 3600 - 10) * interval '1 second'
FROM generate_series(1, 10000) i;
INSERT INTO controllers (id, grpc_address, http_address, pid, version, lease_expires_at)
SELECT 'c' || i, '', '', 1, '', now() + interval '1 hour' FROM generate_series(1, 3) i;
INSERT INTO runners (id, hostname, pid, version, deployments, last_seen_at)
SELECT 'r' || i, '', 1, '', '{{}}', now() + interval '1 hour' FROM generate_series(1, 10) i;
INSERT INTO cron_audit_log (at, principal, method, namespace, subject, seq, hash)
SELECT now() - (10000 - i) * interval '1 minute', 'token:ci', '/cronring.v1.Jobs/PauseJob', 'default', 'job m.v' || i,
       CASE WHEN i < 9990 THEN i END, CASE WHEN i < 9990 THEN decode(repeat('00', 32), 'hex') END
FROM generate_series(1, 10000) i;
ANALYZE
"""


@pytest.fixture(scope="module", params=["postgres18", "postgres15"])
def filled_url(
    request: pytest.FixtureRequest, copies_of_filled: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    """A database with 100,000 jobs, of which some hundred are due."""
    with copies_of_filled(request.param) as url:
        yield url


def astray(name: str, found: list[dict[str, Any]]) -> list[str]:
    """What reads more of a growing table than it asks for."""
    complaints = []
    for node in found:
        kind, condition = node["Node Type"], node.get("Index Cond")
        if kind == "Seq Scan" and node["Relation Name"] in GROWING:
            complaints.append(f"{name} reads all of {node['Relation Name']}")
        in_order = node.get("Index Name") in IN_ORDER and name.startswith(("List", "GetLastIds", "Find", "Take"))
        whole = kind in {"Index Scan", "Index Only Scan"} and condition is None and not in_order
        if whole and node["Relation Name"] in GROWING and node["Index Name"] not in OF_WHAT_WAITS:
            complaints.append(f"{name} reads all of {node['Index Name']}")
    return complaints


@pytest.mark.parametrize("name", [*HOT, *LEDGER])
async def test_hot_statements_use_their_indexes(filled_url: str, name: str) -> None:
    connection = await session(filled_url)
    try:
        assert astray(name, await plan(connection, name)) == []
    finally:
        await connection.close()


@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
async def test_plans_made_on_empty_tables_are_as_good(database_url: str) -> None:
    connection = await session(database_url)
    try:
        complaints = [complaint for name in [*HOT, *LEDGER] for complaint in astray(name, await plan(connection, name))]
        assert complaints == []
    finally:
        await connection.close()


async def due(connection: Connection, jobs: int) -> tuple[list[int], list[int]]:
    records = await connection.fetch(
        "UPDATE cron_jobs SET next_tick = date_trunc('second', now()), next_execution = date_trunc('second', now()) "
        "WHERE id <= $1 RETURNING id, next_tick",
        jobs,
    )
    return [record[0] for record in records], [record[1] for record in records]


def claim_arguments(ids: list[int], ticks: list[int]) -> dict[str, str]:
    keys, at, ones = array([f"m{job_id % 100 + 1}@1" for job_id in ids]), timestamps(ticks), array([1] * len(ids))
    nulls, triggers = array(["NULL"] * len(ids)), array(["schedule"] * len(ids))
    return {
        "controller_id": "'c1'", "job_ids": array(ids), "expected_ticks": at, "ticks": at, "run_ats": at,
        "runner_ids": array(["r1"] * len(ids)), "deployments": keys, "triggers": triggers, "missed": ones,
        "next_ticks": nulls, "next_run_ats": nulls, "revisions": ones, "placed": "false", "places": "'{}'",
        "hard_grace_ms": "30000",
    }  # fmt: skip


LIMITS = """
INSERT INTO cron_limits (namespace, module, max_concurrent)
SELECT 'default', CASE i WHEN 0 THEN '' ELSE 'm' || i END, 7 FROM generate_series(0, 100) i
ON CONFLICT (namespace, module, label) WHERE rule IS NULL DO UPDATE SET max_concurrent = 7;
UPDATE cron_jobs j
SET limits = cron_limits_of(namespace, module, labels)
WHERE id <= 2000
"""


def rows_passed(found: list[dict[str, Any]]) -> int:
    return sum(int(node["Actual Rows"] * node["Actual Loops"]) for node in found)


@pytest.mark.parametrize("jobs", [1, 500, 2_000])
async def test_a_claims_work_grows_with_its_batch_alone(filled_url: str, jobs: int) -> None:
    connection = await session(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        found = await plan(connection, "StartCronJobs", claim_arguments(*await due(connection, jobs)))
        assert astray("StartCronJobs", found) == []
        assert max(node["Actual Rows"] for node in found) == jobs
        # Every node hands on each row once or twice; a loop over both sides of a join would square it.
        assert rows_passed(found) <= 40 * jobs
    finally:
        await transaction.rollback()
        await connection.close()


@pytest.mark.parametrize("jobs", [1, 500, 2_000])
async def test_a_claims_work_under_limits_grows_with_its_batch_and_its_limits(filled_url: str, jobs: int) -> None:
    """100 modules with a limit each, and one of the namespace: none is claimed without a place."""
    connection = await session(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(LIMITS)
        found = await plan(connection, "StartCronJobs", claim_arguments(*await due(connection, jobs)))
        assert astray("StartCronJobs", found) == []
        assert rows_passed(found) <= 40 * jobs
    finally:
        await transaction.rollback()
        await connection.close()


@pytest.mark.parametrize("wants", ["nothing", "anything", "retries", "moved anchors"])
@pytest.mark.parametrize("jobs", [1, 500, 2_000])
async def test_an_ends_work_grows_with_its_batch_alone(filled_url: str, jobs: int, wants: str) -> None:
    connection = await session(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        ids, ticks = await due(connection, jobs)
        await connection.execute(f"PREPARE claimed AS {sql.statement('StartCronJobs')}")
        claimed = await connection.fetch(execution("claimed", "StartCronJobs", claim_arguments(ids, ticks)))
        await connection.execute("DEALLOCATE claimed")
        at = timestamps([record["claimed_at"] for record in claimed])
        texts, nulls = array(["x"] * jobs), array(["NULL"] * jobs)
        later = timestamps([record["claimed_at"] + 60_000_000 for record in claimed])
        ends, moved = "EndCronJob" if wants == "nothing" else "EndAnyRun", wants == "moved anchors"
        arguments = {
            "execution_ids": array([record["execution_id"] for record in claimed]), "job_ids": array(ids),
            "claimed_ats": at, "ticks": timestamps(ticks), "outcomes": array(["completed"] * jobs), "started_ats": at,
            "ended_ats": at, "error_types": texts, "error_messages": texts, "outputs": texts,
            "revisions": array([1] * jobs), "missed": array([0] * jobs), "next_ticks": later if moved else nulls,
            "next_run_ats": later if moved else nulls, "retry_ats": at if wants == "retries" else nulls,
            "anchors": at if moved else nulls, "stacks": texts, "cpu_us": nulls, "memory_peak_bytes": nulls,
            "memory_shared": nulls, "metrics": texts,
        }  # fmt: skip
        found = await plan(connection, ends, {name: arguments[name] for name in loaded()[ends].names})
        assert (astray(ends, found), max(node["Actual Rows"] for node in found)) == ([], jobs)
        assert rows_passed(found) <= 60 * jobs
    finally:
        await transaction.rollback()
        await connection.close()


@pytest.mark.parametrize("jobs", [1, 500, 2_000])
async def test_a_skips_work_grows_with_its_batch_alone(filled_url: str, jobs: int) -> None:
    connection = await session(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        ids, ticks = await due(connection, jobs)
        at, later, ones = timestamps(ticks), timestamps([tick + 60_000_000 for tick in ticks]), array([1] * jobs)
        reasons = array(["overlap"] * jobs)
        arguments = {
            "controller_id": "'c1'", "job_ids": array(ids), "expected_ticks": at, "revisions": ones,
            "next_ticks": later, "next_run_ats": later, "reasons": reasons, "first_ticks": at, "last_ticks": at,
            "tick_counts": ones, "further_job_ids": array(ids), "further_reasons": reasons, "further_first_ticks": at,
            "further_last_ticks": at, "further_tick_counts": ones, "missed": ones,
        }  # fmt: skip
        found = await plan(connection, "SkipTicks", arguments)
        assert astray("SkipTicks", found) == []
        assert max(node["Actual Rows"] for node in found) == 2 * jobs
        assert rows_passed(found) <= 50 * jobs
    finally:
        await transaction.rollback()
        await connection.close()


@pytest.mark.parametrize("waiting", [1, 500, 2_000])
async def test_the_work_of_starting_what_waits_grows_with_its_batch_alone(filled_url: str, waiting: int) -> None:
    connection = await session(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        records = await connection.fetch(
            "UPDATE cron_activations SET run_at = now() WHERE id <= $1 RETURNING id, job_id, tick", waiting
        )
        keys = array([f"m{record['job_id'] % 100 + 1}@1" for record in records])
        ids, at = array([record["id"] for record in records]), timestamps([record["tick"] for record in records])
        nulls = array(["NULL"] * waiting)
        arguments = {
            "controller_id": "'c1'", "activation_ids": ids, "expected_ticks": at,
            "runner_ids": array(["r1"] * waiting), "deployments": keys, "next_ticks": nulls, "placed": "false",
            "hard_grace_ms": "30000", "places": "'{}'",
        }  # fmt: skip
        found = await plan(connection, "StartActivations", arguments)
        assert astray("StartActivations", found) == []
        assert max(node["Actual Rows"] for node in found) == waiting
        assert rows_passed(found) <= 80 * waiting
    finally:
        await transaction.rollback()
        await connection.close()


@pytest.mark.parametrize("running", [0, 5_000])
async def test_a_renewal_looks_at_nothing_that_runs_well(filled_url: str, running: int) -> None:
    connection = await session(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(
            "INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, "
            "hard_deadline) SELECT 50000 + i, 1, now(), now(), now(), 'c' || i % 3 + 1, 'r' || i % 10 + 1, "
            f"now() + interval '1 hour' FROM generate_series(1, {running}) i"
        )
        arguments = {
            "controller_id": "'c1'", "grpc_address": "'a'", "http_address": "'b'", "peer_address": "''", "pid": "1",
            "version": "'v'", "zone_data": "'z'", "draining": "false", "lease_ms": "5000", "runner_ids": "'{r1,r2,r3}'",
            "lost_after_ms": "8750", "cancelling": "'{}'",
        }  # fmt: skip
        found = await plan(connection, "RenewLease", arguments)
        assert astray("RenewLease", found) == []
        touched = [node for node in found if node.get("Relation Name") in GROWING]
        assert rows_passed(touched) == 0
        assert sum(node.get("Rows Removed by Filter", 0) for node in touched) == 0
    finally:
        await transaction.rollback()
        await connection.close()


async def test_the_window_reads_only_what_is_due(filled_url: str) -> None:
    connection = await session(filled_url)
    try:
        await connection.execute("VACUUM cron_jobs")  # of what other tests have rolled back
        found = await plan(connection, "GetCronJobs", {"slots": array(list(range(0, 4096, 2))), "window_ms": "5000"})
        (scan,) = [node for node in found if node.get("Index Name") == "cron_jobs_due"]
        # A second of the scene's age makes 28 more of them due, and a busy machine takes its time.
        assert 0 < scan["Actual Rows"] * scan["Actual Loops"] < JOBS / 10
        assert scan.get("Rows Removed by Filter", 0) == 0
    finally:
        await connection.close()


# docs/decisions/0012: why
@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
def test_claims_are_heap_only_updates(database_url: str) -> None:
    """They touch no index, even if every job of a page comes due at once."""

    async def counted() -> tuple[int, int]:
        connection = await session(database_url)
        try:
            await connection.execute(
                FILL.replace(str(JOBS), "5000").replace(str(EXECUTIONS), "0").replace("i % 3600", "0")
            )
            ids, ticks = map(list, zip(*await connection.fetch("SELECT id, next_tick FROM cron_jobs"), strict=True))
            await connection.execute(f"PREPARE claimed AS {sql.statement('StartCronJobs')}")
            await connection.execute("VACUUM cron_jobs")
            await connection.execute("SELECT pg_stat_force_next_flush()")
            before = await connection.fetchrow(COUNTERS)
            for first in range(0, 2_000, 500):
                batch = claim_arguments(ids[first : first + 500], ticks[first : first + 500])
                await connection.execute(execution("claimed", "StartCronJobs", batch))
            await connection.execute("SELECT pg_stat_force_next_flush()")
            after = await connection.fetchrow(COUNTERS)
            assert before is not None
            assert after is not None
            return after[0] - before[0], after[1] - before[1]
        finally:
            await connection.close()

    updated, heap_only = run_coroutine(counted())
    assert updated == 2_000
    assert heap_only >= 0.9 * updated


COUNTERS = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'cron_jobs'"


@pytest.mark.parametrize(("jobs", "at_most"), [(1, 20), (100, 20), (500, 5)])
async def test_an_audits_page_reads_so_many_runs_of_each_of_its_jobs(filled_url: str, jobs: int, at_most: int) -> None:
    connection = await session(filled_url)
    try:
        asked = {
            "job_ids": array(list(range(1, jobs + 1))),
            "after_ticks": timestamps([0] * jobs),
            "until_tick": "'infinity'",
        }
        found = await plan(connection, "CountRuns", asked | {"limit": str(at_most), "late_after_us": "1000000"})
        # Merged by tick, each partition shows its first row; for some hours after midnight, history lies in two.
        partitions = await connection.fetchval("SELECT count(DISTINCT tableoid) FROM cron_executions")
        assert read(found, "cron_executions") <= jobs * (at_most + partitions)
        found = await plan(connection, "CountSkips", asked)
        assert read(found, "cron_skips") <= 3 * jobs
        spans = {"since": "'-infinity'", "after_job_id": "0", "after_revision": "0", "limit": "5000"}
        found = await plan(connection, "GetSpans", {"job_ids": asked["job_ids"], **spans})
        assert read(found, "cron_schedules") <= jobs
        everywhere = {"after_id": "0", "key": "''", "namespaces": "NULL"}
        found = await plan(connection, "GetStandings", {**everywhere, "limit": str(jobs)})
        assert read(found, "cron_jobs") <= jobs
    finally:
        await connection.close()


async def test_why_reads_what_it_tells(filled_url: str) -> None:
    pages = {"job_id": "1", "after_tick": "'-infinity'", "until_tick": "now()", "limit": "5"}
    asked = {
        "GetSubjects": {"key": "'m2.v1'", "lost_after_ms": "8750"},
        "GetStandings": {"after_id": "0", "key": "'m2.v1'", "namespaces": "NULL", "limit": "10"},
        "GetSpansAround": {"job_id": "1", "instant": "now()", "limit": "3"},
        "GetAttemptsOfTick": {"job_id": "1", "tick": "date_trunc('second', now())", "limit": "10"},
        "GetRunBefore": {"job_id": "1", "instant": "now()"},
        "GetRunAfter": {"job_id": "1", "instant": "now() - interval '1 hour'"},
        "GetSkipAt": {"job_id": "1", "tick": "now()"},
        "GetSkipBefore": {"job_id": "1", "instant": "now()"},
        "GetRunsInOrder": {"after_attempt": "0", **pages},
        "GetSkipsInOrder": {"after_id": "0", **pages},
        "GetWaiting": {"job_id": "1", "limit": "10"},
        "GetActionsBefore": {"job_id": "1", "instant": "now()", "limit": "10"},
    }
    connection = await session(filled_url)
    try:
        for name, arguments in asked.items():
            found = await plan(connection, name, arguments)
            assert sum(read(found, table) for table in GROWING) <= 10, (name, found)
    finally:
        await connection.close()


async def test_twins_are_looked_for_among_jobs_and_not_among_what_ran(filled_url: str) -> None:
    """Once an audit: each job is looked at once, and only of those whose key had another before, what they ran."""
    connection = await session(filled_url)
    try:
        whole = {"after_tick": "'-infinity'", "until_tick": "'infinity'", "limit": "20"}
        found = await plan(connection, "GetTwins", whole)
        assert read(found, "cron_jobs") <= JOBS + 200
        assert read(found, "cron_executions") == 0
    finally:
        await connection.close()


CHOSEN = [("{}", "m7", 1_000), ('{"rare":"yes"}', "", 5), ('{"rare":"yes"}', "m8", 5)]


@pytest.mark.parametrize(("labels", "module", "jobs"), CHOSEN)
async def test_a_look_for_jobs_by_label_or_module_reads_those(
    filled_url: str, labels: str, module: str, jobs: int
) -> None:
    connection = await session(filled_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute('UPDATE cron_jobs SET labels = \'{"rare":"yes"}\' WHERE id % 20000 = 7')
        where = {
            "namespace": "''",
            "module": f"'{module}'",
            "verb": "''",
            **dict.fromkeys(("statuses", "outcomes", "contains", "keys"), "'{}'"),
            "labels": f"'{labels}'",
            "namespaces": "NULL",
        }
        for name, arguments in (
            ("FindChosenJobs", {"after_id": "0", "limit": "5000", **where}),
            ("FindChosenByKey", {"after_key": "''", "limit": "100", **where}),
            ("CountChosenJobs", where),
        ):
            found = await plan(connection, name, arguments)
            assert read(found, "cron_jobs") <= jobs, (name, found)
    finally:
        await transaction.rollback()
        await connection.close()


def read(found: list[dict[str, Any]], table: str) -> int:
    """Rows of a table, its partitions among them, that were looked at: handed on, or filtered out."""
    return sum(
        int((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in found
        if node.get("Relation Name", "").startswith(table)
    )


@pytest.mark.parametrize("name", ["GetChanges", "GetExecutionChanges"])
async def test_only_partitions_of_known_ticks_are_looked_into(filled_url: str, name: str) -> None:
    """Of 34: what is known to run, or ends, is looked for where its ticks are."""
    connection = await session(filled_url)
    try:
        ids, tick = array(list(range(1, 301))), "date_trunc('day', now()) - interval '1 microsecond'"
        given = {
            "after_execution_id": str(EXECUTIONS * 2), "first_execution_ids": "'{}'", "last_execution_ids": "'{}'",
            "execution_ids": ids, "first_tick": tick, "last_tick": tick,
        }  # fmt: skip
        if name == "GetChanges":
            skips = {"after_skip_id": "1000000", "first_skip_ids": "'{}'", "last_skip_ids": "'{}'"}
            given |= skips | {"since": "'infinity'"}
        found = await plan(connection, name, given)
        by_id = [
            node["Relation Name"]
            for node in found
            if node["Node Type"].startswith(("Index", "Bitmap Heap"))
            and node["Relation Name"].startswith("cron_executions")
            and node["Actual Loops"]
            and "tick" in node.get("Index Cond", node.get("Recheck Cond", ""))
        ]
        assert len(set(by_id)) == 1, by_id
        # Also those that ANALYZE found empty: one of them is tomorrow's.
        assert all(
            "Index Cond" in node
            for node in found
            if node["Node Type"] == "Index Scan" and node["Relation Name"].startswith("cron_executions_2")
        )
        assert rows_passed(found) == 0
    finally:
        await connection.close()
