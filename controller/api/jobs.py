"""cronring.v1.Jobs: list, get, watch."""

from collections.abc import AsyncIterator
from typing import Final

from controller.api.messages import job_message
from controller.api.paging import PAGE_SIZE_MAX, Pages, page_size
from controller.api.requests import STATUSES, Context, name, one_of, required
from controller.api.watch import JobHub, Kind
from controller.reads import JobFilter, JobRow, Reads
from protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc

_KINDS: Final = {
    Kind.PRESENT: jobs_pb2.JobEvent.KIND_PRESENT,
    Kind.LISTED: jobs_pb2.JobEvent.KIND_LISTED,
    Kind.CHANGED: jobs_pb2.JobEvent.KIND_CHANGED,
    Kind.REMOVED: jobs_pb2.JobEvent.KIND_REMOVED,
}


class JobsService(jobs_pb2_grpc.JobsServicer):
    """Reading only."""

    def __init__(self, reads: Reads, hub: JobHub) -> None:
        self._reads = reads
        self._hub = hub

    async def ListJobs(self, request: jobs_pb2.ListJobsRequest, context: Context) -> jobs_pb2.ListJobsResponse:
        where, limit = _filter(request.filter), page_size(request.page_size)
        pages = Pages("ListJobs", *where)
        # One more than asked for tells whether there is another page.
        rows = await self._reads.list_jobs(where, pages.text_cursor(request.page_token), limit + 1)
        page = rows[:limit]
        return jobs_pb2.ListJobsResponse(
            jobs=[job_message(row) for row in page],
            next_page_token=pages.token(page[-1].key) if len(rows) > limit else "",
        )

    async def GetJob(self, request: jobs_pb2.GetJobRequest, context: Context) -> jobs_pb2.Job:
        key = required("key", request.key, "a job's key, like module.verb")
        return job_message(await self._reads.get_job(key))

    async def WatchJobs(self, request: jobs_pb2.WatchJobsRequest, context: Context) -> AsyncIterator[jobs_pb2.JobEvent]:
        where = _filter(request.filter)
        async for event in self._hub.watch(lambda row: _matches(row, where), lambda: self._all(where)):
            job = None if event.row is None else job_message(event.row)
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
