"""Every method, asked by everybody: who is let in, and what the others are told. The table is written by hand."""

import importlib
import pkgutil
from typing import Any, Final, NamedTuple

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cronring.protos.cronring import v1 as api
from cronring.protos.cronring.v1 import notifications_pb2
from cronring.protos.cronring.v1.audit_log_pb2 import ListAuditLogRequest, ReadAuditChainRequest
from cronring.protos.cronring.v1.cluster_pb2 import GetClusterRequest, GetOwnersRequest, GetRingRequest, ListDueRequest
from cronring.protos.cronring.v1.deployments_pb2 import (
    ActivateDeploymentRequest,
    CreateDeploymentRequest,
    GetDeploymentRequest,
    KillDeploymentRequest,
    ListDeploymentsRequest,
)
from cronring.protos.cronring.v1.doctor_pb2 import DiagnoseControllerRequest, DiagnoseDatabaseRequest
from cronring.protos.cronring.v1.drills_pb2 import HoldDrillRequest
from cronring.protos.cronring.v1.executions_pb2 import (
    CancelExecutionRequest,
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
    CreateJobRequest,
    DeleteJobRequest,
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
    TriggerJobRequest,
    UpdateJobRequest,
    WatchJobsRequest,
)
from cronring.protos.cronring.v1.ledger_pb2 import AuditRequest, WhyRequest
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
from cronring.protos.cronring.v1.statistics_pb2 import GetJobStatsRequest, GetSchedulerStatsRequest
from cronring.protos.cronring.v1.templates_pb2 import (
    DeleteTemplateRequest,
    GetTemplateRequest,
    ListTemplatesRequest,
    SetTemplateRequest,
)
from cronring.protos.gossip.v1 import gossip_pb2
from cronring.protos.runner.v1 import runner_pb2
from tests.integration.api.conftest import Filled
from tests.support.callers import bearer
from tests.support.waiting import TIMEOUT_S

CALLERS: Final = ("", "wrong", "viewer", "outputs", "operator", "deployer", "admin", "elsewhere", "root")
CODES: Final = {
    "u": StatusCode.UNAUTHENTICATED,
    "f": StatusCode.PERMISSION_DENIED,
    "n": StatusCode.NOT_FOUND,
}
# A letter for each caller. A dot: let in. Who is admin elsewhere is told that what they name is not there.
ALL: Final = "........."
TOKEN: Final = "uu......."
VIEW: Final = "uu.....n."
VIEW_THERE: Final = "uu.....f."  # a namespace is named
OUTPUTS: Final = "uuf..f.n."
OUTPUTS_ANY: Final = "uuf..f..."
OPERATE: Final = "uuff.f.n."
OPERATE_THERE: Final = "uuff.f.f."
DEPLOY: Final = "uufff..n."
DEPLOY_THERE: Final = "uufff..f."
ADMIN_ANY: Final = "uuffff..."
ADMIN_THERE: Final = "uuffff.f."
EVERYWHERE: Final = "uuffffff."
CERTIFICATE: Final = "uuuuuuuuu"

KEY: Final = "billing/xm.xa"
PAUSED: Final = "billing/xm.xc"
BAD, UNDONE, MISSING = StatusCode.INVALID_ARGUMENT, StatusCode.FAILED_PRECONDITION, StatusCode.NOT_FOUND
UNSERVED: Final = StatusCode.UNIMPLEMENTED
SPOKEN_TO: Final = {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}  # before it answers


class Row(NamedTuple):
    """`then`: what those hear who are let in."""

    method: str
    request: Any
    who: str
    then: StatusCode = StatusCode.OK


def of_executions_and_deployments(filled: Filled) -> list[Row]:
    executions, deployments = "cronring.v1.Executions/", "cronring.v1.Deployments/"
    ended, running = filled.billing
    return [
        Row(deployments + "ListDeployments", ListDeploymentsRequest(), TOKEN),
        Row(deployments + "ListDeployments", ListDeploymentsRequest(namespace="billing"), VIEW_THERE),
        Row(deployments + "GetDeployment", GetDeploymentRequest(key=filled.deployment), VIEW),
        Row(
            deployments + "CreateDeployment",
            CreateDeploymentRequest(schema=Module(namespace="billing", name="m"), digest="?"),
            DEPLOY_THERE,
            BAD,
        ),
        Row(deployments + "ActivateDeployment", ActivateDeploymentRequest(key=filled.deployment, dry_run=True), DEPLOY),
        Row(deployments + "KillDeployment", KillDeploymentRequest(key=filled.deployment, dry_run=True), DEPLOY),
        Row(deployments + "KillDeployment", KillDeploymentRequest(key="billing/no@1"), "uufffnnnn", MISSING),
        Row(executions + "ListExecutions", ListExecutionsRequest(), TOKEN),
        Row(executions + "ListExecutions", ListExecutionsRequest(job=KEY), VIEW),
        Row(executions + "GetExecution", GetExecutionRequest(id=ended), VIEW),
        Row(executions + "WatchExecutions", WatchExecutionsRequest(), TOKEN),
        Row(executions + "FollowExecution", FollowExecutionRequest(id=ended, once=True), OUTPUTS),
        Row(executions + "CancelExecution", CancelExecutionRequest(id=running), OPERATE),
        Row(executions + "RetryExecution", RetryExecutionRequest(id=running), OPERATE, UNDONE),
    ]  # fmt: skip


def of_jobs(filled: Filled) -> list[Row]:
    jobs, where = "cronring.v1.Jobs/", JobFilter(namespace="billing")
    made = CreateJobRequest(
        namespace="billing", module="xm", verb="xa", name="made", spec=JobSpec(schedule="every 1h", anchor=Timestamp())
    )
    return [
        Row(jobs + "ListJobs", ListJobsRequest(), TOKEN),
        Row(jobs + "ListJobs", ListJobsRequest(filter=where), VIEW_THERE),
        Row(jobs + "WatchJobs", WatchJobsRequest(), TOKEN),
        Row(jobs + "WatchJobs", WatchJobsRequest(filter=where), VIEW_THERE),
        Row(jobs + "GetJob", GetJobRequest(key=KEY), VIEW),
        Row(jobs + "ListActions", ListActionsRequest(), TOKEN),
        Row(jobs + "ListActions", ListActionsRequest(job=PAUSED), VIEW),
        Row(jobs + "ListActions", ListActionsRequest(deployment=filled.deployment), VIEW),
        Row(jobs + "ListActions", ListActionsRequest(template="billing/xt"), TOKEN),
        Row(jobs + "ListActivations", ListActivationsRequest(key=KEY), VIEW),
        Row(jobs + "CreateJob", made, OPERATE_THERE),
        Row(jobs + "UpdateJob", UpdateJobRequest(key=KEY, spec=JobSpec(schedule="every 2h")), OPERATE, BAD),
        Row(jobs + "DeleteJob", DeleteJobRequest(key=KEY), OPERATE, UNDONE),
        Row(jobs + "PauseJob", PauseJobRequest(key=PAUSED), OPERATE),
        Row(jobs + "ResumeJob", ResumeJobRequest(key=KEY), OPERATE),
        Row(jobs + "SkipNextTick", SkipNextTickRequest(key=KEY, dry_run=True), OPERATE),
        Row(jobs + "RestoreJob", RestoreJobRequest(key=KEY), OPERATE),
        Row(jobs + "CancelJob", CancelJobRequest(key=PAUSED), OPERATE),
        Row(jobs + "TriggerJob", TriggerJobRequest(key=KEY, payload="1"), OPERATE, BAD),
        Row(jobs + "BackfillJob", BackfillJobRequest(key=KEY), OPERATE, BAD),
        Row(jobs + "CancelActivation", CancelActivationRequest(key=KEY, id=1), OPERATE),
        Row(
            jobs + "ControlJobs",
            ControlJobsRequest(filter=where, action=ControlJobsRequest.ACTION_PAUSE, dry_run=True),
            OPERATE_THERE,
        ),
        Row(
            jobs + "ControlJobs",
            ControlJobsRequest(
                filter=JobFilter(module="xm"), action=ControlJobsRequest.ACTION_PAUSE, dry_run=True
            ),
            "uuff.f...",
        ),
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
    return [
        Row("cronring.v1.AuditLog/ListAuditLog", ListAuditLogRequest(), ADMIN_ANY),
        Row("cronring.v1.AuditLog/ListAuditLog", ListAuditLogRequest(namespace="billing"), ADMIN_THERE),
        Row("cronring.v1.AuditLog/ReadAuditChain", ReadAuditChainRequest(), EVERYWHERE),
        Row("cronring.v1.Cluster/GetCluster", GetClusterRequest(), TOKEN),
        Row("cronring.v1.Cluster/GetRing", GetRingRequest(), TOKEN),
        Row("cronring.v1.Cluster/ListDue", ListDueRequest(), TOKEN),
        Row("cronring.v1.Cluster/GetOwners", GetOwnersRequest(job=KEY), VIEW),
        Row("cronring.v1.Doctor/DiagnoseController", DiagnoseControllerRequest(), EVERYWHERE),
        Row("cronring.v1.Doctor/DiagnoseDatabase", DiagnoseDatabaseRequest(), EVERYWHERE),
        Row("cronring.v1.Drills/HoldDrill", HoldDrillRequest(controller="c1"), EVERYWHERE, BAD),
        Row("cronring.v1.Ledger/Audit", AuditRequest(), TOKEN),
        Row("cronring.v1.Ledger/Audit", AuditRequest(job=KEY), VIEW),
        Row("cronring.v1.Ledger/Why", WhyRequest(job=KEY), VIEW),
        Row("cronring.v1.Limits/ListLimits", ListLimitsRequest(), TOKEN),
        Row("cronring.v1.Limits/ListLimits", ListLimitsRequest(namespace="billing"), VIEW_THERE),
        Row("cronring.v1.Limits/SetLimit", SetLimitRequest(namespace="billing", max_concurrent=9), ADMIN_THERE),
        Row(
            "cronring.v1.Limits/RemoveLimit", RemoveLimitRequest(namespace="billing", module="no"), ADMIN_THERE,
            MISSING,
        ),
        Row("cronring.v1.Statistics/GetJobStats", GetJobStatsRequest(job=KEY), VIEW),
        Row("cronring.v1.Statistics/GetSchedulerStats", GetSchedulerStatsRequest(), TOKEN),
        Row("cronring.v1.Templates/GetTemplate", GetTemplateRequest(namespace="billing", name="xt"), VIEW),
        Row("cronring.v1.Templates/ListTemplates", ListTemplatesRequest(), TOKEN),
        Row("cronring.v1.Templates/ListTemplates", ListTemplatesRequest(namespace="billing"), VIEW_THERE),
        Row("cronring.v1.Templates/SetTemplate", SetTemplateRequest(namespace="billing", name="new"), OPERATE_THERE),
        Row(
            "cronring.v1.Templates/DeleteTemplate", DeleteTemplateRequest(namespace="billing", name="no"),
            "uuff.f.n.", MISSING,
        ),
    ]  # fmt: skip


def of_members_and_grpc() -> list[Row]:
    return [
        Row("cronring.gossip.v1.Gossip/Deliver", gossip_pb2.Packet(), CERTIFICATE),
        Row("cronring.runner.v1.RunnerGateway/Connect", runner_pb2.RunnerMessage(), CERTIFICATE),
        Row("cronring.runner.v1.Renewals/Renew", runner_pb2.RenewRequest(), CERTIFICATE),
        Row("cronring.runner.v1.Enrollment/Enroll", runner_pb2.EnrollRequest(), ALL, UNSERVED),
        Row("grpc.health.v1.Health/Check", health_pb2.HealthCheckRequest(), ALL),
        Row("grpc.health.v1.Health/Watch", health_pb2.HealthCheckRequest(), ALL),
        Row("grpc.health.v1.Health/List", health_pb2.HealthListRequest(), ALL),
        Row(
            "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
            reflection_pb2.ServerReflectionRequest(list_services=""),
            TOKEN,
        ),
    ]  # fmt: skip


def table(filled: Filled) -> list[Row]:
    return [
        *of_executions_and_deployments(filled),
        *of_jobs(filled),
        *of_admins(),
        *of_the_rest(),
        *of_members_and_grpc(),
    ]


def methods() -> dict[str, Any]:
    """Descriptors of all that a controller serves, by path."""
    files = [
        importlib.import_module(f"{api.__name__}.{module.name}")
        for module in pkgutil.iter_modules(api.__path__)
        if module.name.endswith("_pb2")
    ]
    of_all: list[Any] = [*files, gossip_pb2, runner_pb2, health_pb2, reflection_pb2]
    return {
        f"{service.full_name}/{method.name}": method
        for file in of_all
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


async def code_of(filled: Filled, method: Any, path: str, request: Any, caller: str) -> StatusCode:
    """Of a stream, by its first message."""
    how: dict[str, Any] = {"metadata": bearer(caller) if caller else (), "timeout": TIMEOUT_S}
    channel: Any = filled.channel
    raw = request.SerializeToString()
    call: Any
    try:
        if not method.server_streaming:
            await channel.unary_unary(f"/{path}")(raw, **how)
            return StatusCode.OK
        if method.client_streaming:
            call = channel.stream_stream(f"/{path}")(**how)
            if path in SPOKEN_TO and caller not in {"", "wrong"}:  # else it ends before this is sent
                await call.write(raw)
        else:
            call = channel.unary_stream(f"/{path}")(raw, **how)
        message = await call.read()
        if not isinstance(message, bytes):
            return StatusCode(await call.code())
        call.cancel()
    except grpc.aio.AioRpcError as error:
        return error.code()
    return StatusCode.OK


async def test_every_method_answers_everybody_as_the_table_says(filled: Filled) -> None:
    served = methods()
    rows = table(filled)
    assert {row.method for row in rows} == set(served), "each method has a row"
    wrong = []
    for row in rows:
        assert len(row.who) == len(CALLERS)
        for caller, letter in zip(CALLERS, row.who, strict=True):
            found = await code_of(filled, served[row.method], row.method, row.request, caller)
            if found != CODES.get(letter, row.then):
                wrong.append((row.method, caller or "nobody", found.name))
    assert not wrong, "\n".join(map(str, wrong))
