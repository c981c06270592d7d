"""cronring.v1.Schedules: explains schedules, what a change of a job would do, and what its verb takes."""

import asyncio
from typing import Any, Final

from cronring.controller.api.etags import job_etag
from cronring.controller.api.explaining import Question, check_read, explained
from cronring.controller.api.job_specs import (
    Defaults,
    contradictions,
    job_change,
    read_anchor,
    read_policy,
    read_schedule,
)
from cronring.controller.api.job_writes import AT_NOW, check_other
from cronring.controller.api.lookup import find_job, find_module, find_module_of, find_verb, parsed_module
from cronring.controller.api.new_jobs import NewJobs, key_of
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.queue_targets import targeted
from cronring.controller.api.requests import Context, actor, instant, name, number, required
from cronring.controller.api.scope import require
from cronring.controller.api.set_answers import difference_messages, ticks_message
from cronring.controller.api.token_box import TokenBox
from cronring.controller.errors import NotFound
from cronring.controller.ports.many import NewJob, done
from cronring.controller.ports.reads import DeploymentFilter, JobRow
from cronring.controller.ports.stores import Stores
from cronring.controller.services.set_plans import JobFate, JobStep, fields_of, ticks_of
from cronring.protos.cronring.v1 import jobs_pb2, schedules_pb2, schedules_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.protos.modules import raw_policy, types_messages
from cronring.schema.forecast import COMPARED
from cronring.schema.identity import Permission
from cronring.schema.instant import format_instant
from cronring.schema.job import JobSpec
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.module import Module
from cronring.schema.policy import FIELDS
from cronring.schema.records import records_of
from cronring.schema.year import FIRST_YEAR, LAST_YEAR

_TICKS: Final = 10
_TICKS_MAX: Final = 100
_HOUR_US: Final = 3_600_000_000
_WEEK_HOURS: Final = 168
_HOURS_MAX: Final = 8_784
_SECOND_US: Final = 1_000_000


class SchedulesService(schedules_pb2_grpc.SchedulesServicer):
    """Reading only: PreviewJob asks the store for a dry run.

    Why: docs/decisions/0110-previews-ask-the-store.md.
    """

    def __init__(self, stores: Stores, defaults: Defaults, box: TokenBox, new: NewJobs) -> None:
        self._reads = stores.reads
        self._new = new
        self._control = stores.control
        self._statistics = stores.statistics
        self._of_cluster = stores.defaults
        self._defaults = defaults
        self._box = box

    async def ExplainSchedule(
        self, request: schedules_pb2.ExplainScheduleRequest, context: Context
    ) -> schedules_pb2.Explanation:
        asked, problems = await self._asked(request), Violations()
        reading = read_policy(raw_policy(request.policy), problems)
        schedule = read_schedule(_not_now(request.schedule, asked.after), reading.policy.timezone, problems)
        problems += contradictions(reading, schedule)
        anchor = read_anchor(request, schedule, problems)
        if problems:
            # The fields of this request stand at its top level, so their paths have no `spec.`.
            raise InvalidRequest([(field.removeprefix("spec."), words) for field, words in problems])
        spec = JobSpec(schedule=schedule, anchor=anchor, policy=reading.policy.text)
        return await asyncio.to_thread(explained, spec, asked)

    async def ExplainJob(self, request: schedules_pb2.ExplainJobRequest, context: Context) -> schedules_pb2.Explanation:
        row = await find_job(self._reads, request.job, Permission.VIEW, "job")
        check_read(row)
        asked = _of_row(row, await self._slow_ms(row.key), await self._asked(request))
        return await asyncio.to_thread(explained, row.spec, asked)

    async def PreviewJob(
        self, request: schedules_pb2.PreviewJobRequest, context: Context
    ) -> schedules_pb2.PreviewJobResponse:
        hours = number(request, "hours", _WEEK_HOURS, _HOURS_MAX)
        now = await self._reads.database_now()
        until = now + hours * _HOUR_US
        if request.HasField("create"):
            return await self._previewed_new(request, now, until, context)
        wanted = jobs_pb2.UpdateJobRequest(key=request.key, spec=request.spec, update_mask=request.update_mask)
        wanted.spec.schedule = _not_now(wanted.spec.schedule, now)
        row = await find_job(self._reads, request.key, Permission.OPERATE)
        module = await find_module_of(self._reads, row)
        change = job_change(wanted, row, module, find_verb(module, row.verb), self._defaults)
        check_other(change, row)
        done(await self._control.update_jobs({row.key: change}, actor("", context), dry_run=True))
        slow_ms = await self._slow_ms(row.key)
        spec = row.spec.taking(change.spec, change.names)
        if "anchor" not in change.names and spec.schedule != row.spec.schedule:
            spec = spec._replace(anchor=None)  # it counts from when it is set
        asked = _of_row(row, slow_ms, Question(now, _TICKS))
        answer = await asyncio.to_thread(_previewed, row, spec, asked, until)
        answer.etag = job_etag(self._box, row)
        return answer

    async def _previewed_new(
        self, request: schedules_pb2.PreviewJobRequest, now: int, until: int, context: Context
    ) -> schedules_pb2.PreviewJobResponse:
        if request.key or request.HasField("spec") or request.HasField("update_mask"):
            raise InvalidRequest([("create", "is a job that would be made; leave out key, spec and update_mask")])
        item = targeted(request.create)
        item.spec.schedule = _not_now(item.spec.schedule, now)
        job = self._new.judged(item, await self._new.given([item]))
        done(await self._control.create_jobs([job], actor("", context), dry_run=True))
        of_cluster = await self._of_cluster.get_defaults()
        asked = Question(now, _TICKS, None, key_of(item), None, of_cluster.timeout_ms, of_cluster.retries)
        return await asyncio.to_thread(_answer, JobStep(asked.key, JobFate.CREATED, None, job), job.spec, asked, until)

    async def DescribeVerb(
        self, request: schedules_pb2.DescribeVerbRequest, context: Context
    ) -> schedules_pb2.DescribeVerbResponse:
        if request.job:
            row = await find_job(self._reads, request.job, Permission.VIEW, "job")
            module, deployment, of = await find_module_of(self._reads, row), row.deployment, row.verb
        else:
            module, deployment = await self._active(request)
            of = request.verb
        verb = find_verb(module, of)
        return schedules_pb2.DescribeVerbResponse(
            deployment=deployment,
            verb=verb.name,
            doc=verb.doc,
            request=verb.request,
            request_optional=verb.request_optional,
            types=types_messages(records_of(verb.request, module.types)),
        )

    async def _active(self, request: schedules_pb2.DescribeVerbRequest) -> tuple[Module, str]:
        """The version of the verb that is active, and its deployment's key. Raises NotFound, Forbidden."""
        required("job", request.module and request.verb, "a job's key; or give a module and a verb")
        namespace = request.namespace or DEFAULT_NAMESPACE
        require(Permission.VIEW, namespace)
        where = DeploymentFilter(namespace=namespace, module=name("module", request.module), active_only=True)
        for row in await self._reads.list_deployments(where, 0, 1):
            return parsed_module(row.schema_text), row.key
        return await find_module(self._reads, namespace, request.module), ""  # a queue's; else it says what there is

    async def DescribePolicies(
        self, request: schedules_pb2.DescribePoliciesRequest, context: Context
    ) -> schedules_pb2.DescribePoliciesResponse:
        return schedules_pb2.DescribePoliciesResponse(
            policies=[schedules_pb2.PolicyField(name=each.name, kind=each.kind, help=each.help) for each in FIELDS]
        )

    async def _asked(self, request: Any) -> Question:
        after = instant("from_at", request.from_at) if request.HasField("from_at") else await self._reads.database_now()
        count = number(request, "count", _TICKS, _TICKS_MAX)
        year = number(request, "year", 0, LAST_YEAR, FIRST_YEAR) if request.HasField("year") else None
        return Question(after, count, year)

    async def _slow_ms(self, key: str) -> float | None:
        """None: it has not run."""
        try:
            duration = (await self._statistics.job(key)).duration
        except NotFound:  # removed meanwhile
            return None
        return None if duration is None else duration.p95_us / 1_000


def _of_row(row: JobRow, slow_ms: float | None, asked: Question) -> Question:
    return asked._replace(
        key=row.key,
        slow_ms=slow_ms,
        default_timeout_ms=row.default_timeout_ms,
        default_retries=row.default_retries,
    )


def _not_now(schedule: str, now: int) -> str:
    """`at now` as the instant that it would be."""
    return f"at {format_instant((now // _SECOND_US + 1) * _SECOND_US)}" if schedule.split() == AT_NOW else schedule


def _previewed(row: JobRow, spec: JobSpec, asked: Question, until: int) -> schedules_pb2.PreviewJobResponse:
    names = tuple(name for name in JobSpec._fields if getattr(spec, name) != getattr(row.spec, name))
    if "schedule" in names and spec.anchor is None:
        names = tuple(name for name in names if name != "anchor")  # what follows from the schedule
    job = NewJob(row.namespace, row.module, row.verb, "", spec)
    return _answer(JobStep(row.key, JobFate.CHANGED, row, job, names), spec, asked, until)


def _answer(step: JobStep, spec: JobSpec, asked: Question, until: int) -> schedules_pb2.PreviewJobResponse:
    return schedules_pb2.PreviewJobResponse(
        key=step.key,
        fields=difference_messages(fields_of(step)),
        ticks=ticks_message(ticks_of(step, asked.after, until, COMPARED)),
        explanation=explained(spec, asked),
        from_at=timestamp(asked.after),
        until_at=timestamp(until),
    )
