"""Calls about schedules: what one comes to, what a change of a job would do, and what its verb takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from google.protobuf.field_mask_pb2 import FieldMask

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.many import JobToMake, creation
from cronring.client.sets import FieldDifference, TickDifference, tick_difference
from cronring.protos.cronring.v1 import schedules_pb2
from cronring.protos.cronring.v1.schedules_pb2_grpc import SchedulesStub
from cronring.protos.modules import policy_message
from cronring.schema.policy import read_policy


@dataclass(frozen=True, slots=True)
class ExplainedTick:
    """`local`: ISO 8601 on the zone's clocks. `note`: what is special about it; "": nothing. `run_at`: with jitter."""

    tick: datetime | None
    local: str
    note: str
    run_at: datetime | None


@dataclass(frozen=True, slots=True)
class ClockChange:
    """`moved_ms`: so much the clocks go forward. `times`: so many of the schedule are skipped, or come twice."""

    at: datetime | None
    day: str
    moved_ms: int
    times: int
    happens: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding of lint. `level`: warning or note."""

    rule: str
    level: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """`kind`: fixed-time, interval-like, interval, once or manual. `days`: ticks of each day of `year`; 0: of none."""

    schedule: str
    words: str
    timezone: str
    kind: str
    ticks: tuple[ExplainedTick, ...]
    clock_changes: tuple[ClockChange, ...]
    remarks: tuple[Remark, ...]
    year: int
    days: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a change would do. Ticks are compared after `from_at` and up to `until_at`. `etag`: of the job as it is.

    `key`: the job's.
    """

    key: str
    fields: tuple[FieldDifference, ...]
    ticks: TickDifference
    explanation: Explanation
    etag: str
    from_at: datetime | None
    until_at: datetime | None


@dataclass(frozen=True, slots=True)
class DescribedVerb:
    """`request`: the type of its payload, "Unit" for none. `types`: fields and their types, of each record in it."""

    deployment: str
    verb: str
    doc: str
    request: str
    request_optional: bool
    types: dict[str, dict[str, str]]


class ScheduleCalls:
    """They change nothing."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def explain(
        self, schedule: str, policy: Mapping[str, str | int | list[str]] | None = None, *,
        after: datetime | None = None, count: int = 10, year: int | None = None,
    ) -> Explanation:  # fmt: skip
        """A text as a job's schedule. `after` None: now. `year`: 1971 to 2098, whose days are counted.

        Raises Invalid for what is none, and ValueError for a policy that can't be read.
        """
        request = schedules_pb2.ExplainScheduleRequest(
            schedule=schedule, policy=policy_message(read_policy(dict(policy or {}))),
            from_at=convert.timestamp(after), count=count, year=year,
        )  # fmt: skip
        timeout = self._failover.timeout_s
        return _explanation(
            await self._failover.unary(lambda channel: SchedulesStub(channel).ExplainSchedule(request, timeout=timeout))
        )

    async def of_job(
        self, job: str, *, after: datetime | None = None, count: int = 10, year: int | None = None
    ) -> Explanation:
        """A job as it stands, with its jitter. Raises NotFound; Conflict for what a newer release wrote."""
        request = schedules_pb2.ExplainJobRequest(job=job, from_at=convert.timestamp(after), count=count, year=year)
        timeout = self._failover.timeout_s
        return _explanation(
            await self._failover.unary(lambda channel: SchedulesStub(channel).ExplainJob(request, timeout=timeout))
        )

    async def preview(self, key: str, spec: model.JobSpec, fields: Sequence[str], hours: int = 168) -> Preview:
        """What `jobs.update` would do, with the ticks of so many hours. Raises what that raises."""
        request = schedules_pb2.PreviewJobRequest(
            key=key, spec=convert.job_spec(spec), update_mask=FieldMask(paths=fields), hours=hours
        )
        return await self._previewed(request)

    async def preview_new(self, job: JobToMake, hours: int = 168) -> Preview:
        """What `jobs.create` would do, as `preview`. Its `etag` is "". Raises what that raises."""
        return await self._previewed(schedules_pb2.PreviewJobRequest(create=creation(job), hours=hours))

    async def _previewed(self, request: schedules_pb2.PreviewJobRequest) -> Preview:
        timeout = self._failover.timeout_s
        answer = await self._failover.unary(lambda channel: SchedulesStub(channel).PreviewJob(request, timeout=timeout))
        return Preview(
            answer.key, tuple(FieldDifference(each.field, each.old, each.new) for each in answer.fields),
            tick_difference(answer.ticks), _explanation(answer.explanation), answer.etag,
            convert.instant(answer.from_at), convert.instant(answer.until_at),
        )  # fmt: skip

    async def policies(self) -> dict[str, str]:
        """What may be set of a job's policy, by name, and what for."""
        timeout = self._failover.timeout_s
        request = schedules_pb2.DescribePoliciesRequest()
        answer = await self._failover.unary(
            lambda channel: SchedulesStub(channel).DescribePolicies(request, timeout=timeout)
        )
        return {each.name: each.help for each in answer.policies}

    async def verb(self, job: str = "", *, of: model.VerbTarget | None = None) -> DescribedVerb:
        """What a job's verb takes as its payload; or a verb that is active now. Raises NotFound."""
        request = schedules_pb2.DescribeVerbRequest(job=job)
        if of is not None:
            request.namespace, request.module, request.verb = of.namespace, of.module, of.verb
        timeout = self._failover.timeout_s
        answer = await self._failover.unary(
            lambda channel: SchedulesStub(channel).DescribeVerb(request, timeout=timeout)
        )
        return DescribedVerb(
            answer.deployment, answer.verb, answer.doc, answer.request, answer.request_optional,
            {data.name: {field.name: field.type for field in data.fields} for data in answer.types},
        )  # fmt: skip


def _explanation(message: schedules_pb2.Explanation) -> Explanation:
    return Explanation(
        message.schedule, message.words, message.timezone, message.kind,
        tuple(
            ExplainedTick(convert.instant(each.tick), each.local, each.note, convert.instant(each.run_at))
            for each in message.ticks
        ),
        tuple(
            ClockChange(convert.instant(each.at), each.day, each.moved_ms, each.times, each.happens)
            for each in message.clock_changes
        ),
        tuple(Remark(each.rule, each.level, each.message, each.remedy) for each in message.remarks),
        message.year, tuple(message.days),
    )  # fmt: skip
