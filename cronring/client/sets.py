"""Calls about sets: jobs that a file declares, and jobs as files."""

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TypeVar

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.errors import Invalid
from cronring.client.filters import job_filter
from cronring.client.many import JobToMake, creation
from cronring.client.paging import follow
from cronring.protos.cronring.v1 import jobs_pb2, sets_pb2
from cronring.protos.cronring.v1.sets_pb2_grpc import SetsStub
from cronring.schema.filters import JobQuery

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.sets_pb2_grpc import SetsAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")

APPLY_BYTES_MAX: Final = 8 * 1024 * 1024  # of a request; a larger one no controller reads
APPLY_TIMEOUT_S: Final = 300.0  # of one try: 10,000 jobs are one transaction, on whatever machine


@dataclass(frozen=True, slots=True)
class Set:
    """`revision` grows with each apply that changed something; `jobs`: how many it owns."""

    namespace: str
    name: str
    jobs: int
    revision: int
    applied_at: datetime | None
    applied_by: str
    note: str


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One thing said differently, as text; "": nothing."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class TickDifference:
    """`gone`, `new` None: too many to compare one by one. `shift_ms`: all move by so much; 0: they don't."""

    before: int
    after: int
    gone: int | None
    new: int | None
    first_gone: tuple[datetime, ...]
    first_new: tuple[datetime, ...]
    shift_ms: int
    old_schedule: str
    new_schedule: str


@dataclass(frozen=True, slots=True)
class HandChange:
    """What somebody did to a job of a set since that was applied."""

    at: datetime | None
    action: str
    by: str
    note: str


@dataclass(frozen=True, slots=True)
class SetJob:
    """`change`: created, changed, adopted, removed, released, left or refused. `problem` "": it isn't refused."""

    key: str
    change: str
    fields: tuple[FieldDifference, ...]
    ticks: TickDifference | None
    by_hand: HandChange | None
    adopted: bool
    paused: bool
    reason: str
    problem: str


@dataclass(frozen=True, slots=True)
class AppliedSet:
    """`jobs`: all but those that stay as they are. `counts`: by change. `etag`: apply exactly this by it."""

    jobs: tuple[SetJob, ...]
    counts: Mapping[str, int]
    applied: bool
    etag: str
    from_at: datetime | None
    until_at: datetime | None


@dataclass(frozen=True, slots=True)
class HowToApply:
    """`prune` removes jobs that the set owns and the file lacks, `release` leaves them to nobody.

    `adopt` takes jobs that no set owns. `hours`: whose ticks are compared; None: the controllers' default.
    """

    prune: bool = False
    release: bool = False
    adopt: bool = False
    dry_run: bool = False
    hours: int | None = None
    etag: str = ""


CHANGES = ("created", "changed", "adopted", "removed", "released", "left", "unchanged", "refused")


class SetCalls:
    """Apply, get, list, export. `by` says who asks, which is kept; "": this address."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def apply(
        self, name: str, jobs: Sequence[JobToMake], how: HowToApply, namespace: str = "default", *, by: str = "",
        note: str = "",
    ) -> AppliedSet:  # fmt: skip
        """All of it, or nothing: where one is refused, none is written. Raises Invalid for too large a set."""
        request = sets_pb2.ApplySetRequest(
            namespace=namespace, name=name, jobs=map(creation, jobs), prune=how.prune, release=how.release,
            adopt=how.adopt, dry_run=how.dry_run, hours=how.hours, requested_by=by, note=note, etag=how.etag,
        )  # fmt: skip
        if request.ByteSize() > APPLY_BYTES_MAX:
            why = "make two sets of it, or pass references in its payloads"
            raise Invalid(f"the set {name!r} has {request.ByteSize():,} bytes; at most {APPLY_BYTES_MAX:,} go: {why}")
        timeout_s = max(self._failover.timeout_s, APPLY_TIMEOUT_S)
        return _applied(
            await self._failover.change(
                lambda channel: SetsStub(channel).ApplySet(request, timeout=timeout_s),
                "`cronring apply --dry-run`", repeatable=not how.etag,
            )
        )  # fmt: skip

    async def get(self, name: str, namespace: str = "default") -> Set:
        """Raises NotFound."""
        request = sets_pb2.GetSetRequest(namespace=namespace, name=name)
        return _set(await self._unary(lambda stub, timeout: stub.GetSet(request, timeout=timeout)))

    async def list(self, namespace: str = "", limit: int | None = None) -> builtins.list[Set]:
        """By namespace and name. `namespace`: "" for all."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[Set], str]:
            request = sets_pb2.ListSetsRequest(page_size=page_size, page_token=token, namespace=namespace)
            answer = await self._unary(lambda stub, timeout: stub.ListSets(request, timeout=timeout))
            return [_set(each) for each in answer.sets], answer.next_page_token

        return await follow(fetch, limit)

    async def jobs(self, name: str, namespace: str = "default", limit: int | None = None) -> builtins.list[model.Job]:
        """That it owns, by key, without payloads. Raises NotFound."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[model.Job], str]:
            request = sets_pb2.ListSetJobsRequest(page_size=page_size, page_token=token, namespace=namespace, name=name)
            answer = await self._unary(lambda stub, timeout: stub.ListSetJobs(request, timeout=timeout))
            return [convert.job(each) for each in answer.jobs], answer.next_page_token

        return await follow(fetch, limit)

    async def export(self, where: JobQuery, set_name: str = "") -> AsyncIterator[JobToMake]:
        """Jobs made through the API, as `apply` takes them. `set_name`: of the query's namespace.

        Where a controller dies in the middle, another begins anew: what was given is not given again.
        """
        given: set[tuple[str, str, str, str]] = set()
        request = sets_pb2.ExportJobsRequest(filter=job_filter(where), set_name=set_name)
        async for message in self._failover.finite(lambda channel: SetsStub(channel).ExportJobs(request), ""):
            if message is None:
                continue
            of = message.namespace, message.module, message.verb, message.name
            if of not in given:
                given.add(of)
                yield _exported(message)

    async def _unary(self, call: "Callable[[SetsAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(SetsStub(channel), self._failover.timeout_s))


def _set(message: sets_pb2.Set) -> Set:
    return Set(
        message.namespace, message.name, message.jobs, message.revision, convert.instant(message.applied_at),
        message.applied_by, message.note,
    )  # fmt: skip


def _applied(message: sets_pb2.ApplySetResponse) -> AppliedSet:
    return AppliedSet(
        tuple(map(_set_job, message.jobs)), {name: getattr(message, name) for name in CHANGES}, message.applied,
        message.etag, convert.instant(message.from_at), convert.instant(message.until_at),
    )  # fmt: skip


def _set_job(message: sets_pb2.SetJob) -> SetJob:
    hand = message.by_hand if message.HasField("by_hand") else None
    return SetJob(
        key=message.key, change=message.change, adopted=message.adopted, paused=message.paused,
        fields=tuple(FieldDifference(each.field, each.old, each.new) for each in message.fields),
        ticks=tick_difference(message.ticks) if message.HasField("ticks") else None,
        by_hand=None if hand is None else HandChange(convert.instant(hand.at), hand.action, hand.by, hand.note),
        reason=message.refusal.reason, problem=message.refusal.problem,
    )  # fmt: skip


def tick_difference(message: sets_pb2.TickDifference) -> TickDifference:
    gone, new = [
        tuple(moment for moment in map(convert.instant, stamps) if moment is not None)
        for stamps in (message.first_gone, message.first_new)
    ]
    return TickDifference(
        message.before, message.after, message.gone if message.HasField("gone") else None,
        message.new if message.HasField("new") else None, gone, new, message.shift_ms, message.old_schedule,
        message.new_schedule,
    )  # fmt: skip


def _exported(message: jobs_pb2.CreateJobRequest) -> JobToMake:
    spec = convert.spec(message.spec)
    target = message.queue
    return JobToMake(
        message.module, message.verb, message.name, spec, message.namespace, queue=target.queue,
        workspace=target.workspace,
    )  # fmt: skip
