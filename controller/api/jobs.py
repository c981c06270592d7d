"""cronring.v1.Jobs: list, get, watch; the other methods stand in job_writes.py and activations.py."""

from collections.abc import AsyncIterator
from typing import Final

from controller.api.activations import ActivationWrites
from controller.api.job_specs import Defaults
from controller.api.job_writes import JobWrites, Put
from controller.api.lookup import find_job
from controller.api.messages import job_message
from controller.api.paging import PAGE_SIZE_MAX, Pages, page_size
from controller.api.requests import STATUSES, Context, name, one_of
from controller.api.watch import JobHub, Kind
from controller.ports import Control
from controller.reads import JobFilter, JobRow, Reads
from protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc

_KINDS: Final = {
    Kind.PRESENT: jobs_pb2.JobEvent.KIND_PRESENT,
    Kind.LISTED: jobs_pb2.JobEvent.KIND_LISTED,
    Kind.CHANGED: jobs_pb2.JobEvent.KIND_CHANGED,
    Kind.REMOVED: jobs_pb2.JobEvent.KIND_REMOVED,
}


class JobsService(JobWrites, ActivationWrites, jobs_pb2_grpc.JobsServicer):
    """`put` takes what this controller's own node has to hear of changes made here."""

    def __init__(
        self,
        reads: Reads,
        hub: JobHub,
        control: Control,
        defaults: Defaults,
        put: Put,
    ) -> None:
        JobWrites.__init__(self, control, reads, defaults, put)
        ActivationWrites.__init__(self, control, reads, put)
        self._hub = hub

    async def ListJobs(self, request: jobs_pb2.ListJobsRequest, context: Context) -> jobs_pb2.ListJobsResponse:
        where, limit = _filter(request.filter), page_size(request.page_size)
        pages = Pages("ListJobs", *where)
        # One more than asked for tells whether there is another page.
        rows = await self._reads.list_jobs(where, pages.text_cursor(request.page_token), limit + 1)
        page = rows[:limit]
        return jobs_pb2.ListJobsResponse(
            jobs=[job_message(row, self._defaults.jitter) for row in page],
            next_page_token=pages.token(page[-1].key) if len(rows) > limit else "",
        )

    async def GetJob(self, request: jobs_pb2.GetJobRequest, context: Context) -> jobs_pb2.Job:
        return job_message(await find_job(self._reads, request.key), self._defaults.jitter)

    async def WatchJobs(self, request: jobs_pb2.WatchJobsRequest, context: Context) -> AsyncIterator[jobs_pb2.JobEvent]:
        where = _filter(request.filter)
        async for event in self._hub.watch(lambda row: _matches(row, where), lambda: self._all(where)):
            job = None if event.row is None else job_message(event.row, self._defaults.jitter)
            yield jobs_pb2.JobEvent(kind=_KINDS[event.kind], job=job)

    async def _all(self, where: JobFilter) -> AsyncIterator[JobRow]:
        after = ""
        while True:
            rows = await self._reads.list_jobs(where, after, PAGE_SIZE_MAX)
            for row in rows:
                yield row
            if len(rows) < PAGE_SIZE_MAX:
                return
            after = rows[-1].key


def _filter(asked: jobs_pb2.JobFilter) -> JobFilter:
    """Raises InvalidRequest."""
    return JobFilter(
        namespace=name("filter.namespace", asked.namespace),
        module=name("filter.module", asked.module),
        verb=name("filter.verb", asked.verb),
        status=one_of("filter.status", asked.status, STATUSES),
    )


def _matches(row: JobRow, where: JobFilter) -> bool:
    return all(
        not wanted or wanted == found
        for wanted, found in zip(where, (row.namespace, row.module, row.verb, row.status), strict=True)
    )
