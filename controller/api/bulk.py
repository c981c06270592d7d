"""cronring.v1.Jobs.ControlJobs: one order to many jobs, a batch of them at a time."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from cronring.controller.api.filters import job_filter
from cronring.controller.api.job_orders import details_text, until_of
from cronring.controller.api.job_specs import read_mask
from cronring.controller.api.lookup import find_module, find_verb
from cronring.controller.api.many import ManyJobWrites
from cronring.controller.api.new_jobs import check_item
from cronring.controller.api.payloads import payload_violations
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, note
from cronring.controller.api.scope import namespaces
from cronring.controller.core.node.events import ActivationsCreated, JobsNotified
from cronring.controller.core.orders.orders import Cancel, JobOrder, Pause, Restore, Resume, SkipNext
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.many import JobDone
from cronring.controller.ports.reads import JobFilter, Reads
from cronring.controller.ports.store import Controlled, RunByHand
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.schema.identity import Permission
from cronring.schema.module import Module

FOUND_MAX: Final = 5_000  # jobs
BATCH: Final = 100  # jobs whose rows are locked at once; claims leave them for a moment, and come back

_Request = jobs_pb2.ControlJobsRequest


class Delete(NamedTuple):
    """As an order to many jobs."""

    note: str = ""


class UpdateEach(NamedTuple):
    """As an order to many jobs: what is to be set, as of a job of its own."""

    change: jobs_pb2.UpdateJobRequest
    note: str = ""

    def of(self, key: str) -> jobs_pb2.UpdateJobRequest:
        """The change of this job."""
        return jobs_pb2.UpdateJobRequest(key=key, spec=self.change.spec, update_mask=self.change.update_mask)


_BulkOrder = JobOrder | RunByHand | Delete | UpdateEach
_Outcome = Controlled | JobDone | Exception | str | None


class JobsInBulk(ManyJobWrites):
    """The part of JobsService that gives orders to many jobs."""

    _reads: Reads

    async def ControlJobs(
        self, request: jobs_pb2.ControlJobsRequest, context: Context
    ) -> AsyncIterator[jobs_pb2.ControlJobsProgress]:
        by, where = actor(request.requested_by, context), job_filter(request.filter)
        if not any(where):
            raise InvalidRequest(
                [("filter", "is empty; name a namespace, module, verb, statuses, outcomes, labels, contains or keys")]
            )
        where = where._replace(namespaces=namespaces(Permission.OPERATE, where.namespace))
        until = await until_of(request, self._reads)
        if until is not None and request.action != _Request.ACTION_PAUSE:
            raise InvalidRequest([("until", "is of pauses only; leave it out")])
        if request.action != _Request.ACTION_UPDATE and (request.HasField("spec") or request.update_mask.paths):
            raise InvalidRequest([("spec", "and update_mask are of updates only; leave them out")])
        order = _order_of(request, until)
        total = await self._reads.count_jobs(where)
        if request.HasField("expected") and total != request.expected:
            raise Conflict(f"{total} jobs match, and {request.expected} are expected; nothing was done")
        yield jobs_pb2.ControlJobsProgress(total=total)
        position = 0
        async for found in self._found(where):
            # Jobs that match only since they were counted have the highest ids. They are left out.
            counted = found[: total - position] if request.HasField("expected") else found
            done = await self._done(counted, order, by, where, dry_run=request.dry_run)
            for (_, key), outcome in zip(counted, done, strict=True):
                position += 1
                yield _progress(key, outcome, position, max(total, position))

    async def _found(self, where: JobFilter) -> AsyncIterator[list[tuple[int, str]]]:
        """BATCH jobs at a time, in order of ids. One look finds FOUND_MAX, as it reads all jobs that have a label."""
        after = 0
        while found := await self._reads.find_jobs(where, after, FOUND_MAX):
            for first in range(0, len(found), BATCH):
                yield found[first : first + BATCH]
            after = found[-1][0]

    async def _done(
        self, found: list[tuple[int, str]], order: _BulkOrder, by: str, where: JobFilter, *, dry_run: bool
    ) -> Sequence[_Outcome]:
        if isinstance(order, Delete):
            keys = [key for _, key in found]
            gone = await self._control.delete_jobs(keys, by, order.note, labels=where.labels, dry_run=dry_run)
            if not dry_run:
                self._put(JobsNotified())
            return gone
        if isinstance(order, UpdateEach):
            changes = jobs_pb2.UpdateJobsRequest(jobs=[order.of(key) for _, key in found], dry_run=dry_run)
            return await self._updated_all(changes, by, order.note, where.labels, None)
        problems = await self._unfit(found) if isinstance(order, RunByHand) else {}
        fit = [job_id for job_id, _ in found if job_id not in problems]
        done = dict(zip(fit, await self._controlled(fit, order, by, dry_run=dry_run), strict=True))
        return [problems.get(job_id) or done.get(job_id) for job_id, _ in found]

    async def _controlled(
        self, job_ids: list[int], order: JobOrder | RunByHand, by: str, *, dry_run: bool
    ) -> list[Controlled | Conflict | None]:
        done = await self._control.order_jobs(job_ids, order, by, dry_run=dry_run) if job_ids else []
        changed = [each for each in done if isinstance(each, Controlled) and each.changed]
        if changed and not dry_run:
            self._put(JobsNotified())
        activations = [each.activation for each in changed if each.activation is not None]
        if activations:
            self._put(ActivationsCreated(activations))
        return done

    async def _unfit(self, found: list[tuple[int, str]]) -> dict[int, str]:
        """By id, why jobs can't be run by hand: those whose verb doesn't take their payload."""
        modules: dict[tuple[str, str], Module] = {}
        problems: dict[int, str] = {}
        for job_id, key in found:
            try:
                row = await self._reads.get_job(key)
                of = row.namespace, row.module
                if row.orphaned_at is not None:
                    continue  # refused for its state
                if of not in modules:
                    modules[of] = await find_module(self._reads, *of)
                faults = payload_violations(
                    "payload", modules[of], find_verb(modules[of], row.verb), row.spec.payload, required=True
                )
            except NotFound as error:
                problems[job_id] = str(error)
                continue
            if faults:
                problems[job_id] = "; ".join(f"{field} {fault}" for field, fault in faults)
        return problems


def _order_of(request: jobs_pb2.ControlJobsRequest, until: int | None) -> _BulkOrder:
    why = note("note", request.note)
    match request.action:
        case _Request.ACTION_PAUSE:
            return Pause(why, until)
        case _Request.ACTION_RESUME:
            return Resume(why)
        case _Request.ACTION_SKIP_NEXT:
            return SkipNext(None, why)
        case _Request.ACTION_TRIGGER:
            return RunByHand(None, why)
        case _Request.ACTION_CANCEL:
            return Cancel(why)
        case _Request.ACTION_RESTORE:
            return Restore(why)
        case _Request.ACTION_DELETE:
            return Delete(why)
        case _Request.ACTION_UPDATE:
            return UpdateEach(_change(request), why)
        case _:
            names = ", ".join(value.name for value in _Request.Action.DESCRIPTOR.values if value.number)
            raise InvalidRequest([("action", f"must be one of {names}")])


def _change(request: _Request) -> jobs_pb2.UpdateJobRequest:
    """The change. Faults that don't depend on the job are raised here, once. Raises InvalidRequest."""
    problems: Violations = []
    if not read_mask("update_mask", request.update_mask.paths, problems):
        problems.append(("update_mask", "names nothing to set, of any job"))
    if problems:
        raise InvalidRequest(problems)
    change = jobs_pb2.UpdateJobRequest(spec=request.spec, update_mask=request.update_mask)
    check_item(change)
    return change


def _progress(key: str, outcome: _Outcome, position: int, total: int) -> jobs_pb2.ControlJobsProgress:
    answer = jobs_pb2.ControlJobsProgress(key=key, position=position, total=total)
    match outcome:
        case Controlled():
            answer.done, answer.unchanged, answer.details = True, not outcome.changed, details_text(outcome)
        case JobDone():
            answer.done, answer.unchanged = True, outcome.unchanged
        case None:
            answer.problem = "it was removed meanwhile"
        case _:
            answer.problem = str(outcome)
    return answer
