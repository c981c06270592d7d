"""ApplySet and its like: what callers are told, on real PostgreSQL."""

import asyncio
from typing import Any

import grpc

from cronring.client.sets import APPLY_BYTES_MAX
from cronring.controller.api.policy import POLICY
from cronring.protos.cronring.v1.jobs_pb2 import (
    CreateJobRequest,
    GetJobRequest,
    Job,
    JobSpec,
    ListActionsRequest,
    ListActionsResponse,
    PauseJobRequest,
    QueueTarget,
    UpdateJobRequest,
)
from cronring.protos.cronring.v1.schema_pb2 import Policy
from cronring.protos.cronring.v1.sets_pb2 import (
    ApplySetRequest,
    ApplySetResponse,
    ExportJobsRequest,
    ListSetJobsRequest,
    ListSetJobsResponse,
    ListSetsRequest,
    ListSetsResponse,
    SetJob,
)
from cronring.schema.module import Module, Verb
from tests.conformance.harness import TIMEOUT_MS
from tests.integration.api.conftest import Filled
from tests.integration.api.test_many_jobs import HOURLY, JOBS, Many, key, new
from tests.integration.api.test_who_sees import Caller

SETS = "cronring.v1.Sets/"
COUNTED = ("created", "changed", "adopted", "removed", "released", "left", "unchanged", "refused")


class Applying:
    """Calls of one caller about one set."""

    def __init__(self, filled: Filled, name: str = "operator", of: str = "prod") -> None:
        self.caller = Caller(filled, name)
        self._of = of

    async def apply(self, *jobs: CreateJobRequest, **how: Any) -> ApplySetResponse:
        request = ApplySetRequest(namespace="billing", name=self._of, jobs=jobs, **how)
        answer = await self.caller.ask(SETS + "ApplySet", request, ApplySetResponse)
        assert isinstance(answer, ApplySetResponse)
        return answer

    async def refused(self, *jobs: CreateJobRequest, **how: Any) -> tuple[Any, str]:
        request = ApplySetRequest(namespace="billing", name=self._of, jobs=jobs, **how)
        return await self.caller.refused(SETS + "ApplySet", request)

    async def exported(self) -> list[CreateJobRequest]:
        request = ExportJobsRequest(set_name=self._of)
        request.filter.namespace = "billing"
        return [each async for each in self.caller.stream(SETS + "ExportJobs", request, CreateJobRequest)]

    async def job(self, name: str) -> Job:
        job = await self.caller.ask(JOBS + "GetJob", GetJobRequest(key=key(name)), Job)
        assert isinstance(job, Job)
        return job


def counts(answer: ApplySetResponse) -> dict[str, int]:
    found = {name: int(getattr(answer, name)) for name in COUNTED}
    return {name: count for name, count in found.items() if count}


def changes(answer: ApplySetResponse) -> dict[str, str]:
    return {each.key.rpartition(":")[2]: each.change for each in answer.jobs}


def one(answer: ApplySetResponse) -> SetJob:
    (job,) = answer.jobs
    return job


def at(minute: int, **policy: Any) -> JobSpec:
    return JobSpec(schedule=f"{minute} * * * *", policy=Policy(**policy), labels={"team": "x"})


async def test_a_set_is_what_the_request_says(filled: Filled) -> None:
    prod = Applying(filled)
    wanted = new("one"), new("two", at(5))
    look = await prod.apply(*wanted, dry_run=True)
    assert (counts(look), look.applied, changes(look)) == ({"created": 2}, False, {"one": "created", "two": "created"})
    assert {(each.ticks.before, each.ticks.after, each.ticks.new) for each in look.jobs} == {(0, 24, 24)}
    assert (await prod.caller.refused(JOBS + "GetJob", GetJobRequest(key=key("one"))))[0] is grpc.StatusCode.NOT_FOUND
    made = await prod.apply(*wanted, etag=look.etag)
    assert (counts(made), made.applied) == ({"created": 2}, True)
    assert ((await prod.job("one")).set_name, (await prod.job("one")).source) == ("prod", "api")
    again = await prod.apply(*wanted)
    assert (counts(again), again.applied, list(again.jobs)) == ({"unchanged": 2}, True, [])
    listed = await prod.caller.ask(SETS + "ListSets", ListSetsRequest(namespace="billing"), ListSetsResponse)
    assert [(each.name, each.jobs, each.revision) for each in listed.sets] == [("prod", 2, 1), ("xs", 0, 1)]
    page = await prod.caller.ask(
        SETS + "ListSetJobs", ListSetJobsRequest(namespace="billing", name="prod", page_size=1), ListSetJobsResponse
    )
    assert ([each.key for each in page.jobs], bool(page.next_page_token)) == ([key("one")], True)


async def test_what_differs_is_told_by_field_and_by_tick(filled: Filled) -> None:
    prod = Applying(filled)
    await prod.apply(new("one", at(0, retries=5)))
    changed = one(await prod.apply(new("one", JobSpec(schedule="5 * * * *", labels={"team": "y"}))))
    assert [(each.field, each.old, each.new) for each in changed.fields] == [
        ("schedule", "0 * * * *", "5 * * * *"), ("policy.retries", "5", ""), ("labels.team", "x", "y"),
    ]  # fmt: skip
    assert (changed.ticks.gone, changed.ticks.new) == (24, 24)
    # Five minutes on; in the first five of an hour, 55 back: the first tick that goes is that of the next hour then.
    assert changed.ticks.shift_ms % 3_600_000 == 300_000
    assert len(changed.ticks.first_gone) == 5
    same = one(await prod.apply(new("one", JobSpec(schedule="5 * * * *"))))
    assert (same.ticks.gone, same.ticks.new, same.ticks.after) == (0, 0, 24)
    gone = one(await prod.apply(prune=True, hours=48))
    assert (gone.change, gone.ticks.before, gone.ticks.after) == ("removed", 48, 0)


async def test_what_the_request_lacks_stays_until_it_is_pruned_or_released(filled: Filled) -> None:
    prod, other = Applying(filled), Applying(filled, of="other")
    await prod.apply(new("one"), new("two"), new("three"))
    left = await prod.apply(new("one"))
    assert (counts(left), changes(left)) == ({"left": 2, "unchanged": 1}, {"three": "left", "two": "left"})
    assert (await prod.refused(new("one"), prune=True, release=True))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert counts(await prod.apply(new("one"), new("two"), prune=True)) == {"removed": 1, "unchanged": 2}
    assert changes(await prod.apply(new("one"), release=True)) == {"two": "released"}
    assert (await prod.job("two")).set_name == ""
    assert changes(await other.apply(new("two"), adopt=True)) == {"two": "adopted"}
    assert (await prod.job("two")).set_name == "other"
    assert changes(await prod.apply(prune=True)) == {"one": "removed"}
    listed = await prod.caller.ask(SETS + "ListSets", ListSetsRequest(namespace="billing"), ListSetsResponse)
    assert [each.name for each in listed.sets] == ["other", "xs"], "an empty set is none"


async def test_whose_a_job_is_decides(filled: Filled) -> None:
    prod, other = Applying(filled), Applying(filled, of="other")
    await other.apply(new("others"))
    await Many(filled).create(new("hand", at(5)))
    declared = CreateJobRequest(module="xm", verb="xa", name="", spec=HOURLY)
    refused = await prod.apply(new("others"), new("hand"), new("fine"), declared)
    assert (counts(refused), refused.applied) == ({"created": 1, "refused": 3}, False)
    told = {each.key: each.refusal.problem for each in refused.jobs if each.change == "refused"}
    assert "belongs to the set 'other'" in told[key("others")]
    assert "--adopt takes it into this one" in told[key("hand")]
    assert (await prod.caller.refused(JOBS + "GetJob", GetJobRequest(key=key("fine"))))[0] is grpc.StatusCode.NOT_FOUND
    adopted = one(await prod.apply(new("hand"), adopt=True))
    assert (adopted.change, adopted.adopted, adopted.HasField("by_hand")) == ("changed", True, False)
    assert (await prod.job("hand")).schedule == "0 * * * *"


async def test_everything_that_is_wrong_is_told_at_once(filled: Filled) -> None:
    prod = Applying(filled)
    now, elsewhere = new("now"), new("elsewhere")
    now.run_now, elsewhere.namespace = True, "ops"
    answer = await prod.apply(
        new("a", JobSpec(schedule="61 * * * *")), new("b", verb="none"), new("c", JobSpec(schedule="at now")),
        new("d", JobSpec(schedule="at 2001-01-01T00:00:00Z")), new("e", template="none"), new("-f-"), new("g"),
        new("g"),        new("h", module="none"), new("i", note="mine"), now, elsewhere, new("fine"),
    )  # fmt: skip
    assert counts(answer) == {"refused": 11, "created": 1}
    assert {each.refusal.reason for each in answer.jobs if each.change == "refused"} == {"INVALID", "NOT_FOUND"}
    assert await prod.exported() == []


async def test_drift_is_told_and_set_back_and_pauses_stay(filled: Filled) -> None:
    prod, eve = Applying(filled), Caller(filled, "root")
    await prod.apply(new("edited"), new("deleted"), new("paused"))
    change = UpdateJobRequest(key=key("edited"), spec=at(7), note="hotfix")
    change.update_mask.paths.append("schedule")
    await eve.ask(JOBS + "UpdateJob", change, Job)
    await Many(filled, "root").delete(key("deleted"))
    await eve.ask(JOBS + "PauseJob", PauseJobRequest(key=key("paused")), Job)
    answer = await prod.apply(new("edited"), new("deleted"), new("paused", at(9)))
    told = {each.key.rpartition(":")[2]: each for each in answer.jobs}
    hand = {name: each.by_hand for name, each in told.items()}
    assert {name: (each.change, hand[name].action, hand[name].by, hand[name].note) for name, each in told.items()} == {
        "edited": ("changed", "update", "token:root", "hotfix"), "deleted": ("created", "delete", "token:root", ""),
        "paused": ("changed", "", "", ""),
    }  # fmt: skip
    assert (told["paused"].paused, (await prod.job("paused")).status) == (True, "paused")
    assert ((await prod.job("edited")).schedule, (await prod.job("paused")).schedule) == ("0 * * * *", "9 * * * *")
    assert counts(await prod.apply(new("edited"), new("deleted"), new("paused", at(9)))) == {"unchanged": 3}
    actions = await prod.caller.ask(JOBS + "ListActions", ListActionsRequest(job=key("edited")), ListActionsResponse)
    assert [(each.action, '"set": "prod"' in each.details) for each in actions.actions] == [
        ("update", True), ("update", False), ("create", True),
    ]  # fmt: skip


async def test_only_what_was_planned_is_done_with_its_etag(filled: Filled) -> None:
    prod = Applying(filled)
    await prod.apply(new("one"))
    look = await prod.apply(new("one", at(5)), dry_run=True)
    for other in (new("one", at(6)), new("two")):
        code, text = await prod.refused(other, etag=look.etag)
        assert (code, "it has been changed since" in text) == (grpc.StatusCode.ABORTED, True)
    change = UpdateJobRequest(key=key("one"), spec=JobSpec(labels={"team": "y"}))
    change.update_mask.paths.append("labels")
    await prod.caller.ask(JOBS + "UpdateJob", change, Job)
    assert (await prod.refused(new("one", at(5)), etag=look.etag))[0] is grpc.StatusCode.ABORTED
    assert (await prod.job("one")).schedule == "0 * * * *"
    look = await prod.apply(new("one", at(5)), dry_run=True)
    assert counts(await prod.apply(new("one", at(5)), etag=look.etag)) == {"changed": 1}


async def test_of_applies_at_once_one_comes_after_the_other(filled: Filled) -> None:
    """Each is whole: what is there in the end is what one of them wanted."""
    prod = Applying(filled)
    wanted = [[new(f"{writer}-{number}", at(writer)) for number in range(30)] + [new("both", at(writer))]
              for writer in range(4)]  # fmt: skip
    await asyncio.gather(*(prod.apply(*jobs, prune=True) for jobs in wanted))
    there = {(each.name, each.spec.schedule) for each in await prod.exported()}
    assert there in [{(job.name, job.spec.schedule) for job in jobs} for jobs in wanted]


async def test_what_is_exported_is_unchanged_when_it_is_applied(filled: Filled) -> None:
    prod = Applying(filled)
    odd = JobSpec(
        schedule="every 90m", policy=Policy(retries=2, retry_on=["lost", "KeyError"], window="Mon-Fri 08:00-18:00"),
        labels={"a.b/c": " - 'on': #|x "}, timeout_ms=61_500, on_disconnect="finish",
    )  # fmt: skip
    made = await prod.apply(
        new("odd", odd), new("plain"), new("manual", JobSpec(schedule="manual")),
        new("once", JobSpec(schedule="at 2090-01-01T00:00:00Z")),
    )  # fmt: skip
    assert counts(made) == {"created": 4}, made
    exported = await prod.exported()
    assert [each.name for each in exported] == ["manual", "odd", "once", "plain"]
    plain = exported[3].spec
    assert (plain.HasField("timeout_ms"), plain.on_disconnect, plain.policy.jitter) == (False, "", "")
    assert counts(await prod.apply(*exported, prune=True)) == {"unchanged": 4}
    await prod.apply(prune=True)
    assert counts(await prod.apply(*exported)) == {"created": 4}
    assert await prod.exported() == exported, "an interval counts from where it did"
    viewer = ExportJobsRequest()
    viewer.filter.namespace = "billing"
    code, _ = await Caller(filled, "viewer").refused(SETS + "ExportJobs", viewer)
    assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_jobs_without_their_verb_stay_in_their_file(filled: Filled) -> None:
    prod = Applying(filled)
    await prod.apply(new("one"))
    without = Module("xm", (Verb("xb", schedule="every 1h"),), "billing")
    await filled.world.store.create_deployment(without, "c" * 64, 1, TIMEOUT_MS, True)
    assert (await prod.job("one")).status == "orphaned"
    assert counts(await prod.apply(new("one"))) == {"unchanged": 1}
    assert counts(await prod.apply(new("one", at(5)))) == {"changed": 1}
    assert counts(await prod.apply(new("one", at(5)), new("two"))) == {"refused": 1, "unchanged": 1}
    assert [each.name for each in await prod.exported()] == ["one"]


def test_the_client_knows_how_large_a_request_may_be() -> None:
    assert POLICY[f"/{SETS}ApplySet"].max_bytes == APPLY_BYTES_MAX


async def test_jobs_of_queues_are_of_sets_as_others_are(filled: Filled) -> None:
    def queued(schedule: str, payload: str = "1") -> CreateJobRequest:
        target = QueueTarget(queue="reports", workspace="ws_3")
        return CreateJobRequest(queue=target, spec=JobSpec(schedule=schedule, payload=payload))

    prod = Applying(filled, of="queued")
    assert counts(await prod.apply(queued("every 5m"))) == {"created": 1}
    assert counts(await prod.apply(queued("every 5m"))) == {"unchanged": 1}
    changed = one(await prod.apply(queued("every 10m")))
    assert (changed.key, changed.change) == ("billing/@reports.ws_3:default", "changed")
    (exported,) = await prod.exported()
    assert (exported.queue.queue, exported.queue.workspace, exported.module) == ("reports", "ws_3", "")
    assert counts(await prod.apply(exported)) == {"unchanged": 1}
    assert counts(await prod.apply(prune=True)) == {"removed": 1}
