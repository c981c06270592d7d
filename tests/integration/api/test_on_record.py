"""Every method that may change something, over gRPC: what it leaves in the audit log, and when it leaves nothing."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, cast

import grpc
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.policy import POLICY
from cronring.protos.cronring.v1 import (
    audit_log_pb2,
    defaults_pb2,
    deployments_pb2,
    executions_pb2,
    identities_pb2,
    jobs_pb2,
    limits_pb2,
    notifications_pb2,
    queues_pb2,
    schedules_pb2,
    sets_pb2,
    templates_pb2,
    workspaces_pb2,
)
from cronring.protos.modules import module_message
from cronring.schema.execution import Outcome
from cronring.schema.identity import Permission
from cronring.schema.module import Module, Verb
from tests.conformance.booked import BookedChange
from tests.conformance.harness import PostgresScene
from tests.integration.api.conftest import Filled
from tests.integration.api.test_who_may import methods
from tests.support.callers import bearer
from tests.support.waiting import TIMEOUT_S

WRITING: Final = {Permission.OPERATE, Permission.DEPLOY, Permission.ADMIN}
BY_OTHERS: Final = {"cronring.runner.v1.Enrollment/Enroll", "cronring.runner.v1.RunnerGateway/Connect"}
# What they leave is looked at where they are served for real.
ELSEWHERE: Final = {
    "cronring.v1.Schedules/PreviewJob": "test_a_preview_leaves_nothing",
    "cronring.v1.Drills/HoldDrill": "tests/integration/operations/test_drill.py",
    "cronring.runner.v1.Enrollment/Enroll": "tests/integration/trust/test_letting_in.py",
    "cronring.runner.v1.RunnerGateway/Connect": "tests/integration/trust/test_letting_in.py",
}
READING: Final = {
    "cronring.v1.AuditLog/ListAuditLog": audit_log_pb2.ListAuditLogRequest(),
    "cronring.v1.AuditLog/ReadAuditChain": audit_log_pb2.ReadAuditChainRequest(),
    "cronring.v1.Identities/ListTokens": identities_pb2.ListTokensRequest(),
    "cronring.v1.Identities/ListRunnerGrants": identities_pb2.ListRunnerGrantsRequest(),
    "cronring.v1.Notifications/ListWebhooks": notifications_pb2.ListWebhooksRequest(),
    "cronring.v1.Notifications/GetWebhook": notifications_pb2.GetWebhookRequest(name="xw"),
    # It sends a letter, and changes nothing.
    "cronring.v1.Notifications/TestWebhook": notifications_pb2.TestWebhookRequest(name="probed"),
}
KEY, MADE, PAUSED = "billing/xm.xa", "billing/xm.xa:made", "billing/xm.xc"
SECRETS: Final = ("4111", "whsec_", "hooks/secret")
URL: Final = "https://127.0.0.1/hooks/secret"
ANY: Final = object()
Values = dict[str, object] | None


class Row(NamedTuple):
    """A call of `root`, and what it leaves: a row for each of `subjects`, with at least these values.

    `again`: what the same call leaves then, in words; "" if that is a change as well. `first`: what comes before it.
    """

    method: str
    request: Any
    subjects: tuple[str, ...]
    before: Values
    after: Values
    again: str = "nothing is changed"
    first: Callable[[], Awaitable[Any]] | None = None


class Office:
    """Calls, and looks what they have left."""

    def __init__(self, filled: Filled) -> None:
        self.filled = filled
        self.served = methods()
        scene = filled.world.scene
        assert isinstance(scene, PostgresScene)
        self.scene = scene

    async def call(self, method: str, request: Any, caller: str = "root") -> grpc.StatusCode:
        named = self.served[method].input_type.fields_by_name
        remarked = {name: word for name, word in (("requested_by", "ada"), ("note", "because")) if name in named}
        asked = type(request)()
        asked.CopyFrom(request)
        for name, word in remarked.items():
            setattr(asked, name, word)
        channel: Any = self.filled.channel
        how: dict[str, Any] = {"metadata": bearer(caller), "timeout": TIMEOUT_S}
        raw = asked.SerializeToString()
        try:
            if self.served[method].server_streaming:
                async for _ in channel.unary_stream(f"/{method}")(raw, **how):
                    pass
            else:
                await channel.unary_unary(f"/{method}")(raw, **how)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    async def left(self, method: str, request: Any, caller: str = "root") -> tuple[grpc.StatusCode, list[BookedChange]]:
        before = len(await self.scene.changes())
        code = await self.call(method, request, caller)
        return code, (await self.scene.changes())[before:]

    async def waiting(self) -> int:
        """The newest run that waits beside the schedule."""
        return (await self.scene.activations())[-1].activation_id


def span(**fields: Any) -> Any:
    now = Timestamp()
    now.GetCurrentTime()
    return jobs_pb2.BackfillJobRequest(
        key=MADE, from_at=Timestamp(seconds=now.seconds - 10_800), until_at=now, again=True, beside=True, **fields
    )


def of_jobs() -> list[Row]:
    jobs, spec = "cronring.v1.Jobs/", jobs_pb2.JobSpec(schedule="0 * * * *")
    made = jobs_pb2.CreateJobRequest(namespace="billing", module="xm", verb="xa", name="made", spec=spec)
    slower = jobs_pb2.UpdateJobRequest(key=MADE, spec=jobs_pb2.JobSpec(schedule="30 * * * *"))
    slower.update_mask.paths.append("schedule")
    labelled = jobs_pb2.JobSpec(schedule="0 * * * *", labels={"of": "many"})
    many, other = (
        jobs_pb2.CreateJobRequest(namespace="billing", module="xm", verb="xa", name=name, spec=labelled)
        for name in ("many", "other")
    )
    faster = jobs_pb2.UpdateJobRequest(key="billing/xm.xa:many", spec=jobs_pb2.JobSpec(schedule="15 * * * *"))
    faster.update_mask.paths.append("schedule")
    all_there = jobs_pb2.JobFilter(namespace="billing")
    job = (f"job {KEY}",)
    return [
        Row(jobs + "CreateJob", made, (f"job {MADE}",), None, {"schedule": "0 * * * *"}),
        Row(
            jobs + "UpdateJob", slower, (f"job {MADE}",), {"schedule": "0 * * * *"}, {"schedule": "30 * * * *"}
        ),
        Row(
            jobs + "PauseJob", jobs_pb2.PauseJobRequest(key=KEY), job, {"paused_by": None}, {"paused_by": "token:root"}
        ),
        Row(
            jobs + "ResumeJob", jobs_pb2.ResumeJobRequest(key=KEY), job, {"paused_by": "token:root"},
            {"paused_by": None},
        ),
        Row(jobs + "SkipNextTick", jobs_pb2.SkipNextTickRequest(key=KEY), job, {"next_tick": ANY}, {"tick": ANY}, ""),
        Row(jobs + "TriggerJob", jobs_pb2.TriggerJobRequest(key=KEY), job, None, {"trigger": "manual"}, ""),
        Row(jobs + "BackfillJob", span(), (f"job {MADE}",), None, {"trigger": "backfill"}, ""),
        Row(
            jobs + "DeleteJob", jobs_pb2.DeleteJobRequest(key=MADE), (f"job {MADE}",), {"schedule": "30 * * * *"}, None
        ),
        Row(
            jobs + "CreateJobs", jobs_pb2.CreateJobsRequest(jobs=[many, other]),
            ("job billing/xm.xa:many", "job billing/xm.xa:other"), None, {"schedule": "0 * * * *"},
        ),
        Row(
            jobs + "UpdateJobs", jobs_pb2.UpdateJobsRequest(jobs=[faster]), ("job billing/xm.xa:many",),
            {"schedule": "0 * * * *"}, {"schedule": "15 * * * *"},
        ),
        Row(
            jobs + "DeleteJobs", jobs_pb2.DeleteJobsRequest(keys=["billing/xm.xa:many"]), ("job billing/xm.xa:many",),
            {"schedule": "15 * * * *"}, None,
        ),
        Row(
            jobs + "ControlJobs",
            jobs_pb2.ControlJobsRequest(
                filter=jobs_pb2.JobFilter(labels={"of": "many"}), action=jobs_pb2.ControlJobsRequest.ACTION_DELETE
            ),
            ("job billing/xm.xa:other",), {"schedule": "0 * * * *"}, None,
        ),
        Row(
            jobs + "ControlJobs",
            jobs_pb2.ControlJobsRequest(filter=all_there, action=jobs_pb2.ControlJobsRequest.ACTION_PAUSE),
            (f"job {KEY}", "job billing/xm.xb", f"job {PAUSED}"), {"paused_note": ANY}, {"paused_note": "because"},
        ),
        Row(jobs + "CancelJob", jobs_pb2.CancelJobRequest(key=KEY), job, {"cancelled_by": None}, {"cancelled_by": ANY}),
        Row(
            jobs + "RestoreJob", jobs_pb2.RestoreJobRequest(key=KEY), job, {"cancelled_by": ANY},
            {"cancelled_by": None},
        ),
    ]  # fmt: skip


def of_executions(office: Office) -> list[Row]:
    executions, (_, running) = "cronring.v1.Executions/", office.filled.billing

    async def end() -> None:
        (run,) = await office.filled.world.store.get_unfinished((running,))
        await office.filled.world.end(run, Outcome.FAILED)

    subject = (f"execution {running}",)
    return [
        Row(
            executions + "CancelExecution", executions_pb2.CancelExecutionRequest(id=running), subject, None,
            {"cancel_requested_by": "token:root", "job": "billing/xm.xb"},
        ),
        Row(
            executions + "RetryExecution", executions_pb2.RetryExecutionRequest(id=running), subject, None,
            {"trigger": "retry", "job": "billing/xm.xb"}, "", end,
        ),
    ]  # fmt: skip


def of_deployments(office: Office) -> list[Row]:
    deployments, old = "cronring.v1.Deployments/", office.filled.deployment
    module = module_message(Module("xm", (Verb("xa", schedule="every 1h"),), "billing"))
    new = deployments_pb2.CreateDeploymentRequest(schema=module, digest="c" * 64)
    subject = ("module billing/xm",)
    return [
        Row(
            deployments + "CreateDeployment", new, subject, {"deployment": old, "digest": "a" * 64},
            {"digest": "c" * 64, "removed_keys": ["billing/xm.xb", PAUSED]},
        ),
        Row(
            deployments + "ActivateDeployment", deployments_pb2.ActivateDeploymentRequest(key=old), subject,
            {"digest": "c" * 64}, {"digest": "a" * 64, "added": 2},
        ),
        Row(
            deployments + "KillDeployment", deployments_pb2.KillDeploymentRequest(key=old), subject,
            {"deployment": old, "min_replicas": 1}, {"deployment": None, "min_replicas": 0, "removed": 3},
        ),
    ]  # fmt: skip


def of_the_rest(office: Office) -> list[Row]:
    templates, limits, hooks = "cronring.v1.Templates/", "cronring.v1.Limits/", "cronring.v1.Notifications/"
    nightly = templates_pb2.SetTemplateRequest(
        namespace="billing", name="night", spec=jobs_pb2.JobSpec(payload='{"card":"4111"}')
    )
    payload = {"bytes": 15, "sha256": hashlib.sha256(b'{"card":"4111"}').hexdigest()}
    pager = notifications_pb2.AddWebhookRequest(name="pager", url=URL)
    off = notifications_pb2.SetWebhookEnabledRequest(name="pager", reason="noise")

    async def fail() -> None:
        statement = "UPDATE cron_deliveries SET state = 'failed', ended_at = now() FROM cron_webhooks w"
        await office.scene._run(f"{statement} WHERE w.id = webhook_id AND w.name = $1", "xw")

    async def settle() -> None:
        spec = jobs_pb2.JobSpec(schedule="0 * * * *", labels={"workspace": "w_1"})
        made = jobs_pb2.CreateJobRequest(namespace="billing", module="xm", verb="xa", name="tenant", spec=spec)
        assert await office.call("cronring.v1.Jobs/CreateJob", made) is grpc.StatusCode.OK

    item = jobs_pb2.CreateJobRequest(module="xm", verb="xa", name="applied", spec=jobs_pb2.JobSpec(schedule="manual"))
    applied = sets_pb2.ApplySetRequest(namespace="billing", name="prod", jobs=[item])
    return [
        Row(
            "cronring.v1.Sets/ApplySet", applied, ("job billing/xm.xa:applied",), None,
            {"schedule": "manual", "set": "prod"},
        ),
        Row(templates + "SetTemplate", nightly, ("template billing/night",), None, {"payload": payload}),
        Row(
            templates + "DeleteTemplate", templates_pb2.DeleteTemplateRequest(namespace="billing", name="night"),
            ("template billing/night",), {"payload": payload}, None,
        ),
        Row(
            limits + "SetLimit", limits_pb2.SetLimitRequest(namespace="billing", module="xm", max_concurrent=3),
            ("limit billing/xm",), {"max_concurrent": 9}, {"max_concurrent": 3},
        ),
        Row(
            limits + "RemoveLimit", limits_pb2.RemoveLimitRequest(namespace="billing", module="xm"),
            ("limit billing/xm",), {"max_concurrent": 3}, None,
        ),
        Row(
            "cronring.v1.Defaults/UpdateDefaults", defaults_pb2.UpdateDefaultsRequest(late_after="90s"),
            ("defaults",), {"late_after_ms": None}, {"late_after_ms": 90_000},
        ),
        Row(
            "cronring.v1.Workspaces/DeleteWorkspace",
            workspaces_pb2.DeleteWorkspaceRequest(namespace="billing", workspace="w_1"),
            ("job billing/xm.xa:tenant", "workspace billing/w_1", "job billing/xm.xa:tenant"), {}, cast("Values", ANY),
            first=settle,
        ),
        Row(hooks + "AddWebhook", pager, ("webhook pager",), None, {"origin": "https://127.0.0.1"}),
        Row(hooks + "SetWebhookEnabled", off, ("webhook pager",), {"enabled": True}, {"enabled": False}),
        Row(
            hooks + "RemoveWebhook", notifications_pb2.RemoveWebhookRequest(name="pager"), ("webhook pager",),
            {"origin": "https://127.0.0.1"}, None,
        ),
        Row(
            hooks + "Redeliver", notifications_pb2.RedeliverRequest(webhook="xw"), ("webhook xw",), None,
            {"redelivered": ANY}, first=fail,
        ),
    ]  # fmt: skip


def of_queues(office: Office) -> list[Row]:
    queues = "cronring.v1.Queues/"
    there: dict[str, Any] = {"namespace": "billing", "queue": "q"}

    async def die() -> None:
        statement = (
            "INSERT INTO cron_dead_letters VALUES ($1, 'billing', 'q', '', NULL, NULL, NULL, 1, '4111', now(), "
            "now(), 5, 'failed', '', '')"
        )
        await office.scene._connection.execute(statement, 77)

    async def die_again() -> None:
        await office.scene._connection.execute("DELETE FROM cron_queue")
        await die()

    subject = ("queue billing/q",)
    return [
        Row(
            queues + "SetQueue", queues_pb2.SetQueueRequest(**there, max_deliveries=9), subject, None,
            {"max_deliveries": 9, "on_retry": "block", "note": "because"},
        ),
        Row(
            queues + "ReplayDeadLetters", queues_pb2.ReplayDeadLettersRequest(**there, all=True), subject, None,
            {"replayed": [77]}, first=die,
        ),
        Row(
            queues + "RemoveDeadLetters", queues_pb2.RemoveDeadLettersRequest(**there, message_ids=[77]), subject, None,
            {"removed": [77]}, first=die_again,
        ),
    ]  # fmt: skip


def of_identities() -> list[Row]:
    identities = "cronring.v1.Identities/"
    token = identities_pb2.CreateTokenRequest(name="ci", lasts_ms=60_000)
    token.grants.add(role="operator", namespace="billing")
    grant = identities_pb2.CreateRunnerGrantRequest(name="east", namespace="billing", modules=["xm"], uses=3)
    gives: Values = {"grants": ["operator@billing"], "expires_at": ANY}
    hosts: Values = {"modules": ["xm"], "may_activate": False, "may_enroll": True, "uses_left": 3, "expires_at": None}
    return [
        Row(identities + "CreateToken", token, ("token ci",), None, gives),
        Row(identities + "RevokeToken", identities_pb2.RevokeTokenRequest(name="ci"), ("token ci",), gives, None),
        Row(identities + "CreateRunnerGrant", grant, ("runner-grant east",), None, hosts),
        Row(
            identities + "RevokeRunnerGrant", identities_pb2.RevokeRunnerGrantRequest(name="east"),
            ("runner-grant east",), hosts, None,
        ),
    ]  # fmt: skip


def table(office: Office) -> list[Row]:
    return [
        *of_jobs(), *of_executions(office), *of_identities(), *of_queues(office), *of_the_rest(office),
        *of_deployments(office),
    ]  # fmt: skip


def has(values: Values, wanted: Values) -> bool:
    if wanted is ANY:
        return True
    if values is None or wanted is None:
        return values is wanted
    return all(name in values and value in (ANY, values[name]) for name, value in wanted.items())


def remark_of(office: Office, row: Row) -> str:
    named = office.served[row.method].input_type.fields_by_name
    asked = "for ada" if "requested_by" in named else ""
    why = "because" if "note" in named else getattr(row.request, "reason", "")
    return ": ".join(filter(None, (asked, why)))


async def test_every_change_is_on_record_and_nothing_else(filled: Filled) -> None:
    office = Office(filled)
    for row in table(office):
        if row.first is not None:
            await row.first()
        dry = "dry_run" in office.served[row.method].input_type.fields_by_name
        if dry:
            rehearsed = type(row.request)()
            rehearsed.CopyFrom(row.request)
            rehearsed.dry_run = True
            assert await office.left(row.method, rehearsed) == (grpc.StatusCode.OK, []), f"dry run of {row.method}"
        for caller, code in (("viewer", grpc.StatusCode.PERMISSION_DENIED), ("no", grpc.StatusCode.UNAUTHENTICATED)):
            assert await office.left(row.method, row.request, caller) == (code, []), f"{row.method} by {caller}"
        code, rows = await office.left(row.method, row.request)
        assert code is grpc.StatusCode.OK, row.method
        assert tuple(each.subject for each in rows) == row.subjects, row.method
        for each in rows:
            assert (each.principal, each.method, each.remark) == (
                "token:root", f"/{row.method}", remark_of(office, row),
            )  # fmt: skip
            assert each.origin.startswith("ipv4:127.0.0.1:")
            assert each.namespace == ("" if each.subject.startswith(("webhook", "defaults")) else "billing")
            assert has(each.before, row.before), f"{row.method}: {each}"
            assert has(each.after, row.after), f"{row.method}: {each}"
            assert not any(secret in json.dumps(each) for secret in SECRETS), row.method
        if row.again:
            assert (await office.left(row.method, row.request))[1] == [], f"{row.method} again"
    probed = notifications_pb2.AddWebhookRequest(name="probed", url=URL)
    assert await office.call("cronring.v1.Notifications/AddWebhook", probed) is grpc.StatusCode.OK
    for method, request in READING.items():
        assert await office.left(method, request) == (grpc.StatusCode.OK, []), method
    told = await office.scene._fetch("SELECT DISTINCT controller_id FROM cron_audit_log WHERE principal = 'token:root'")
    assert [record[0] for record in told] == ["c1"]


async def test_a_run_that_waits_is_taken_back_on_record(filled: Filled) -> None:
    office = Office(filled)
    await office.call("cronring.v1.Jobs/TriggerJob", jobs_pb2.TriggerJobRequest(key=KEY))
    undoing = jobs_pb2.CancelActivationRequest(key=KEY, id=await office.waiting())
    code, (row,) = await office.left("cronring.v1.Jobs/CancelActivation", undoing)
    assert (code, row.subject, has(row.before, {"trigger": "manual"}), row.after) == (
        grpc.StatusCode.OK, f"job {KEY}", True, None,
    )  # fmt: skip
    assert (await office.left("cronring.v1.Jobs/CancelActivation", undoing))[1] == []


async def test_a_preview_leaves_nothing(filled: Filled) -> None:
    office = Office(filled)
    spec = jobs_pb2.JobSpec(schedule="0 * * * *")
    made = jobs_pb2.CreateJobRequest(namespace="billing", module="xm", verb="xa", name="made", spec=spec)
    assert await office.call("cronring.v1.Jobs/CreateJob", made) is grpc.StatusCode.OK
    other = jobs_pb2.JobSpec(schedule="5 * * * *")
    asked = schedules_pb2.PreviewJobRequest(key=MADE, spec=other, update_mask=FieldMask(paths=["schedule"]))
    assert await office.left("cronring.v1.Schedules/PreviewJob", asked) == (grpc.StatusCode.OK, [])


async def test_each_method_that_may_change_something_is_looked_at(filled: Filled) -> None:
    """A new one gets a row in the table; or a line in READING, if it changes nothing."""
    looked_at = {row.method for row in table(Office(filled))} | {"cronring.v1.Jobs/CancelActivation"}
    writing = {path.removeprefix("/") for path, access in POLICY.items() if access.permission in WRITING} | BY_OTHERS
    assert looked_at | ELSEWHERE.keys() | READING.keys() == writing
    assert not looked_at & (ELSEWHERE.keys() | READING.keys())
