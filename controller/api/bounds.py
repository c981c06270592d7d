"""How many bytes a request of each method may have: the one table. A method that it lacks can't be served."""

from collections.abc import Mapping
from typing import Final

KIB: Final = 1024
NOTHING: Final = 4 * KIB  # a request without texts; what is unknown in it is allowed for
NAMES: Final = 32 * KIB  # some names, who asks, and why
LABELS: Final = 128 * KIB
SPEC: Final = 512 * KIB  # a job with its payload
MODULE: Final = 8 * 1024 * KIB  # 10,000 verbs with their documentation
GOSSIP: Final = 256 * KIB  # a table of 256 members, each with the longest names
RUNNERS: Final = MODULE  # a runner's Hello has its modules

_OF_SERVICES: Final = {
    "cronring.v1.Cluster": {NOTHING: "GetCluster GetRing ListDue", NAMES: "GetOwners"},
    "cronring.v1.Deployments": {
        MODULE: "CreateDeployment",
        NAMES: "ListDeployments GetDeployment ActivateDeployment KillDeployment",
    },
    "cronring.v1.Doctor": {NOTHING: "DiagnoseController DiagnoseDatabase"},
    "cronring.v1.Drills": {NAMES: "StandDown"},
    "cronring.v1.Executions": {
        NAMES: "ListExecutions GetExecution CancelExecution RetryExecution FollowExecution WatchExecutions",
    },
    "cronring.v1.Jobs": {
        SPEC: "CreateJob UpdateJob TriggerJob",
        LABELS: "ListJobs WatchJobs ControlJobs",
        NAMES: (
            "GetJob DeleteJob PauseJob ResumeJob SkipNextTick CancelJob RestoreJob ListActions BackfillJob "
            "ListActivations CancelActivation"
        ),
    },
    "cronring.v1.Identities": {
        LABELS: "CreateRunnerGrant",
        NAMES: "CreateToken ListTokens RevokeToken ListRunnerGrants RevokeRunnerGrant",
        NOTHING: "WhoAmI",
    },
    "cronring.v1.Ledger": {NAMES: "Audit Why"},
    "cronring.v1.Limits": {NAMES: "SetLimit RemoveLimit ListLimits"},
    "cronring.v1.Notifications": {
        LABELS: "AddWebhook",
        NOTHING: "ListWebhooks",
        NAMES: "GetWebhook RemoveWebhook SetWebhookEnabled TestWebhook ListDeliveries Redeliver",
    },
    "cronring.v1.Statistics": {NAMES: "GetJobStats", NOTHING: "GetSchedulerStats"},
    "cronring.v1.Templates": {SPEC: "SetTemplate", NAMES: "GetTemplate ListTemplates DeleteTemplate"},
    "cronring.gossip.v1.Gossip": {GOSSIP: "Deliver"},
    "cronring.runner.v1.RunnerGateway": {RUNNERS: "Connect"},
    "cronring.runner.v1.Enrollment": {NAMES: "Enroll"},
    "cronring.runner.v1.Renewals": {NAMES: "Renew"},
    "grpc.health.v1.Health": {NAMES: "Check Watch List"},
    "grpc.reflection.v1alpha.ServerReflection": {NAMES: "ServerReflectionInfo"},
}

REQUEST_BYTES: Final[Mapping[str, int]] = {
    f"/{service}/{method}": most
    for service, methods in _OF_SERVICES.items()
    for most, names in methods.items()
    for method in names.split()
}
LARGEST: Final = max(REQUEST_BYTES.values())
