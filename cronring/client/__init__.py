"""Typed clients of cronring.v1, with and without `await`: docs/clients.md.

    async with AsyncClient.from_env() as client: await client.jobs.list()
    with Client.from_env() as client: client.jobs.list()

Nothing of gRPC is imported before a client is asked for, so that catching this package's errors costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from cronring.client.errors import (
    ClientError,
    Conflict,
    DatabaseAway,
    EtagMismatch,
    Invalid,
    KeyReused,
    NotFound,
    OutcomeUnknown,
    PermissionDenied,
    Refused,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from cronring.client.model import (
    Action,
    Activation,
    Audit,
    Backfill,
    BackfillTick,
    BookEntry,
    Cancellation,
    Cluster,
    Due,
    Execution,
    ExecutionEvent,
    ExecutionEventKind,
    Finding,
    Job,
    JobEvent,
    JobEventKind,
    JobSpec,
    Member,
    OutputChunk,
    Owners,
    Pause,
    Progress,
    QueueTarget,
    Ring,
    Runner,
    Skip,
    SkippedTick,
    Template,
    VerbTarget,
    WaitingRun,
    Why,
)
from cronring.client.payloads import JsonText
from cronring.client.versions import Activated, Deployed, Deployment, Killed, Misfit

if TYPE_CHECKING:
    from cronring.client.audit_log import AuditLogEntry
    from cronring.client.client import AsyncClient
    from cronring.client.comparing import Compared, VerbDifference
    from cronring.client.consuming import Consumer, Message
    from cronring.client.defaults import ClusterDefaults
    from cronring.client.doctor import ControllerReport, Diagnosis, NoReport, SeenMember
    from cronring.client.drills import DrillWord, Phase
    from cronring.client.events import ClusterState, Event, EventKind, EventPage, MemberState
    from cronring.client.filters import ExecutionsCounted, ExecutionsFound
    from cronring.client.forecast import Forecast, ForecastStep, Overload, Recent
    from cronring.client.forks import ForkedError
    from cronring.client.history import LateExecution, Moment, PastMember, PastRunner, TimelineEntry
    from cronring.client.identities import GrantOfRunners, LoggedIn, MadeGrant, MadeToken, Myself, RoleIn, TokenInfo
    from cronring.client.limits import Limit, LimitedValue
    from cronring.client.many import JobResult, JobToMake, ManyDone
    from cronring.client.notifications import Added, Delivery, Tested, Webhook
    from cronring.client.queues import DeadLetter, Lease, Queue, QueueMessage, Taken
    from cronring.client.schedules import ClockChange, DescribedVerb, ExplainedTick, Explanation, Preview, Remark
    from cronring.client.sets import AppliedSet, FieldDifference, HandChange, HowToApply, Set, SetJob, TickDifference
    from cronring.client.statistics import DaySpread, JobDay, JobStats, SchedulerStats, Spread
    from cronring.client.sync_client import Client
    from cronring.client.sync_consuming import SyncConsumer, SyncMessage
    from cronring.client.workspaces import Workspace, WorkspaceDeleted
    from cronring.schema.audit_chain import ChainPart
    from cronring.schema.filters import ExecutionQuery, JobQuery
    from cronring.schema.module import DataField, DataType, Module, Verb
    from cronring.schema.policy_model import Policy

__all__ = [
    "Action", "Activated", "Activation", "Added", "AppliedSet", "AsyncClient", "Audit", "AuditLogEntry",
    "Backfill", "BackfillTick", "BookEntry", "Cancellation", "ChainPart", "Client", "ClientError",
    "ClockChange", "Cluster", "ClusterDefaults", "ClusterState", "Compared", "Conflict", "Consumer",
    "ControllerReport", "DataField", "DataType", "DatabaseAway", "DaySpread", "DeadLetter", "Delivery",
    "Deployed", "Deployment", "DescribedVerb", "Diagnosis", "DrillWord", "Due", "EtagMismatch", "Event",
    "EventKind", "EventPage", "Execution", "ExecutionEvent", "ExecutionEventKind", "ExecutionQuery",
    "ExecutionsCounted", "ExecutionsFound", "ExplainedTick", "Explanation", "FieldDifference", "Finding",
    "Forecast", "ForecastStep", "ForkedError", "GrantOfRunners", "HandChange", "HowToApply", "Invalid", "Job",
    "JobDay", "JobEvent", "JobEventKind", "JobQuery", "JobResult", "JobSpec", "JobStats", "JobToMake",
    "JsonText", "KeyReused", "Killed", "LateExecution", "Lease", "Limit", "LimitedValue", "LoggedIn",
    "MadeGrant", "MadeToken", "ManyDone", "Member", "MemberState", "Message", "Misfit", "Module", "Moment",
    "Myself", "NoReport", "NotFound", "OutcomeUnknown", "OutputChunk", "Overload", "Owners", "PastMember",
    "PastRunner", "Pause", "PermissionDenied", "Phase", "Policy", "Preview", "Progress", "Queue",
    "QueueMessage", "QueueTarget", "Recent", "Refused", "Remark", "Ring", "RoleIn", "Runner", "SchedulerStats",
    "SeenMember", "Set", "SetJob", "Skip", "SkippedTick", "Spread", "SyncConsumer", "SyncMessage", "Taken",
    "Template", "Tested", "TickDifference", "TimelineEntry", "TokenInfo", "Unauthenticated", "Unavailable",
    "Unreachable", "Verb", "VerbDifference", "VerbTarget", "WaitingRun", "Webhook", "Why", "Workspace",
    "WorkspaceDeleted",
]  # fmt: skip

# By module. gRPC takes 100 ms to import.
_OF: Final = {
    "cronring.client.audit_log": "AuditLogEntry",
    "cronring.client.client": "AsyncClient",
    "cronring.client.comparing": "Compared VerbDifference",
    "cronring.client.consuming": "Consumer Message",
    "cronring.client.defaults": "ClusterDefaults",
    "cronring.client.doctor": "ControllerReport Diagnosis NoReport SeenMember",
    "cronring.client.drills": "DrillWord Phase",
    "cronring.client.events": "ClusterState Event EventKind EventPage MemberState",
    "cronring.client.filters": "ExecutionsCounted ExecutionsFound",
    "cronring.client.forecast": "Forecast ForecastStep Overload Recent",
    "cronring.client.forks": "ForkedError",
    "cronring.client.history": "LateExecution Moment PastMember PastRunner TimelineEntry",
    "cronring.client.identities": "GrantOfRunners LoggedIn MadeGrant MadeToken Myself RoleIn TokenInfo",
    "cronring.client.limits": "Limit LimitedValue",
    "cronring.client.many": "JobResult JobToMake ManyDone",
    "cronring.client.notifications": "Added Delivery Tested Webhook",
    "cronring.client.queues": "DeadLetter Lease Queue QueueMessage Taken",
    "cronring.client.schedules": "ClockChange DescribedVerb ExplainedTick Explanation Preview Remark",
    "cronring.client.sets": "AppliedSet FieldDifference HandChange HowToApply Set SetJob TickDifference",
    "cronring.client.statistics": "DaySpread JobDay JobStats SchedulerStats Spread",
    "cronring.client.sync_client": "Client",
    "cronring.client.sync_consuming": "SyncConsumer SyncMessage",
    "cronring.client.workspaces": "Workspace WorkspaceDeleted",
    "cronring.schema.audit_chain": "ChainPart",
    "cronring.schema.filters": "ExecutionQuery JobQuery",
    "cronring.schema.module": "DataField DataType Module Verb",
    "cronring.schema.policy_model": "Policy",
}
_LATE: Final = {name: module for module, names in _OF.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name in _LATE:
        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
