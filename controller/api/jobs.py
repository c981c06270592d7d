"""cronring.v1.Jobs: list, get, watch; other methods stand in job_writes, many, job_orders, bulk, activations."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from cronring.controller.api.activations import ActivationWrites
from cronring.controller.api.bulk import JobsInBulk
from cronring.controller.api.filters import job_filter, jobs_asked
from cronring.controller.api.job_orders import JobOrders
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.job_writes import Put
from cronring.controller.api.lookup import admit_to_deployment, admit_to_job, find_job
from cronring.controller.api.many import ManyJobWrites
from cronring.controller.api.messages import action_message, job_message
from cronring.controller.api.paging import PAGE_SIZE_MAX, Pages, page_size, total
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, instant, name, one_of
from cronring.controller.api.scope import namespaces, sees
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.watch import JobEventKind, JobHub
from cronring.controller.ports.reads import ActionFilter, JobFilter, JobRow, JobSort, Reads
from cronring.controller.ports.store import Control
from cronring.controller.ports.templates import Templates, template_key
from cronring.protos.cronring.v1 import jobs_pb2, jobs_pb2_grpc
from cronring.schema.filters import EXECUTION_WORDS, JOB_WORDS, FilterError, contained, suggested, term_of, unfinished
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE

_SUGGESTED_MAX: Final = 50
_WORDS: Final = {"jobs": JOB_WORDS, "executions": EXECUTION_WORDS}
_SUGGESTED: Final = ("job", "label", "verb", "module", "namespace")
_KINDS: Final = {
    JobEventKind.PRESENT: jobs_pb2.JobEvent.KIND_PRESENT,
    JobEventKind.LISTED: jobs_pb2.JobEvent.KIND_LISTED,
    JobEventKind.CHANGED: jobs_pb2.JobEvent.KIND_CHANGED,
    JobEventKind.REMOVED: jobs_pb2.JobEvent.KIND_REMOVED,
}


class JobsService(JobOrders, JobsInBulk, ManyJobWrites, ActivationWrites, jobs_pb2_grpc.JobsServicer):
    """`put` takes what this controller's own node has to hear of changes made here."""

    _reads: Reads

    def __init__(
        self,
        reads: Reads,
        box: TokenBox,
        hub: JobHub,
        control: Control,
        templates: Templates,
        defaults: Defaults,
        put: Put,
    ) -> None:
        JobOrders.__init__(self, control, reads, templates, defaults, put, box)
        ActivationWrites.__init__(self, control, reads, put, box)
        self._hub = hub

    async def ListJobs(self, request: jobs_pb2.ListJobsRequest, context: Context) -> jobs_pb2.ListJobsResponse:
        where, sort = jobs_asked(request.filter, request.sort)
        limit = page_size(request)
        pages = Pages(self._box, "ListJobs", sort.value, *_of_filter(where), *sorted(where.labels.items()))
        where = where._replace(namespaces=namespaces(Permission.VIEW, where.namespace))
        if sort is not JobSort.KEY:
            ranked = await self._reads.rank_jobs(where, sort, pages.place_cursor(request.page_token), limit)
            rows, token = ranked.rows, pages.token(ranked.next)
        else:
            # One more than asked for tells whether there is another page.
            found = await self._reads.list_jobs(where, pages.text_cursor(request.page_token), limit + 1)
            rows, token = found[:limit], pages.token(found[limit - 1].key) if len(found) > limit else ""
        return jobs_pb2.ListJobsResponse(
            jobs=[job_message(row, self._defaults.jitter) for row in rows],
            next_page_token=token,
            total=await total(request, lambda: self._reads.count_jobs(where)),
        )

    async def SuggestFilter(
        self, request: jobs_pb2.SuggestFilterRequest, context: Context
    ) -> jobs_pb2.SuggestFilterResponse:
        words = _WORDS[one_of("list", request.list, tuple(_WORDS)) or "jobs"]
        try:
            typed = unfinished(request.text)
        except FilterError as error:
            raise InvalidRequest([("text", error.message)]) from None
        terms = suggested(typed, words)
        if typed.key in words and typed.key in _SUGGESTED:
            visible = namespaces(Permission.VIEW)
            names = await self._reads.suggest(typed.key, typed.begun, visible, _SUGGESTED_MAX)
            terms = [term_of(typed.key, name) for name in names]
        return jobs_pb2.SuggestFilterResponse(at=typed.at, terms=terms[:_SUGGESTED_MAX])

    async def CountJobs(self, request: jobs_pb2.CountJobsRequest, context: Context) -> jobs_pb2.CountJobsResponse:
        where = job_filter(request.filter)
        where = where._replace(namespaces=namespaces(Permission.VIEW, where.namespace))
        return jobs_pb2.CountJobsResponse(count=await self._reads.count_jobs(where))

    async def GetJob(self, request: jobs_pb2.GetJobRequest, context: Context) -> jobs_pb2.Job:
        return self.told(await find_job(self._reads, request.key, Permission.VIEW))

    async def ListActions(self, request: jobs_pb2.ListActionsRequest, context: Context) -> jobs_pb2.ListActionsResponse:
        of = [field for field in ("job", "deployment", "template") if getattr(request, field)]
        if len(of) > 1:
            raise InvalidRequest([(of[1], f"excludes {of[0]}; give one of them")])
        where = ActionFilter(
            job=name("job", request.job),
            deployment=name("deployment", request.deployment),
            since=instant("since", request.since) if request.HasField("since") else None,
            template=_template_key(name("template", request.template)),
        )
        limit, pages = page_size(request), Pages(self._box, "ListActions", *where)
        admit_to_job(where.job)
        if where.deployment:
            admit_to_deployment(where.deployment, Permission.VIEW)
        where = where._replace(namespaces=namespaces(Permission.VIEW))
        # Of a template that never was there are no actions, either.
        hidden = bool(where.template) and not sees(where.template)
        before = pages.number_cursor(request.page_token)
        rows = [] if hidden else await self._reads.list_actions(where, before, limit + 1)
        page = rows[:limit]
        return jobs_pb2.ListActionsResponse(
            # In a thread: excerpts that the caller may not see are cut out of up to a thousand actions.
            actions=await asyncio.to_thread(lambda: list(map(action_message, page))),
            next_page_token=pages.token(page[-1].action_id) if len(rows) > limit else "",
        )

    async def WatchJobs(self, request: jobs_pb2.WatchJobsRequest, context: Context) -> AsyncIterator[jobs_pb2.JobEvent]:
        where = job_filter(request.filter)
        where = where._replace(namespaces=namespaces(Permission.VIEW, where.namespace))
        if request.resume_token:
            position = self._hub.resumed(request.resume_token, await self._reads.database_now())
            watched = self._hub.resume(_Watched(where), position)
        else:
            watched = self._hub.watch(_Watched(where), lambda: self._all(where))
        async with contextlib.aclosing(watched) as events:
            async for event in events:
                job = None if event.row is None else job_message(event.row, self._defaults.jitter)
                yield jobs_pb2.JobEvent(kind=_KINDS[event.kind], job=job, resume_token=event.token)

    async def _all(self, where: JobFilter) -> AsyncIterator[JobRow]:
        after = ""
        while True:
            rows = await self._reads.list_jobs(where, after, PAGE_SIZE_MAX)
            for row in rows:
                yield row
            if len(rows) < PAGE_SIZE_MAX:
                return
            after = rows[-1].key


def _template_key(asked: str) -> str:
    """The key of a template. A name without a namespace is of the namespace "default"."""
    return template_key(DEFAULT_NAMESPACE, asked) if asked and "/" not in asked else asked


class _Watched:
    """cronring.controller.api.watch.Selection, of a filter."""

    def __init__(self, where: JobFilter) -> None:
        self._where = where

    def sees(self, row: JobRow) -> bool:
        return self._where.namespaces is None or row.namespace in self._where.namespaces

    def matches(self, row: JobRow) -> bool:
        where = self._where
        named = ((where.namespace, row.namespace), (where.module, row.module), (where.verb, row.verb))
        among = ((where.statuses, row.status), (where.outcomes, row.last_outcome))
        return (
            all(not wanted or wanted == found for wanted, found in named)
            and all(not wanted or found in wanted for wanted, found in among)
            and where.labels.items() <= row.spec.labels.items()
            and contained(row.key, where.contains)
            and (not where.keys or row.key in where.keys)
        )


def _of_filter(where: JobFilter) -> tuple[object, ...]:
    return where.namespace, where.module, where.verb, where.statuses, where.outcomes, where.contains, where.keys
