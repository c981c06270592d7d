"""Of a namespace that a caller may not view, no answer has a trace: lists, watches, lookups, hints, audits, tokens."""

import base64
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
import pytest

from cronring.controller.api import messages
from cronring.controller.services.audit_changes import without_excerpts
from cronring.protos.cronring.v1 import (
    cluster_pb2,
    deployments_pb2,
    executions_pb2,
    history_pb2,
    jobs_pb2,
    ledger_pb2,
    limits_pb2,
    notifications_pb2,
    schedules_pb2,
    sets_pb2,
    statistics_pb2,
    templates_pb2,
    workspaces_pb2,
)
from cronring.protos.cronring.v1.executions_pb2 import CountExecutionsRequest, ExecutionFilter
from cronring.protos.cronring.v1.jobs_pb2 import ControlJobsRequest, JobFilter, JobSpec, ListJobsRequest
from cronring.schema.execution import Outcome
from tests.integration.api.conftest import Filled
from tests.support.callers import bearer
from tests.support.waiting import TIMEOUT_S

HIDDEN: Final = "hush"
JOB: Final = "hush/hush_m.hush_a"
JOBS, EXECUTIONS, DEPLOYMENTS = "cronring.v1.Jobs/", "cronring.v1.Executions/", "cronring.v1.Deployments/"
LISTS: Final[list[tuple[str, Any]]] = [
    (JOBS + "ListJobs", ListJobsRequest()),
    (JOBS + "ListJobs", ListJobsRequest(filter=JobFilter(module="hush_m"))),
    (JOBS + "ListJobs", ListJobsRequest(filter=JobFilter(statuses=["paused"]))),
    (JOBS + "ListActions", jobs_pb2.ListActionsRequest()),
    (JOBS + "ListActions", jobs_pb2.ListActionsRequest(template="hush/hush_t")),
    (EXECUTIONS + "ListExecutions", executions_pb2.ListExecutionsRequest()),
    (EXECUTIONS + "ListExecutions", executions_pb2.ListExecutionsRequest(sort="latest")),
    (EXECUTIONS + "ListExecutions", executions_pb2.ListExecutionsRequest(filter=ExecutionFilter(module="hush_m"))),
    (JOBS + "ListJobs", ListJobsRequest(sort="next")),
    (EXECUTIONS + "ListExecutions", executions_pb2.ListExecutionsRequest(filter=ExecutionFilter(outcomes=["running"]))),
    (EXECUTIONS + "ListExecutions", executions_pb2.ListExecutionsRequest(filter=ExecutionFilter(outcomes=["failed"]))),
    (DEPLOYMENTS + "ListDeployments", deployments_pb2.ListDeploymentsRequest()),
    ("cronring.v1.Templates/ListTemplates", templates_pb2.ListTemplatesRequest()),
    ("cronring.v1.Sets/ListSets", sets_pb2.ListSetsRequest()),
    ("cronring.v1.Limits/ListLimits", limits_pb2.ListLimitsRequest()),
    ("cronring.v1.Ledger/ListBooks", ledger_pb2.ListBooksRequest(keys=[JOB])),
    ("cronring.v1.Workspaces/ListWorkspaces", workspaces_pb2.ListWorkspacesRequest()),
    ("cronring.v1.Cluster/ListDue", cluster_pb2.ListDueRequest(within_ms=86_400_000, limit=100)),
    ("cronring.v1.Cluster/GetCluster", cluster_pb2.GetClusterRequest()),
    ("cronring.v1.Notifications/ListDeliveries", notifications_pb2.ListDeliveriesRequest()),
    ("cronring.v1.History/GetMoment", history_pb2.GetMomentRequest()),
    ("cronring.v1.History/ListTimeline", history_pb2.ListTimelineRequest()),
]
BY_JOB: Final[list[tuple[str, Callable[[str], Any]]]] = [
    (JOBS + "GetJob", lambda key: jobs_pb2.GetJobRequest(key=key)),
    (JOBS + "ListActivations", lambda key: jobs_pb2.ListActivationsRequest(key=key)),
    (JOBS + "ListActions", lambda key: jobs_pb2.ListActionsRequest(job=key)),
    (JOBS + "PauseJob", lambda key: jobs_pb2.PauseJobRequest(key=key)),
    (JOBS + "TriggerJob", lambda key: jobs_pb2.TriggerJobRequest(key=key)),
    (JOBS + "DeleteJob", lambda key: jobs_pb2.DeleteJobRequest(key=key)),
    (JOBS + "UpdateJob", lambda key: jobs_pb2.UpdateJobRequest(key=key)),
    (EXECUTIONS + "ListExecutions", lambda key: executions_pb2.ListExecutionsRequest(filter=ExecutionFilter(job=key))),
    (
        EXECUTIONS + "CountExecutions",
        lambda key: CountExecutionsRequest(filter=ExecutionFilter(job=key)),
    ),
    ("cronring.v1.Cluster/GetOwners", lambda key: cluster_pb2.GetOwnersRequest(job=key)),
    ("cronring.v1.Ledger/Audit", lambda key: ledger_pb2.AuditRequest(job=key)),
    ("cronring.v1.Ledger/Why", lambda key: ledger_pb2.WhyRequest(job=key)),
    ("cronring.v1.Statistics/GetJobStats", lambda key: statistics_pb2.GetJobStatsRequest(job=key)),
    ("cronring.v1.Statistics/GetJobDays", lambda key: statistics_pb2.GetJobDaysRequest(job=key)),
    ("cronring.v1.Schedules/ExplainJob", lambda key: schedules_pb2.ExplainJobRequest(job=key)),
    ("cronring.v1.Schedules/DescribeVerb", lambda key: schedules_pb2.DescribeVerbRequest(job=key)),
    ("cronring.v1.Schedules/PreviewJob", lambda key: schedules_pb2.PreviewJobRequest(key=key)),
]


class Caller:
    """Asks by paths, and is answered in bytes, or by messages of a kind."""

    def __init__(self, filled: Filled, name: str) -> None:
        self._channel: Any = filled.channel
        self._how = {"metadata": bearer(name), "timeout": TIMEOUT_S}

    async def ask(self, path: str, request: Any, kind: Any = bytes) -> Any:
        read = None if kind is bytes else kind.FromString
        call = self._channel.unary_unary(f"/{path}", type(request).SerializeToString, read)
        return await call(request, **self._how)

    async def refused(self, path: str, request: Any) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await self.ask(path, request)
        return error.value.code(), error.value.details() or ""

    def stream(self, path: str, request: Any, kind: Any) -> Any:
        call = self._channel.unary_stream(f"/{path}", type(request).SerializeToString, kind.FromString)
        return call(request, **self._how)


def shows(answer: bytes) -> bool:
    return HIDDEN.encode() in answer


@pytest.mark.parametrize("name", ["viewer", "admin"])
async def test_lists_have_what_their_caller_may_view(filled: Filled, name: str) -> None:
    caller, root = Caller(filled, name), Caller(filled, "root")
    for path, request in LISTS:
        if name == "viewer" and path.endswith("ListDeliveries"):
            continue  # takes OUTPUTS
        assert not shows(await caller.ask(path, request)), path
    told = [path for path, request in LISTS if shows(await root.ask(path, request))]
    assert set(told) == {path for path, _ in LISTS}, "they have something to hide"


@pytest.mark.parametrize("name", ["viewer", "admin"])
async def test_what_is_hidden_is_answered_like_what_is_not_there(filled: Filled, name: str) -> None:
    caller = Caller(filled, name)
    asked = BY_JOB if name == "admin" else [each for each in BY_JOB if each[0] not in WRITES]
    for path, of in asked:
        hidden, missing = (
            await caller.refused(path, of(JOB)),
            await caller.refused(path, of(JOB.replace("hush/", "none/"))),
        )
        assert hidden == (missing[0], missing[1].replace("none/", "hush/")), path
        assert hidden[0] == grpc.StatusCode.NOT_FOUND
    ended, running = filled.hush
    for execution in (ended, running):
        found = await caller.refused(EXECUTIONS + "GetExecution", executions_pb2.GetExecutionRequest(id=execution))
        none = await caller.refused(EXECUTIONS + "GetExecution", executions_pb2.GetExecutionRequest(id=987_654))
        assert found == (none[0], none[1].replace("987654", str(execution)))
    for key in (filled.hidden_deployment, "hush/none@1"):
        found = await caller.refused(DEPLOYMENTS + "GetDeployment", deployments_pb2.GetDeploymentRequest(key=key))
        words = f"there is no deployment {key!r}; `cronring deployments list` shows them"
        assert found == (grpc.StatusCode.NOT_FOUND, words)
    found = await caller.refused(
        "cronring.v1.Templates/GetTemplate", templates_pb2.GetTemplateRequest(namespace="hush", name="hush_t")
    )
    none = await caller.refused(
        "cronring.v1.Templates/GetTemplate", templates_pb2.GetTemplateRequest(namespace="none", name="hush_t")
    )
    assert found == (none[0], none[1].replace("'none'", "'hush'"))
    for kind in (sets_pb2.GetSetRequest, sets_pb2.ListSetJobsRequest):
        path = f"cronring.v1.Sets/{kind.__name__.removesuffix('Request')}"
        found = await caller.refused(path, kind(namespace="hush", name="hush_s"))
        none = await caller.refused(path, kind(namespace="none", name="hush_s"))
        assert found == (none[0], none[1].replace("'none'", "'hush'"))


WRITES: Final = {JOBS + name for name in ("PauseJob", "TriggerJob", "DeleteJob", "UpdateJob")} | {
    "cronring.v1.Schedules/PreviewJob"
}


async def test_what_comes_nearest_is_looked_for_in_what_one_may_view(filled: Filled) -> None:
    path, near = JOBS + "GetJob", jobs_pb2.GetJobRequest(key="hush/hush_m.hush_aa")
    assert "there is none at all" in (await Caller(filled, "viewer").refused(path, near))[1]
    assert "did you mean 'hush/hush_m.hush_a'?" in (await Caller(filled, "both").refused(path, near))[1]
    path = "cronring.v1.Templates/GetTemplate"
    template = templates_pb2.GetTemplateRequest(namespace="hush", name="hush_tt")
    assert "there is none at all" in (await Caller(filled, "viewer").refused(path, template))[1]
    assert "did you mean 'hush_t'?" in (await Caller(filled, "both").refused(path, template))[1]


async def test_an_audit_counts_what_one_may_view(filled: Filled) -> None:
    path, kind = "cronring.v1.Ledger/Audit", ledger_pb2.AuditResponse
    seen = await Caller(filled, "viewer").ask(path, ledger_pb2.AuditRequest(thorough=True), kind)
    everything = await Caller(filled, "root").ask(path, ledger_pb2.AuditRequest(thorough=True), kind)
    assert (seen.jobs, everything.jobs) == (3, 6)
    assert not shows(seen.SerializeToString())
    nowhere = await Caller(filled, "elsewhere").ask(path, ledger_pb2.AuditRequest(), kind)
    assert (nowhere.jobs, nowhere.ticks) == (0, 0)


async def test_sums_are_of_what_one_may_view(filled: Filled) -> None:
    path, kind = "cronring.v1.Statistics/GetSchedulerStats", statistics_pb2.SchedulerStats
    for name, jobs, executions in (("viewer", 3, 2), ("both", 6, 4), ("root", 6, 4), ("elsewhere", 0, 0)):
        for _ in range(2):
            found = await Caller(filled, name).ask(path, statistics_pb2.GetSchedulerStatsRequest(), kind)
            assert (sum(found.jobs.values()), found.executions) == (jobs, executions), name
            assert found.outcomes["completed"] == executions // 2


async def test_an_order_to_many_jobs_reaches_those_that_one_may_operate(filled: Filled) -> None:
    request = ControlJobsRequest(
        filter=JobFilter(statuses=["paused"]), action=ControlJobsRequest.ACTION_RESUME, dry_run=True
    )
    for name, keys in (("operator", ["billing/xm.xc"]), ("both", ["billing/xm.xc"]), ("elsewhere", [])):
        call = Caller(filled, name).stream(JOBS + "ControlJobs", request, jobs_pb2.ControlJobsProgress)
        first, *others = [message async for message in call]
        assert (first.total, [message.key for message in others]) == (len(keys), keys), name


async def test_a_page_token_of_somebody_else_shows_no_more(filled: Filled) -> None:
    root, viewer = Caller(filled, "root"), Caller(filled, "viewer")
    first = await root.ask(JOBS + "ListJobs", ListJobsRequest(page_size=1), jobs_pb2.ListJobsResponse)
    asked = ListJobsRequest(page_size=1, page_token=first.next_page_token)
    keys = []
    while asked.page_token:
        page = await viewer.ask(JOBS + "ListJobs", asked, jobs_pb2.ListJobsResponse)
        keys += [job.key for job in page.jobs]
        asked.page_token = page.next_page_token
        assert not shows(base64.urlsafe_b64decode(page.next_page_token + "==="))
    assert keys == ["billing/xm.xb", "billing/xm.xc"]


async def _told(call: Any, until: Callable[[Any], bool]) -> AsyncIterator[Any]:
    async for message in call:
        yield message
        if until(message):
            return


async def _happen(filled: Filled) -> None:
    """To both namespaces; to the hidden one first."""
    for execution_id in (filled.hush[1], filled.billing[1]):
        (execution,) = await filled.world.store.get_unfinished((execution_id,))
        await filled.world.end(execution, Outcome.FAILED)


async def test_watchers_are_told_of_what_they_may_view(filled: Filled) -> None:
    viewer, root = Caller(filled, "viewer"), Caller(filled, "root")
    watched, kind = EXECUTIONS + "WatchExecutions", executions_pb2.ExecutionEvent
    jobs = viewer.stream(JOBS + "WatchJobs", jobs_pb2.WatchJobsRequest(), jobs_pb2.JobEvent)
    runs = viewer.stream(watched, executions_pb2.WatchExecutionsRequest(), kind)
    listed = [event async for event in _told(jobs, lambda event: event.kind == jobs_pb2.JobEvent.KIND_LISTED)]
    assert [event.job.key for event in listed[:-1]] == [f"billing/xm.x{verb}" for verb in "abc"]
    (watching,) = [event async for event in _told(runs, lambda _: True)]
    token = await _token_of(root)
    await _happen(filled)
    changed = [event async for event in _told(jobs, lambda event: event.job.key == "billing/xm.xb")]
    ended = [event async for event in _told(runs, lambda event: event.execution.id == filled.billing[1])]
    assert all(event.execution.outputs_hidden and not event.execution.error_message for event in ended)
    again = executions_pb2.WatchExecutionsRequest(resume_token=watching.resume_token)
    since = []
    for stream in (
        viewer.stream(JOBS + "WatchJobs", jobs_pb2.WatchJobsRequest(resume_token=token), jobs_pb2.JobEvent),
        viewer.stream(watched, again, kind),
    ):
        since += [event async for event in _told(stream, lambda event: _job_of(event) == "billing/xm.xb")]
    assert not any(shows(event.SerializeToString()) for event in [*changed, *ended, *since])


def _job_of(event: Any) -> str:
    return event.job.key if isinstance(event, jobs_pb2.JobEvent) else event.execution.job


async def _token_of(root: Caller) -> str:
    call = root.stream(JOBS + "WatchJobs", jobs_pb2.WatchJobsRequest(), jobs_pb2.JobEvent)
    async for event in _told(call, lambda event: event.kind == jobs_pb2.JobEvent.KIND_LISTED):
        token = event.resume_token
    return str(token)


async def test_outputs_are_left_out_for_who_may_not_read_them(filled: Filled) -> None:
    path, request = EXECUTIONS + "GetExecution", executions_pb2.GetExecutionRequest(id=filled.billing[0])
    for name, wrote, hidden in (("viewer", "", True), ("deployer", "", True), ("operator", "x wrote this", False)):
        run = await Caller(filled, name).ask(path, request, executions_pb2.Execution)
        assert {run.output, run.error_message, run.stack, run.payload} == {wrote}, name
        assert (run.outputs_hidden, run.outcome) == (hidden, "completed")
        template = await Caller(filled, name).ask(
            "cronring.v1.Templates/GetTemplate",
            templates_pb2.GetTemplateRequest(namespace="billing", name="xt"),
            templates_pb2.Template,
        )
        assert (template.outputs_hidden, bool(template.spec.payload)) == (hidden, not hidden)


async def test_a_payload_that_was_changed_is_shown_to_who_may_see_it(filled: Filled) -> None:
    secret = '"4111 1111"'
    made = jobs_pb2.CreateJobRequest(namespace="billing", spec=JobSpec(schedule="manual", payload=secret))
    made.queue.queue = "q"
    operator = Caller(filled, "operator")
    key = (await operator.ask(JOBS + "CreateJob", made, jobs_pb2.Job)).key
    changed = jobs_pb2.UpdateJobRequest(key=key, spec=JobSpec(payload="2"))
    changed.update_mask.paths.append("payload")
    await operator.ask(JOBS + "UpdateJob", changed, jobs_pb2.Job)
    for name, shown in (("viewer", False), ("deployer", False), ("operator", True)):
        answer = await Caller(filled, name).ask(
            JOBS + "ListActions", jobs_pb2.ListActionsRequest(job=key), jobs_pb2.ListActionsResponse
        )
        told = json.loads(answer.actions[0].details)["payload"]
        assert told["old"].get("text") == (secret if shown else None)
        assert (told["old"]["bytes"], "sha256" in told["new"]) == (11, True)
        assert ("4111" in str(answer)) == shown


async def test_what_a_viewer_may_not_see_is_taken_out_beside_the_loop(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a thousand actions it took 0.22 s, and ticks wait for the loop."""
    threads = set[int]()

    def noted(details: str) -> str:
        threads.add(threading.get_ident())
        return without_excerpts(details)

    monkeypatch.setattr(messages, "without_excerpts", noted)
    await Caller(filled, "viewer").ask(
        JOBS + "ListActions", jobs_pb2.ListActionsRequest(), jobs_pb2.ListActionsResponse
    )
    assert (bool(threads), threading.get_ident() in threads) == (True, False)


@pytest.mark.parametrize("word", ["hush", "none"])
async def test_nobody_follows_what_they_may_not_view(filled: Filled, word: str) -> None:
    followed = f"{word}/hush_m.hush_a"
    spec = JobSpec(schedule="manual")
    spec.policy.after = followed
    made = jobs_pb2.CreateJobRequest(namespace="billing", module="xm", verb="xa", name="follower", spec=spec)
    code, text = await Caller(filled, "operator").refused(JOBS + "CreateJob", made)
    assert (code, f"{followed!r}, and you may view no such job" in text) == (grpc.StatusCode.INVALID_ARGUMENT, True)
    described = deployments_pb2.CreateDeploymentRequest(digest="c" * 64)
    described.schema.namespace, described.schema.name = "billing", "m2"
    described.schema.verbs.add(name="v", schedule="manual").policy.after = followed
    code, text = await Caller(filled, "deployer").refused(DEPLOYMENTS + "CreateDeployment", described)
    assert (code, "schema.verbs[0].policy.after" in text) == (grpc.StatusCode.INVALID_ARGUMENT, True)


async def test_who_sees_both_may_follow_and_why_tells_of_it_to_who_does(filled: Filled) -> None:
    spec = JobSpec(schedule="manual")
    spec.policy.after = JOB
    made = jobs_pb2.CreateJobRequest(namespace="billing", module="xm", verb="xa", name="follower", spec=spec)
    job = await Caller(filled, "both").ask(JOBS + "CreateJob", made, jobs_pb2.Job)
    path, asked = "cronring.v1.Ledger/Why", ledger_pb2.WhyRequest(job=job.key)
    told = await Caller(filled, "both").ask(path, asked, ledger_pb2.WhyResponse)
    less = await Caller(filled, "viewer").ask(path, asked, ledger_pb2.WhyResponse)
    assert told.HasField("following_tick"), "that of the job that it follows"
    assert not less.HasField("following_tick")


async def test_a_circle_names_no_job_that_one_may_not_view(filled: Filled) -> None:
    root, spec = Caller(filled, "root"), JobSpec(schedule="manual")
    for namespace, after in (("hush", "billing/xm.xa:follower"), ("billing", "hush/hush_m.hush_a:hidden")):
        module, name = ("hush_m", "hidden") if namespace == "hush" else ("xm", "between")
        spec.policy.after = after
        verb = "hush_a" if namespace == "hush" else "xa"
        made = jobs_pb2.CreateJobRequest(namespace=namespace, module=module, verb=verb, name=name, spec=spec)
        await root.ask(JOBS + "CreateJob", made)
    spec.policy.after = "billing/xm.xa:between"
    made = jobs_pb2.CreateJobRequest(namespace="billing", module="xm", verb="xa", name="follower", spec=spec)
    code, text = await Caller(filled, "operator").refused(JOBS + "CreateJob", made)
    assert (code, HIDDEN in text) == (grpc.StatusCode.FAILED_PRECONDITION, False)
    code, text = await Caller(filled, "both").refused(JOBS + "CreateJob", made)
    assert (code, "hush/hush_m.hush_a:hidden" in text) == (grpc.StatusCode.FAILED_PRECONDITION, True)
