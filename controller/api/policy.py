"""The one table of who may call each method, and how large its request may be. Other methods can't be served."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from cronring.schema.identity import Permission

KIB: Final = 1024
NOTHING: Final = 4 * KIB  # a request without texts; what is unknown in it is allowed for
NAMES: Final = 32 * KIB  # some names, who asks, and why
LABELS: Final = 128 * KIB
SPEC: Final = 512 * KIB  # a job with its payload
MODULE: Final = 8 * 1024 * KIB  # 10,000 verbs with their documentation
JOBS: Final = 8 * 1024 * KIB  # 10,000 jobs with small payloads, or 16 with the largest ones
GOSSIP: Final = 256 * KIB  # a table of 256 members, each with the longest names
RUNNER: Final = MODULE  # a runner's Hello has its modules


class Audience(StrEnum):
    """The kind of callers of a method, and so what proves who they are."""

    PEOPLE = "people"  # and their programs, by a bearer token
    METADATA = "metadata"  # as PEOPLE; it describes the API, and nothing that anybody made
    ANYONE = "anyone"  # nobody is asked for anything
    ENROLLING = "enrolling"  # nobody is known yet: the message has a join token
    RUNNERS = "runners"  # by a certificate, whose grant counts while PostgreSQL can be asked
    GRANTED = "granted"  # runners by a certificate, and a grant that PostgreSQL has just confirmed
    CONTROLLERS = "controllers"  # by a certificate


class Reach(StrEnum):
    """Where one must have the permission."""

    NAMESPACE = "namespace"  # in one at least: which one, the message says, and its handler holds to it
    CLUSTER = "cluster"  # in all of them


class Access(NamedTuple):
    """Of one method. `permission`: None where the audience alone decides."""

    audience: Audience
    permission: Permission | None
    scope: Reach
    max_bytes: int


Line = tuple[Audience, Permission | None, Reach, int, str]

_PEOPLE, _VIEW, _OUTPUTS = Audience.PEOPLE, Permission.VIEW, Permission.OUTPUTS
_CONSUME = Permission.CONSUME
_OPERATE, _DEPLOY, _ADMIN = Permission.OPERATE, Permission.DEPLOY, Permission.ADMIN
_ONE, _ALL = Reach.NAMESPACE, Reach.CLUSTER

_OF_SERVICES: Final[Mapping[str, tuple[Line, ...]]] = {
    # There is one chain for all namespaces.
    "cronring.v1.AuditLog": (
        (_PEOPLE, _ADMIN, _ONE, NAMES, "ListAuditLog"),
        (_PEOPLE, _ADMIN, _ALL, NOTHING, "ReadAuditChain"),
    ),
    "cronring.v1.Cluster": (
        (_PEOPLE, _VIEW, _ONE, NOTHING, "GetCluster GetRing ListDue"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "GetOwners"),
    ),
    # Defaults are those of all namespaces. Everybody who sees a job may see what it has by them.
    "cronring.v1.Defaults": (
        (_PEOPLE, _VIEW, _ONE, NOTHING, "GetDefaults"),
        (_PEOPLE, _ADMIN, _ALL, NAMES, "UpdateDefaults"),
    ),
    "cronring.v1.Deployments": (
        (_PEOPLE, _DEPLOY, _ONE, MODULE, "CreateDeployment"),
        (_PEOPLE, _DEPLOY, _ONE, NAMES, "ActivateDeployment KillDeployment"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "ListDeployments GetDeployment CompareDeployments"),
    ),
    # It only reads. But it tells of all runners, queues and tables, whoever they are for.
    "cronring.v1.Doctor": ((_PEOPLE, _VIEW, _ALL, NOTHING, "DiagnoseController DiagnoseDatabase"),),
    "cronring.v1.Drills": ((_PEOPLE, _ADMIN, _ALL, NAMES, "HoldDrill"),),
    "cronring.v1.Events": ((_PEOPLE, _VIEW, _ONE, NAMES, "WatchEvents PollEvents"),),
    "cronring.v1.Executions": (
        (_PEOPLE, _VIEW, _ONE, NAMES, "GetExecution WatchExecutions"),
        (_PEOPLE, _VIEW, _ONE, LABELS, "ListExecutions CountExecutions"),
        (_PEOPLE, _OUTPUTS, _ONE, NAMES, "FollowExecution"),
        (_PEOPLE, _OPERATE, _ONE, NAMES, "CancelExecution RetryExecution"),
    ),
    "cronring.v1.Forecast": ((_PEOPLE, _VIEW, _ONE, NOTHING, "GetForecast GetRecent"),),
    # Things that a caller may not view are left out. Everybody may see members, as in GetCluster.
    "cronring.v1.History": ((_PEOPLE, _VIEW, _ONE, NAMES, "GetMoment ListTimeline"),),
    "cronring.v1.Jobs": (
        (_PEOPLE, _OPERATE, _ONE, SPEC, "CreateJob UpdateJob TriggerJob ControlJobs"),
        (_PEOPLE, _OPERATE, _ONE, JOBS, "CreateJobs UpdateJobs DeleteJobs"),
        (_PEOPLE, _OPERATE, _ONE, NAMES, "DeleteJob PauseJob ResumeJob SkipNextTick CancelJob RestoreJob"),
        (_PEOPLE, _OPERATE, _ONE, NAMES, "BackfillJob CancelActivation"),
        (_PEOPLE, _VIEW, _ONE, LABELS, "ListJobs CountJobs WatchJobs"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "GetJob ListActions ListActivations SuggestFilter"),
    ),
    # Nobody gives or takes away rights that they don't have themselves.
    "cronring.v1.Identities": (
        (_PEOPLE, _ADMIN, _ONE, LABELS, "CreateRunnerGrant"),
        (_PEOPLE, _ADMIN, _ONE, NAMES, "CreateToken ListTokens RevokeToken ListRunnerGrants RevokeRunnerGrant"),
        # Everybody's own.
        (_PEOPLE, None, _ONE, NAMES, "ListSessions RevokeSession"),
        (_PEOPLE, None, _ONE, NOTHING, "WhoAmI"),
    ),
    "cronring.v1.Ledger": ((_PEOPLE, _VIEW, _ONE, NAMES, "Audit Why ListBooks"),),
    "cronring.v1.Limits": (
        (_PEOPLE, _ADMIN, _ONE, NAMES, "SetLimit RemoveLimit"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "ListLimits"),
    ),
    # A webhook may hear of every namespace, its URL may hold a secret, and its name is the cluster's.
    "cronring.v1.Notifications": (
        (_PEOPLE, _ADMIN, _ALL, LABELS, "AddWebhook"),
        (_PEOPLE, _ADMIN, _ALL, NOTHING, "ListWebhooks"),
        (_PEOPLE, _ADMIN, _ALL, NAMES, "GetWebhook RemoveWebhook SetWebhookEnabled TestWebhook Redeliver"),
        (_PEOPLE, _OUTPUTS, _ONE, NAMES, "ListDeliveries"),
    ),
    # Exported jobs have payloads.
    "cronring.v1.Sets": (
        (_PEOPLE, _OPERATE, _ONE, JOBS, "ApplySet"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "GetSet ListSets ListSetJobs"),
        (_PEOPLE, _OUTPUTS, _ONE, LABELS, "ExportJobs"),
    ),
    # A consumer needs no right to see other things.
    "cronring.v1.Queues": (
        (_PEOPLE, _CONSUME, _ONE, NAMES, "TakeMessages ExtendLease ReleaseMessages"),
        (_PEOPLE, _CONSUME, _ONE, SPEC, "FinishMessages RetryMessages PutMessage"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "ListQueues ListMessages ListDeadLetters"),
        (_PEOPLE, _OPERATE, _ONE, NAMES, "ReplayDeadLetters RemoveDeadLetters SetQueue"),
    ),
    "cronring.v1.Schedules": (
        (_PEOPLE, _OPERATE, _ONE, SPEC, "PreviewJob"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "ExplainJob DescribeVerb"),
        (_PEOPLE, _VIEW, _ONE, NOTHING, "DescribePolicies"),
        (_PEOPLE, _VIEW, _ONE, LABELS, "ExplainSchedule"),
    ),
    "cronring.v1.Statistics": (
        (_PEOPLE, _VIEW, _ONE, NAMES, "GetJobStats GetJobDays"),
        (_PEOPLE, _VIEW, _ONE, LABELS, "GetSchedulerStats"),
    ),
    "cronring.v1.Templates": (
        (_PEOPLE, _OPERATE, _ONE, SPEC, "SetTemplate"),
        (_PEOPLE, _OPERATE, _ONE, NAMES, "DeleteTemplate"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "GetTemplate ListTemplates"),
    ),
    "cronring.v1.Workspaces": (
        (_PEOPLE, _OPERATE, _ONE, NAMES, "DeleteWorkspace"),
        (_PEOPLE, _VIEW, _ONE, NAMES, "GetWorkspace ListWorkspaces"),
    ),
    "cronring.gossip.v1.Gossip": ((Audience.CONTROLLERS, None, _ALL, GOSSIP, "Deliver"),),
    "cronring.runner.v1.RunnerGateway": ((Audience.RUNNERS, None, _ALL, RUNNER, "Connect"),),
    "cronring.runner.v1.Enrollment": ((Audience.ENROLLING, None, _ALL, NAMES, "Enroll"),),
    "cronring.runner.v1.Renewals": ((Audience.GRANTED, None, _ALL, NAMES, "Renew"),),
    "grpc.health.v1.Health": ((Audience.ANYONE, None, _ALL, NAMES, "Check Watch List"),),
    "grpc.reflection.v1alpha.ServerReflection": ((Audience.METADATA, _VIEW, _ONE, NAMES, "ServerReflectionInfo"),),
}

# What runners may ask for in the name of verbs (ctx.jobs), on a stream that the door has let in. It must concern the
# namespace of the running job, and modules of the runner's grant.
_OF_VERBS: Final[tuple[Line, ...]] = (
    (Audience.RUNNERS, _OPERATE, _ONE, SPEC, "CreateJob UpdateJob TriggerJob"),
    (Audience.RUNNERS, _OPERATE, _ONE, NAMES, "DeleteJob PauseJob ResumeJob"),
    (Audience.RUNNERS, _VIEW, _ONE, NAMES, "GetJob"),
)

POLICY: Final[Mapping[str, Access]] = {
    f"/{service}/{method}": Access(audience, permission, scope, max_bytes)
    for service, lines in _OF_SERVICES.items()
    for audience, permission, scope, max_bytes, methods in lines
    for method in methods.split()
}
OF_VERBS: Final[Mapping[str, Access]] = {
    f"/cronring.v1.Jobs/{method}": Access(audience, permission, scope, max_bytes)
    for audience, permission, scope, max_bytes, methods in _OF_VERBS
    for method in methods.split()
}
LARGEST: Final = max(access.max_bytes for access in POLICY.values())
