"""CreateJobs, UpdateJobs, DeleteJobs, and ControlJobs that deletes: what callers are told, on real PostgreSQL."""

from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from cronring.controller.store.reads import PostgresReads
from cronring.protos.cronring.v1.jobs_pb2 import (
    ControlJobsProgress,
    ControlJobsRequest,
    CreateJobRequest,
    CreateJobsRequest,
    DeleteJobsRequest,
    GetJobRequest,
    Job,
    JobFilter,
    JobSpec,
    ManyJobsResponse,
    UpdateJobRequest,
    UpdateJobsRequest,
)
from cronring.protos.cronring.v1.schema_pb2 import Policy
from cronring.protos.cronring.v1.templates_pb2 import SetTemplateRequest
from tests.integration.api.conftest import Filled
from tests.integration.api.test_who_sees import Caller

JOBS = "cronring.v1.Jobs/"
HOURLY = JobSpec(schedule="0 * * * *", labels={"team": "x"})
HIDDEN = "hush/xm.xa"
BAD = grpc.StatusCode.INVALID_ARGUMENT


def new(name: str, spec: JobSpec = HOURLY, **fields: str) -> CreateJobRequest:
    asked = CreateJobRequest(namespace="billing", module="xm", verb="xa", name=name, spec=spec)
    for field, text in fields.items():
        setattr(asked, field, text)
    return asked


def key(name: str) -> str:
    return f"billing/xm.xa:{name}"


class Many:
    """Calls of one caller."""

    def __init__(self, filled: Filled, name: str = "operator") -> None:
        self.caller = Caller(filled, name)

    async def create(self, *jobs: CreateJobRequest, **how: Any) -> ManyJobsResponse:
        return await self._ask("CreateJobs", CreateJobsRequest(jobs=jobs, **how))

    async def update(self, *jobs: UpdateJobRequest, **how: Any) -> ManyJobsResponse:
        return await self._ask("UpdateJobs", UpdateJobsRequest(jobs=jobs, **how))

    async def delete(self, *keys: str, **how: Any) -> ManyJobsResponse:
        return await self._ask("DeleteJobs", DeleteJobsRequest(keys=keys, **how))

    async def _ask(self, method: str, request: Any) -> ManyJobsResponse:
        answer = await self.caller.ask(JOBS + method, request, ManyJobsResponse)
        assert isinstance(answer, ManyJobsResponse)
        return answer

    async def delete_matching(self, **how: Any) -> list[ControlJobsProgress]:
        return await self._matching(action=ControlJobsRequest.ACTION_DELETE, **how)

    async def update_matching(self, spec: JobSpec, *paths: str, **how: Any) -> list[ControlJobsProgress]:
        mask = FieldMask(paths=paths)
        return await self._matching(action=ControlJobsRequest.ACTION_UPDATE, spec=spec, update_mask=mask, **how)

    async def _matching(self, **how: Any) -> list[ControlJobsProgress]:
        request = ControlJobsRequest(filter=JobFilter(labels={"team": "x"}), **how)
        return [each async for each in self.caller.stream(JOBS + "ControlJobs", request, ControlJobsProgress)]


def reasons(answer: ManyJobsResponse) -> list[str]:
    return [each.refusal.reason for each in answer.results]


def counts(answer: ManyJobsResponse) -> tuple[int, int, int, bool]:
    return answer.changed, answer.unchanged, answer.failed, answer.rolled_back


async def test_each_item_is_told_what_a_call_of_its_own_would_be(filled: Filled) -> None:
    many = Many(filled)
    answer = await many.create(
        new("one"),
        new("two", JobSpec(schedule="61 * * * *")),
        new("three", verb="none"),
        new("-four-"),
        new("five", JobSpec(schedule="at now")),
        new("six", note="mine"),
        new("seven", JobSpec(schedule="manual", policy=Policy(after=HIDDEN))),
        new("eight", template="none"),
        new("nine", JobSpec(schedule="at 2001-01-01T00:00:00Z")),
        new("ten", module="none"),
    )
    assert reasons(answer) == [
        "", "INVALID", "NOT_FOUND", "INVALID", "INVALID", "INVALID", "INVALID", "NOT_FOUND", "INVALID", "NOT_FOUND",
    ]  # fmt: skip
    assert counts(answer) == (1, 0, 9, False)
    assert "spec.schedule" in answer.results[1].refusal.problem
    assert answer.results[1].refusal.code == "INVALID_ARGUMENT"
    assert [each.key for each in answer.results[:2]] == [key("one"), key("two")]
    made = await many.caller.ask(JOBS + "GetJob", GetJobRequest(key=key("one")), Job)
    assert (made.id, made.source, dict(made.labels)) == (answer.results[0].id, "api", {"team": "x"})
    again = await many.create(new("one"))
    assert (counts(again), again.results[0].unchanged, again.results[0].id) == ((0, 1, 0, False), True, made.id)


@pytest.mark.parametrize("wrong", [new("two", JobSpec(schedule="61 * * * *")), new("two", verb="none")])
async def test_all_or_nothing_tells_each_and_writes_nothing(filled: Filled, wrong: CreateJobRequest) -> None:
    many = Many(filled)
    answer = await many.create(new("one"), wrong, all_or_nothing=True)
    assert counts(answer) == (0, 0, 1, True)
    assert [each.id for each in answer.results] == [0, 0]
    assert (await many.caller.refused(JOBS + "GetJob", GetJobRequest(key=key("one"))))[0] is grpc.StatusCode.NOT_FOUND
    assert counts(await many.create(new("one"), new("three"), all_or_nothing=True)) == (2, 0, 0, False)
    faster = UpdateJobRequest(
        key=key("one"), spec=JobSpec(schedule="5 * * * *"), update_mask=FieldMask(paths=["schedule"])
    )
    gone = UpdateJobRequest(
        key=key("gone"), spec=JobSpec(schedule="5 * * * *"), update_mask=FieldMask(paths=["schedule"])
    )
    assert counts(await many.update(faster, gone, all_or_nothing=True)) == (0, 0, 1, True)
    assert counts(await many.update(faster, gone)) == (1, 0, 1, False)
    assert counts(await many.delete(key("one"), key("gone"), all_or_nothing=True)) == (0, 0, 1, True)
    assert counts(await many.delete(key("one"), key("gone"), dry_run=True)) == (1, 0, 1, False)
    assert counts(await many.delete(key("one"), key("three"), all_or_nothing=True)) == (2, 0, 0, False)


async def test_what_is_hidden_is_told_of_like_what_is_not_there(filled: Filled) -> None:
    many = Many(filled)
    missing = HIDDEN.replace("hush/", "none/")
    answer = await many.delete(HIDDEN, missing)
    assert reasons(answer) == ["NOT_FOUND"] * 2
    hidden, none = (each.refusal.problem for each in answer.results)
    assert hidden.replace("hush/", "none/") == none
    paths = FieldMask(paths=["schedule"])
    changed = await many.update(
        *[UpdateJobRequest(key=each, spec=HOURLY, update_mask=paths) for each in (HIDDEN, missing)]
    )
    assert reasons(changed) == ["NOT_FOUND"] * 2
    # Of a namespace that is named, one is told that one may not, whether it is there or not.
    code, _ = await many.caller.refused(JOBS + "CreateJobs", CreateJobsRequest(jobs=[new("x", namespace="hush")]))
    assert code is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("method", "request_", "says"),
    [
        ("CreateJobs", CreateJobsRequest(), "is empty"),
        ("DeleteJobs", DeleteJobsRequest(keys=[key("a"), key("a")]), "twice"),
        ("UpdateJobs", UpdateJobsRequest(jobs=[UpdateJobRequest(key=key("a"))] * 2), "twice"),
        ("DeleteJobs", DeleteJobsRequest(keys=[f"k{number}" for number in range(10_001)]), "10000 are allowed"),
        ("CreateJobs", CreateJobsRequest(jobs=[new(f"n{number}") for number in range(10_001)]), "10000 are allowed"),
        (
            "CreateJobs",
            CreateJobsRequest(jobs=[new("a", module=f"m{number}") for number in range(101)]),
            "at most 100 in a call",
        ),
    ],
)
async def test_a_call_that_is_no_call_is_refused_as_a_whole(
    filled: Filled, method: str, request_: Any, says: str
) -> None:
    code, text = await Many(filled).caller.refused(JOBS + method, request_)
    assert (code, says in text) == (BAD, True), text


async def test_a_call_of_little_gets_no_end_of_payloads_from_a_template(filled: Filled) -> None:
    many = Many(filled)
    large = SetTemplateRequest(namespace="billing", name="large", spec=JobSpec(payload=f'"{"x" * 60_000}"'))
    await many.caller.ask("cronring.v1.Templates/SetTemplate", large)
    asked = CreateJobsRequest(jobs=[new(f"n{number}", template="large") for number in range(600)])
    code, text = await many.caller.refused(JOBS + "CreateJobs", asked)
    assert (code, "of payloads from their templates" in text) == (BAD, True)


async def test_what_matches_is_deleted_if_it_is_as_many_as_expected(filled: Filled) -> None:
    many = Many(filled)
    await many.create(*[new(f"n{number}") for number in range(250)], new("other", JobSpec(schedule="manual")))
    first, *rehearsed = await many.delete_matching(dry_run=True)
    assert (first.total, len(rehearsed), all(each.done for each in rehearsed)) == (250, 250, True)
    with pytest.raises(grpc.aio.AioRpcError) as wrong:
        await many.delete_matching(expected=249)
    assert wrong.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "250 jobs match, and 249 are expected" in (wrong.value.details() or "")
    _, *deleted = await many.delete_matching(expected=250)
    assert [each.position for each in deleted if each.done] == list(range(1, 251))
    assert [each.total for each in await many.delete_matching(expected=0)] == [0]
    assert counts(await many.delete(key("other"))) == (1, 0, 0, False)


async def test_what_matches_is_changed_if_it_is_as_many_as_expected(filled: Filled) -> None:
    many = Many(filled)
    await many.create(*[new(f"n{number}") for number in range(250)], new("other", JobSpec(schedule="manual")))
    retries = JobSpec(policy=Policy(retries=3), labels={"team": "y"})
    first, *rehearsed = await many.update_matching(retries, "policy.retries", "labels.team", dry_run=True)
    assert (first.total, len(rehearsed), all(each.done for each in rehearsed)) == (250, 250, True)
    job = await many.caller.ask(JOBS + "GetJob", GetJobRequest(key=key("n7")), Job)
    assert (job.policy.retries, dict(job.labels)) == (0, {"team": "x"})
    with pytest.raises(grpc.aio.AioRpcError) as wrong:
        await many.update_matching(retries, "policy.retries", expected=249)
    assert "250 jobs match, and 249 are expected" in (wrong.value.details() or "")
    _, *changed = await many.update_matching(retries, "policy.retries", expected=250, note="slower")
    assert [(each.position, each.done, each.unchanged) for each in changed] == [
        (place, True, False) for place in range(1, 251)
    ]
    _, *again = await many.update_matching(retries, "policy.retries")
    assert all(each.done and each.unchanged for each in again)
    # A change of the very label by which they are found is made to each once.
    _, *moved = await many.update_matching(retries, "labels.team")
    assert [each.position for each in moved if each.done] == list(range(1, 251))
    assert [each.total for each in await many.update_matching(retries, "labels.team")] == [0]
    job = await many.caller.ask(JOBS + "GetJob", GetJobRequest(key=key("n7")), Job)
    assert (job.policy.retries, dict(job.labels), job.schedule) == (3, {"team": "y"}, "0 * * * *")
    other = await many.caller.ask(JOBS + "GetJob", GetJobRequest(key=key("other")), Job)
    assert other.policy.retries == 0


async def test_what_one_of_many_cannot_be_is_told_of_it_alone(filled: Filled) -> None:
    many = Many(filled)
    await many.create(
        new("one"), new("two", JobSpec(schedule="at 2099-01-01T00:00:00Z", labels={"team": "x"})), new("three")
    )
    _, *changed = await many.update_matching(JobSpec(policy=Policy(pause_after_failures=2)), "policy")
    assert [each.done for each in changed] == [True, False, True]
    assert "pause_after_failures" in changed[1].problem


async def test_a_job_that_loses_its_label_meanwhile_stays_as_it_is(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = Many(filled)
    await many.create(new("one"), new("two"))
    found = PostgresReads.find_jobs

    async def and_then_another_changes_it(self: PostgresReads, *asked: Any) -> list[tuple[int, str]]:
        answer = await found(self, *asked)
        if answer:
            moved = UpdateJobRequest(
                key=key("one"), spec=JobSpec(labels={"team": "z"}), update_mask=FieldMask(paths=["labels.team"])
            )
            await many.caller.ask(JOBS + "UpdateJob", moved, Job)
        return answer

    monkeypatch.setattr(PostgresReads, "find_jobs", and_then_another_changes_it)
    _, one, two = await many.update_matching(JobSpec(policy=Policy(retries=3)), "policy.retries")
    assert (one.done, "has other labels by now" in one.problem, two.done) == (False, True, True)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"action": ControlJobsRequest.ACTION_UPDATE}, "names nothing to set"),
        (
            {"action": ControlJobsRequest.ACTION_UPDATE, "update_mask": FieldMask(paths=["retries"])},
            "nothing named 'retries'",
        ),
        (
            {"action": ControlJobsRequest.ACTION_UPDATE, "update_mask": FieldMask(paths=["schedule"]),
             "spec": JobSpec(schedule="at now")},
            "give an instant to come",
        ),
        ({"action": ControlJobsRequest.ACTION_PAUSE, "spec": HOURLY}, "of updates only"),
        ({"action": ControlJobsRequest.ACTION_PAUSE, "update_mask": FieldMask(paths=["schedule"])}, "of updates only"),
    ],
)  # fmt: skip
async def test_a_change_of_many_that_is_none_is_refused(filled: Filled, how: dict[str, Any], says: str) -> None:
    request = ControlJobsRequest(filter=JobFilter(labels={"team": "x"}), **how)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        [each async for each in Many(filled).caller.stream(JOBS + "ControlJobs", request, ControlJobsProgress)]
    assert (refused.value.code(), says in (refused.value.details() or "")) == (BAD, True), refused.value.details()


async def test_thousands_by_one_call(filled: Filled) -> None:
    many = Many(filled)
    names = [f"n{number}" for number in range(2_500)]
    assert counts(await many.create(*map(new, names))) == (2_500, 0, 0, False)
    assert counts(await many.create(*map(new, names), all_or_nothing=True)) == (0, 2_500, 0, False)
    labels = FieldMask(paths=["labels.cost"])
    changes = [
        UpdateJobRequest(key=key(name), spec=JobSpec(labels={"cost": name}), update_mask=labels) for name in names
    ]
    assert counts(await many.update(*changes)) == (2_500, 0, 0, False)
    assert counts(await many.update(*changes)) == (0, 2_500, 0, False)
    assert counts(await many.delete(*map(key, names))) == (2_500, 0, 0, False)
