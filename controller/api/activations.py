"""cronring.v1.Jobs, what runs beside the schedule: manual runs, backfills, and the list of what waits."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Final

from cronring.controller.api.job_writes import Put
from cronring.controller.api.lookup import find_job, find_module_of, find_verb
from cronring.controller.api.messages import activation_message, backfill_tick_message
from cronring.controller.api.paging import Pages, fitting, page_size
from cronring.controller.api.payloads import canonical_payload, payload_violations
from cronring.controller.api.problems import InvalidRequest, Violations
from cronring.controller.api.requests import Context, actor, instant, note
from cronring.controller.api.token_box import TokenBox
from cronring.controller.core.model import Activation
from cronring.controller.core.node.events import ActivationsCreated
from cronring.controller.core.orders.control import plan_backfill
from cronring.controller.core.orders.redeploy import Existing
from cronring.controller.ports.reads import ExecutionFilter, ExecutionSort, JobReads, JobRow, Reads
from cronring.controller.ports.store import Backfill, Control
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.schema.identity import Permission
from cronring.schema.timetable import Timetable, timetable

TICKS_LISTED_MAX: Final = 1_000
BACKFILL_TICKS_MAX: Final = 100_000
BEGINS_WITHIN_S: Final = 1.0
BEGINS_POLL_S: Final = 0.01


class ActivationWrites:
    """The part of JobsService about runs beside the schedule.

    `put` tells this controller's own node of new activations, so that it claims them at once.
    """

    def __init__(self, control: Control, reads: Reads, put: Put, box: TokenBox) -> None:
        self._control = control
        self._reads = reads
        self._put = put
        self._box = box

    async def TriggerJob(self, request: jobs_pb2.TriggerJobRequest, context: Context) -> jobs_pb2.Activation:
        row, activation = await triggered(
            self._control, self._reads, request, actor(request.requested_by, context), self._put
        )
        message = activation_message(activation, table_of(row))
        message.execution_id = await self._begun_as(activation)
        return message

    async def _begun_as(self, activation: Activation) -> int:
        """The id of its execution, which mostly begins within milliseconds; 0: not within BEGINS_WITHIN_S."""
        key, tick = activation.job.key, activation.tick
        this_run = ExecutionFilter(job=key, since=tick, until=tick)
        deadline = asyncio.get_running_loop().time() + BEGINS_WITHIN_S
        pause_s = BEGINS_POLL_S
        while True:
            runs = (await self._reads.list_executions(this_run, ExecutionSort.NEWEST, (), 10)).rows
            begun = [run.execution_id for run in runs if run.trigger == activation.trigger]
            if begun or asyncio.get_running_loop().time() + pause_s > deadline:
                return min(begun, default=0)
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def BackfillJob(self, request: jobs_pb2.BackfillJobRequest, context: Context) -> jobs_pb2.BackfillJobResponse:
        by, why = actor(request.requested_by, context), note("note", request.note)
        row = await find_job(self._reads, request.key, Permission.OPERATE)
        table = table_of(row)
        wanted = await self._wanted(request)
        planned = plan_backfill(_existing(row), wanted.from_at, wanted.until_at, wanted.until_at)
        if planned is None:
            return jobs_pb2.BackfillJobResponse(ticks=0)
        first, until = planned
        # In a thread: counting takes long if a window opens and closes for decades.
        ticks = await asyncio.to_thread(table.count_within, first - 1, until)
        if request.dry_run:
            listed = list(islice(_ticks_of(table, first, until), TICKS_LISTED_MAX))
            return await self._rehearsed(row, listed, ticks)
        if ticks > BACKFILL_TICKS_MAX:
            message = f"has {ticks} ticks of {row.key}; at most {BACKFILL_TICKS_MAX} run at once: backfill in parts"
            raise InvalidRequest([("until_at", message)])
        activation = await self._control.backfill_job(row.key, by, wanted, why)
        if activation is None:
            return jobs_pb2.BackfillJobResponse(ticks=0)
        self._put(ActivationsCreated([activation]))
        return jobs_pb2.BackfillJobResponse(ticks=ticks, activation=activation_message(activation, table))

    async def ListActivations(
        self, request: jobs_pb2.ListActivationsRequest, context: Context
    ) -> jobs_pb2.ListActivationsResponse:
        size, pages = page_size(request), Pages(self._box, "ListActivations", request.key)
        run_at, _, last_id = pages.text_cursor(request.page_token).partition("/")
        row = await find_job(self._reads, request.key, Permission.VIEW)
        table = table_of(row)
        after = (int(run_at), int(last_id)) if run_at else None
        waiting = await self._control.list_activations(row.key, after=after, limit=size + 1)
        page = fitting(waiting, size, lambda activation: len(activation.payload.encode()))
        token = pages.token(f"{page[-1].run_at}/{page[-1].activation_id}") if len(waiting) > len(page) else ""
        return jobs_pb2.ListActivationsResponse(
            activations=[activation_message(activation, table) for activation in page], next_page_token=token
        )

    async def CancelActivation(
        self, request: jobs_pb2.CancelActivationRequest, context: Context
    ) -> jobs_pb2.CancelActivationResponse:
        if request.id <= 0:
            raise InvalidRequest([("id", f"is {request.id}; it must be an activation's id, as ListActivations gives")])
        by, why = actor(request.requested_by, context), note("note", request.note)
        row = await find_job(self._reads, request.key, Permission.OPERATE)
        cancelled = await self._control.cancel_activation(row.key, request.id, by, why)
        return jobs_pb2.CancelActivationResponse(cancelled=cancelled)

    async def _wanted(self, request: jobs_pb2.BackfillJobRequest) -> Backfill:
        """The span to backfill. It ends now at the latest, as later ticks run anyway. Raises InvalidRequest."""
        problems: Violations = [
            (field, "is absent; a backfill has a beginning and an end")
            for field in ("from_at", "until_at")
            if not request.HasField(field)
        ]
        if problems:
            raise InvalidRequest(problems)
        from_at, until_at = instant("from_at", request.from_at), instant("until_at", request.until_at)
        now = await self._reads.database_now()
        if until_at < from_at:
            raise InvalidRequest([("until_at", "is before from_at; swap them")])
        if from_at > now:
            raise InvalidRequest([("from_at", "is in the future, whose ticks run by themselves; begin in the past")])
        return Backfill(from_at, min(until_at, now), request.beside, request.again)

    async def _rehearsed(self, row: JobRow, listed: list[int], ticks: int) -> jobs_pb2.BackfillJobResponse:
        by_tick = {run.tick: run for run in await self._reads.list_tick_runs(row.job_id, listed[0], listed[-1])}
        return jobs_pb2.BackfillJobResponse(
            ticks=ticks, first_ticks=[backfill_tick_message(tick, by_tick.get(tick)) for tick in listed]
        )


async def triggered(
    control: Control, reads: JobReads, request: jobs_pb2.TriggerJobRequest, by: str, put: Put
) -> tuple[JobRow, Activation]:
    """The job, and its run that waits to begin. `by`: who does it; `put`: as of ActivationWrites."""
    row = await find_job(reads, request.key, Permission.OPERATE)
    payload = await _payload(reads, request, row)
    activation = await control.trigger_job(row.key, by, payload, note("note", request.note))
    put(ActivationsCreated([activation]))
    return row, activation


async def _payload(reads: JobReads, request: jobs_pb2.TriggerJobRequest, row: JobRow) -> str | None:
    """The payload of the run; None: the job's own, if its verb takes that one. Raises InvalidRequest."""
    module = await find_module_of(reads, row)
    payload = request.payload if request.HasField("payload") else None
    given = row.spec.payload if payload is None else payload
    problems = payload_violations("payload", module, find_verb(module, row.verb), given, required=True)
    if problems:
        raise InvalidRequest(problems)
    return canonical_payload(payload) if payload else None


def table_of(row: JobRow) -> Timetable:
    return timetable(*row.spec.timing)


def _existing(row: JobRow) -> Existing:
    schedule, anchor, policy = row.spec.timing
    return Existing(
        row.job_id, row.key, schedule, anchor, row.running_execution_id is not None, row.next_tick, row.last_tick,
        policy, row.verb, row.source, row.paused_at is not None, row.paused_tick,
    )  # fmt: skip


def _ticks_of(table: Timetable, first: int, until: int) -> Iterator[int]:
    tick: int | None = first
    while tick is not None:
        yield tick
        tick = table.next_within(tick, until)
