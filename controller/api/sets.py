"""cronring.v1.Sets: jobs that files declare. A plan is made from the present jobs, and applied in one transaction."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from cronring.controller.api.etags import check_etag, plan_etag
from cronring.controller.api.exporting import exported
from cronring.controller.api.job_specs import Defaults
from cronring.controller.api.job_writes import Put
from cronring.controller.api.lookup import find_module_of
from cronring.controller.api.messages import job_message
from cronring.controller.api.new_jobs import NewJobs, judged, key_of, or_not_found
from cronring.controller.api.paging import Pages, page_size, total
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.queue_targets import targeted
from cronring.controller.api.requests import Context, actor, name, note, number
from cronring.controller.api.scope import namespaces, require
from cronring.controller.api.set_answers import SetAnswer, set_message
from cronring.controller.api.token_box import TokenBox
from cronring.controller.core.node.events import JobsNotified
from cronring.controller.errors import NotAsSeen, NotFound, Outdated
from cronring.controller.ports.caller import caller
from cronring.controller.ports.many import WRITTEN_AT_ONCE, NewJob, Outcome, Who, sliced
from cronring.controller.ports.reads import JobRow
from cronring.controller.ports.sets import ByHand, SetRow
from cronring.controller.ports.stores import Stores
from cronring.controller.services.set_plans import JobFate, JobStep, SetOptions, plan, work_of
from cronring.protos.cronring.v1 import jobs_pb2, sets_pb2, sets_pb2_grpc
from cronring.schema.identity import Permission
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.names import job_name_fault
from cronring.schema.validate import namespace_fault

JOBS_MAX: Final = 10_000  # of a set: they are applied in one transaction
HOURS_DEFAULT: Final = 24
HOURS_MAX: Final = 8_784  # a leap year
TRIES: Final = 10  # each lost to somebody whose change was committed
_HOUR_US: Final = 3_600_000_000


class _Planned(NamedTuple):
    """A plan from the jobs as they were. `revision`: of the set at that time; 0: it is new."""

    steps: list[JobStep]
    revision: int
    by_hand: dict[str, ByHand]


class SetsService(sets_pb2_grpc.SetsServicer):
    """`put` takes what this controller's own node has to hear of changes made here."""

    def __init__(self, stores: Stores, box: TokenBox, defaults: Defaults, put: Put) -> None:
        self._reads = stores.reads
        self._sets = stores.sets
        self._new = NewJobs(stores.reads, stores.templates, defaults)
        self._box = box
        self._defaults = defaults
        self._put = put

    async def ApplySet(self, request: sets_pb2.ApplySetRequest, context: Context) -> sets_pb2.ApplySetResponse:
        who = Who(actor(request.requested_by, context), note("note", request.note), request.name)
        namespace = _checked(request.namespace, request.name)
        require(Permission.OPERATE, namespace)
        hours = number(request, "hours", HOURS_DEFAULT, HOURS_MAX)
        _check(request)
        for _ in range(TRIES):
            planned = await self._planned(request, namespace)
            etag = await asyncio.to_thread(plan_etag, self._box, planned.steps)
            check_etag(request.etag, etag, f"what this would do to the set {request.name!r}")
            outcomes = await self._written(request, namespace, planned, who)
            if not any(isinstance(each, Outdated) for each in outcomes.values()):
                now = await self._reads.database_now()
                answer = SetAnswer(_refused(planned.steps, outcomes), planned.by_hand, now, now + hours * _HOUR_US)
                return await asyncio.to_thread(answer.message, etag, dry_run=request.dry_run)
            if request.etag:
                raise NotAsSeen(f"the set {request.name!r} has been changed since your etag; read it anew")
        raise Outdated(f"others keep changing jobs of the set {request.name!r}; try again")

    async def GetSet(self, request: sets_pb2.GetSetRequest, context: Context) -> sets_pb2.Set:
        return set_message(await self._found(_checked(request.namespace, request.name), request.name))

    async def ListSets(self, request: sets_pb2.ListSetsRequest, context: Context) -> sets_pb2.ListSetsResponse:
        namespace, limit = name("namespace", request.namespace), page_size(request)
        pages = Pages(self._box, "ListSets", namespace)
        after, _, after_name = pages.text_cursor(request.page_token).partition("/")
        visible = namespaces(Permission.VIEW, namespace)
        rows = await self._sets.list_sets(namespace, (after, after_name), limit + 1, visible)
        page = rows[:limit]
        return sets_pb2.ListSetsResponse(
            sets=[set_message(row) for row in page],
            next_page_token=pages.token(f"{page[-1].namespace}/{page[-1].name}") if len(rows) > limit else "",
            total=await total(request, lambda: self._sets.count_sets(namespace, visible)),
        )

    async def ListSetJobs(self, request: sets_pb2.ListSetJobsRequest, context: Context) -> sets_pb2.ListSetJobsResponse:
        namespace, limit = _checked(request.namespace, request.name), page_size(request)
        await self._found(namespace, request.name)
        pages = Pages(self._box, "ListSetJobs", namespace, request.name)
        keys = await self._sets.set_keys(namespace, request.name, pages.text_cursor(request.page_token), limit + 1)
        rows = {row.key: row for row in await self._reads.get_jobs(keys[:limit])}
        # Without payloads: a thousand of them would not fit into a message.
        plain = [rows[key]._replace(spec=rows[key].spec._replace(payload="")) for key in keys[:limit] if key in rows]
        return sets_pb2.ListSetJobsResponse(
            jobs=[job_message(row, self._defaults.jitter) for row in plain],
            next_page_token=pages.token(keys[limit - 1]) if len(keys) > limit else "",
        )

    async def ExportJobs(
        self, request: sets_pb2.ExportJobsRequest, context: Context
    ) -> AsyncIterator[jobs_pb2.CreateJobRequest]:
        async for job in exported(request, self._reads, self._sets, self._defaults):
            yield job

    async def _found(self, namespace: str, asked: str) -> SetRow:
        """Raises NotFound; also where the caller may not know of it."""
        row = await self._sets.get_set(namespace, asked) if caller().may(Permission.VIEW, namespace) else None
        if row is None:
            where = f"namespace {namespace!r}"
            raise NotFound(f"there is no set {asked!r} in {where}; `cronring sets list` shows them")
        return row

    async def _planned(self, request: sets_pb2.ApplySetRequest, namespace: str) -> _Planned:
        # The set is read first: if it changes after that, applying fails because of its revision.
        there = await self._sets.get_set(namespace, request.name)
        owned = [] if there is None else await self._owned(there)
        items = await asyncio.to_thread(_items, request, namespace)
        keys = [key for key, item in items.items() if not isinstance(item, Exception)]
        rows = await self._rows(list(dict.fromkeys([*keys, *owned])))
        wanted = await self._judged(items, rows)
        options = SetOptions(request.name, request.prune, request.release, request.adopt)
        steps = await asyncio.to_thread(plan, wanted, rows, owned, options)
        touched = [
            step.key for step in steps if step.change not in {JobFate.UNCHANGED, JobFate.ADOPTED, JobFate.REFUSED}
        ]
        by_hand = {} if there is None else await self._sets.hand_changes(request.name, touched)
        return _Planned(steps, 0 if there is None else there.revision, by_hand)

    async def _owned(self, there: SetRow) -> list[str]:
        keys: list[str] = []
        while True:
            page = await self._sets.set_keys(there.namespace, there.name, keys[-1] if keys else "", WRITTEN_AT_ONCE)
            keys += page
            if len(page) < WRITTEN_AT_ONCE:
                return keys

    async def _rows(self, keys: Sequence[str]) -> dict[str, JobRow]:
        rows: dict[str, JobRow] = {}
        for part in sliced(keys):
            rows |= {row.key: row for row in await self._reads.get_jobs(part)}
        return rows

    async def _judged(
        self, items: dict[str, jobs_pb2.CreateJobRequest | Exception], rows: dict[str, JobRow]
    ) -> dict[str, NewJob | Exception]:
        """An orphaned job is judged by the last version that had its verb, so that it can stay in its file."""
        asked = {key: item for key, item in items.items() if not isinstance(item, Exception)}
        given = await self._new.given(list(asked.values()))
        orphaned = {rows[key].deployment: rows[key] for key in asked if key in rows and rows[key].orphaned_at}
        versions = {of: await or_not_found(find_module_of(self._reads, row)) for of, row in orphaned.items()}

        def one(key: str, item: jobs_pb2.CreateJobRequest) -> NewJob | Exception:
            row = rows.get(key)
            version = versions.get(row.deployment) if row is not None and row.orphaned_at else None
            return judged(self._new.judged, item, given, None if isinstance(version, Exception) else version)

        def all_of_them() -> dict[str, NewJob | Exception]:
            return {key: item if isinstance(item, Exception) else one(key, item) for key, item in items.items()}

        return await asyncio.to_thread(all_of_them)

    async def _written(
        self, request: sets_pb2.ApplySetRequest, namespace: str, planned: _Planned, who: Who
    ) -> dict[str, Outcome]:
        """What became of each job; or what would, in a dry run, or if some jobs are refused already."""
        work = work_of(planned.steps, namespace, request.name, planned.revision)
        if work.is_empty:
            return {}
        refused = any(step.change is JobFate.REFUSED for step in planned.steps)
        try:
            outcomes = await self._sets.apply_set(work, who, dry_run=request.dry_run or refused)
        except Outdated as error:
            return {"": error}
        if not request.dry_run and not refused:
            self._put(JobsNotified())
        return outcomes


def _checked(namespace: str, asked: str) -> str:
    """The namespace. Raises InvalidRequest."""
    fault = job_name_fault(asked)
    if fault is not None:
        fault = "is empty; it must be a set's name, like prod" if not asked else fault.replace("job's", "set's")
    faults = (("namespace", namespace_fault(namespace) if namespace else None), ("name", fault))
    problems: Violations = [(field, each) for field, each in faults if each is not None]
    if problems:
        raise InvalidRequest(problems)
    return namespace or DEFAULT_NAMESPACE


def _check(request: sets_pb2.ApplySetRequest) -> None:
    """Raises InvalidRequest."""
    if request.prune and request.release:
        raise InvalidRequest([("release", "excludes prune; give one of them")])
    if len(request.jobs) > JOBS_MAX:
        raise InvalidRequest([("jobs", f"are {len(request.jobs)}; a set has {JOBS_MAX} at most, so make two of it")])


def _items(request: sets_pb2.ApplySetRequest, namespace: str) -> dict[str, jobs_pb2.CreateJobRequest | Exception]:
    """By key; or what is wrong with one by itself."""
    found: dict[str, jobs_pb2.CreateJobRequest | Exception] = {}
    for each in request.jobs:
        item = jobs_pb2.CreateJobRequest()
        item.CopyFrom(targeted(each))
        item.namespace = namespace
        key = key_of(item)
        if key in found:
            found[key] = InvalidRequest([("name", "stands twice in this set: the key of each job is its own")])
        elif each.namespace not in {"", namespace}:
            found[key] = InvalidRequest([("namespace", f"is {each.namespace!r:.120}; the set's is {namespace!r}")])
        elif each.run_now:
            found[key] = InvalidRequest([("run_now", "is no property of a job; leave it out, and trigger it")])
        else:
            found[key] = item
    return found


def _refused(steps: Sequence[JobStep], outcomes: dict[str, Outcome]) -> list[JobStep]:
    """With what the store refuses."""
    return [
        step._replace(change=JobFate.REFUSED, refusal=outcome)
        if isinstance(outcome := outcomes.get(step.key), Exception)
        else step
        for step in steps
    ]
