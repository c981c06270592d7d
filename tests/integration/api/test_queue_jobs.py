"""Jobs whose target is a queue, made over gRPC and REST on real PostgreSQL: who may, what is told, and what is kept."""

from typing import Any

import grpc
import pytest

from cronring.protos.cronring.v1.audit_log_pb2 import ListAuditLogRequest, ListAuditLogResponse
from cronring.protos.cronring.v1.deployments_pb2 import ListDeploymentsRequest, ListDeploymentsResponse
from cronring.protos.cronring.v1.jobs_pb2 import (
    CreateJobRequest,
    CreateJobsRequest,
    GetJobRequest,
    Job,
    JobFilter,
    JobSpec,
    ListJobsRequest,
    ListJobsResponse,
    ManyJobsResponse,
    QueueTarget,
    UpdateJobRequest,
)
from cronring.protos.cronring.v1.limits_pb2 import Limit, SetLimitRequest
from cronring.protos.cronring.v1.schema_pb2 import Policy
from tests.integration.api.conftest import Filled
from tests.integration.api.test_who_sees import Caller

JOBS = "cronring.v1.Jobs/"
KEY = "billing/@reports.ws_3:default"
BAD = grpc.StatusCode.INVALID_ARGUMENT


def new(schedule: str = "every 5m", workspace: str = "ws_3", name: str = "", **spec: object) -> CreateJobRequest:
    return CreateJobRequest(
        namespace="billing", name=name, queue=QueueTarget(queue="reports", workspace=workspace),
        spec=JobSpec(schedule=schedule, **spec),  # type: ignore[arg-type]  # its fields' values
    )  # fmt: skip


async def test_made_again_it_is_changed_and_the_answer_says_so(filled: Filled) -> None:
    caller = Caller(filled, "operator")
    made = await caller.ask(JOBS + "CreateJob", new(payload='{"a":1}'), Job)
    assert (made.key, made.queue.queue, made.queue.workspace) == (KEY, "reports", "ws_3")
    assert (dict(made.labels), made.payload, made.unchanged, made.updated) == (
        {"workspace": "ws_3"}, '{"a":1}', False, False,
    )  # fmt: skip
    same = await caller.ask(JOBS + "CreateJob", new(payload='{"a": 1}'), Job)
    assert (same.id, same.unchanged, same.updated) == (made.id, True, False)
    other = await caller.ask(JOBS + "CreateJob", new("every 10m", labels={"team": "x"}), Job)
    assert (other.id, other.unchanged, other.updated) == (made.id, False, True)
    found = await caller.ask(JOBS + "GetJob", GetJobRequest(key=KEY), Job)
    assert (found.schedule, found.payload, dict(found.labels)) == (
        "every 10m", "", {"team": "x", "workspace": "ws_3"},
    )  # fmt: skip
    assert found.queue.queue == "reports"


async def test_many_in_a_call_are_made_changed_or_left(filled: Filled) -> None:
    caller = Caller(filled, "operator")

    async def create(*jobs: CreateJobRequest, **how: Any) -> ManyJobsResponse:
        answer = await caller.ask(JOBS + "CreateJobs", CreateJobsRequest(jobs=jobs, **how), ManyJobsResponse)
        assert isinstance(answer, ManyJobsResponse)
        return answer

    first = await create(new(), new(workspace="ws_4"), all_or_nothing=True)
    assert (first.changed, first.unchanged, first.failed) == (2, 0, 0)
    assert [each.key for each in first.results] == [KEY, "billing/@reports.ws_4:default"]
    tried = await create(new("every 7m"), dry_run=True)
    assert [(each.updated, each.unchanged) for each in tried.results] == [(True, False)]
    wrong = await create(new("every 7m"), new("nonsense", "ws_5"), all_or_nothing=True)
    assert (wrong.changed, wrong.failed, wrong.rolled_back) == (0, 1, True)
    again = await create(new(), new("every 9m", "ws_4"), new("nonsense", "ws_5"), new(workspace="a/b"))
    assert [(each.updated, each.unchanged, each.refusal.code) for each in again.results] == [
        (False, True, ""), (True, False, ""), (False, False, "INVALID_ARGUMENT"), (False, False, "INVALID_ARGUMENT"),
    ]  # fmt: skip
    found = await caller.ask(JOBS + "GetJob", GetJobRequest(key="billing/@reports.ws_4:default"), Job)
    assert found.schedule == "every 9m"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (new(timeout_ms=1_000), "spec.timeout_ms"),
        (new(on_disconnect="finish"), "spec.on_disconnect"),
        (new(policy=Policy(memory_limit="1GiB")), "spec.policy.memory_limit"),
        (new(policy=Policy(overlap="buffer_one")), "spec.policy.overlap"),
        (new(policy=Policy(completes="later")), "spec.policy.completes"),
        (new(labels={"workspace": "other"}), "spec.labels.workspace"),
        (new(workspace="../x"), "queue.workspace"),
        (new(name="a b"), "name"),
        (CreateJobRequest(namespace="billing", queue=QueueTarget(), spec=JobSpec(schedule="every 5m")), "queue.queue"),
        (CreateJobRequest(namespace="billing", module="xm", verb="xa", queue=QueueTarget(queue="q")), "module"),
        (CreateJobRequest(namespace="billing", module="@reports", verb="-", name="n"), "module"),
        (
            CreateJobRequest(
                namespace="billing", module="xm", verb="xa", name="n",
                spec=JobSpec(schedule="every 5m", policy=Policy(completes="consumed")),
            ),
            "spec.policy.completes",
        ),
    ],
)  # fmt: skip
async def test_what_makes_no_sense_is_named(filled: Filled, request_: CreateJobRequest, field: str) -> None:
    code, details = await Caller(filled, "operator").refused(JOBS + "CreateJob", request_)
    assert (code, field in details) == (BAD, True), details


async def test_who_may_not_make_jobs_makes_none_for_queues_either(filled: Filled) -> None:
    for name in ("viewer", "elsewhere"):
        code, _ = await Caller(filled, name).refused(JOBS + "CreateJob", new())
        assert code is grpc.StatusCode.PERMISSION_DENIED
    hidden = CreateJobRequest(namespace="hush", queue=QueueTarget(queue="q"), spec=JobSpec(schedule="every 5m"))
    code, _ = await Caller(filled, "operator").refused(JOBS + "CreateJob", hidden)
    assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_lists_limits_and_the_audit_log_know_it_and_deployments_do_not(filled: Filled) -> None:
    caller, admin = Caller(filled, "operator"), Caller(filled, "admin")
    await caller.ask(JOBS + "CreateJob", new(), Job)
    await caller.ask(JOBS + "CreateJob", new("every 10m"), Job)
    found = await caller.ask(
        JOBS + "ListJobs", ListJobsRequest(filter=JobFilter(namespace="billing", module="@reports")), ListJobsResponse
    )
    assert [each.key for each in found.jobs] == [KEY]
    limit = SetLimitRequest(namespace="billing", module="@reports", max_concurrent=2)
    assert (await admin.ask("cronring.v1.Limits/SetLimit", limit, Limit)).max_concurrent == 2
    deployments = await caller.ask(
        "cronring.v1.Deployments/ListDeployments", ListDeploymentsRequest(), ListDeploymentsResponse
    )
    assert [each.module for each in deployments.deployments] == ["xm"]
    log = await admin.ask("cronring.v1.AuditLog/ListAuditLog", ListAuditLogRequest(), ListAuditLogResponse)
    changed = [(each.method.rpartition("/")[2], each.subject) for each in log.audit_rows if "@reports" in each.subject]
    assert sorted(changed)[:2] == [("CreateJob", f"job {KEY}"), ("CreateJob", f"job {KEY}")]


async def test_its_workspace_stays_and_its_policy_may_change(filled: Filled) -> None:
    caller = Caller(filled, "operator")
    await caller.ask(JOBS + "CreateJob", new(), Job)
    moved = UpdateJobRequest(key=KEY, spec=JobSpec(labels={"workspace": "ws_4"}))
    moved.update_mask.paths.append("labels.workspace")
    code, details = await caller.refused(JOBS + "UpdateJob", moved)
    assert (code, "make another job" in details) == (BAD, True)
    awaited = UpdateJobRequest(key=KEY, spec=JobSpec(policy=Policy(completes="consumed"), timeout_ms=5_000))
    awaited.update_mask.paths.extend(["policy.completes", "timeout_ms"])
    changed = await caller.ask(JOBS + "UpdateJob", awaited, Job)
    assert (changed.policy.completes, changed.timeout_ms) == ("consumed", 5_000)
