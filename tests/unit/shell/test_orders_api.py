"""cronring.v1.Jobs: orders to single jobs and to many, over a real server and a control in memory."""

from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from cronring.client.failures import meaning
from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.jobs import JobsService
from cronring.controller.api.judging import Insecure
from cronring.controller.api.watch import JobHub
from cronring.controller.core.node.events import ActivationsCreated, JobsCreated, JobsNotified
from cronring.controller.core.orders.orders import Pause, SkipNext
from cronring.controller.errors import IllegalTransition
from cronring.controller.ports.reads import ActionRow
from cronring.controller.store.memory.templates import MemoryTemplates
from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc
from cronring.protos.cronring.v1.jobs_pb2 import ControlJobsRequest, CreateJobRequest, JobFilter, JobSpec
from cronring.schema.module import Module, Verb
from tests.support.boxes import BOX
from tests.support.callers import counting
from tests.unit.shell.memory_control import NOW, MemoryControl

HOUR = 3_600_000_000


class Api:
    def __init__(self, control: MemoryControl) -> None:
        self.control = control
        self.told: list[object] = []
        self.stub: jobs_pb2_grpc.JobsAsyncStub

    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(f"{event}: {error!r}") from error

    async def create(self, name: str, **labels: str) -> str:
        spec = JobSpec(schedule="0 9 * * *", labels=labels)
        return (await self.stub.CreateJob(CreateJobRequest(module="crawl", verb="sweep", name=name, spec=spec))).key

    async def control_jobs(self, action: "ControlJobsRequest.Action.ValueType", **fields: Any) -> list[Any]:
        request = ControlJobsRequest(action=action, filter=JobFilter(labels={"team": "x"}), **fields)
        return [message async for message in self.stub.ControlJobs(request)]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    api = Api(MemoryControl(Module("crawl", (Verb("sweep"),))))
    reads = cast("Any", api.control)
    hub = JobHub(reads, BOX, lambda _: None)
    templates = MemoryTemplates(lambda: 0)
    service = JobsService(reads, BOX, hub, api.control, templates, Defaults(300_000, ""), api.told.append)
    server = grpc.aio.server()
    door: Any = Door(server, counting([]), Calls(api, counting([]), lambda: None), Insecure())
    jobs_pb2_grpc.add_JobsServicer_to_server(service, door)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        api.stub = jobs_pb2_grpc.JobsStub(channel)
        yield api
    await server.stop(None)


def stamp(instant: int) -> Timestamp:
    return Timestamp(seconds=instant // 1_000_000)


async def refused(call: Any, code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    assert failed.value.code() is code, failed.value.details()
    return failed.value


async def test_a_pause_has_an_end_to_come(api: Api) -> None:
    key = await api.create("a")
    request = jobs_pb2.PauseJobRequest(key=key, note="bank", until=stamp(NOW + HOUR), requested_by="ada")
    job = await api.stub.PauseJob(request)
    assert job.paused.until == stamp(NOW + HOUR)
    assert not job.unchanged
    assert api.control.asked[-1] == ("pause", "ada", Pause("bank", NOW + HOUR))
    assert isinstance(api.told[-1], JobsCreated), "this controller's node hears of it at once"
    told = len(api.told)
    assert (await api.stub.PauseJob(request)).unchanged
    assert len(api.told) == told
    passed = jobs_pb2.PauseJobRequest(key=key, until=stamp(NOW))
    assert "has passed" in (await refused(api.stub.PauseJob(passed))).details()  # type: ignore[operator]  # it has some


async def test_skip_next_names_its_tick_and_a_rehearsal_changes_nothing(api: Api) -> None:
    key = await api.create("a")
    rehearsal = await api.stub.SkipNextTick(jobs_pb2.SkipNextTickRequest(key=key, dry_run=True))
    assert (rehearsal.skipped, rehearsal.tick) == (False, stamp(NOW))
    told = len(api.told)
    skipped = await api.stub.SkipNextTick(jobs_pb2.SkipNextTickRequest(key=key, tick=stamp(NOW + HOUR), note="no"))
    assert (skipped.skipped, skipped.tick) == (True, stamp(NOW + HOUR))
    assert api.control.asked[-1][2] == SkipNext(NOW + HOUR, "no")
    assert len(api.told) == told + 1


async def test_cancel_and_restore(api: Api) -> None:
    key = await api.create("a")
    answer = await api.stub.CancelJob(jobs_pb2.CancelJobRequest(key=key, note="enough", requested_by="ada"))
    assert (answer.job.status, answer.job.cancelled.by, answer.job.cancelled.note) == ("cancelled", "ada", "enough")
    job = await api.stub.RestoreJob(jobs_pb2.RestoreJobRequest(key=key))
    assert (job.status, job.HasField("cancelled")) == ("scheduled", False)


async def test_what_a_state_does_not_allow_says_so_to_programs_too(api: Api) -> None:
    key = await api.create("a")
    api.control.failure = IllegalTransition(
        f"can't pause {key!r}: it is cancelled", job=key, state="cancelled", target="paused", action="pause"
    )
    error = await refused(api.stub.PauseJob(jobs_pb2.PauseJobRequest(key=key)), grpc.StatusCode.FAILED_PRECONDITION)
    conflict = meaning(error)
    assert conflict.info == {"job": key, "action": "pause", "state": "cancelled", "target": "paused"}  # type: ignore[attr-defined]  # a Conflict


async def test_many_jobs_each_with_its_own_fate(api: Api) -> None:
    keys = [await api.create(f"n{number:03}", team="x") for number in range(250)]
    other = await api.create("other", team="y")
    api.control.refusing[keys[7]] = IllegalTransition("no", job=keys[7], state="cancelled", target="paused", action="")
    rehearsed = await api.control_jobs(ControlJobsRequest.ACTION_PAUSE, dry_run=True)
    assert all(api.control.rows[key].status == "scheduled" for key in keys)
    first, *rows = await api.control_jobs(ControlJobsRequest.ACTION_PAUSE, note="x", requested_by="ada")
    assert (first.key, first.total) == ("", 250)
    assert [row.key for row in rows] == [row.key for row in rehearsed[1:]] == keys
    assert [row.position for row in rows] == list(range(1, 251))
    assert [(row.key, row.problem) for row in rows if not row.done] == [(keys[7], "no")]
    assert sum(api.control.rows[key].status == "paused" for key in keys) == 249
    assert api.control.rows[other].status == "scheduled"
    assert api.told[-1] == JobsNotified()
    _, *again = await api.control_jobs(ControlJobsRequest.ACTION_PAUSE, note="x", requested_by="ada")
    assert sum(row.unchanged for row in again) == 249


async def test_many_are_run_by_hand_and_claimed_here(api: Api) -> None:
    for name in "ab":
        await api.create(name, team="x")
    _, *rows = await api.control_jobs(ControlJobsRequest.ACTION_TRIGGER)
    assert [row.details for row in rows] == ['{"activation": 1}', '{"activation": 2}']
    told = api.told[-1]
    assert isinstance(told, ActivationsCreated)
    assert len(told.activations) == 2


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (ControlJobsRequest(action=ControlJobsRequest.ACTION_PAUSE), "filter"),
        (ControlJobsRequest(filter=JobFilter(module="crawl")), "action"),
        (
            ControlJobsRequest(filter=JobFilter(statuses=["x"]), action=ControlJobsRequest.ACTION_PAUSE),
            "filter.statuses",
        ),
        (ControlJobsRequest(filter=JobFilter(labels={"": "x"}), action=ControlJobsRequest.ACTION_PAUSE), "labels"),
        (
            ControlJobsRequest(
                filter=JobFilter(module="a"), action=ControlJobsRequest.ACTION_CANCEL, until=stamp(NOW + HOUR)
            ),
            "until",
        ),
    ],
)
async def test_what_is_wrong_with_an_order_to_many_is_told(api: Api, request_: ControlJobsRequest, field: str) -> None:
    async def call() -> None:
        async for _ in api.stub.ControlJobs(request_):
            raise AssertionError("something was done")

    assert field in (await refused(call())).details()  # type: ignore[operator]  # it has some


async def test_actions_come_in_pages(api: Api) -> None:
    api.control.actions = [
        ActionRow(number, NOW + number, "crawl.sweep:a", "", None, "pause", "ada", "n", "{}") for number in range(1, 6)
    ]
    request = jobs_pb2.ListActionsRequest(page_size=2, job="crawl.sweep:a")
    found = []
    while True:
        page = await api.stub.ListActions(request)
        found += [action.id for action in page.actions]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert found == [5, 4, 3, 2, 1]
    assert (page.actions[0].actor, page.actions[0].note) == ("ada", "n")


async def test_jobs_are_listed_by_label(api: Api) -> None:
    key = await api.create("a", team="x", tier="1")
    await api.create("b", team="y")
    asked = jobs_pb2.ListJobsRequest(filter=JobFilter(labels={"team": "x", "tier": "1"}))
    assert [job.key for job in (await api.stub.ListJobs(asked)).jobs] == [key]
