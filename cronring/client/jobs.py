"""Calls about jobs."""

from collections.abc import AsyncIterator

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.model import JobEvent, JobEventKind
from cronring.client.paging import follow
from protos.cronring.v1 import jobs_pb2
from protos.cronring.v1.jobs_pb2_grpc import JobsStub


class JobCalls:
    """List, get, watch."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def list(
        self, namespace: str = "", module: str = "", verb: str = "", status: str = "", limit: int | None = None
    ) -> list[model.Job]:
        chosen = jobs_pb2.JobFilter(namespace=namespace, module=module, verb=verb, status=status)

        async def fetch(page_size: int, token: str) -> tuple[list[model.Job], str]:
            request = jobs_pb2.ListJobsRequest(page_size=page_size, page_token=token, filter=chosen)
            answer = await self._failover.unary(
                lambda channel: JobsStub(channel).ListJobs(request, timeout=self._failover.timeout_s)
            )
            return [convert.job(each) for each in answer.jobs], answer.next_page_token

        return await follow(fetch, limit)

    async def get(self, key: str) -> model.Job:
        """Raises NotFound."""
        timeout = self._failover.timeout_s
        request = jobs_pb2.GetJobRequest(key=key)
        return convert.job(
            await self._failover.unary(lambda channel: JobsStub(channel).GetJob(request, timeout=timeout))
        )

    async def watch(
        self, namespace: str = "", module: str = "", verb: str = "", status: str = ""
    ) -> AsyncIterator[JobEvent]:
        """Every matching job once (PRESENT), LISTED, then one event for each change, for ever.

        When the controller that served it goes, another takes over: its first listing is held against what was told
        before, and only what differs comes out, as CHANGED or REMOVED.
        """
        chosen = jobs_pb2.JobFilter(namespace=namespace, module=module, verb=verb, status=status)
        request = jobs_pb2.WatchJobsRequest(filter=chosen)
        merge = _Merge()
        async for message in self._failover.stream(lambda channel: JobsStub(channel).WatchJobs(request)):
            if message is None:
                merge.restart()
                continue
            for event in merge.apply(convert.job_event(message)):
                yield event


class _Merge:
    """Makes one seamless watch of several that follow each other."""

    def __init__(self) -> None:
        self._known: dict[str, model.Job] = {}
        self._listed = False
        self._relisting: set[str] | None = None

    def restart(self) -> None:
        self._relisting = set()

    def apply(self, event: JobEvent) -> list[JobEvent]:
        if event.job is None:
            return self._complete()
        if event.kind is JobEventKind.REMOVED:
            return [event] if self._known.pop(event.job.key, None) is not None else []
        if self._relisting is not None:
            self._relisting.add(event.job.key)
        before = self._known.get(event.job.key)
        self._known[event.job.key] = event.job
        if event.job == before:
            return []
        return [JobEvent(JobEventKind.CHANGED if self._listed else JobEventKind.PRESENT, event.job)]

    def _complete(self) -> list[JobEvent]:
        gone: list[JobEvent] = []
        if self._relisting is not None:
            lost = sorted(self._known.keys() - self._relisting)
            gone = [JobEvent(JobEventKind.REMOVED, self._known.pop(key)) for key in lost]
            self._relisting = None
        if self._listed:
            return gone
        self._listed = True
        return [*gone, JobEvent(JobEventKind.LISTED, None)]
