"""Checks of a database, each by a statement of its own: `examine(url, settings)`. Only reads."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import asyncpg

from cronring import sql
from cronring.controller.config import DEFAULT_SCHEMA
from cronring.controller.core.doctor import server, tables, work
from cronring.controller.core.doctor.finding import Finding, found, guarded, problem, unchecked
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.store.connect import Connection, connect
from cronring.sql.parameters import (
    BoundDiagnosis,
    CountEncrypted,
    FindPeers,
    GetConnectionUse,
    GetHistoryState,
    GetMigrations,
    GetServerSettings,
    GetServerState,
    HasMigrations,
    ListDeploymentRunners,
    ListFullLimits,
    ListIndexes,
    ListLeases,
    ListOpenTransactions,
    ListOrphans,
    ListOverdueExecutions,
    ListOverdueTicks,
    ListPreparedTransactions,
    ListReplicationSlots,
    ListRunnerLeases,
    ListTableStates,
    ListWebhookStates,
)
from cronring.sql.records import Statement

_APPLICATION: Final = "cronring doctor"
_COMMAND_TIMEOUT_S: Final = 12.0
_CHECKS_OF_SERVER: Final = (
    "postgresql version", "writes", "durability", "transaction isolation", "timeouts", "autovacuum",
)  # fmt: skip
Row = TypeVar("Row")


class _Check(NamedTuple):
    """The statement's rows are made into `row` tuples, and go to the rule."""

    name: str
    statement: Statement
    row: Callable[[Sequence[Any]], Any]
    rule: Callable[[list[Any]], Finding]


def _checks(settings: ClusterSettings) -> list[_Check]:
    lost_ms = settings.runner_lost_after_ms
    overdue_ms = settings.runner_grace_ms + 5_000
    scripts = [migration.script for migration in sql.migrations()]
    return [
        _Check("connections", GetConnectionUse(), server.ConnectionUse._make, _one(server.check_connections)),
        _Check("open transactions", ListOpenTransactions(), server.OpenTransaction._make, server.check_transactions),
        _Check("prepared transactions", ListPreparedTransactions(), server.PreparedTransaction._make,
               server.check_prepared),
        _Check("replication slots", ListReplicationSlots(), server.ReplicationSlot._make, server.check_slots),
        _Check("indexes", ListIndexes(), tables.IndexState._make, lambda rows: tables.check_indexes(rows, scripts)),
        _Check("partitions", GetHistoryState(), tables.HistoryState._make, _one(tables.check_history)),
        _Check("dead rows", ListTableStates(), tables.TableState._make, tables.check_bloat),
        _Check("leases", ListLeases(), work.LeaseState._make, work.check_leases),
        _Check("runners", ListRunnerLeases(), work.RunnerLease._make,
               lambda rows: work.check_runner_leases(rows, lost_ms)),
        _Check("deployments", ListDeploymentRunners(lost_after_ms=lost_ms), work.DeploymentState._make,
               work.check_deployments),
        _Check("overdue ticks", ListOverdueTicks(overdue_ms=overdue_ms, lost_after_ms=lost_ms),
               work.OverdueTicks._make, work.check_overdue_ticks),
        _Check("hard timeouts", ListOverdueExecutions(overdue_ms=work.OVERDUE_RUN_MS),
               work.OverdueExecution._make, work.check_overdue_executions),
        _Check("limits", ListFullLimits(), work.FullLimit._make, work.check_limits),
        _Check("orphaned jobs", ListOrphans(), work.Orphans._make, work.check_orphans),
        _Check("webhooks", ListWebhookStates(), work.WebhookState._make, work.check_webhooks),
        _Check("secrets", CountEncrypted(), work.EncryptedSecrets._make, work.check_secrets),
    ]  # fmt: skip


class Examined(NamedTuple):
    """`addresses`: the gRPC addresses of controllers that hold a lease. `reached`: there was a connection at all."""

    findings: list[Finding]
    addresses: tuple[str, ...]
    reached: bool


# docs/decisions/0036: first reads the settings that any new session gets, and then sets its own timeouts
async def examine(url: str, settings: ClusterSettings, *, schema: str = DEFAULT_SCHEMA) -> Examined:
    """All checks, over one connection of its own. It raises nothing: what can't be checked is a finding, too.
    `settings`: the cluster's durations. The session has the settings of any new session, except its timeouts.
    """
    try:
        connection = await connect(url, _APPLICATION, schema=schema)
    except (StoreUnavailable, StoreError) as error:
        return Examined([_unreachable(error)], (), reached=False)
    try:
        findings = await _server_findings(connection)
        findings.append(await _schema_finding(connection))
        findings += [await _finding(connection, check) for check in _checks(settings)]
        return Examined(findings, await _addresses(connection), reached=True)
    finally:
        await _close(connection)


def _unreachable(error: Exception) -> Finding:
    advice = (
        "Look whether PostgreSQL runs, and whether this URL names the server that takes writes (several hosts: all of "
        "them). Meanwhile runs go on, and results wait in the memory of controllers and runners."
    )
    return found("database", [problem(str(error), advice)], "")


async def _server_findings(connection: Connection) -> list[Finding]:
    """Findings about the server's settings. They are read before this session sets its own timeouts."""
    try:
        rows = await _fetch(connection, GetServerSettings(names=list(server.SETTINGS)))
        await _fetch(connection, BoundDiagnosis())
        settings = {row["name"]: row["setting"] for row in rows}
        (state,) = map(server.ServerState._make, await _fetch(connection, GetServerState()))
    except Exception as error:  # as in _finding
        return [unchecked(name, _reason(error)) for name in _CHECKS_OF_SERVER]
    return [
        guarded("postgresql version", lambda: server.check_version(settings)),
        guarded("writes", lambda: server.check_writable(settings, state)),
        guarded("durability", lambda: server.check_durability(settings)),
        guarded("transaction isolation", lambda: server.check_isolation(settings)),
        guarded("timeouts", lambda: server.check_timeouts(settings)),
        guarded("autovacuum", lambda: server.check_autovacuum(settings, state)),
    ]


async def _schema_finding(connection: Connection) -> Finding:
    try:
        (has,) = (await _fetch(connection, HasMigrations()))[0]
        rows = await _fetch(connection, GetMigrations()) if has else []
    except Exception as error:  # as in _finding
        return unchecked("schema", _reason(error))
    known = [tables.Applied(*migration[:3]) for migration in sql.migrations()]
    return guarded("schema", lambda: tables.check_migrations([tables.Applied(*row) for row in rows], known))


async def _finding(connection: Connection, check: _Check) -> Finding:
    try:
        rows = await _fetch(connection, check.statement)
    except Exception as error:  # of any kind: the next statement still runs
        return unchecked(check.name, _reason(error))
    return guarded(check.name, lambda: check.rule([check.row(tuple(row)) for row in rows]))


async def _addresses(connection: Connection) -> tuple[str, ...]:
    try:
        return tuple(row["grpc_address"] for row in await _fetch(connection, FindPeers()))
    except Exception:  # `leases` says why
        return ()


async def _fetch(connection: Connection, statement: Statement) -> list[asyncpg.Record]:
    return await connection.fetch(*statement, timeout=_COMMAND_TIMEOUT_S)


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=2)
    except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        connection.terminate()


def _one(rule: Callable[[Row], Finding]) -> Callable[[list[Row]], Finding]:
    """The rule for a statement that returns one row."""
    return lambda rows: rule(rows[0])


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
