"""Calls that make, change or delete many jobs at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.field_mask_pb2 import FieldMask

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.cronring.v1.jobs_pb2_grpc import JobsStub

MANY_TIMEOUT_S: Final = 60.0  # of one try: 10,000 jobs take some seconds on a machine that is busy


@dataclass(frozen=True, slots=True)
class JobToMake:
    """One to be made, as `JobCalls.create` has it. With `queue` that is its target, and module and verb are empty.

    `run_now`: also once at once, if this call makes it; one that is there already isn't run. Not of a set.
    """

    module: str
    verb: str
    name: str
    spec: model.JobSpec
    namespace: str = "default"
    template: str = ""
    explicit: Sequence[str] = ()
    queue: str = ""
    workspace: str = ""
    run_now: bool = False


@dataclass(frozen=True, slots=True)
class JobResult:
    """Of one of many. `id` 0: there is none. `problem` "": nothing was wrong; `reason`: as errors of single calls.

    `updated`: of a queue's job, it was there, and was changed.
    """

    key: str
    id: int
    unchanged: bool
    reason: str
    problem: str
    updated: bool = False


@dataclass(frozen=True, slots=True)
class ManyDone:
    """Of each, in their order. `rolled_back`: it was all or nothing, and some failed."""

    results: tuple[JobResult, ...]
    changed: int
    unchanged: int
    failed: int
    rolled_back: bool


class ManyJobCalls:
    """The part of JobCalls that changes up to 10,000 jobs by one call.

    Each gets its own result; with `all_or_nothing` nothing is written where one has a problem. `dry_run`: nothing is.
    """

    _failover: Failover

    async def create_many(
        self, jobs: Sequence[JobToMake], by: str = "", note: str = "", *, all_or_nothing: bool = False,
        dry_run: bool = False,
    ) -> ManyDone:  # fmt: skip
        """Asked of the next controller where it may have been done: those that were made are unchanged then."""

        request = jobs_pb2.CreateJobsRequest(
            jobs=map(creation, jobs), all_or_nothing=all_or_nothing, dry_run=dry_run, requested_by=by, note=note
        )
        return _done(
            await self._failover.change(
                lambda channel: JobsStub(channel).CreateJobs(request, timeout=self._many_s()),
                "`cronring jobs list`", repeatable=True,
            )
        )  # fmt: skip

    async def update_many(
        self, changes: Sequence[tuple[str, model.JobSpec, Sequence[str]]], by: str = "", note: str = "", *,
        all_or_nothing: bool = False, dry_run: bool = False,
    ) -> ManyDone:  # fmt: skip
        """Of each a key, a spec, and which fields of it to set, as `JobCalls.update` has them."""
        items = [
            jobs_pb2.UpdateJobRequest(key=key, spec=convert.job_spec(spec), update_mask=FieldMask(paths=fields))
            for key, spec, fields in changes
        ]
        request = jobs_pb2.UpdateJobsRequest(
            jobs=items, all_or_nothing=all_or_nothing, dry_run=dry_run, requested_by=by, note=note
        )
        return _done(
            await self._failover.change(
                lambda channel: JobsStub(channel).UpdateJobs(request, timeout=self._many_s()),
                "`cronring jobs list`", repeatable=True,
            )
        )  # fmt: skip

    async def delete_many(
        self, keys: Sequence[str], by: str = "", note: str = "", *, all_or_nothing: bool = False,
        dry_run: bool = False,
    ) -> ManyDone:  # fmt: skip
        """Of each a key. Those that are not there are told so."""
        request = jobs_pb2.DeleteJobsRequest(
            keys=keys, all_or_nothing=all_or_nothing, dry_run=dry_run, requested_by=by, note=note
        )
        return _done(
            await self._failover.change(
                lambda channel: JobsStub(channel).DeleteJobs(request, timeout=self._many_s()), "`cronring jobs list`"
            )
        )

    def _many_s(self) -> float:
        return max(self._failover.timeout_s, MANY_TIMEOUT_S)


def job_to_make(
    target: model.VerbTarget | model.QueueTarget,
    spec: model.JobSpec,
    template: str = "",
    explicit: Sequence[str] = (),
) -> JobToMake:
    """A job of that target."""
    if isinstance(target, model.QueueTarget):
        return JobToMake(
            "", "", target.name, spec, target.namespace, template, tuple(explicit), target.queue, target.workspace
        )
    return JobToMake(target.module, target.verb, target.name, spec, target.namespace, template, tuple(explicit))


def creation(job: JobToMake) -> jobs_pb2.CreateJobRequest:
    """As it is asked for, among others. Raises Invalid."""
    return jobs_pb2.CreateJobRequest(
        namespace=job.namespace, module=job.module, verb=job.verb, name=job.name, spec=convert.job_spec(job.spec),
        template=job.template, explicit=FieldMask(paths=job.explicit),
        queue=jobs_pb2.QueueTarget(queue=job.queue, workspace=job.workspace) if job.queue else None,
        run_now=job.run_now,
    )  # fmt: skip


def _done(message: jobs_pb2.ManyJobsResponse) -> ManyDone:
    results = tuple(
        JobResult(each.key, each.id, each.unchanged, each.refusal.reason, each.refusal.problem, each.updated)
        for each in message.results
    )
    return ManyDone(results, message.changed, message.unchanged, message.failed, message.rolled_back)
