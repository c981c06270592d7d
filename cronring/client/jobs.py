"""Calls about jobs."""

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.protobuf.field_mask_pb2 import FieldMask

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.client.errors import SLOW, Invalid, Refused
from cronring.client.executions import ExecutionCalls
from cronring.client.filters import job_filter
from cronring.client.lasting import lasting
from cronring.client.many import ManyJobCalls, creation, job_to_make
from cronring.client.model import JobEvent, JobEventKind
from cronring.client.paging import follow
from cronring.client.payloads import json_text
from cronring.client.waiting import begun
from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.cronring.v1.jobs_pb2_grpc import JobsStub
from cronring.schema.filters import JobQuery

if TYPE_CHECKING:
    from cronring.protos.cronring.v1.jobs_pb2_grpc import JobsAsyncStub  # there in the stubs only

Answer = TypeVar("Answer")

_NOT_REPEATABLE: Final = ("skip_next", "trigger", "delete")
_ACTIONS: Final = "`cronring jobs actions`"


class JobCalls(ManyJobCalls):
    """List, get, watch; create, update, delete; pause, resume, skip, cancel, restore; trigger, backfill, what waits.

    `by` says who asks, which is kept; "": this address. Whatever changes something may raise Invalid, NotFound or
    Conflict; and OutcomeUnknown, where nobody says whether it was done. What was lost is asked for again, by its key.
    """

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def list(
        self,
        namespace: str = "",
        module: str = "",
        verb: str = "",
        status: str = "",
        limit: int | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> list[model.Job]:
        """By key. `labels`: only those that have all of these."""
        chosen = JobQuery(namespace, module, verb, labels or {}, (status,) if status else ())
        return await self.find(chosen, limit)

    async def find(self, query: JobQuery, limit: int | None = None) -> builtins.list[model.Job]:
        """Those that fit, by `query.sort`. Raises Conflict for more than can be sorted."""
        chosen = job_filter(query)

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[model.Job], str]:
            request = jobs_pb2.ListJobsRequest(page_size=page_size, page_token=token, filter=chosen, sort=query.sort)
            answer = await self._unary(lambda stub, timeout: stub.ListJobs(request, timeout=timeout))
            return [convert.job(each) for each in answer.jobs], answer.next_page_token

        return await follow(fetch, limit)

    async def count(self, query: JobQuery) -> int:
        """How many fit."""
        request = jobs_pb2.CountJobsRequest(filter=job_filter(query))
        return (await self._unary(lambda stub, timeout: stub.CountJobs(request, timeout=timeout))).count

    async def suggest(self, kind: str, typed: str) -> builtins.list[str]:
        """Values that `kind:` of a filter may have, of which so much is `typed`: keys of jobs, labels, modules..."""
        request = jobs_pb2.SuggestFilterRequest(list="executions", text=f'{kind}:"{typed}')
        terms = (await self._unary(lambda stub, timeout: stub.SuggestFilter(request, timeout=timeout))).terms
        return [term.removeprefix(f"{kind}:").strip('"') for term in terms]

    async def get(self, key: str) -> model.Job:
        """Raises NotFound."""
        request = jobs_pb2.GetJobRequest(key=key)
        return convert.job(await self._unary(lambda stub, timeout: stub.GetJob(request, timeout=timeout)))

    async def create(
        self,
        module: str,
        verb: str,
        name: str,
        spec: model.JobSpec,
        namespace: str = "default",
        by: str = "",
        *,
        template: str = "",
        explicit: Sequence[str] = (),
        note: str = "",
        run_now: bool = False,
    ) -> model.Job:
        """A job for a verb of an active module, under the key `module.verb:name`; or the same one, if it is there.

        It starts from the `template` of its namespace: what the spec sets wins, and what `explicit` names (as `update`
        does) is the spec's even where that is empty. `run_now`: run it once at once as well, if it is new.
        """
        target = model.VerbTarget(module, verb, name, namespace)
        return await self.create_for(target, spec, by, template=template, explicit=explicit, note=note, run_now=run_now)

    async def create_for(
        self,
        target: model.VerbTarget | model.QueueTarget,
        spec: model.JobSpec,
        by: str = "",
        *,
        template: str = "",
        explicit: Sequence[str] = (),
        note: str = "",
        run_now: bool = False,
    ) -> model.Job:
        """As `create`, of either kind of target. A queue's job that is there is changed into the one asked for."""
        request = creation(job_to_make(target, spec, template, explicit))
        request.requested_by, request.note, request.run_now = by, note, run_now
        if isinstance(target, model.QueueTarget):
            look = f"`cronring jobs list --module @{target.queue}`; to repeat the command makes no second one"
        else:
            key = f"{target.module}.{target.verb}:{target.name}"
            look = f"`cronring jobs show {key}`; to repeat the command makes no second one"
        return convert.job(await self._once(lambda stub, timeout: stub.CreateJob(request, timeout=timeout), look))

    async def update(
        self, key: str, spec: model.JobSpec, fields: Sequence[str], by: str = "", note: str = "", *, etag: str = ""
    ) -> model.Job:
        """Set what `fields` names of the spec: "schedule", "policy", "policy.retries", "labels", "labels.team", ...

        What it names and the spec lacks is unset. Only jobs made by `create` change so. `etag`: only if the job still
        has this one, else EtagMismatch is raised.
        """
        request = jobs_pb2.UpdateJobRequest(
            key=key, spec=convert.job_spec(spec), update_mask=FieldMask(paths=fields), requested_by=by, note=note,
            etag=etag,
        )  # fmt: skip

        def update(stub: "JobsAsyncStub", timeout: float) -> Awaitable[jobs_pb2.Job]:
            return stub.UpdateJob(request, timeout=timeout)

        return convert.job(await (self._once(update, _show(key)) if etag else self._again(update, key)))

    async def delete(self, key: str, by: str = "", note: str = "", *, etag: str = "") -> None:
        """Remove a job made by `create`. What runs finishes. `etag`: as of `update`."""
        request = jobs_pb2.DeleteJobRequest(key=key, requested_by=by, note=note, etag=etag)
        await self._once(lambda stub, timeout: stub.DeleteJob(request, timeout=timeout), _show(key))

    async def pause(self, key: str, note: str = "", by: str = "", until: datetime | None = None) -> model.Job:
        """No tick runs until `until`, or until `resume`. A paused job's pause gets this note (if any) and this end."""
        request = jobs_pb2.PauseJobRequest(key=key, note=note, requested_by=by, until=convert.timestamp(until))
        return convert.job(await self._again(lambda stub, timeout: stub.PauseJob(request, timeout=timeout), key))

    async def resume(self, key: str, by: str = "", note: str = "") -> model.Job:
        """Ticks since the pause are skipped, for that reason."""
        request = jobs_pb2.ResumeJobRequest(key=key, requested_by=by, note=note)
        return convert.job(await self._again(lambda stub, timeout: stub.ResumeJob(request, timeout=timeout), key))

    async def skip_next(
        self, key: str, tick: datetime | None = None, note: str = "", by: str = "", *, dry_run: bool = False
    ) -> model.SkippedTick:
        """The next tick that would run doesn't. With `tick`, repeating it skips no other."""
        request = jobs_pb2.SkipNextTickRequest(
            key=key, tick=convert.timestamp(tick), note=note, requested_by=by, dry_run=dry_run
        )

        def skip(stub: "JobsAsyncStub", timeout: float) -> Awaitable[jobs_pb2.SkipNextTickResponse]:
            return stub.SkipNextTick(request, timeout=timeout)

        if dry_run:
            return convert.skipped_tick(await self._unary(skip))
        call = self._once(skip, _show(key)) if tick is None else self._again(skip, key)
        return convert.skipped_tick(await call)

    async def cancel(self, key: str, note: str = "", by: str = "") -> tuple[model.Job, int]:
        """No tick and no run by hand until `restore`; what waits is forgotten. How many executions are told to stop."""
        request = jobs_pb2.CancelJobRequest(key=key, note=note, requested_by=by)
        answer = await self._again(lambda stub, timeout: stub.CancelJob(request, timeout=timeout), key)
        return convert.job(answer.job), answer.cancelling

    async def restore(self, key: str, note: str = "", by: str = "") -> model.Job:
        """Begin the schedule of a cancelled job anew."""
        request = jobs_pb2.RestoreJobRequest(key=key, note=note, requested_by=by)
        return convert.job(await self._again(lambda stub, timeout: stub.RestoreJob(request, timeout=timeout), key))

    async def control(
        self,
        action: str,
        *,
        namespace: str = "",
        module: str = "",
        verb: str = "",
        status: str = "",
        labels: Mapping[str, str] | None = None,
        text: str = "",
        note: str = "",
        by: str = "",
        until: datetime | None = None,
        dry_run: bool = False,
        expected: int | None = None,
        spec: model.JobSpec | None = None,
        fields: Sequence[str] = (),
    ) -> AsyncIterator[model.Progress]:
        """Pause, resume, skip_next, trigger, cancel, restore, delete or update all that match.

        First comes how many, then each one. `text`: a filter in words, besides.
        `spec`, `fields`: of an update, as `update` takes them.
        When its controller dies, another begins anew, and finds what was done unchanged. But skip_next, trigger,
        delete, and whatever `expected` so many, raise OutcomeUnknown then. With a key of yours (`with_key`) it may be
        asked for again. Raises Conflict unless `expected` match, with nothing done.
        """
        chosen = job_filter(JobQuery(namespace, module, verb, labels or {}, (status,) if status else ()))
        chosen.text = text
        request = jobs_pb2.ControlJobsRequest(
            filter=chosen,
            action=jobs_pb2.ControlJobsRequest.Action.Value(f"ACTION_{action.upper()}"), dry_run=dry_run, note=note,
            requested_by=by, until=convert.timestamp(until), expected=expected,
            spec=None if spec is None else convert.job_spec(spec),
            update_mask=FieldMask(paths=fields) if fields else None,
        )  # fmt: skip
        repeatable = dry_run or (action not in _NOT_REPEATABLE and expected is None)
        look = "" if repeatable else _ACTIONS
        asked = self._failover.finite(lambda channel: JobsStub(channel).ControlJobs(request), look, keyed=True)
        async for message in asked:
            if message is not None:
                yield convert.progress(message)

    async def actions(
        self, key: str = "", deployment: str = "", limit: int | None = None, template: str = ""
    ) -> builtins.list[model.Action]:
        """What operators did to a job, to a deployment, to a template, or at all: the newest first."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[model.Action], str]:
            request = jobs_pb2.ListActionsRequest(
                page_size=page_size, page_token=token, job=key, deployment=deployment, template=template
            )
            answer = await self._unary(lambda stub, timeout: stub.ListActions(request, timeout=timeout))
            return [convert.action(each) for each in answer.actions], answer.next_page_token

        return await follow(fetch, limit)

    async def trigger(self, key: str, payload: Any = None, by: str = "", note: str = "") -> model.Activation:
        """Run it once, as soon as it may. `payload`: a value that JSON has, in place of the job's own (None).

        JSON that is text already is given as JsonText.
        """
        given = None if payload is None else json_text(payload)
        request = jobs_pb2.TriggerJobRequest(key=key, payload=given, requested_by=by, note=note)
        return convert.activation(
            await self._once(lambda stub, timeout: stub.TriggerJob(request, timeout=timeout), _runs_of(key))
        )

    async def run(self, key: str, payload: Any = None, by: str = "", note: str = "") -> model.Execution | None:
        """Trigger it, and wait for the run's end. None: the run was cancelled before it began.

        What it ended with is `outcome`; its `output` is there. Raises as `trigger`; Unreachable or Unavailable once no
        controller has answered for a minute, and the run goes on then.
        """
        calls = ExecutionCalls(self._failover)
        execution = await begun(self.activations, calls, await self.trigger(key, payload, by, note))
        return None if execution is None else await calls.wait(execution.id)

    async def backfill(
        self,
        key: str,
        from_at: datetime,
        until_at: datetime,
        *,
        beside: bool = False,
        again: bool = False,
        dry_run: bool = False,
        by: str = "",
        note: str = "",
    ) -> model.Backfill:
        """Run the ticks of [from_at, until_at], one after the other, `beside` the job's own runs or between them.

        Those that have completed run only `again`.
        """
        request = jobs_pb2.BackfillJobRequest(
            key=key, from_at=convert.timestamp(from_at), until_at=convert.timestamp(until_at),
            beside=beside, again=again, dry_run=dry_run, requested_by=by, note=note,
        )  # fmt: skip

        def backfill(stub: "JobsAsyncStub", timeout: float) -> Awaitable[jobs_pb2.BackfillJobResponse]:
            return stub.BackfillJob(request, timeout=timeout)

        if dry_run:
            return convert.backfill(await self._unary(backfill))
        return convert.backfill(await self._once(backfill, _runs_of(key)))

    async def activations(self, key: str) -> tuple[model.Activation, ...]:
        """What waits beside its schedule, the earliest first."""

        async def fetch(page_size: int, token: str) -> tuple[builtins.list[model.Activation], str]:
            request = jobs_pb2.ListActivationsRequest(page_size=page_size, page_token=token, key=key)
            answer = await self._unary(lambda stub, timeout: stub.ListActivations(request, timeout=timeout))
            return [convert.activation(each) for each in answer.activations], answer.next_page_token

        return tuple(await follow(fetch, None))

    async def cancel_activation(self, key: str, activation_id: int, by: str = "", note: str = "") -> bool:
        """Whether it waited until now."""
        request = jobs_pb2.CancelActivationRequest(key=key, id=activation_id, requested_by=by, note=note)
        return (
            await self._once(lambda stub, timeout: stub.CancelActivation(request, timeout=timeout), _runs_of(key))
        ).cancelled

    async def _unary(self, call: "Callable[[JobsAsyncStub, float], Awaitable[Answer]]") -> Answer:
        return await self._failover.unary(lambda channel: call(JobsStub(channel), self._failover.timeout_s))

    async def _once(self, call: "Callable[[JobsAsyncStub, float], Awaitable[Answer]]", look: str) -> Answer:
        return await self._failover.change(lambda channel: call(JobsStub(channel), self._failover.timeout_s), look)

    async def _again(self, call: "Callable[[JobsAsyncStub, float], Awaitable[Answer]]", key: str) -> Answer:
        return await self._failover.change(
            lambda channel: call(JobsStub(channel), self._failover.timeout_s), _show(key), repeatable=True
        )

    async def watch(
        self, namespace: str = "", module: str = "", verb: str = "", status: str = ""
    ) -> AsyncIterator[JobEvent]:
        """Every matching job once (PRESENT), LISTED, then one event for each change, for ever.

        When the controller that served it goes, or drops this for reading too slowly, it goes on from the latest token.
        Where there is none, or it lies too far back, a new first listing is held against what was told before. Only
        what differs comes out, as CHANGED or REMOVED.
        """
        chosen = job_filter(JobQuery(namespace, module, verb, {}, (status,) if status else ()))
        merge = _Merge()

        def request() -> jobs_pb2.WatchJobsRequest:
            return jobs_pb2.WatchJobsRequest(filter=chosen, resume_token=merge.token)

        while True:
            try:
                watched = lasting(self._failover, lambda channel: JobsStub(channel).WatchJobs(request()))
                async for message in watched:
                    if message is None:
                        merge.move()
                        continue
                    for event in merge.told(message):
                        yield event
            except (Invalid, Refused) as error:
                if not merge.goes_on_after(error):
                    raise


def _show(key: str) -> str:
    return f"`cronring jobs show {key}`"


def _runs_of(key: str) -> str:
    return f"`cronring jobs activations {key}` and `cronring executions list --job {key}`"


class _Merge:
    """Makes one seamless watch of several that follow each other. `token`: where the next one begins; "": anew."""

    def __init__(self) -> None:
        self.token = ""
        self._heard = False  # anything from the present one
        self._known: dict[str, model.Job] = {}
        self._listed = False
        self._relisting: set[str] | None = None

    def told(self, message: jobs_pb2.JobEvent) -> list[JobEvent]:
        self._heard, self.token = True, message.resume_token or self.token
        return self.apply(convert.job_event(message))

    def move(self) -> None:
        """The present one has ended, and another begins."""
        self._heard = False
        if not self.token:
            self._relisting = set()

    def goes_on_after(self, error: Invalid | Refused) -> bool:
        """Whether another one may begin: dropped as a slow reader, or with a token that lies too far back."""
        dropped = isinstance(error, Refused) and error.code == SLOW
        if not (self.token or (dropped and self._heard)) or not (dropped or isinstance(error, Invalid)):
            return False
        if not (dropped and self._heard):
            self.token = ""
        self.move()
        return True

    def apply(self, event: JobEvent) -> list[JobEvent]:
        if event.job is None:
            return self._complete()
        if event.kind is JobEventKind.REMOVED:
            return [event] if self._known.pop(event.job.key, None) is not None else []
        if self._relisting is not None:
            self._relisting.add(event.job.key)
        before = self._known.get(event.job.key)
        self._known[event.job.key] = event.job
        if event.job == before:
            return []
        return [JobEvent(JobEventKind.CHANGED if self._listed else JobEventKind.PRESENT, event.job)]

    def _complete(self) -> list[JobEvent]:
        gone: list[JobEvent] = []
        if self._relisting is not None:
            lost = sorted(self._known.keys() - self._relisting)
            gone = [JobEvent(JobEventKind.REMOVED, self._known.pop(key)) for key in lost]
            self._relisting = None
        if self._listed:
            return gone
        self._listed = True
        return [*gone, JobEvent(JobEventKind.LISTED, None)]
