"""Jobs through gRPC, over real calls: what is refused and how it is told, and what the store is asked for."""

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
from cronring.controller.api.watch import JobHub
from cronring.controller.core.node.events import ActivationsCreated, JobsCreated, JobsNotified
from cronring.controller.core.orders.control import NeverRuns
from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.reads import TickRun
from cronring.controller.ports.store import Backfill
from cronring.controller.store.memory.templates import MemoryTemplates
from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc
from cronring.protos.cronring.v1.jobs_pb2 import CreateJobRequest, JobSpec, UpdateJobRequest
from cronring.protos.cronring.v1.schema_pb2 import Policy
from cronring.schema.module import DataField, DataType, Module, Verb
from tests.support.boxes import BOX
from tests.support.callers import counting
from tests.unit.shell.memory_control import NOW, MemoryControl
from tests.unit.shell.test_problems import violations

HOUR = 3_600_000_000
CRAWL = Module(
    "crawl",
    (Verb("sweep", timeout_ms=7_000, on_disconnect="finish"), Verb("site", "Site")),
    types=(DataType("Site", (DataField("url", "str"), DataField("depth", "int", True, "1"))),),
)
SITE = '{ "url": "https://example.com" }'


class Api:
    """A served JobsService, a stub of it, and what its node was told."""

    def __init__(self, control: MemoryControl) -> None:
        self.control = control
        self.told: list[object] = []
        self.stub: jobs_pb2_grpc.JobsAsyncStub

    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(f"{event}: {error!r}") from error

    async def create(self, verb: str = "sweep", name: str = "a", **spec: Any) -> jobs_pb2.Job:
        spec.setdefault("schedule", "0 9 * * *")
        request = CreateJobRequest(module="crawl", verb=verb, name=name, spec=JobSpec(**spec), requested_by="ada")
        return await self.stub.CreateJob(request)

    async def update(self, key: str, *paths: str, **spec: Any) -> jobs_pb2.Job:
        return await self.stub.UpdateJob(
            UpdateJobRequest(key=key, spec=JobSpec(**spec), update_mask=FieldMask(paths=paths))
        )


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    api = Api(MemoryControl(CRAWL, Module("mail", (Verb("send"),))))
    reads = cast("Any", api.control)
    hub = JobHub(reads, BOX, lambda _: None)
    templates = MemoryTemplates(lambda: 0)
    service = JobsService(reads, BOX, hub, api.control, templates, Defaults(300_000, "5m:3s"), api.told.append)
    server = grpc.aio.server()
    door: Any = Door(server, counting([]), Calls(api, counting([]), lambda: None), Insecure())
    jobs_pb2_grpc.add_JobsServicer_to_server(service, door)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        api.stub = jobs_pb2_grpc.JobsStub(channel)
        yield api
    await server.stop(None)


async def refused(call: Any, code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT) -> dict[str, str]:
    """The violations by field; the message under ""."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    assert failed.value.code() is code, failed.value.details()
    found = violations(failed.value) if code is grpc.StatusCode.INVALID_ARGUMENT else []
    told: dict[str, str] = {"": failed.value.details() or ""}
    for field, description in found:
        told[field] = f"{told[field]}; {description}" if field in told else description
    return told


async def test_a_job_is_created_with_everything_that_was_asked_for(api: Api) -> None:
    job = await api.create(
        "site", "docs", schedule="every 30m", payload=SITE, labels={"team": "search", "example.com/tier": "2"},
        policy=Policy(retries=3, backoff="5s", timezone="Europe/Berlin"), anchor=Timestamp(seconds=NOW // 1_000_000),
    )  # fmt: skip
    assert (job.key, job.source, job.schedule_words) == ("crawl.site:docs", "api", "every 30 minutes")
    assert (job.payload, dict(job.labels)) == (
        '{"url":"https://example.com"}',
        {"team": "search", "example.com/tier": "2"},
    )
    assert (job.policy.retries, job.policy.backoff, job.policy.jitter) == (3, "5s", "3s")
    assert (job.timezone, job.next_tick_local) == ("Europe/Berlin", "2026-11-21T01:30:00+01:00")
    assert job.next_tick.ToMicroseconds() == NOW + HOUR // 2
    assert (job.timeout_ms, job.on_disconnect) == (300_000, "stop")
    assert api.control.asked == [("create", "ada")]
    assert isinstance(api.told[0], JobsCreated)
    assert [each.key for each in api.told[0].jobs] == ["crawl.site:docs"]


async def test_what_a_job_does_not_state_its_verb_does(api: Api) -> None:
    job = await api.create()
    assert (job.timeout_ms, job.on_disconnect) == (7_000, "finish")
    assert (job.timezone, job.next_tick_local) == ("UTC", "2026-11-21T09:00:00+00:00")


@pytest.mark.parametrize(
    ("spec", "field", "says"),
    [
        ({"schedule": ""}, "spec.schedule", "manual"),
        ({"schedule": "61 * * * *"}, "spec.schedule", "61"),
        ({"schedule": "every 90 minutes"}, "spec.schedule", "every 1h30m"),
        ({"policy": Policy(timezone="Europe/Berln")}, "spec.policy.timezone", "Europe/Berlin"),
        ({"policy": Policy(overlap="bufer_one")}, "spec.policy.overlap", "buffer_one"),
        ({"policy": Policy(retries=101)}, "spec.policy.retries", "100"),
        ({"policy": Policy(max_concurrent=3)}, "spec.policy.max_concurrent", "overlap=allow"),
        ({"schedule": "manual", "policy": Policy(window="Mon 08:00-18:00")}, "spec.policy.window", "leave it out"),
        ({"anchor": Timestamp(seconds=1)}, "spec.anchor", "interval"),
        ({"schedule": "every 1h", "anchor": Timestamp(seconds=1, nanos=5_000)}, "spec.anchor", "whole seconds"),
        ({"payload": "{}"}, "spec.payload", "takes no payload"),
        ({"labels": {"a b": "c"}}, "spec.labels.a b", "is no key"),
        ({"labels": {"a": "c\n"}}, "spec.labels.a", "printable"),
        ({"labels": {f"k{number}": "" for number in range(65)}}, "spec.labels", "at most 64"),
        ({"timeout_ms": -1}, "spec.timeout_ms", "-1"),
        ({"on_disconnect": "wait"}, "spec.on_disconnect", "'stop' or 'finish'"),
    ],
)
async def test_a_wrong_spec_is_told_by_field_with_its_remedy(
    api: Api, spec: dict[str, Any], field: str, says: str
) -> None:
    told = await refused(api.create(**spec))
    assert says in told[field]
    assert not api.control.asked


async def test_everything_that_is_wrong_is_told_at_once(api: Api) -> None:
    told = await refused(api.create(schedule="x", policy=Policy(retries=-1, window="?"), timeout_ms=-1, payload="1"))
    assert told.keys() == {
        "", "spec.schedule", "spec.policy.retries", "spec.policy.window", "spec.timeout_ms", "spec.payload",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ("", "takes a Site"),
        ("{", "line 1, column 2"),
        ('{"url": 7}', "$.url"),
        ('{"ulr": "x"}', "did you mean url?"),
        (f'{{"url": "{"x" * 65_536}"}}', "65536"),
    ],
)
async def test_a_payload_is_held_against_the_parameter(api: Api, payload: str, says: str) -> None:
    assert says in (await refused(api.create("site", payload=payload)))["spec.payload"]


async def test_a_manual_job_may_wait_for_its_payload(api: Api) -> None:
    at_once = jobs_pb2.CreateJobRequest(
        module="crawl", verb="site", name="at_once", spec=jobs_pb2.JobSpec(schedule="manual"), run_now=True
    )
    assert "takes a Site" in (await refused(api.stub.CreateJob(at_once)))["spec.payload"]
    job = await api.create("site", "by_hand", schedule="manual")
    assert not job.HasField("next_tick")
    assert "takes a Site" in (await refused(api.stub.TriggerJob(jobs_pb2.TriggerJobRequest(key=job.key))))["payload"]
    asked = jobs_pb2.TriggerJobRequest(key=job.key, payload=SITE, requested_by="ada")
    activation = await api.stub.TriggerJob(asked)
    assert (activation.trigger, activation.payload) == ("manual", '{"url":"https://example.com"}')
    assert isinstance(api.told[-1], ActivationsCreated)
    assert [each.activation_id for each in api.told[-1].activations] == [activation.id]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (CreateJobRequest(module="crawl", verb="sweeep", name="a"), "did you mean 'sweep'?"),
        (CreateJobRequest(module="craw", verb="sweep", name="a"), "did you mean 'crawl'?"),
        (CreateJobRequest(namespace="prod", module="crawl", verb="sweep", name="a"), "in namespace 'prod'"),
    ],
)
async def test_names_that_are_not_there_bring_the_nearest(api: Api, request_: CreateJobRequest, says: str) -> None:
    assert says in (await refused(api.stub.CreateJob(request_), grpc.StatusCode.NOT_FOUND))[""]


async def test_names_that_none_can_be_are_told_by_field(api: Api) -> None:
    request = CreateJobRequest(namespace="-", module="1st", verb="", name="a:b", spec=JobSpec(schedule="x"))
    assert (await refused(api.stub.CreateJob(request))).keys() == {"", "namespace", "module", "verb", "name"}


async def test_an_unknown_job_brings_the_nearest(api: Api) -> None:
    await api.create(name="nightly")
    calls: list[Any] = [
        api.stub.GetJob(jobs_pb2.GetJobRequest(key="crawl.sweep:nightli")),
        api.stub.DeleteJob(jobs_pb2.DeleteJobRequest(key="crawl.sweep:nightli")),
        api.stub.PauseJob(jobs_pb2.PauseJobRequest(key="crawl.sweep:nightli")),
        api.stub.ListActivations(jobs_pb2.ListActivationsRequest(key="crawl.sweep:nightli")),
        api.update("crawl.sweep:nightli", "schedule"),
    ]
    for call in calls:
        assert "did you mean 'crawl.sweep:nightly'?" in (await refused(call, grpc.StatusCode.NOT_FOUND))[""]


async def test_only_what_the_mask_names_changes(api: Api) -> None:
    key = (await api.create(policy=Policy(retries=2, backoff="5s"), labels={"a": "1", "b": "2"})).key
    job = await api.update(key, "policy.retries", "labels.a", "labels.c", policy=Policy(retries=7), labels={"c": "3"})
    assert (job.policy.retries, job.policy.backoff, dict(job.labels)) == (7, "5s", {"b": "2", "c": "3"})
    assert job.schedule == "0 9 * * *"
    job = await api.update(key, "schedule", "timeout_ms", schedule="every 1h", timeout_ms=9_000)
    assert (job.schedule, job.timeout_ms, job.policy.retries) == ("every 1h", 9_000, 7)
    job = await api.update(key, "policy", "labels")
    assert (job.policy, dict(job.labels)) == (Policy(jitter="3s"), {})
    assert isinstance(api.told[-1], JobsCreated)


async def test_of_two_changes_at_once_both_count(api: Api) -> None:
    """Between the reading of the row and the writing of the change, somebody else changes the same fields' others."""
    key = (await api.create(policy=Policy(retries=2, backoff="5s"), labels={"a": "1"})).key
    other = '{"jitter":"3s","retries":2,"backoff":"9s"}'
    api.control.meanwhile = [
        lambda row: row._replace(spec=row.spec._replace(policy=other)),
        lambda row: row._replace(spec=row.spec._replace(labels={"a": "1", "b": "2"})),
    ]
    job = await api.update(key, "policy.retries", "labels.c", policy=Policy(retries=7), labels={"c": "3"})
    assert (job.policy.retries, job.policy.backoff) == (7, "9s")
    assert dict(job.labels) == {"a": "1", "b": "2", "c": "3"}


async def test_what_others_made_wrong_meanwhile_is_refused(api: Api) -> None:
    key = (await api.create(schedule="every 1h")).key
    api.control.meanwhile = [lambda row: row._replace(spec=row.spec._replace(schedule="manual", policy=""))]
    told = await refused(api.update(key, "policy.window", policy=Policy(window="Mon 08:00-18:00")))
    assert "leave it out" in told["spec.policy.window"]


async def test_a_job_that_never_stands_still_is_told_so(api: Api) -> None:
    key = (await api.create()).key
    api.control.meanwhile = [lambda row: row] * 1_000
    told = await refused(api.update(key, "timeout_ms", timeout_ms=1), grpc.StatusCode.ABORTED)
    assert "try again" in told[""]


async def test_a_schedule_that_is_past_is_refused_with_the_remedy(api: Api) -> None:
    api.control.failure = NeverRuns("its last tick was 2020-01-01T00:00:00Z, so it would never run; give a later time")
    assert "give a later time" in (await refused(api.create(schedule="at 2020-01-01T00:00:00Z")))["spec.schedule"]


async def test_at_now_is_the_next_second_that_can_be_met(api: Api) -> None:
    job = await api.create(schedule="at now")
    assert job.schedule == "at 2026-11-21T00:00:01Z"
    api.control.failures = [NeverRuns("it has passed"), NeverRuns("it has passed")]
    assert (await api.create(name="slow", schedule="at now")).schedule == "at 2026-11-21T00:00:03Z"
    assert (await api.update(job.key, "schedule", schedule="at now")).schedule == "at 2026-11-21T00:00:01Z"


async def test_a_change_is_judged_beside_what_stays(api: Api) -> None:
    key = (await api.create(policy=Policy(overlap="allow", max_concurrent=3))).key
    assert "overlap=allow" in (await refused(api.update(key, "policy.overlap")))["spec.policy.max_concurrent"]
    assert "leave it out" in (await refused(api.update(key, "payload", payload="1")))["spec.payload"]
    told = await refused(api.update(key, "policy.retires", "labels."))
    assert "did you mean 'policy.retries'?" in told["update_mask"]
    assert "'labels.'" in told["update_mask"]
    assert "names nothing" in (await refused(api.update(key)))["update_mask"]


async def test_the_clusters_jitter_is_told_from_a_jobs_own(api: Api) -> None:
    assert [
        (await api.create()).jitter_is_default,
        (await api.stub.ListJobs(jobs_pb2.ListJobsRequest())).jobs[0].jitter_is_default,
    ] == [True, True]
    own = await api.create(name="b", policy=Policy(jitter="10s"))
    assert (own.policy.jitter, own.jitter_is_default) == ("10s", False)
    assert not (await api.create(name="c", schedule="manual")).jitter_is_default


async def test_the_clusters_jitter_is_no_jobs_own(api: Api) -> None:
    """What the cluster gave a pattern must not stand in the way when it becomes a manual job."""
    key = (await api.create()).key
    job = await api.update(key, "schedule", schedule="manual")
    assert job.schedule == "manual"


async def test_auto_stays_what_was_asked_for_through_changes(api: Api) -> None:
    """The cluster here gives 5m:3s and so on to those that say nothing."""
    made = await api.create(name="a", schedule="every 1h", policy=Policy(jitter="AUTO"))
    assert (made.policy.jitter, made.jitter_is_default) == ("auto", False)
    changed = await api.update(made.key, "schedule", schedule="0 9 * * *")
    assert (changed.policy.jitter, changed.jitter_is_default) == ("auto", False)


async def test_an_interval_may_ask_for_both_ways_and_nothing_else_may(api: Api) -> None:
    assert (await api.create(name="a", schedule="every 1h", policy=Policy(jitter="+-10%"))).policy.jitter == "±10%"
    for number, schedule in enumerate(("0 9 * * *", "at 2030-01-01T00:00:00Z", "25m")):
        told = await refused(api.create(name=f"b{number}", schedule=schedule, policy=Policy(jitter="±30s")))
        assert "only ever delayed; write 30s" in told["spec.policy.jitter"]


async def test_an_annotated_job_is_changed_in_its_module(api: Api) -> None:
    key = (await api.create()).key
    api.control.rows[key] = api.control.rows[key]._replace(source="annotation")
    told = await refused(api.update(key, "schedule", schedule="manual"), grpc.StatusCode.FAILED_PRECONDITION)
    assert "deploy" in told[""]


async def test_pause_and_resume_say_who_and_why(api: Api) -> None:
    key = (await api.create()).key
    job = await api.stub.PauseJob(jobs_pb2.PauseJobRequest(key=key, note="bank holiday", requested_by="ada"))
    assert (job.status, job.paused.by, job.paused.note) == ("paused", "ada", "bank holiday")
    assert job.paused.at.ToMicroseconds() == NOW
    assert not job.HasField("next_tick")
    job = await api.stub.ResumeJob(jobs_pb2.ResumeJobRequest(key=key))
    assert (job.status, job.HasField("paused")) == ("scheduled", False)
    assert api.control.asked[-1][1].startswith("ipv4:127.0.0.1"), "without a name it is the caller's address"
    too_long = jobs_pb2.PauseJobRequest(key=key, note="x" * 1_001)
    assert "1000" in (await refused(api.stub.PauseJob(too_long)))["note"]


async def test_deleting_is_told_to_the_node(api: Api) -> None:
    key = (await api.create()).key
    await api.stub.DeleteJob(jobs_pb2.DeleteJobRequest(key=key))
    assert api.told[-1] == JobsNotified()
    assert not api.control.rows


def span(key: str, from_at: int, until_at: int, **fields: Any) -> jobs_pb2.BackfillJobRequest:
    request = jobs_pb2.BackfillJobRequest(key=key, **fields)
    request.from_at.FromMicroseconds(from_at)
    request.until_at.FromMicroseconds(until_at)
    return request


async def test_a_dry_run_says_which_ticks_and_what_ran(api: Api) -> None:
    key = (await api.create(schedule="0 * * * *")).key
    api.control.runs = [TickRun(NOW - 2 * HOUR, 7, "completed", True), TickRun(NOW - HOUR, 8, "failed", False)]
    answer = await api.stub.BackfillJob(span(key, NOW - 3 * HOUR, NOW + HOUR, dry_run=True))
    assert answer.ticks == 4
    assert [(each.tick.ToMicroseconds(), each.execution_id, each.outcome) for each in answer.first_ticks] == [
        (NOW - 3 * HOUR, 0, ""), (NOW - 2 * HOUR, 7, "completed"), (NOW - HOUR, 8, "failed"), (NOW, 0, ""),
    ]  # fmt: skip
    assert [each.completed for each in answer.first_ticks] == [False, True, False, False]
    assert not answer.HasField("activation")
    assert [asked[0] for asked in api.control.asked] == ["create"]


async def test_a_dry_run_of_a_long_span_is_bounded(api: Api) -> None:
    key = (await api.create(schedule="5s")).key
    answer = await api.stub.BackfillJob(span(key, NOW - 24 * HOUR, NOW, dry_run=True))
    assert (answer.ticks, len(answer.first_ticks)) == (17_281, 1_000)


async def test_ticks_outside_the_window_are_no_part_of_a_backfill(api: Api) -> None:
    key = (await api.create(schedule="0 * * * *", policy=Policy(window="Fri 08:00-10:00"))).key
    answer = await api.stub.BackfillJob(span(key, NOW - 48 * HOUR, NOW, dry_run=True))
    hours = [each.tick.ToJsonString() for each in answer.first_ticks]
    assert (answer.ticks, hours) == (2, ["2026-11-20T08:00:00Z", "2026-11-20T09:00:00Z"])


async def test_a_backfill_is_made_up_to_now(api: Api) -> None:
    key = (await api.create(schedule="0 * * * *")).key
    answer = await api.stub.BackfillJob(span(key, NOW - 3 * HOUR, NOW + HOUR, beside=True, requested_by="ada"))
    assert (answer.ticks, answer.activation.ticks_left, answer.activation.beside) == (4, 4, True)
    assert api.control.asked[-1] == ("backfill", "ada", Backfill(NOW - 3 * HOUR, NOW, True, False))
    assert isinstance(api.told[-1], ActivationsCreated)
    listed = await api.stub.ListActivations(jobs_pb2.ListActivationsRequest(key=key))
    assert list(listed.activations) == [answer.activation]
    cancel = jobs_pb2.CancelActivationRequest(key=key, id=answer.activation.id)
    assert [(await api.stub.CancelActivation(cancel)).cancelled for _ in range(2)] == [True, False]


async def test_wrong_spans_are_refused(api: Api) -> None:
    key = (await api.create(schedule="1s")).key
    cases = [
        (jobs_pb2.BackfillJobRequest(key=key), "from_at"),
        (span(key, NOW, NOW - HOUR), "until_at"),
        (span(key, NOW + HOUR, NOW + 2 * HOUR), "from_at"),
        (span(key, NOW - 48 * HOUR, NOW), "until_at"),
    ]
    for request, field in cases:
        assert field in await refused(api.stub.BackfillJob(request))
    assert len(api.control.asked) == 1


async def test_a_span_without_ticks_makes_nothing(api: Api) -> None:
    key = (await api.create(schedule="0 9 1 1 *")).key
    told = len(api.told)
    answer = await api.stub.BackfillJob(span(key, NOW - HOUR, NOW))
    assert (answer.ticks, answer.HasField("activation"), len(api.told)) == (0, False, told)


async def test_while_postgres_is_away_it_says_so(api: Api) -> None:
    key = (await api.create()).key
    api.control.failure = StoreUnavailable("connection refused")
    told = await refused(api.stub.TriggerJob(jobs_pb2.TriggerJobRequest(key=key)), grpc.StatusCode.UNAVAILABLE)
    assert "PostgreSQL" in told[""]
    assert not isinstance(api.told[-1], ActivationsCreated)


async def test_a_change_to_what_is_so_already_says_so(api: Api) -> None:
    await api.create(name="a")
    assert not (await api.update("crawl.sweep:a", "schedule", schedule="0 8 * * *")).unchanged
    assert (await api.update("crawl.sweep:a", "schedule", schedule="0 8 * * *")).unchanged
    assert not (await api.update("crawl.sweep:a", "labels", labels={"team": "x"})).unchanged
    assert (
        await api.update("crawl.sweep:a", "labels", "schedule", labels={"team": "x"}, schedule="0 8 * * *")
    ).unchanged


async def test_the_same_job_again_is_told_so(api: Api) -> None:
    assert [(await api.create()).unchanged for _ in range(2)] == [False, True]
