"""CreateJobs through a store that fails in the middle, or is slow: what was written is told, and so is the rest."""

from collections.abc import Sequence
from typing import Any

import grpc

from cronring.controller.api.many import JobWork
from cronring.controller.errors import StoreUnavailable, TooSlow
from cronring.controller.ports.many import WRITTEN_AT_ONCE, JobDone, NewJob, Outcome
from cronring.protos.cronring.v1 import jobs_pb2
from tests.unit.shell.test_jobs_api import Api, api, refused

__all__ = ["api"]  # the fixture
JOBS = 3 * WRITTEN_AT_ONCE - 1


class Failing:
    """In place of MemoryControl.create_jobs. `fails`: at which call, and with what."""

    def __init__(self, fails: dict[int, Exception]) -> None:
        self.calls: list[int] = []
        self._fails = fails

    async def create_jobs(self, jobs: Sequence[NewJob], *_: object, **__: object) -> list[Outcome]:
        self.calls.append(len(jobs))
        if error := self._fails.get(len(self.calls)):
            raise error
        return [JobDone(job.name, number) for number, job in enumerate(jobs, 1)]


def asked(jobs: int = JOBS, **fields: Any) -> jobs_pb2.CreateJobsRequest:
    return jobs_pb2.CreateJobsRequest(
        jobs=[
            jobs_pb2.CreateJobRequest(
                module="crawl", verb="sweep", name=f"n{number}", spec=jobs_pb2.JobSpec(schedule="0 9 * * *")
            )
            for number in range(jobs)
        ],
        **fields,
    )


def with_store(api: Api, failing: Failing) -> Failing:
    api.control.create_jobs = failing.create_jobs  # type: ignore[method-assign]  # it stands in for that one
    return failing


async def test_a_thousand_are_a_transaction_and_all_or_nothing_is_one(api: Api) -> None:
    store = with_store(api, Failing({}))
    answer = await api.stub.CreateJobs(asked())
    assert (answer.changed, store.calls) == (JOBS, [WRITTEN_AT_ONCE, WRITTEN_AT_ONCE, WRITTEN_AT_ONCE - 1])
    assert len(api.told) == 3, "this controller's node hears of each"
    await api.stub.CreateJobs(asked(all_or_nothing=True))
    assert store.calls[3:] == [JOBS]


async def test_what_was_written_before_a_failure_is_told_and_the_rest_too(api: Api) -> None:
    with_store(api, Failing({2: StoreUnavailable("it went away")}))
    answer = await api.stub.CreateJobs(asked())
    assert (answer.changed, answer.failed, len(answer.results)) == (WRITTEN_AT_ONCE, JOBS - WRITTEN_AT_ONCE, JOBS)
    assert {each.refusal.reason for each in answer.results[WRITTEN_AT_ONCE:]} == {"DATABASE_AWAY"}
    assert answer.results[WRITTEN_AT_ONCE].key == f"crawl.sweep:n{WRITTEN_AT_ONCE}"


async def test_a_failure_before_anything_is_written_is_the_calls(api: Api) -> None:
    with_store(api, Failing({1: StoreUnavailable("it went away")}))
    await refused(api.stub.CreateJobs(asked()), grpc.StatusCode.UNAVAILABLE)
    assert not api.told


async def test_what_there_is_no_time_for_is_told() -> None:
    written: list[int] = []

    async def judge(part: Sequence[str]) -> list[str | Exception]:
        return list(part)

    async def write(keys: Sequence[str], _: bool) -> list[Outcome]:
        written.append(len(keys))
        return [JobDone(key, 1) for key in keys]

    work = JobWork[str, str](judge, write, lambda: None)
    keys = [f"k{number}" for number in range(JOBS)]
    outcomes = await work.done(keys, jobs_pb2.DeleteJobsRequest(keys=keys), 0.0)
    assert written == [WRITTEN_AT_ONCE]
    assert [type(each) for each in outcomes] == [JobDone] * WRITTEN_AT_ONCE + [TooSlow] * (JOBS - WRITTEN_AT_ONCE)
    written.clear()
    assert len(await work.done(keys, jobs_pb2.DeleteJobsRequest(keys=keys), None)) == JOBS
    assert sum(written) == JOBS


async def test_a_change_that_somebody_else_was_quicker_with_is_judged_anew(api: Api) -> None:
    await api.create(schedule="0 9 * * *")
    api.control.meanwhile.append(lambda row: row._replace(spec=row.spec._replace(labels={"by": "another"})))
    change = jobs_pb2.UpdateJobRequest(key="crawl.sweep:a", spec=jobs_pb2.JobSpec(labels={"team": "x"}))
    change.update_mask.paths.append("labels.team")
    answer = await api.stub.UpdateJobs(jobs_pb2.UpdateJobsRequest(jobs=[change]))
    assert (answer.changed, answer.failed) == (1, 0)
    assert api.control.rows["crawl.sweep:a"].spec.labels == {"team": "x", "by": "another"}
