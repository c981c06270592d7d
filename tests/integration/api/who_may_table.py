"""Every method, as everybody calls it: a table that is written by hand."""

from typing import Any, Final, NamedTuple

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cronring.protos.cronring.v1 import (
    forecast_pb2,
    history_pb2,
    notifications_pb2,
    schedules_pb2,
    sets_pb2,
    templates_pb2,
    workspaces_pb2,
)
from cronring.protos.cronring.v1.audit_log_pb2 import ListAuditLogRequest, ReadAuditChainRequest
from cronring.protos.cronring.v1.cluster_pb2 import GetClusterRequest, GetOwnersRequest, GetRingRequest, ListDueRequest
from cronring.protos.cronring.v1.defaults_pb2 import GetDefaultsRequest, UpdateDefaultsRequest
from cronring.protos.cronring.v1.deployments_pb2 import (
    ActivateDeploymentRequest,
    CompareDeploymentsRequest,
    CreateDeploymentRequest,
    GetDeploymentRequest,
    KillDeploymentRequest,
    ListDeploymentsRequest,
)
from cronring.protos.cronring.v1.doctor_pb2 import DiagnoseControllerRequest, DiagnoseDatabaseRequest
from cronring.protos.cronring.v1.drills_pb2 import HoldDrillRequest
from cronring.protos.cronring.v1.events_pb2 import PollEventsRequest, WatchEventsRequest
from cronring.protos.cronring.v1.executions_pb2 import (
    CancelExecutionRequest,
    CountExecutionsRequest,
    ExecutionFilter,
    FollowExecutionRequest,
    GetExecutionRequest,
    ListExecutionsRequest,
    RetryExecutionRequest,
    WatchExecutionsRequest,
)
from cronring.protos.cronring.v1.identities_pb2 import (
    CreateRunnerGrantRequest,
    CreateTokenRequest,
    ListRunnerGrantsRequest,
    ListSessionsRequest,
    ListTokensRequest,
    RevokeRunnerGrantRequest,
    RevokeSessionRequest,
    RevokeTokenRequest,
    WhoAmIRequest,
)
from cronring.protos.cronring.v1.jobs_pb2 import (
    BackfillJobRequest,
    CancelActivationRequest,
    CancelJobRequest,
    ControlJobsRequest,
    CountJobsRequest,
    CreateJobRequest,
    CreateJobsRequest,
    DeleteJobRequest,
    DeleteJobsRequest,
    GetJobRequest,
    JobFilter,
    JobSpec,
    ListActionsRequest,
    ListActivationsRequest,
    ListJobsRequest,
    PauseJobRequest,
    RestoreJobRequest,
    ResumeJobRequest,
    SkipNextTickRequest,
    SuggestFilterRequest,
    TriggerJobRequest,
    UpdateJobRequest,
    UpdateJobsRequest,
    WatchJobsRequest,
)
from cronring.protos.cronring.v1.ledger_pb2 import AuditRequest, ListBooksRequest, WhyRequest
from cronring.protos.cronring.v1.limits_pb2 import ListLimitsRequest, RemoveLimitRequest, SetLimitRequest
from cronring.protos.cronring.v1.notifications_pb2 import (
    AddWebhookRequest,
    GetWebhookRequest,
    ListDeliveriesRequest,
    ListWebhooksRequest,
    RedeliverRequest,
    RemoveWebhookRequest,
    SetWebhookEnabledRequest,
)
from cronring.protos.cronring.v1.schema_pb2 import Module
from cronring.protos.cronring.v1.statistics_pb2 import GetJobDaysRequest, GetJobStatsRequest, GetSchedulerStatsRequest
from cronring.protos.cronring.v1.templates_pb2 import SetTemplateRequest
from cronring.protos.gossip.v1 import gossip_pb2
from cronring.protos.runner.v1 import runner_pb2
from tests.integration.api.conftest import Scene
from tests.integration.api.queue_calls import QUEUE_CALLS

CALLERS: Final = ("stranger", "viewer", "outputs", "operator", "deployer", "admin", "elsewhere", "root")
CODES: Final = {
    "u": StatusCode.UNAUTHENTICATED,
    "f": StatusCode.PERMISSION_DENIED,
    "n": StatusCode.NOT_FOUND,
    "-": StatusCode.UNIMPLEMENTED,
}
# A letter for each caller. A dot: let in. Who is admin elsewhere is told that what they name is not there.
ALL: Final = "........"
TOKEN: Final = "u......."
VIEW: Final = "u.....n."
VIEW_THERE: Final = "u.....f."  # a namespace is named
OUTPUTS: Final = "uf..f.n."
OUTPUTS_ANY: Final = "uf..f..."
OPERATE: Final = "uff.f.n."
OPERATE_THERE: Final = "uff.f.f."
DEPLOY: Final = "ufff..n."
DEPLOY_THERE: Final = "ufff..f."
ADMIN_ANY: Final = "uffff..."
ADMIN_THERE: Final = "uffff.f."
EVERYWHERE: Final = "uffffff."
OF_MEMBERS: Final = "--------"  # by the other port
WHO: Final = {"token": TOKEN, "view": VIEW_THERE, "operate": OPERATE_THERE}

KEY: Final = "billing/xm.xa"
PAUSED: Final = "billing/xm.xc"
BAD, UNDONE, MISSING = StatusCode.INVALID_ARGUMENT, StatusCode.FAILED_PRECONDITION, StatusCode.NOT_FOUND


class Row(NamedTuple):
    """`then`: what those hear who are let in."""

    method: str
    request: Any
    who: str
    then: StatusCode = StatusCode.OK


def of_executions_and_deployments(scene: Scene) -> list[Row]:
    executions, deployments = "cronring.v1.Executions/", "cronring.v1.Deployments/"
    events = "cronring.v1.Events/"
    ended, running = scene.billing
    where = ExecutionFilter(namespace="billing")
    return [
        Row(deployments + "ListDeployments", ListDeploymentsRequest(), TOKEN),
        Row(deployments + "ListDeployments", ListDeploymentsRequest(namespace="billing"), VIEW_THERE),
        Row(deployments + "GetDeployment", GetDeploymentRequest(key=scene.deployment), VIEW),
        Row(deployments + "CompareDeployments", CompareDeploymentsRequest(key=scene.deployment), VIEW),
        Row(
            deployments + "CreateDeployment",
            CreateDeploymentRequest(schema=Module(namespace="billing", name="m"), digest="?"),
            DEPLOY_THERE,
            BAD,
        ),
        Row(deployments + "ActivateDeployment", ActivateDeploymentRequest(key=scene.deployment, dry_run=True), DEPLOY),
        Row(deployments + "KillDeployment", KillDeploymentRequest(key=scene.deployment, dry_run=True), DEPLOY),
        Row(deployments + "KillDeployment", KillDeploymentRequest(key="billing/no@1"), "ufffnnnn", MISSING),
        Row(executions + "ListExecutions", ListExecutionsRequest(), TOKEN),
        Row(executions + "ListExecutions", ListExecutionsRequest(filter=ExecutionFilter(job=KEY)), VIEW),
        Row(executions + "CountExecutions", CountExecutionsRequest(), TOKEN),
        Row(executions + "CountExecutions", CountExecutionsRequest(filter=ExecutionFilter(job=KEY)), VIEW),
        Row(executions + "CountExecutions", CountExecutionsRequest(filter=where), VIEW_THERE),
        Row(executions + "ListExecutions", ListExecutionsRequest(filter=where), VIEW_THERE),
        Row(executions + "GetExecution", GetExecutionRequest(id=ended), VIEW),
        Row(executions + "WatchExecutions", WatchExecutionsRequest(), TOKEN),
        Row(events + "WatchEvents", WatchEventsRequest(), TOKEN),
        Row(events + "WatchEvents", WatchEventsRequest(namespace="billing"), VIEW_THERE),
        Row(events + "PollEvents", PollEventsRequest(), TOKEN),
        Row(events + "PollEvents", PollEventsRequest(namespace="billing"), VIEW_THERE),
        Row(executions + "FollowExecution", FollowExecutionRequest(id=ended, once=True), OUTPUTS),
        Row(executions + "CancelExecution", CancelExecutionRequest(id=running), OPERATE),
        Row(executions + "RetryExecution", RetryExecutionRequest(id=running), OPERATE, UNDONE),
    ]  # fmt: skip


def of_jobs(scene: Scene) -> list[Row]:
    jobs, where, anywhere = "cronring.v1.Jobs/", JobFilter(namespace="billing"), JobFilter(module="xm")
    pausing, updating = ControlJobsRequest.ACTION_PAUSE, ControlJobsRequest.ACTION_UPDATE
    updated = ControlJobsRequest(
        filter=where, action=updating, dry_run=True, spec=JobSpec(timeout_ms=7_000),
        update_mask=FieldMask(paths=["timeout_ms"]),
    )  # fmt: skip
    made = CreateJobRequest(
        namespace="billing", module="xm", verb="xa", name="made", spec=JobSpec(schedule="every 1h", anchor=Timestamp())
    )
    return [
        Row(jobs + "ListJobs", ListJobsRequest(), TOKEN),
        Row(jobs + "ListJobs", ListJobsRequest(filter=where), VIEW_THERE),
        Row(jobs + "CountJobs", CountJobsRequest(), TOKEN),
        Row(jobs + "CountJobs", CountJobsRequest(filter=where), VIEW_THERE),
        Row(jobs + "CountJobs", CountJobsRequest(filter=JobFilter(text="namespace:billing")), VIEW_THERE),
        Row(jobs + "SuggestFilter", SuggestFilterRequest(text="job:"), TOKEN),
        Row(jobs + "WatchJobs", WatchJobsRequest(), TOKEN),
        Row(jobs + "WatchJobs", WatchJobsRequest(filter=where), VIEW_THERE),
        Row(jobs + "GetJob", GetJobRequest(key=KEY), VIEW),
        Row(jobs + "ListActions", ListActionsRequest(), TOKEN),
        Row(jobs + "ListActions", ListActionsRequest(job=PAUSED), VIEW),
        Row(jobs + "ListActions", ListActionsRequest(deployment=scene.deployment), VIEW),
        Row(jobs + "ListActions", ListActionsRequest(template="billing/xt"), TOKEN),
        Row(jobs + "ListActivations", ListActivationsRequest(key=KEY), VIEW),
        Row(jobs + "CreateJob", made, OPERATE_THERE),
        Row(jobs + "UpdateJob", UpdateJobRequest(key=KEY, spec=JobSpec(schedule="every 2h")), OPERATE, BAD),
        Row(jobs + "DeleteJob", DeleteJobRequest(key=KEY), OPERATE, UNDONE),
        Row(jobs + "CreateJobs", CreateJobsRequest(jobs=[made]), OPERATE_THERE),
        Row(jobs + "CreateJobs", CreateJobsRequest(), "uff.f...", BAD),
        # What one may not view is told of in its result, like what isn't there.
        Row(jobs + "UpdateJobs", UpdateJobsRequest(jobs=[UpdateJobRequest(key=KEY)]), "uff.f..."),
        Row(jobs + "DeleteJobs", DeleteJobsRequest(keys=[KEY]), "uff.f..."),
        Row(jobs + "PauseJob", PauseJobRequest(key=PAUSED), OPERATE),
        Row(jobs + "ResumeJob", ResumeJobRequest(key=KEY), OPERATE),
        Row(jobs + "SkipNextTick", SkipNextTickRequest(key=KEY, dry_run=True), OPERATE),
        Row(jobs + "RestoreJob", RestoreJobRequest(key=KEY), OPERATE),
        Row(jobs + "CancelJob", CancelJobRequest(key=PAUSED), OPERATE),
        Row(jobs + "TriggerJob", TriggerJobRequest(key=KEY, payload="1"), OPERATE, BAD),
        Row(jobs + "BackfillJob", BackfillJobRequest(key=KEY), OPERATE, BAD),
        Row(jobs + "CancelActivation", CancelActivationRequest(key=KEY, id=1), OPERATE),
        Row(jobs + "ControlJobs", ControlJobsRequest(filter=where, action=pausing, dry_run=True), OPERATE_THERE),
        Row(jobs + "ControlJobs", ControlJobsRequest(filter=anywhere, action=pausing, dry_run=True), "uff.f..."),
        Row(jobs + "ControlJobs", updated, OPERATE_THERE),
    ]  # fmt: skip


def of_admins() -> list[Row]:
    hooks, tokens = "cronring.v1.Notifications/", "cronring.v1.Identities/"
    return [
        Row(tokens + "CreateToken", CreateTokenRequest(name="?"), ADMIN_ANY, BAD),
        Row(tokens + "ListTokens", ListTokensRequest(), ADMIN_ANY),
        Row(tokens + "RevokeToken", RevokeTokenRequest(name="none"), ADMIN_ANY, MISSING),
        Row(tokens + "CreateRunnerGrant", CreateRunnerGrantRequest(name="?"), ADMIN_ANY, BAD),
        Row(tokens + "ListRunnerGrants", ListRunnerGrantsRequest(), ADMIN_ANY),
        Row(tokens + "RevokeRunnerGrant", RevokeRunnerGrantRequest(name="none"), ADMIN_ANY, MISSING),
        Row(tokens + "ListSessions", ListSessionsRequest(), TOKEN),
        Row(tokens + "RevokeSession", RevokeSessionRequest(id=1), TOKEN, MISSING),
        Row(tokens + "WhoAmI", WhoAmIRequest(), TOKEN),
        Row(hooks + "AddWebhook", AddWebhookRequest(name="?"), EVERYWHERE, BAD),
        Row(hooks + "ListWebhooks", ListWebhooksRequest(), EVERYWHERE),
        Row(hooks + "GetWebhook", GetWebhookRequest(name="xw"), EVERYWHERE),
        Row(hooks + "RemoveWebhook", RemoveWebhookRequest(name="none"), EVERYWHERE, MISSING),
        Row(hooks + "SetWebhookEnabled", SetWebhookEnabledRequest(name="xw", enabled=True), EVERYWHERE),
        Row(hooks + "TestWebhook", notifications_pb2.TestWebhookRequest(name="none"), EVERYWHERE, MISSING),
        Row(hooks + "Redeliver", RedeliverRequest(webhook="none"), EVERYWHERE, MISSING),
        Row(hooks + "ListDeliveries", ListDeliveriesRequest(), OUTPUTS_ANY),
    ]  # fmt: skip


def of_the_rest() -> list[Row]:
    there, sets, limits = JobFilter(namespace="billing"), "cronring.v1.Sets/", "cronring.v1.Limits/"
    templates = "cronring.v1.Templates/"
    none = templates_pb2.DeleteTemplateRequest(namespace="billing", name="no")
    tenant: Any = {"namespace": "billing", "workspace": "a"}
    return [
        Row("cronring.v1.AuditLog/ListAuditLog", ListAuditLogRequest(), ADMIN_ANY),
        Row("cronring.v1.AuditLog/ListAuditLog", ListAuditLogRequest(namespace="billing"), ADMIN_THERE),
        Row("cronring.v1.AuditLog/ReadAuditChain", ReadAuditChainRequest(), EVERYWHERE),
        Row("cronring.v1.Cluster/GetCluster", GetClusterRequest(), TOKEN),
        Row("cronring.v1.Cluster/GetRing", GetRingRequest(), TOKEN),
        Row("cronring.v1.Cluster/ListDue", ListDueRequest(), TOKEN),
        Row("cronring.v1.Cluster/GetOwners", GetOwnersRequest(job=KEY), VIEW),
        Row("cronring.v1.Defaults/GetDefaults", GetDefaultsRequest(), TOKEN),
        Row("cronring.v1.Defaults/UpdateDefaults", UpdateDefaultsRequest(), EVERYWHERE, BAD),
        Row("cronring.v1.Doctor/DiagnoseController", DiagnoseControllerRequest(), EVERYWHERE),
        Row("cronring.v1.Doctor/DiagnoseDatabase", DiagnoseDatabaseRequest(), EVERYWHERE),
        Row("cronring.v1.Drills/HoldDrill", HoldDrillRequest(controller="c1"), EVERYWHERE, BAD),
        Row("cronring.v1.Forecast/GetForecast", forecast_pb2.GetForecastRequest(), TOKEN),
        Row("cronring.v1.Forecast/GetRecent", forecast_pb2.GetRecentRequest(), TOKEN),
        Row("cronring.v1.History/GetMoment", history_pb2.GetMomentRequest(), TOKEN),
        Row("cronring.v1.History/ListTimeline", history_pb2.ListTimelineRequest(), TOKEN),
        Row("cronring.v1.Ledger/Audit", AuditRequest(), TOKEN),
        Row("cronring.v1.Ledger/Audit", AuditRequest(job=KEY), VIEW),
        Row("cronring.v1.Ledger/Why", WhyRequest(job=KEY), VIEW),
        Row("cronring.v1.Ledger/ListBooks", ListBooksRequest(keys=[KEY]), TOKEN),
        Row(limits + "ListLimits", ListLimitsRequest(), TOKEN),
        Row(limits + "ListLimits", ListLimitsRequest(namespace="billing"), VIEW_THERE),
        Row(limits + "SetLimit", SetLimitRequest(namespace="billing", max_concurrent=9), ADMIN_THERE),
        Row(limits + "RemoveLimit", RemoveLimitRequest(namespace="billing", module="no"), ADMIN_THERE, MISSING),
        Row("cronring.v1.Workspaces/ListWorkspaces", workspaces_pb2.ListWorkspacesRequest(), TOKEN),
        Row("cronring.v1.Workspaces/GetWorkspace", workspaces_pb2.GetWorkspaceRequest(**tenant), VIEW_THERE),
        Row("cronring.v1.Workspaces/DeleteWorkspace", workspaces_pb2.DeleteWorkspaceRequest(**tenant), OPERATE_THERE),
        Row(sets + "ApplySet", sets_pb2.ApplySetRequest(namespace="billing", name="new", dry_run=True), OPERATE_THERE),
        Row(sets + "GetSet", sets_pb2.GetSetRequest(namespace="billing", name="xs"), VIEW),
        Row(sets + "ListSets", sets_pb2.ListSetsRequest(), TOKEN),
        Row(sets + "ListSetJobs", sets_pb2.ListSetJobsRequest(namespace="billing", name="xs"), VIEW),
        Row(sets + "ExportJobs", sets_pb2.ExportJobsRequest(), OUTPUTS_ANY),
        Row(sets + "ExportJobs", sets_pb2.ExportJobsRequest(filter=there), "uf..f.f."),
        *of_schedules(),
        Row("cronring.v1.Statistics/GetJobStats", GetJobStatsRequest(job=KEY), VIEW),
        Row("cronring.v1.Statistics/GetJobDays", GetJobDaysRequest(job=KEY), VIEW),
        Row("cronring.v1.Statistics/GetSchedulerStats", GetSchedulerStatsRequest(), TOKEN),
        Row("cronring.v1.Statistics/GetSchedulerStats", GetSchedulerStatsRequest(labels={"a": "b"}), TOKEN),
        Row(templates + "GetTemplate", templates_pb2.GetTemplateRequest(namespace="billing", name="xt"), VIEW),
        Row(templates + "ListTemplates", templates_pb2.ListTemplatesRequest(), TOKEN),
        Row(templates + "ListTemplates", templates_pb2.ListTemplatesRequest(namespace="billing"), VIEW_THERE),
        Row(templates + "SetTemplate", SetTemplateRequest(namespace="billing", name="new"), OPERATE_THERE),
        Row(templates + "DeleteTemplate", none, "uff.f.n.", MISSING),
    ]  # fmt: skip


def of_schedules() -> list[Row]:
    schedules, change = "cronring.v1.Schedules/", JobSpec(schedule="every 2h")
    by_hand = schedules_pb2.PreviewJobRequest(key=KEY, spec=change, update_mask=FieldMask(paths=["schedule"]))
    return [
        Row(schedules + "ExplainSchedule", schedules_pb2.ExplainScheduleRequest(schedule="every 1h"), TOKEN),
        Row(schedules + "ExplainJob", schedules_pb2.ExplainJobRequest(job=KEY), VIEW),
        Row(schedules + "PreviewJob", by_hand, OPERATE, UNDONE),
        Row(schedules + "DescribeVerb", schedules_pb2.DescribeVerbRequest(job=KEY), VIEW),
        Row(schedules + "DescribePolicies", schedules_pb2.DescribePoliciesRequest(), TOKEN),
    ]


def of_members_and_grpc() -> list[Row]:
    return [
        Row("cronring.gossip.v1.Gossip/Deliver", gossip_pb2.Packet(), OF_MEMBERS),
        Row("cronring.runner.v1.RunnerGateway/Connect", runner_pb2.RunnerMessage(), OF_MEMBERS),
        Row("cronring.runner.v1.Renewals/Renew", runner_pb2.RenewRequest(), OF_MEMBERS),
        Row("cronring.runner.v1.Enrollment/Enroll", runner_pb2.EnrollRequest(), ALL, StatusCode.UNAUTHENTICATED),
        Row("grpc.health.v1.Health/Check", health_pb2.HealthCheckRequest(), ALL),
        Row("grpc.health.v1.Health/Watch", health_pb2.HealthCheckRequest(), ALL),
        Row("grpc.health.v1.Health/List", health_pb2.HealthListRequest(), ALL),
        Row(
            "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest(list_services=""),
            TOKEN,
        ),
    ]  # fmt: skip


def table(scene: Scene) -> list[Row]:
    return [
        *of_executions_and_deployments(scene),
        *of_jobs(scene),
        *of_admins(),
        *(Row(f"cronring.v1.Queues/{name}", call, WHO[who]) for name, call, who in QUEUE_CALLS),
        *of_the_rest(),
        *of_members_and_grpc(),
    ]
