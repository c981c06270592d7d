"""cronring.v1.Jobs, what makes and changes jobs: create, update, delete."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from cronring.controller.api.etags import check_etag, job_etag
from cronring.controller.api.job_specs import Defaults, job_change, new_job
from cronring.controller.api.lookup import check_followed, find_job, find_module, find_module_of, find_verb
from cronring.controller.api.messages import job_message
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.queue_targets import target_faults, targeted
from cronring.controller.api.requests import Context, actor, note
from cronring.controller.api.scope import require
from cronring.controller.api.template_specs import find_template, started_from
from cronring.controller.api.token_box import TokenBox
from cronring.controller.core.model import Job
from cronring.controller.core.node.events import ActivationsCreated, JobsCreated, JobsNotified
from cronring.controller.core.orders.control import SECOND_US, NeverRuns
from cronring.controller.errors import Outdated, StoreUnavailable
from cronring.controller.ports.many import JobChange, NewJob, Seen, done
from cronring.controller.ports.reads import JobReads, JobRow
from cronring.controller.ports.store import Control
from cronring.controller.ports.templates import Templates
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.schema.identity import Permission
from cronring.schema.instant import format_instant
from cronring.schema.keys import DEFAULT_NAMESPACE
from cronring.schema.names import job_name_fault
from cronring.schema.policy import parse_policy
from cronring.schema.queues import queue_of
from cronring.schema.validate import name_fault, namespace_fault

AT_NOW: Final = ["at", "now"]
NOW_MARGINS_US: Final = (50_000, 1_000_000, 2_000_000, 4_000_000)
TRIES: Final = 50  # each lost to somebody whose change was committed

Asked = TypeVar("Asked", jobs_pb2.CreateJobRequest, jobs_pb2.UpdateJobRequest)

# What takes the events by which this controller's own node hears of what was done here.
Put = Callable[[JobsCreated | JobsNotified | ActivationsCreated], None]


class JobWrites:
    """The part of JobsService that changes jobs.

    `put` tells this controller's own node of each change, so that it doesn't have to wait for PostgreSQL's NOTIFY. The
    job is this node's own until its next refetch, whatever the ring says.
    """

    def __init__(
        self, control: Control, reads: JobReads, templates: Templates, defaults: Defaults, put: Put, box: TokenBox
    ) -> None:
        self._box = box
        self._control = control
        self._reads = reads
        self._templates = templates
        self._defaults = defaults
        self._put = put

    async def CreateJob(self, request: jobs_pb2.CreateJobRequest, context: Context) -> jobs_pb2.Job:
        return await self.create(request, actor(request.requested_by, context))

    async def create(self, request: jobs_pb2.CreateJobRequest, by: str) -> jobs_pb2.Job:
        """`by`: who does it."""
        return await self._soon(request, self._created, by)

    async def _created(self, request: jobs_pb2.CreateJobRequest, by: str) -> jobs_pb2.Job:
        request = targeted(request)
        check_names(request)
        why = note("note", request.note)
        namespace = request.namespace or DEFAULT_NAMESPACE
        require(Permission.OPERATE, namespace)
        module = await find_module(self._reads, namespace, request.module)
        verb = find_verb(module, request.verb)
        template = await find_template(self._templates, namespace, request.template) if request.template else None
        job = started_from(template, request, lambda filled: new_job(filled, module, verb, self._defaults))
        check_followed("spec.policy.after", parse_policy(job.spec.policy).after)
        if queue_of(job.module):
            return await self._scheduled(job, by, why)
        made = await self._control.make_job(job, by, why)
        created = await self._changed(made.job)
        created.unchanged = made.unchanged
        if job.run_now:
            self._put(JobsNotified())  # of what runs beside its schedule
        return created

    async def _scheduled(self, job: NewJob, by: str, why: str) -> jobs_pb2.Job:
        """Make a queue's job. An existing one is changed into it."""
        outcome = done(await self._control.create_jobs([job], by, why, whole=True))
        self._put(JobsNotified())
        message = self.told(await self._reads.get_job(outcome.key))
        message.unchanged, message.updated = outcome.unchanged, outcome.updated
        return message

    async def UpdateJob(self, request: jobs_pb2.UpdateJobRequest, context: Context) -> jobs_pb2.Job:
        return await self.update(request, actor(request.requested_by, context))

    async def update(self, request: jobs_pb2.UpdateJobRequest, by: str) -> jobs_pb2.Job:
        """`by`: who does it."""
        return await self._soon(request, self._updated, by)

    async def _soon(
        self, request: Asked, make: Callable[[Asked, str], Awaitable[jobs_pb2.Job]], by: str
    ) -> jobs_pb2.Job:
        """The result of `make`. The schedule `at now` becomes the next whole second, in PostgreSQL's time.

        If that second has passed before the job was written, the next try takes a later one.
        """
        if request.spec.schedule.split() != AT_NOW:
            return await make(request, by)
        for margin_us in NOW_MARGINS_US:
            second = (await self._reads.database_now() + margin_us) // SECOND_US + 1
            asked = type(request)()
            asked.CopyFrom(request)
            asked.spec.schedule = f"at {format_instant(second * SECOND_US)}"
            with contextlib.suppress(NeverRuns):
                return await make(asked, by)
        raise StoreUnavailable("it takes longer to make the job than until it was to run; try again")

    async def _updated(self, request: jobs_pb2.UpdateJobRequest, by: str) -> jobs_pb2.Job:
        why = note("note", request.note)
        for _ in range(TRIES):
            with contextlib.suppress(Outdated):
                return await self._update(request, by, why)
        raise Outdated(f"others keep changing {request.key!r}; try again")

    async def _update(self, request: jobs_pb2.UpdateJobRequest, by: str, why: str) -> jobs_pb2.Job:
        """Raises Outdated if somebody changed the job after it was read: what they set is not to be lost."""
        row = await find_job(self._reads, request.key, Permission.OPERATE)
        check_etag(request.etag, job_etag(self._box, row), f"job {row.key!r}")
        module = await find_module_of(self._reads, row)
        change = job_change(request, row, module, find_verb(module, row.verb), self._defaults)
        check_other(change, row)
        self._put(JobsCreated([await self._control.update_job(row.key, change, by, why)]))
        updated = await self._reads.get_job(row.key)
        message = self.told(updated)
        message.unchanged = updated.spec == row.spec
        return message

    async def DeleteJob(self, request: jobs_pb2.DeleteJobRequest, context: Context) -> jobs_pb2.DeleteJobResponse:
        return await self.delete(request, actor(request.requested_by, context))

    async def delete(self, request: jobs_pb2.DeleteJobRequest, by: str) -> jobs_pb2.DeleteJobResponse:
        """`by`: who does it."""
        why = note("note", request.note)
        for _ in range(TRIES):
            with contextlib.suppress(Outdated):
                return await self._delete(request, by, why)
        raise Outdated(f"others keep changing {request.key!r}; try again")

    async def _delete(self, request: jobs_pb2.DeleteJobRequest, by: str, why: str) -> jobs_pb2.DeleteJobResponse:
        """Raises NotAsSeen; Outdated if that became so after the job was read."""
        row = await find_job(self._reads, request.key, Permission.OPERATE)
        check_etag(request.etag, job_etag(self._box, row), f"job {row.key!r}")
        seen = Seen(row.job_id, row.deployment, row.spec) if request.etag else None
        await self._control.delete_job(row.key, by, why, seen)
        self._put(JobsNotified())
        return jobs_pb2.DeleteJobResponse()

    async def _changed(self, job: Job) -> jobs_pb2.Job:
        self._put(JobsCreated([job]))
        return self.told(await self._reads.get_job(job.key))

    def told(self, row: JobRow) -> jobs_pb2.Job:
        """As GetJob answers."""
        message = job_message(row, self._defaults.jitter)
        message.etag = job_etag(self._box, row)
        return message


def check_other(change: JobChange, row: JobRow) -> None:
    """Raises InvalidRequest if it is to follow another job than before, and the caller may not see that job."""
    if "policy" in change.names:
        after = parse_policy(change.spec.policy).after
        if after != parse_policy(row.spec.policy).after:
            check_followed("spec.policy.after", after)


def check_names(request: jobs_pb2.CreateJobRequest) -> None:
    """Raises InvalidRequest."""
    target = (("module", name_fault(request.module)), ("verb", name_fault(request.verb)))
    faults = (
        ("namespace", namespace_fault(request.namespace) if request.namespace else None),
        *(target_faults(request) if request.HasField("queue") else target),
        ("name", job_name_fault(request.name)),
    )
    problems: Violations = [(field, fault) for field, fault in faults if fault is not None]
    if problems:
        raise InvalidRequest(problems)
