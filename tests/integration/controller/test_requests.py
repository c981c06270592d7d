"""What the API refuses, and how it says so; and how it pages."""

from collections.abc import Awaitable
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2, status_pb2

from cronring.protos.cronring.v1 import cluster_pb2, ledger_pb2, schema_pb2
from cronring.protos.cronring.v1.deployments_pb2 import (
    CreateDeploymentRequest,
    GetDeploymentRequest,
    KillDeploymentRequest,
    ListDeploymentsRequest,
)
from cronring.protos.cronring.v1.executions_pb2 import (
    CountExecutionsRequest,
    ExecutionFilter,
    GetExecutionRequest,
    ListExecutionsRequest,
)
from cronring.protos.cronring.v1.jobs_pb2 import GetJobRequest, JobFilter, ListJobsRequest, WatchJobsRequest
from tests.integration.controller.conftest import Clients, start
from tests.support.cluster import Cluster


def executions_of(**where: Any) -> ListExecutionsRequest:
    return ListExecutionsRequest(filter=ExecutionFilter(**where))


async def refusal(call: Awaitable[Any]) -> tuple[grpc.StatusCode, list[str]]:
    """The code, and the fields of the violations."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    metadata: dict[str, Any] = dict(failed.value.trailing_metadata())  # type: ignore[arg-type]  # its stubs' fault
    fields = []
    for detail in status_pb2.Status.FromString(metadata.get("grpc-status-details-bin", b"")).details:
        bad = error_details_pb2.BadRequest()
        detail.Unpack(bad)
        fields += [violation.field for violation in bad.field_violations]
    return failed.value.code(), fields


async def test_wrong_requests_are_refused_field_by_field(cluster: Cluster, clients: Clients) -> None:
    client = await clients.of((await start(cluster, 1))[0])
    jobs, executions, deployments = client.jobs, client.executions, client.deployments
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    wrong = schema_pb2.Module(
        name="1st", verbs=[schema_pb2.Verb(name="ok"), schema_pb2.Verb(name="b", schedule="61 * * * *", timeout_ms=-1)]
    )
    cases: list[tuple[Awaitable[Any], list[str]]] = [
        (jobs.ListJobs(ListJobsRequest(page_size=-1)), ["page_size"]),
        (jobs.ListJobs(ListJobsRequest(page_size=1_001)), ["page_size"]),
        (jobs.ListJobs(ListJobsRequest(page_token="forged")), ["page_token"]),
        (jobs.ListJobs(ListJobsRequest(filter=JobFilter(statuses=["asleep"]))), ["filter.statuses"]),
        (jobs.ListJobs(ListJobsRequest(filter=JobFilter(verb="a\0b"))), ["filter.verb"]),
        (jobs.GetJob(GetJobRequest()), ["key"]),
        (jobs.WatchJobs(WatchJobsRequest(filter=JobFilter(statuses=["asleep"]))).read(), ["filter.statuses"]),
        (executions.ListExecutions(executions_of(outcomes=["fine"])), ["filter.outcomes"]),
        (
            executions.CountExecutions(CountExecutionsRequest(filter=ExecutionFilter(outcomes=["fine"]))),
            ["filter.outcomes"],
        ),
        (executions.ListExecutions(ListExecutionsRequest(sort="fastest")), ["sort"]),
        (jobs.ListJobs(ListJobsRequest(sort="fastest")), ["sort"]),
        (executions.ListExecutions(executions_of(after_id=-1)), ["filter.after_id"]),
        (executions.ListExecutions(executions_of(labels={"": "x"})), ["filter.labels"]),
        (executions.ListExecutions(executions_of(since=Timestamp(seconds=2**60))), ["filter.since"]),
        (executions.GetExecution(GetExecutionRequest()), ["id"]),
        (deployments.GetDeployment(GetDeploymentRequest()), ["key"]),
        (deployments.ListDeployments(ListDeploymentsRequest(page_size=5_000)), ["page_size"]),
        (
            deployments.CreateDeployment(CreateDeploymentRequest(schema=wrong, digest="x", min_replicas=-3)),
            ["schema.name", "schema.verbs[1].schedule", "schema.verbs[1].timeout_ms", "digest", "min_replicas"],
        ),
        (
            client.ledger.Audit(ledger_pb2.AuditRequest(since=Timestamp(seconds=2), until=Timestamp(seconds=1))),
            ["until"],
        ),
        (client.ledger.Audit(ledger_pb2.AuditRequest(late_after_ms=-1)), ["late_after_ms"]),
        (
            client.ledger.Why(ledger_pb2.WhyRequest(at=Timestamp(seconds=1))),
            ["job"],
        ),
    ]
    for call, fields in cases:
        assert await refusal(call) == (invalid, fields)


async def test_what_is_not_there_is_not_found(cluster: Cluster, clients: Clients) -> None:
    client = await clients.of((await start(cluster, 1))[0])
    calls: list[Awaitable[Any]] = [
        client.jobs.GetJob(GetJobRequest(key="no.such")),
        client.executions.GetExecution(GetExecutionRequest(id=2**62)),
        client.executions.ListExecutions(executions_of(job="no.such")),
        client.deployments.GetDeployment(GetDeploymentRequest(key="no")),
        client.deployments.KillDeployment(KillDeploymentRequest(key="no")),
        client.cluster.GetOwners(cluster_pb2.GetOwnersRequest(job="no.such")),
    ]
    for call in calls:
        assert await refusal(call) == (grpc.StatusCode.NOT_FOUND, [])


async def test_pages_hold_every_job_once(cluster: Cluster, clients: Clients) -> None:
    client = await clients.of((await start(cluster, 1))[0])
    verbs = [schema_pb2.Verb(name=f"verb_{number:03}", schedule="0 6 1 * *") for number in range(250)]
    deployed = await client.deploy(schema_pb2.Module(name="many", verbs=verbs), "c" * 64)
    keys: list[str] = []
    token, pages = "", 0
    while token or not pages:
        page = await client.jobs.ListJobs(ListJobsRequest(page_size=100, page_token=token))
        keys += [job.key for job in page.jobs]
        token, pages = page.next_page_token, pages + 1
    assert (pages, keys) == (3, [f"many.verb_{number:03}" for number in range(250)])
    first = await client.jobs.ListJobs(ListJobsRequest(page_size=100))
    other = ListJobsRequest(page_token=first.next_page_token, filter=JobFilter(module="many"))
    assert (await refusal(client.jobs.ListJobs(other)))[1] == ["page_token"]
    filtered = await client.jobs.ListJobs(ListJobsRequest(filter=JobFilter(verb="verb_007", statuses=["scheduled"])))
    assert [job.key for job in filtered.jobs] == ["many.verb_007"]

    killed = await client.deployments.KillDeployment(KillDeploymentRequest(key=deployed.deployment.key))
    assert len(killed.jobs_removed) == 250
    assert not killed.deployment.active
    assert not (await client.jobs.ListJobs(ListJobsRequest())).jobs
    active = await client.deployments.ListDeployments(ListDeploymentsRequest(active_only=True))
    everything = await client.deployments.ListDeployments(ListDeploymentsRequest())
    assert (len(active.deployments), len(everything.deployments)) == (0, 1)
