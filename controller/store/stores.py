"""What the API asks, answered from PostgreSQL."""

from cronring.controller.core.settings import ClusterSettings
from cronring.controller.ports.stores import Stores
from cronring.controller.store.audit_chain import PostgresAuditLog
from cronring.controller.store.control import PostgresControl
from cronring.controller.store.defaults import PostgresDefaults
from cronring.controller.store.drills import PostgresDrills
from cronring.controller.store.execution_control import PostgresExecutionControl
from cronring.controller.store.forecast import PostgresForecast
from cronring.controller.store.history import PostgresHistory
from cronring.controller.store.interval_jobs import PostgresIntervalJobs
from cronring.controller.store.ledger import PostgresLedger
from cronring.controller.store.limits import PostgresLimits
from cronring.controller.store.pool import Database
from cronring.controller.store.queues import PostgresQueues
from cronring.controller.store.reads import PostgresReads
from cronring.controller.store.request_keys import PostgresRequestKeys
from cronring.controller.store.sets import PostgresSets
from cronring.controller.store.statistics import PostgresStatistics
from cronring.controller.store.templates import PostgresTemplates
from cronring.controller.store.tokens import PostgresTokens
from cronring.controller.store.verb_calls import PostgresVerbCalls
from cronring.controller.store.web_sessions import PostgresWebSessions
from cronring.controller.store.webhooks import PostgresWebhooks
from cronring.controller.store.workspaces import PostgresWorkspaces


def postgres_stores(database: Database, settings: ClusterSettings) -> Stores:
    """All of them on one pool."""
    return Stores(
        audit_log=PostgresAuditLog(database),
        control=PostgresControl(database),
        defaults=PostgresDefaults(database),
        drills=PostgresDrills(database),
        execution_control=PostgresExecutionControl(database),
        forecast=PostgresForecast(database, settings.runner_lost_after_ms),
        history=PostgresHistory(database, settings.runner_lost_after_ms),
        interval_jobs=PostgresIntervalJobs(database, settings.lease_ms),
        ledger=PostgresLedger(database, settings.runner_lost_after_ms),
        limits=PostgresLimits(database),
        queues=PostgresQueues(database),
        reads=PostgresReads(database, settings.runner_lost_after_ms),
        request_keys=PostgresRequestKeys(database),
        sets=PostgresSets(database),
        statistics=PostgresStatistics(database, settings.lease_ms),
        templates=PostgresTemplates(database),
        tokens=PostgresTokens(database),
        verb_calls=PostgresVerbCalls(database),
        web_sessions=PostgresWebSessions(database),
        webhooks=PostgresWebhooks(database),
        workspaces=PostgresWorkspaces(database),
    )
