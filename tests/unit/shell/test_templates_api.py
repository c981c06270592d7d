"""Templates through gRPC, over real calls: what a job takes from one, what wins, and how faults are told."""

from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.jobs import JobsService
from cronring.controller.api.judging import Insecure
from cronring.controller.api.templates import TemplatesService
from cronring.controller.api.watch import JobHub
from cronring.controller.store.memory.templates import MemoryTemplates
from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc, templates_pb2, templates_pb2_grpc
from cronring.protos.cronring.v1.jobs_pb2 import JobSpec
from cronring.protos.cronring.v1.schema_pb2 import Policy
from cronring.schema.module import DataField, DataType, Module, Verb
from tests.support.boxes import BOX
from tests.support.callers import counting
from tests.unit.shell.memory_control import NOW, MemoryControl
from tests.unit.shell.test_jobs_api import refused

CRAWL = Module(
    "crawl",
    (Verb("sweep", timeout_ms=7_000), Verb("site", "Site")),
    types=(DataType("Site", (DataField("url", "str"),)),),
)
SITE = '{"url": "https://example.com"}'
NIGHTLY = JobSpec(
    schedule="0 3 * * *", policy=Policy(timezone="Europe/Berlin", retries=3, retry_on=["lost"]), timeout_ms=9_000,
    labels={"tier": "slow", "team": "night"}, on_disconnect="finish",
)  # fmt: skip


class Api:
    """Served Jobs and Templates, and stubs of them."""

    def __init__(self) -> None:
        self.control = MemoryControl(CRAWL)
        self.templates = MemoryTemplates(lambda: NOW)
        self.jobs: jobs_pb2_grpc.JobsAsyncStub
        self.stub: templates_pb2_grpc.TemplatesAsyncStub

    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(f"{event}: {error!r}") from error

    async def set(self, name: str, spec: JobSpec, *paths: str, **fields: Any) -> templates_pb2.Template:
        return await self.stub.SetTemplate(
            templates_pb2.SetTemplateRequest(name=name, spec=spec, update_mask=FieldMask(paths=paths), **fields)
        )

    async def create(
        self, spec: JobSpec, *explicit: str, template: str = "nightly", verb: str = "sweep"
    ) -> jobs_pb2.Job:
        return await self.jobs.CreateJob(
            jobs_pb2.CreateJobRequest(
                module="crawl", verb=verb, name="a", spec=spec, template=template,
                explicit=FieldMask(paths=explicit), requested_by="ada", note="why not",
            )
        )  # fmt: skip


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    api = Api()
    reads = cast("Any", api.control)
    hub = JobHub(reads, BOX, lambda _: None)
    jobs = JobsService(reads, BOX, hub, api.control, api.templates, Defaults(300_000, ""), lambda _: None)
    server = grpc.aio.server()
    door: Any = Door(server, counting([]), Calls(api, counting([]), lambda: None), Insecure())
    jobs_pb2_grpc.add_JobsServicer_to_server(jobs, door)
    templates_pb2_grpc.add_TemplatesServicer_to_server(TemplatesService(api.templates, BOX), door)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        api.jobs, api.stub = jobs_pb2_grpc.JobsStub(channel), templates_pb2_grpc.TemplatesStub(channel)
        yield api
    await server.stop(None)


async def test_a_job_takes_all_that_it_does_not_say_itself(api: Api) -> None:
    await api.set("nightly", NIGHTLY)
    job = await api.create(JobSpec())
    assert (job.template, job.schedule, job.timeout_ms, job.on_disconnect) == ("nightly", "0 3 * * *", 9_000, "finish")
    assert job.policy == Policy(timezone="Europe/Berlin", retries=3, retry_on=["lost"])
    assert dict(job.labels) == {"tier": "slow", "team": "night"}
    assert api.control.asked == [("create", "ada", "why not")]


async def test_what_a_job_says_wins_field_by_field(api: Api) -> None:
    await api.set("nightly", NIGHTLY)
    job = await api.create(
        JobSpec(schedule="0 4 * * *", policy=Policy(retries=5), labels={"team": "day"}, timeout_ms=1_000)
    )
    assert (job.schedule, job.timeout_ms, job.on_disconnect) == ("0 4 * * *", 1_000, "finish")
    assert job.policy == Policy(timezone="Europe/Berlin", retries=5, retry_on=["lost"])
    assert dict(job.labels) == {"tier": "slow", "team": "day"}


async def test_no_retries_that_a_job_says_win_and_a_template_may_say_none(api: Api) -> None:
    await api.set("nightly", NIGHTLY)
    job = await api.create(JobSpec(policy=Policy(retries=0)), "policy.retries")
    assert job.policy == Policy(timezone="Europe/Berlin", retries=0, retry_on=["lost"])
    await api.control.delete_job("crawl.sweep:a", "ada")
    none = await api.set("nightly", JobSpec(policy=Policy(retries=0)), "policy.retries")
    assert none.spec.policy.HasField("retries")
    assert (await api.create(JobSpec())).policy.HasField("retries")


@pytest.mark.parametrize(
    ("paths", "policy", "labels"),
    [
        (["policy.retries", "policy.retry_on"], Policy(timezone="Europe/Berlin"), {"tier": "slow", "team": "night"}),
        (["policy"], Policy(), {"tier": "slow", "team": "night"}),
        (["policy.retry_on", "labels.tier"], Policy(timezone="Europe/Berlin", retries=3), {"team": "night"}),
        (["labels"], Policy(timezone="Europe/Berlin", retries=3, retry_on=["lost"]), {}),
    ],
)
async def test_what_is_explicitly_empty_is_not_taken(
    api: Api, paths: list[str], policy: Policy, labels: dict[str, str]
) -> None:
    await api.set("nightly", NIGHTLY)
    job = await api.create(JobSpec(), *paths)
    assert (job.policy, dict(job.labels)) == (policy, labels)


async def test_an_explicitly_empty_timeout_is_the_verbs(api: Api) -> None:
    await api.set("nightly", NIGHTLY)
    assert (await api.create(JobSpec(), "timeout_ms", "on_disconnect")).timeout_ms == 7_000
    told = await refused(api.create(JobSpec(), "schedule"))
    assert told["spec.schedule"].startswith("is empty")


async def test_an_anchor_goes_with_its_schedule(api: Api) -> None:
    anchor = Timestamp(seconds=NOW // 1_000_000 - 100)
    set_to = await api.set("nightly", JobSpec(schedule="every 6h", anchor=anchor))
    assert (set_to.spec.anchor, set_to.schedule_words) == (anchor, "every 6 hours")
    assert (await api.create(JobSpec())).anchor == anchor
    await api.control.delete_job("crawl.sweep:a", "ada")
    assert (await api.create(JobSpec(schedule="every 2h"))).anchor != anchor
    changed = await api.set("nightly", JobSpec(schedule="0 3 * * *"), "schedule")
    assert not changed.spec.HasField("anchor")
    assert "spec.anchor" in await refused(api.set("other", JobSpec(anchor=anchor)))


async def test_an_instant_is_read_on_the_templates_clocks(api: Api) -> None:
    await api.set("nightly", JobSpec(policy=Policy(timezone="Asia/Tokyo")))
    assert (await api.create(JobSpec(schedule="at 2026-12-01T09:00:00"))).schedule == "at 2026-12-01T00:00:00Z"


async def test_a_fault_names_its_template_and_field(api: Api) -> None:
    await api.set("nightly", JobSpec(policy=Policy(max_concurrent=3), payload='{"uri": 1}'))
    told = await refused(api.create(JobSpec(schedule="0 3 * * *"), verb="site"))
    assert told["spec.policy.max_concurrent"].endswith("(from the template 'nightly')")
    assert "(from the template 'nightly')" in told["spec.payload"]
    told = await refused(api.create(JobSpec(schedule="x", payload=SITE, policy=Policy(overlap="allow")), verb="site"))
    assert "template" not in told["spec.schedule"]
    assert await api.create(JobSpec(schedule="0 3 * * *", payload=SITE, policy=Policy(overlap="allow")), verb="site")


async def test_an_unknown_template_or_mask_is_told(api: Api) -> None:
    await api.set("nightly", NIGHTLY)
    told = await refused(api.create(JobSpec(), template="nigthly"), grpc.StatusCode.NOT_FOUND)
    assert "did you mean 'nightly'?" in told[""]
    for template in ("nightly", ""):
        told = await refused(api.create(JobSpec(schedule="0 3 * * *"), "policy.retrys", template=template))
        assert "policy.retries" in told["explicit"]


async def test_a_template_is_set_whole_or_in_parts(api: Api) -> None:
    made = await api.set("nightly", NIGHTLY, description="at night", requested_by="ada")
    assert (made.revision, made.created_by, made.description, made.spec) == (1, "ada", "at night", NIGHTLY)
    again = await api.set("nightly", NIGHTLY, description="at night", requested_by="bob")
    assert (again.revision, again.changed_by, again.unchanged) == (1, "ada", True)
    part = await api.set(
        "nightly", JobSpec(policy=Policy(backoff="60s")), "policy.backoff", "labels.tier", "description"
    )
    assert (part.revision, part.description, part.unchanged) == (2, "", False)
    assert part.spec.policy == Policy(timezone="Europe/Berlin", retries=3, retry_on=["lost"], backoff="1m")
    assert dict(part.spec.labels) == {"team": "night"}
    assert part.spec.schedule == "0 3 * * *"
    whole = await api.set("nightly", JobSpec(policy=Policy(retries=1)))
    assert whole.spec == JobSpec(policy=Policy(retries=1))


@pytest.mark.parametrize(
    ("spec", "field", "says"),
    [
        (JobSpec(schedule="@daily"), "spec.schedule", "0 0 * * *"),
        (JobSpec(policy=Policy(retries=101)), "spec.policy.retries", "100"),
        (JobSpec(policy=Policy(overlap="forbid")), "spec.policy.overlap", "skip"),
        (JobSpec(payload="{"), "spec.payload", ""),
        (JobSpec(timeout_ms=-1), "spec.timeout_ms", ""),
        (JobSpec(on_disconnect="maybe"), "spec.on_disconnect", "finish"),
        (JobSpec(schedule="every 5m", policy=Policy(dst_gap="skip")), "spec.policy.dst_gap", ""),
    ],
)
async def test_what_is_wrong_is_told_when_it_is_set(api: Api, spec: JobSpec, field: str, says: str) -> None:
    assert says in (await refused(api.set("nightly", spec)))[field]
    assert not api.templates.templates


async def test_names_are_checked(api: Api) -> None:
    for name in ("", "-x", "a/b", "x" * 101):
        assert "template" in (await refused(api.set(name, NIGHTLY)))["name"] or len(name) > 100
    assert "namespace" in await refused(api.set("x", NIGHTLY, namespace="No Such"))


async def test_templates_are_listed_page_by_page_and_deleted(api: Api) -> None:
    for name in ("b", "a", "c"):
        await api.set(name, NIGHTLY)
    first = await api.stub.ListTemplates(templates_pb2.ListTemplatesRequest(page_size=2))
    request = templates_pb2.ListTemplatesRequest(page_size=2, page_token=first.next_page_token)
    second = await api.stub.ListTemplates(request)
    assert [[each.name for each in page.templates] for page in (first, second)] == [["a", "b"], ["c"]]
    assert second.next_page_token == ""
    await api.stub.DeleteTemplate(templates_pb2.DeleteTemplateRequest(name="b", note="gone", requested_by="ada"))
    got = api.stub.GetTemplate(templates_pb2.GetTemplateRequest(name="b"))
    assert "there is no template 'b'" in (await refused(got, grpc.StatusCode.NOT_FOUND))[""]
    last = api.templates.actions[-1]
    assert (last.action, last.actor, last.note, last.template) == ("delete_template", "ada", "gone", "default/b")


async def test_actions_of_a_template_exclude_those_of_a_job(api: Api) -> None:
    request = jobs_pb2.ListActionsRequest(job="crawl.sweep", template="nightly")
    assert "template" in await refused(api.jobs.ListActions(request))
