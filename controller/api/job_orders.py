"""cronring.v1.Jobs, orders to single jobs: pause, resume, skip the next tick, cancel, restore."""

import json

from cronring.controller.api.job_writes import JobWrites
from cronring.controller.api.lookup import find_job
from cronring.controller.api.messages import job_message
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, actor, instant, note
from cronring.controller.core.node.events import JobsCreated
from cronring.controller.core.orders.orders import Cancel, JobOrder, Pause, Restore, Resume, SkipNext
from cronring.controller.ports.reads import JobReads
from cronring.controller.ports.store import Controlled
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission
from cronring.schema.instant import parse_instant


class JobOrders(JobWrites):
    """The part of JobsService that gives orders to single jobs."""

    async def PauseJob(self, request: jobs_pb2.PauseJobRequest, context: Context) -> jobs_pb2.Job:
        return await self.pause(request, actor(request.requested_by, context))

    async def pause(self, request: jobs_pb2.PauseJobRequest, by: str) -> jobs_pb2.Job:
        """`by`: who does it."""
        why, until = note("note", request.note), await until_of(request, self._reads)
        return await self._answer(await self._ordered(request.key, Pause(why, until), by))

    async def ResumeJob(self, request: jobs_pb2.ResumeJobRequest, context: Context) -> jobs_pb2.Job:
        return await self.resume(request, actor(request.requested_by, context))

    async def resume(self, request: jobs_pb2.ResumeJobRequest, by: str) -> jobs_pb2.Job:
        """`by`: who does it."""
        return await self._answer(await self._ordered(request.key, Resume(note("note", request.note)), by))

    async def SkipNextTick(
        self, request: jobs_pb2.SkipNextTickRequest, context: Context
    ) -> jobs_pb2.SkipNextTickResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        tick = instant("tick", request.tick) if request.HasField("tick") else None
        done = await self._ordered(request.key, SkipNext(tick, why), by, dry_run=request.dry_run)
        skipped = done.details.get("tick")
        return jobs_pb2.SkipNextTickResponse(
            job=await self._answer(done),
            tick=timestamp(parse_instant(str(skipped)) if skipped else None),
            skipped=done.changed and not request.dry_run,
        )

    async def CancelJob(self, request: jobs_pb2.CancelJobRequest, context: Context) -> jobs_pb2.CancelJobResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        done = await self._ordered(request.key, Cancel(why), by)
        return jobs_pb2.CancelJobResponse(job=await self._answer(done), cancelling=done.cancelling)

    async def RestoreJob(self, request: jobs_pb2.RestoreJobRequest, context: Context) -> jobs_pb2.Job:
        by, why = actor(request.requested_by, context), note("note", request.note)
        return await self._answer(await self._ordered(request.key, Restore(why), by))

    async def _ordered(self, key: str, order: JobOrder, by: str, *, dry_run: bool = False) -> Controlled:
        row = await find_job(self._reads, key, Permission.OPERATE)
        done = await self._control.order_job(row.key, order, by, dry_run=dry_run)
        if done.changed and not dry_run:
            self._put(JobsCreated([done.job]))
        return done

    async def _answer(self, done: Controlled) -> jobs_pb2.Job:
        message = job_message(await self._reads.get_job(done.job.key), self._defaults.jitter)
        message.unchanged = not done.changed
        return message


async def until_of(request: jobs_pb2.PauseJobRequest | jobs_pb2.ControlJobsRequest, reads: JobReads) -> int | None:
    """Raises InvalidRequest for an end that has passed."""
    if not request.HasField("until"):
        return None
    until = instant("until", request.until)
    if until <= await reads.database_now():
        raise InvalidRequest([("until", "has passed in PostgreSQL's time; give an instant to come, or none")])
    return until


def details_text(done: Controlled) -> str:
    """JSON, for what has no fields of its own."""
    details = dict(done.details)
    if done.activation is not None:
        details["activation"] = done.activation.activation_id
    return json.dumps(details) if details else ""
