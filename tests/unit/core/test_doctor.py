"""The rules of `cronring doctor` about a database, by tables of examples: what is seen, and the verdict."""

from collections.abc import Callable

import pytest

from cronring import sql
from cronring.controller.core.doctor import server, tables, work
from cronring.controller.core.doctor.finding import Finding, Verdict, found, guarded, problem, warning, worst
from cronring.controller.core.doctor.server import (
    ConnectionUse,
    OpenTransaction,
    PreparedTransaction,
    ReplicationSlot,
    ServerState,
)
from cronring.controller.core.doctor.tables import Applied, HistoryState, IndexState, TableState
from cronring.controller.core.doctor.work import (
    DeploymentState,
    EncryptedSecrets,
    FullLimit,
    LeaseState,
    OverdueExecution,
    OverdueTicks,
    RunnerLease,
    WebhookState,
)

OK, WARNING, UNCHECKED, PROBLEM = Verdict.OK, Verdict.WARNING, Verdict.UNCHECKED, Verdict.PROBLEM
GIB = 1 << 30
MIN, H, DAY = 60_000, 3_600_000, 86_400_000

SETTINGS = {
    "server_version_num": "180004", "server_version": "18.4", "default_transaction_read_only": "off",
    "default_transaction_isolation": "read committed", "fsync": "on", "full_page_writes": "on",
    "synchronous_commit": "on", "autovacuum": "on", "track_counts": "on", "statement_timeout": "0", "lock_timeout": "0",
    "transaction_timeout": "0", "idle_session_timeout": "0",
}  # fmt: skip
STATE = ServerState(standby=False, size_bytes=10_000_000, xid_age=1_000)
SCRIPTS = [migration.script for migration in sql.migrations()]
KNOWN = [Applied(1, "core", "a"), Applied(2, "policies", "b")]
ALL_INDEXES = [IndexState(table, name, True) for table, names in tables.INDEXES.items() for name in names]


def set_to(**changed: str) -> dict[str, str]:
    return SETTINGS | changed


def without(name: str) -> list[IndexState]:
    return [state for state in ALL_INDEXES if state.name != name]


def session(**fields: object) -> OpenTransaction:
    return OpenTransaction(7, "app", "psql", False, 2_000, 2_000, [], 0)._replace(**fields)  # type: ignore[arg-type]  # by name


def lease(name: str, left_ms: int = 4_000, unfinished: int = 0, *, draining: bool = False) -> LeaseState:
    return LeaseState(name, f"{name}:7400", "0.1.0", draining, left_ms, unfinished)


def hook(**fields: object) -> WebhookState:
    return WebhookState("ops", False, "", 0, None, None, "", -5_000)._replace(**fields)  # type: ignore[arg-type]  # by name


EXAMPLES: list[tuple[Callable[[], Finding], Verdict, str]] = [
    (lambda: server.check_version(SETTINGS), OK, "18.4"),
    (lambda: server.check_version(set_to(server_version_num="140001")), OK, ""),
    (lambda: server.check_version(set_to(server_version_num="130012", server_version="13.12")), PROBLEM, "13.12"),
    (lambda: server.check_version(set_to(server_version_num="190000", server_version="19")), WARNING, "newer than 18"),
    (lambda: server.check_writable(SETTINGS, STATE), OK, ""),
    (lambda: server.check_writable(SETTINGS, STATE._replace(standby=True)), PROBLEM, "standby"),
    (lambda: server.check_writable(set_to(default_transaction_read_only="on"), STATE), PROBLEM, "read_only"),
    (lambda: server.check_durability(SETTINGS), OK, "fsync on"),
    (lambda: server.check_durability(set_to(fsync="off")), PROBLEM, "fsync is off"),
    (lambda: server.check_durability(set_to(synchronous_commit="off")), PROBLEM, "synchronous_commit is off"),
    (lambda: server.check_durability(set_to(synchronous_commit="remote_apply")), OK, "remote_apply"),
    (lambda: server.check_durability(set_to(full_page_writes="off")), WARNING, "full_page_writes"),
    (lambda: server.check_isolation(SETTINGS), OK, "read committed"),
    (lambda: server.check_isolation(set_to(default_transaction_isolation="serializable")), PROBLEM, "serializable"),
    (lambda: server.check_timeouts(SETTINGS), OK, ""),
    (lambda: server.check_timeouts(set_to(statement_timeout="50")),
     PROBLEM, "statement_timeout of new sessions is 50ms"),
    (lambda: server.check_timeouts(set_to(statement_timeout="30000")), WARNING, "30s"),
    (lambda: server.check_timeouts(set_to(statement_timeout="120000")), OK, ""),
    (lambda: server.check_timeouts(set_to(lock_timeout="100")), PROBLEM, "lock_timeout"),
    (lambda: server.check_timeouts(set_to(idle_session_timeout="60000")), WARNING, "idle_session_timeout"),
    (lambda: server.check_timeouts({k: v for k, v in SETTINGS.items() if k != "transaction_timeout"}), OK, ""),
    (lambda: server.check_autovacuum(SETTINGS, STATE), OK, "9.5 MiB"),
    (lambda: server.check_autovacuum(set_to(autovacuum="off"), STATE), PROBLEM, "autovacuum is off"),
    (lambda: server.check_autovacuum(SETTINGS, STATE._replace(xid_age=600_000_000)), WARNING, "600,000,000"),
    (lambda: server.check_autovacuum(SETTINGS, STATE._replace(xid_age=1_900_000_000)), PROBLEM, "stops taking writes"),
    (lambda: server.check_connections(ConnectionUse(80, 97, None, None, 15)), OK, "80 of 97"),
    (lambda: server.check_connections(ConnectionUse(11, 97, None, None, 15)), WARNING, "max_connections"),
    (lambda: server.check_connections(ConnectionUse(-1, 97, None, None, 15)), PROBLEM, "0 connections are free"),
    (lambda: server.check_connections(ConnectionUse(80, 97, 5, None, 15)), WARNING, "database's CONNECTION LIMIT"),
    (lambda: server.check_connections(ConnectionUse(80, 97, None, 1, 15)), PROBLEM, "role's CONNECTION LIMIT"),
    (lambda: server.check_transactions([]), OK, ""),
    (lambda: server.check_transactions([session()]), OK, ""),
    (lambda: server.check_transactions([session(blocks=3, locked=["cron_jobs"])]), PROBLEM, "blocks 3 sessions"),
    (lambda: server.check_transactions([session(idle=True, state_ms=9_000)]), OK, ""),
    (lambda: server.check_transactions([session(idle=True, state_ms=12_000)]), WARNING, "idle in a transaction"),
    (lambda: server.check_transactions([session(open_ms=20 * MIN)]), WARNING, "open since 20m"),
    (lambda: server.check_prepared([PreparedTransaction("x", "app", 30_000)]), OK, ""),
    (lambda: server.check_prepared([PreparedTransaction("x", "app", 2 * MIN)]), WARNING, "prepared transaction x"),
    (lambda: server.check_prepared([PreparedTransaction("x", "app", H)]), PROBLEM, "1h"),
    (lambda: server.check_slots([ReplicationSlot("standby", True, 99 * GIB)]), OK, ""),
    (lambda: server.check_slots([ReplicationSlot("standby", False, 2 * GIB)]), WARNING, "keeps 2.0 GiB of WAL"),
    (lambda: server.check_slots([ReplicationSlot("standby", False, 20 * GIB)]), PROBLEM, "20.0 GiB"),
    (lambda: tables.check_migrations(KNOWN, KNOWN), OK, "version 2"),
    (lambda: tables.check_migrations(KNOWN[:1], KNOWN), PROBLEM, "0002 policies"),
    (lambda: tables.check_migrations([], KNOWN), PROBLEM, "0001 core, 0002 policies"),
    (lambda: tables.check_migrations(KNOWN, KNOWN[:1]), PROBLEM, "newer than this program's 1"),
    (lambda: tables.check_migrations([KNOWN[0], Applied(2, "policies", "c")], KNOWN), PROBLEM, "another one"),
    (lambda: tables.check_indexes(ALL_INDEXES, SCRIPTS), OK, "all there and valid"),
    (lambda: tables.check_indexes([], SCRIPTS), UNCHECKED, "no tables of cronring"),
    (lambda: tables.check_indexes(without("cron_jobs_due"), SCRIPTS), PROBLEM, "cron_jobs_due of cron_jobs is missing"),
    (lambda: tables.check_indexes([*without("cron_skips_job"), IndexState("cron_skips", "cron_skips_job", False)], []),
     PROBLEM, "not valid"),
    (lambda: tables.check_indexes([*ALL_INDEXES, IndexState("cron_jobs", "mine", True)], SCRIPTS),
     WARNING, "index mine"),
    (lambda: tables.check_indexes([*ALL_INDEXES, IndexState("invoices", "mine", True)], SCRIPTS), OK, ""),
    (lambda: tables.check_history(HistoryState(3 * DAY, MIN, H)), OK, "3d"),
    (lambda: tables.check_history(HistoryState(DAY, MIN, H)), WARNING, "reach only 1d ahead"),
    (lambda: tables.check_history(HistoryState(-H, MIN, H)), PROBLEM, "no partition for today"),
    (lambda: tables.check_history(HistoryState(3 * DAY, 2 * H, H)), WARNING, "for 2h"),
    (lambda: tables.check_history(HistoryState(3 * DAY, None, H)), WARNING, "looked after history ever"),
    (lambda: tables.check_history(HistoryState(3 * DAY, None, MIN)), OK, ""),
    (lambda: tables.check_history(HistoryState(3 * DAY, 9 * DAY, None)), OK, ""),
    (lambda: tables.check_bloat([TableState("cron_jobs", 10, 90_000, False)]), OK, "90,000 in 1"),
    (lambda: tables.check_bloat([TableState("cron_jobs", 10, 200_000, False)]), WARNING, "200,000 dead rows"),
    (lambda: tables.check_bloat([TableState("cron_jobs", 100_000, 200_000, False)]), OK, ""),
    (lambda: tables.check_bloat([TableState("cron_jobs", 10, 0, True)]), WARNING, "switched off for cron_jobs"),
    (lambda: work.check_leases([lease("a"), lease("b", 3_000)]), OK, "2 held, the shortest for 3s"),
    (lambda: work.check_leases([]), PROBLEM, "no controller holds a lease"),
    (lambda: work.check_leases([lease("a")]), WARNING, "only one controller"),
    (lambda: work.check_leases([lease("a"), lease("b"), lease("c", -3_000)]), WARNING, "lease of c (c:7400) is over"),
    (lambda: work.check_leases([lease("a"), lease("b"), lease("c", -3_000, draining=True)]), OK, ""),
    (lambda: work.check_leases([lease("a"), lease("b"), lease("c", -60_000, 2)]), PROBLEM, "2 executions still carry"),
    (lambda: work.check_runner_leases([RunnerLease("r", "h", 7, 500, 3)], 8_750), OK, "1 alive"),
    (lambda: work.check_runner_leases([RunnerLease("r", "h", 7, H, 0)], 8_750), OK, "0 alive, 1 dead in the last day"),
    (lambda: work.check_runner_leases([RunnerLease("r", "h", 7, 500, 0, has_left=True)], 8_750), OK,
     "0 alive, 1 left in the last day"),
    (lambda: work.check_runner_leases([RunnerLease("r", "h", 7, 12_000, 3)], 8_750), OK, ""),
    (lambda: work.check_runner_leases([RunnerLease("r", "h", 7, H, 3)], 8_750), PROBLEM, "3 executions on it"),
    (lambda: work.check_deployments([DeploymentState("m@1", 1, 1, 4, 900)]), OK, "1 active"),
    (lambda: work.check_deployments([DeploymentState("m@1", 1, 0, 4, 900)]), PROBLEM, "no runner: none of its 4 jobs"),
    (lambda: work.check_deployments([DeploymentState("m@1", 1, 0, None, None)]), OK, ""),
    (lambda: work.check_deployments([DeploymentState("m@1", 3, 2, 4, 900)]), WARNING, "2 runners, fewer than"),
    (lambda: work.check_overdue_executions([OverdueExecution(9, "m.a", "r", 20_000)]),
     PROBLEM, "execution 9 of m.a on r"),
    (lambda: work.check_overdue_executions([]), OK, ""),
    (lambda: work.check_overdue_ticks([]), OK, ""),
    (lambda: work.check_overdue_ticks([OverdueTicks("m@1", 3, 20_000, "m.a", 0, 1)]), PROBLEM, "nobody claims them"),
    (lambda: work.check_overdue_ticks([OverdueTicks("m@1", 3, 20_000, "m.a", 0, 0)]), PROBLEM, "have no runner"),
    (lambda: work.check_overdue_ticks([OverdueTicks("@q", 3, 20_000, "@q.-:n", 0, 0)]), PROBLEM, "nobody claims them"),
    (lambda: work.check_overdue_ticks([OverdueTicks("m@1", 3, 20_000, "m.a", 3, 1)]), WARNING, "wait for a limit"),
    (lambda: work.check_overdue_ticks([OverdueTicks("m@1", 3, 20_000, "m.a", 2, 1)]), PROBLEM, "nobody claims them"),
    (lambda: work.check_limits([]), OK, ""),
    (lambda: work.check_limits([FullLimit("default", "m", "", 2, 2)]), WARNING, "default/m runs 2 of 2"),
    (lambda: work.check_webhooks([]), OK, "none"),
    (lambda: work.check_webhooks([hook()]), OK, "1: ops"),
    (lambda: work.check_webhooks([hook(disabled=True, disabled_reason="410")]), WARNING, "disabled: 410"),
    (lambda: work.check_webhooks([hook(waiting=4, oldest_ms=MIN)]), OK, ""),
    (lambda: work.check_webhooks([hook(waiting=4, oldest_ms=H, error="HTTP 500")]), WARNING, "HTTP 500"),
    (lambda: work.check_webhooks([hook(unread_ms=5 * MIN)]), PROBLEM, "nobody has read the books"),
    (lambda: work.check_webhooks([hook(unread_ms=5 * MIN, disabled=True)]), WARNING, "disabled: by hand"),
    (lambda: work.check_secrets([]), OK, "none"),
    (lambda: work.check_secrets([EncryptedSecrets("k1", 3)]), OK, "3 by key k1"),
    (lambda: work.check_secrets([EncryptedSecrets("k1", 3), EncryptedSecrets("k2", 1)]), WARNING,
     "a rotation is not over: 3 by key k1, 1 by key k2"),
    (lambda: work.check_secrets([EncryptedSecrets("k1", 3), EncryptedSecrets("plain", 2)]), WARNING,
     "2 secrets are not enc"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_verdicts(number: int) -> None:
    rule, verdict, said = EXAMPLES[number]
    finding = rule()
    assert finding.verdict is verdict, finding
    assert said in finding.seen
    assert bool(finding.advice) is (verdict is not OK), "whatever isn't well says what to do"


def test_a_missing_index_comes_with_the_statement_that_makes_it() -> None:
    finding = tables.check_indexes(without("cron_jobs_due"), SCRIPTS)
    assert finding.advice == (
        "CREATE INDEX CONCURRENTLY cron_jobs_due ON cron_jobs (slot, next_execution) WHERE next_execution IS NOT NULL;"
    )
    finding = tables.check_indexes(without("deployments_one_active"), SCRIPTS)
    assert finding.advice.startswith("CREATE UNIQUE INDEX CONCURRENTLY deployments_one_active ON deployments")
    finding = tables.check_indexes(without("cron_executions_troubled"), SCRIPTS)
    assert "CONCURRENTLY" not in finding.advice, "of a partitioned table none can be made so"
    finding = tables.check_indexes(without("runners_pkey"), SCRIPTS)
    assert "belongs to a constraint of runners" in finding.advice


def test_the_worst_comes_first_and_many_are_counted() -> None:
    troubles = [warning(f"small {number}", "wait") for number in range(6)] + [problem("grave", "act")]
    finding = found("x", troubles, "well")
    assert finding.verdict is PROBLEM
    assert finding.seen == "grave; small 0; small 1; small 2; small 3; and 2 more"
    assert finding.advice == "act\nwait"


def test_a_rule_that_fails_is_a_finding_and_worse_than_a_warning() -> None:
    broken = guarded("x", lambda: work.check_limits([("not", "a", "row")]))  # type: ignore[list-item]  # on purpose
    assert broken.verdict is UNCHECKED
    assert "AttributeError" in broken.seen
    assert worst([broken, Finding("y", WARNING, "")]) is UNCHECKED
    assert worst([broken, Finding("y", PROBLEM, "")]) is PROBLEM
    assert worst([]) is OK
