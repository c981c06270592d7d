"""cronring.v1.Jobs: CreateJobs, UpdateJobs, DeleteJobs. Many jobs in one call, judged beside the loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from cronring.controller.api.job_specs import job_change
from cronring.controller.api.job_writes import JobWrites, check_other
from cronring.controller.api.lookup import find_module_of, find_verb, no_job
from cronring.controller.api.new_jobs import NewJobs, check_item, judged, key_of, or_not_found, there
from cronring.controller.api.problems import InvalidRequest, refusal_message
from cronring.controller.api.queue_targets import all_targeted
from cronring.controller.api.requests import Context, actor, name, note
from cronring.controller.api.scope import require, sees
from cronring.controller.core.node.events import JobsNotified
from cronring.controller.errors import NotFound, Outdated, StoreError, StoreUnavailable, TooSlow
from cronring.controller.ports.many import WRITTEN_AT_ONCE, JobChange, JobDone, NewJob, Outcome, sliced
from cronring.controller.ports.reads import JobRow, Reads
from cronring.controller.services.refusals import other_labels
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.schema.identity import Permission
from cronring.schema.keys import namespace_of
from cronring.schema.module import Module

TRIES: Final = 10  # for jobs that somebody else changed meanwhile
_LEFT: Final = 2.0  # a slice begins only if this many times the last slice's duration is left

Item = TypeVar("Item", jobs_pb2.CreateJobRequest, jobs_pb2.UpdateJobRequest, str)
Judged = TypeVar("Judged", NewJob, tuple[str, JobChange], str)
_Request = jobs_pb2.CreateJobsRequest | jobs_pb2.UpdateJobsRequest | jobs_pb2.DeleteJobsRequest


class JobWork(Generic[Item, Judged]):
    """Takes items through a judge and a writer, in slices. `wrote` is told of each slice that changed something."""

    def __init__(
        self,
        judge: Callable[[Sequence[Item]], Awaitable[list[Judged | Exception]]],
        write: Callable[[Sequence[Judged], bool], Awaitable[list[Outcome]]],
        wrote: Callable[[], None],
    ) -> None:
        self._judge: Callable[[Sequence[Item]], Awaitable[list[Judged | Exception]]] = judge
        self._write: Callable[[Sequence[Judged], bool], Awaitable[list[Outcome]]] = write
        self._wrote = wrote

    async def done(self, items: Sequence[Item], request: _Request, left_s: float | None) -> list[Outcome]:
        """What became of each. `left_s`: until the caller gives up.

        A failing status would hide what was written. So an error that stops a later slice is told item by item.
        """
        if request.all_or_nothing:
            return await self._settled(items, await self._judged(items), request)
        begun, outcomes = time.monotonic(), list[Outcome]()
        parts = sliced(items)
        part = next(parts, ())
        judged = await self._judge(part)
        while part:
            at, took_s = len(outcomes), time.monotonic() - begun
            if at and left_s is not None and took_s + _LEFT * took_s * WRITTEN_AT_ONCE / at > left_s:
                late = TooSlow("there was no time left for this one; ask for it again, with fewer at once")
                return outcomes + [late] * (len(items) - at)
            following = next(parts, ())
            # PostgreSQL writes one slice while the next is judged.
            written, judged_next = await asyncio.gather(
                self._settled(part, judged, request), self._judge(following) if following else _nothing(),
                return_exceptions=True,
            )  # fmt: skip
            if isinstance(written, BaseException):
                if not at or not isinstance(written, (StoreError, StoreUnavailable)):
                    raise written
                return outcomes + [written] * (len(items) - at)
            outcomes += written
            if isinstance(judged_next, BaseException):
                if not isinstance(judged_next, (StoreError, StoreUnavailable)):
                    raise judged_next
                return outcomes + [judged_next] * (len(items) - len(outcomes))
            part, judged = following, judged_next
        return outcomes

    async def _settled(
        self, items: Sequence[Item], judged: Sequence[Judged | Exception], request: _Request
    ) -> list[Outcome]:
        """Write items. Those whose jobs others have changed since are judged anew."""
        outcomes = await self._once(judged, request)
        for _ in range(TRIES):
            late = [at for at, each in enumerate(outcomes) if isinstance(each, Outdated)]
            if late and request.all_or_nothing:
                outcomes = await self._once(await self._judged(items), request)
            elif late:
                again = await self._once(await self._judged([items[at] for at in late]), request)
                for at, outcome in zip(late, again, strict=True):
                    outcomes[at] = outcome
        return outcomes

    async def _judged(self, items: Sequence[Item]) -> list[Judged | Exception]:
        judged: list[Judged | Exception] = []
        for part in sliced(items):
            judged += await self._judge(part)
        return judged

    async def _once(self, judged: Sequence[Judged | Exception], request: _Request) -> list[Outcome]:
        fit = [each for each in judged if not isinstance(each, Exception)]
        rehearsal = request.dry_run or (request.all_or_nothing and len(fit) < len(judged))
        written = iter(await self._write(fit, rehearsal) if fit else [])
        outcomes = [each if isinstance(each, Exception) else next(written) for each in judged]
        if not rehearsal and any(isinstance(each, JobDone) and not each.unchanged for each in outcomes):
            self._wrote()
        return outcomes


async def _nothing() -> list[Any]:
    return []


class ManyJobWrites(JobWrites):
    """The part of JobsService that changes many jobs by one call."""

    _reads: Reads

    async def CreateJobs(self, request: jobs_pb2.CreateJobsRequest, context: Context) -> jobs_pb2.ManyJobsResponse:
        by, why = _who(request, len(request.jobs), "jobs", context)
        items = all_targeted(request.jobs)
        new = NewJobs(self._reads, self._templates, self._defaults)
        given = await new.given(items)

        async def judge(part: Sequence[jobs_pb2.CreateJobRequest]) -> list[NewJob | Exception]:
            return await asyncio.to_thread(lambda: [judged(new.judged, item, given) for item in part])

        async def write(jobs: Sequence[NewJob], dry_run: bool) -> list[Outcome]:
            return await self._control.create_jobs(jobs, by, why, whole=request.all_or_nothing, dry_run=dry_run)

        work = JobWork[jobs_pb2.CreateJobRequest, NewJob](judge, write, self._tell)
        outcomes = await work.done(items, request, context.time_remaining())
        return await _answer(outcomes, [key_of(item) for item in items], request)

    async def UpdateJobs(self, request: jobs_pb2.UpdateJobsRequest, context: Context) -> jobs_pb2.ManyJobsResponse:
        by, why = _who(request, len(request.jobs), "jobs", context)
        _check_keys("jobs", [item.key for item in request.jobs])
        outcomes = await self._updated_all(request, by, why, {}, context.time_remaining())
        return await _answer(outcomes, [item.key for item in request.jobs], request)

    async def _updated_all(
        self, request: jobs_pb2.UpdateJobsRequest, by: str, why: str, having: Mapping[str, str], left_s: float | None
    ) -> list[Outcome]:
        """Of each item. `having`: labels that each job must have by then."""

        async def judge(part: Sequence[jobs_pb2.UpdateJobRequest]) -> list[tuple[str, JobChange] | Exception]:
            rows = {row.key: row for row in await self._reads.get_jobs([each.key for each in part if sees(each.key)])}
            of_modules = {_version(row): row for row in rows.values()}
            modules = {of: await or_not_found(find_module_of(self._reads, row)) for of, row in of_modules.items()}
            return await asyncio.to_thread(
                lambda: [judged(self._change, item, rows.get(item.key), modules, having) for item in part]
            )

        async def write(changes: Sequence[tuple[str, JobChange]], dry_run: bool) -> list[Outcome]:
            asked = dict(changes)
            return await self._control.update_jobs(asked, by, why, whole=request.all_or_nothing, dry_run=dry_run)

        work = JobWork[jobs_pb2.UpdateJobRequest, tuple[str, JobChange]](judge, write, self._tell)
        return await work.done(list(request.jobs), request, left_s)

    async def DeleteJobs(self, request: jobs_pb2.DeleteJobsRequest, context: Context) -> jobs_pb2.ManyJobsResponse:
        by, why = _who(request, len(request.keys), "keys", context)
        _check_keys("keys", request.keys)

        async def judge(part: Sequence[str]) -> list[str | Exception]:
            return [key if sees(key) else no_job(key) for key in part]

        async def write(keys: Sequence[str], dry_run: bool) -> list[Outcome]:
            return await self._control.delete_jobs(keys, by, why, whole=request.all_or_nothing, dry_run=dry_run)

        work = JobWork[str, str](judge, write, self._tell)
        outcomes = await work.done(list(request.keys), request, context.time_remaining())
        return await _answer(outcomes, request.keys, request)

    def _tell(self) -> None:
        self._put(JobsNotified())

    def _change(
        self,
        item: jobs_pb2.UpdateJobRequest,
        row: JobRow | None,
        modules: Mapping[tuple[str, str, str], Module | NotFound],
        having: Mapping[str, str],
    ) -> tuple[str, JobChange]:
        check_item(item)
        if row is None:
            raise no_job(item.key)
        if not having.items() <= row.spec.labels.items():
            raise other_labels(item.key)
        module = there(modules[_version(row)])
        change = job_change(item, row, module, find_verb(module, row.verb), self._defaults)
        check_other(change, row)
        return item.key, change


def _who(request: _Request, items: int, field: str, context: Context) -> tuple[str, str]:
    """By whom, and why. Raises InvalidRequest."""
    if not items:
        raise InvalidRequest([(field, "is empty; name at least one")])
    return actor(request.requested_by, context), note("note", request.note)


def _check_keys(field: str, keys: Sequence[str]) -> None:
    """Raises InvalidRequest, Forbidden. Keys that the caller may not view fail later, item by item, as missing ones."""
    seen = set[str]()
    for key in keys:
        name(field, key)
        if key in seen:
            raise InvalidRequest([(field, f"name {key!r:.120} twice; name each job once")])
        seen.add(key)
    for namespace in sorted({namespace_of(key) for key in keys if sees(key)}):
        require(Permission.OPERATE, namespace)


def _version(row: JobRow) -> tuple[str, str, str]:
    """The version by which a change of the job is judged: the active one; of an orphaned job, its own."""
    return row.namespace, row.module, "" if row.orphaned_at is None else row.deployment


async def _answer(outcomes: Sequence[Outcome], keys: Sequence[str], request: _Request) -> jobs_pb2.ManyJobsResponse:
    """In a thread: 10,000 messages take a while to make."""
    return await asyncio.to_thread(_response, outcomes, keys, request)


def _response(outcomes: Sequence[Outcome], keys: Sequence[str], request: _Request) -> jobs_pb2.ManyJobsResponse:
    answer = jobs_pb2.ManyJobsResponse(
        results=[_result(each, key) for each, key in zip(outcomes, keys, strict=True)],
        unchanged=sum(isinstance(each, JobDone) and each.unchanged for each in outcomes),
        failed=sum(isinstance(each, Exception) for each in outcomes),
    )
    answer.rolled_back = request.all_or_nothing and not request.dry_run and answer.failed > 0
    answer.changed = 0 if answer.rolled_back else len(outcomes) - answer.unchanged - answer.failed
    return answer


def _result(outcome: Outcome, key: str) -> jobs_pb2.JobResult:
    if isinstance(outcome, JobDone):
        return jobs_pb2.JobResult(
            key=outcome.key, id=outcome.job_id, unchanged=outcome.unchanged, updated=outcome.updated
        )
    return jobs_pb2.JobResult(key=key, refusal=refusal_message(outcome))
