"""A real grpc.aio server with canned answers, in a thread of its own, so that sync tests can call the CLI."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import grpc

from cronring.controller.api.calls import Calls
from cronring.controller.api.door import Door
from cronring.controller.api.job_specs import Defaults, new_job
from cronring.controller.api.job_writes import AT_NOW, check_names
from cronring.controller.api.judging import Insecure, Judge
from cronring.controller.api.keyed import keyed
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.queue_targets import targeted
from cronring.controller.api.templates import TemplatesService
from cronring.controller.errors import StoreError
from cronring.controller.ports import fates
from cronring.controller.store.memory.templates import MemoryTemplates
from cronring.protos.cronring.v1 import (
    audit_log_pb2_grpc,
    cluster_pb2,
    cluster_pb2_grpc,
    deployments_pb2,
    deployments_pb2_grpc,
    executions_pb2,
    executions_pb2_grpc,
    forecast_pb2_grpc,
    history_pb2_grpc,
    jobs_pb2,
    jobs_pb2_grpc,
    ledger_pb2,
    ledger_pb2_grpc,
    limits_pb2,
    limits_pb2_grpc,
    lists_pb2,
    notifications_pb2,
    notifications_pb2_grpc,
    queues_pb2_grpc,
    schedules_pb2_grpc,
    statistics_pb2,
    statistics_pb2_grpc,
    templates_pb2_grpc,
)
from cronring.schema.module import Module, Verb
from tests.support.boxes import BOX
from tests.support.callers import counting
from tests.support.request_keys import MemoryRequestKeys
from tests.support.threaded import in_thread
from tests.unit.cli.fake_audit_log import NothingOnRecord
from tests.unit.cli.fake_cluster import FakeCluster
from tests.unit.cli.fake_forecast import FakeForecast
from tests.unit.cli.fake_history import FakeHistory
from tests.unit.cli.fake_ledger import FakeLedger
from tests.unit.cli.fake_orders import FakeOrders
from tests.unit.cli.fake_queues import FakeQueues
from tests.unit.cli.fake_schedules import FakeSchedules
from tests.unit.cli.fake_times import stamp


def job(verb: str, **fields: Any) -> jobs_pb2.Job:
    values: dict[str, Any] = {
        "key": f"billing.{verb}", "namespace": "default", "module": "billing", "verb": verb, "schedule": "*/5 * * * *",
        "schedule_words": "every 5 minutes", "status": "scheduled",
        "next_tick": stamp(300), "next_execution": stamp(300),
        "last_outcome": "completed", "last_started_at": stamp(0.003), "last_ended_at": stamp(0.5),
        "last_lateness_ms": 3.0, "timeout_ms": 300_000, "on_disconnect": "stop", "deployment": "billing-1", "slot": 7,
        "id": 1, "created_at": stamp(-60), "timezone": "Europe/Berlin", "next_tick_local": "2026-11-21T09:05:00+01:00",
        "source": "api",
    }  # fmt: skip
    return jobs_pb2.Job(**(values | fields))


def execution(number: int, **fields: Any) -> executions_pb2.Execution:
    values: dict[str, Any] = {
        "id": number, "job": "billing.refresh", "tick": stamp(number), "run_at": stamp(number),
        "claimed_at": stamp(number + 0.001), "started_at": stamp(number + 0.0025), "ended_at": stamp(number + 0.5),
        "outcome": "completed", "attempt": 1, "trigger": "schedule", "controller": "controller-1", "runner": "runner-1",
        "lateness_ms": 2.5, "deployment": "billing-1", "trace_id": f"{number:032x}",
    }  # fmt: skip
    return executions_pb2.Execution(**(values | fields))


def changes(api: "FakeApi") -> int:
    """How many changes it was asked for."""
    kinds = jobs_pb2.TriggerJobRequest, jobs_pb2.CreateJobRequest, jobs_pb2.ControlJobsRequest
    return sum(isinstance(request, kinds) for request in api.requests)


async def at_once() -> None:
    pass


class FakeApi(
    FakeOrders,
    FakeCluster,
    FakeForecast,
    FakeHistory,
    FakeLedger,
    FakeQueues,
    FakeSchedules,
    jobs_pb2_grpc.JobsServicer,
    executions_pb2_grpc.ExecutionsServicer,
    deployments_pb2_grpc.DeploymentsServicer,
    limits_pb2_grpc.LimitsServicer,
    notifications_pb2_grpc.NotificationsServicer,
    statistics_pb2_grpc.StatisticsServicer,
):
    """Attributes are what it answers; every call fails with `failure` (gRPC's) or `refusal` (ours)."""

    def __init__(self) -> None:
        FakeOrders.__init__(self)
        self.jobs = [
            job("close_month", status="running", running_execution_id=3),
            job("refresh", last_outcome="failed"),
        ]
        self.looked_to: Any = None  # of a long history: where each page ends, which finds nothing
        self.executions = [execution(number) for number in range(5, 0, -1)]
        self.audit = ledger_pb2.AuditResponse(
            ticks=87, executed=81, on_time=80, late=1, skipped={"overlap": 6}, outcomes={"completed": 81}, jobs=2,
            until=stamp(60),
        )  # fmt: skip
        self.books: list[ledger_pb2.BookEntry] = []  # of each job
        self.members = ["controller-1", "controller-2"]
        self.limits: list[limits_pb2.Limit] = []
        self.waiting: list[list[jobs_pb2.Activation]] = []
        self.failure: tuple[grpc.StatusCode, str] | None = None
        self.broken, self.late = set[str](), set[str]()
        self.refusal: Exception | None = None
        self.refused_at_commit = False
        self.slowly: Callable[[], Awaitable[None]] = at_once
        self.in_hand = 0
        self.page_limit = 1000
        self.watch_ends = False
        self.watches: list[list[jobs_pb2.JobEvent]] = []  # what one tells after the other before it is dropped
        self.templates = MemoryTemplates(lambda: 1_795_219_200_000_000)  # 2026-11-21T00:00:00Z
        self.printed = b""
        self.cut = 0
        self.breaks = 0  # how often a followed stream breaks
        self.cut_off: tuple[grpc.StatusCode, str] | None = None  # how one that has told all ends
        self.sessions: list[list[executions_pb2.ExecutionEvent]] = []
        self.keys = MemoryRequestKeys(lambda: 1_795_219_200_000_000)
        self.requests: list[Any] = []
        self.carried: list[dict[str, Any]] = []  # with each of them
        self.judge: Judge = Insecure()
        self.address = ""

    def exception(self, event: str, error: BaseException) -> None:
        raise AssertionError(event) from error

    async def check(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        self.carried.append(dict(context.invocation_metadata() or ()))
        await self.slowly()
        if self.failure is not None:
            await context.abort(*self.failure)
        if self.refusal is not None:
            with fates.change(lambda _: False) as change:
                if self.refused_at_commit:
                    change.committing()
                raise self.refusal

    async def not_found(self, context: Any, what: str) -> NoReturn:
        await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no {what}")
        raise AssertionError("abort raises")

    def page(self, rows: list[Any], request: Any) -> tuple[list[Any], str]:
        start = int(request.page_token or 0)
        end = start + min(request.page_size or 100, self.page_limit)
        return rows[start:end], str(end) if end < len(rows) else ""

    async def ListJobs(self, request: Any, context: Any) -> jobs_pb2.ListJobsResponse:  # noqa: N802 - gRPC's name
        await self.check(request, context)
        wanted = request.filter.statuses
        rows, token = self.page([each for each in self.jobs if not wanted or each.status in wanted], request)
        return jobs_pb2.ListJobsResponse(jobs=rows, next_page_token=token)

    async def GetJob(self, request: Any, context: Any) -> jobs_pb2.Job:  # noqa: N802
        await self.check(request, context)
        found = next((each for each in self.jobs if each.key == request.key), None)
        return found or await self.not_found(context, f"job {request.key}")

    async def AddWebhook(  # noqa: N802
        self, request: notifications_pb2.AddWebhookRequest, context: Any
    ) -> notifications_pb2.AddWebhookResponse:
        await self.check(request, context)
        row = notifications_pb2.Webhook(name=request.name, origin=request.url, job=request.job, module=request.module)
        return notifications_pb2.AddWebhookResponse(webhook=row, secret="whsec_1")

    async def WatchJobs(self, request: Any, context: Any) -> AsyncIterator[jobs_pb2.JobEvent]:  # noqa: N802
        await self.check(request, context)
        if self.watches:
            for event in self.watches.pop(0):
                yield event
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "this watcher reads too slowly")
        for each in self.jobs:
            yield jobs_pb2.JobEvent(kind=jobs_pb2.JobEvent.KIND_PRESENT, job=each)
        yield jobs_pb2.JobEvent(kind=jobs_pb2.JobEvent.KIND_LISTED)
        if not self.watch_ends:
            await asyncio.Event().wait()

    async def written(self, request: Any, context: Any, **fields: Any) -> jobs_pb2.Job:
        """The job that a change leaves behind."""
        await self.check(request, context)
        found = next((each for each in self.jobs if each.key == request.key), None)
        answer = jobs_pb2.Job()
        answer.CopyFrom(found or await self.not_found(context, f"job {request.key}"))
        answer.MergeFrom(jobs_pb2.Job(**fields))
        return answer

    async def CreateJob(self, request: Any, context: Any) -> jobs_pb2.Job:  # noqa: N802
        await self.check(request, context)
        # As it is judged by the controllers themselves.
        request = targeted(request)
        check_names(request)
        verb = Verb(request.verb, "dict", "Unit", request_optional=True)
        if request.spec.schedule.split() == AT_NOW:
            request.spec.schedule = "at 2026-11-21T00:00:01Z"
        new_job(request, Module(request.module, (verb,)), verb, Defaults(1_000, ""))
        made = job(f"{request.verb}:{request.name}", schedule=request.spec.schedule)
        made.updated = request.HasField("queue") and request.queue.workspace == "known"
        made.unchanged = request.name == "known"
        return made

    async def CreateJobs(self, request: Any, context: Any) -> jobs_pb2.ManyJobsResponse:  # noqa: N802
        """Those whose schedule is none are refused, as the controllers do it; those of `late` once."""
        await self.check(request, context)
        if any(each.name in self.broken for each in request.jobs):
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "something is broken")
        results = []
        for each in request.jobs:
            key = f"{each.module}.{each.verb}:{each.name}"
            late = each.name in self.late
            self.late.discard(each.name)
            wrong = late or each.spec.schedule == "wrong"
            refusal = jobs_pb2.JobProblem(
                code="INVALID_ARGUMENT", reason="TOO_SLOW" if late else "INVALID", problem="no schedule"
            )
            known = each.queue.workspace == "known"
            refused = refusal if wrong else None
            results.append(jobs_pb2.JobResult(key=key, id=0 if wrong else 1, refusal=refused, updated=known))
        failed = sum(not each.id for each in results)
        return jobs_pb2.ManyJobsResponse(results=results, changed=len(results) - failed, failed=failed)

    async def UpdateJobs(self, request: Any, context: Any) -> jobs_pb2.ManyJobsResponse:  # noqa: N802
        await self.check(request, context)
        return jobs_pb2.ManyJobsResponse(changed=len(request.jobs))

    async def DeleteJobs(self, request: Any, context: Any) -> jobs_pb2.ManyJobsResponse:  # noqa: N802
        await self.check(request, context)
        return jobs_pb2.ManyJobsResponse(changed=len(request.keys))

    async def UpdateJob(self, request: Any, context: Any) -> jobs_pb2.Job:  # noqa: N802
        return await self.written(request, context)

    async def DeleteJob(self, request: Any, context: Any) -> jobs_pb2.DeleteJobResponse:  # noqa: N802
        await self.written(request, context)
        return jobs_pb2.DeleteJobResponse()

    def activation(self, trigger: str, **fields: Any) -> jobs_pb2.Activation:
        return jobs_pb2.Activation(
            id=7, job="billing.refresh", trigger=trigger, tick=stamp(6), attempt=1, run_at=stamp(6), **fields
        )

    async def TriggerJob(self, request: Any, context: Any) -> jobs_pb2.Activation:  # noqa: N802
        await self.written(request, context)
        return self.activation("manual")

    async def BackfillJob(self, request: Any, context: Any) -> jobs_pb2.BackfillJobResponse:  # noqa: N802
        await self.written(request, context)
        if request.dry_run:
            ticks = [
                jobs_pb2.BackfillTick(tick=stamp(0), execution_id=3, outcome="completed", completed=True),
                jobs_pb2.BackfillTick(tick=stamp(300)),
            ]
            return jobs_pb2.BackfillJobResponse(ticks=2_000, first_ticks=ticks)
        waiting = self.activation("backfill", until_tick=stamp(8), ticks_left=3)
        return jobs_pb2.BackfillJobResponse(ticks=3, activation=waiting)

    async def ListActivations(self, request: Any, context: Any) -> jobs_pb2.ListActivationsResponse:  # noqa: N802
        """What `waiting` still holds: each call finds one fewer."""
        await self.written(request, context)
        waiting = self.waiting.pop(0) if self.waiting else []
        return jobs_pb2.ListActivationsResponse(activations=waiting)

    async def CancelActivation(self, request: Any, context: Any) -> jobs_pb2.CancelActivationResponse:  # noqa: N802
        await self.written(request, context)
        return jobs_pb2.CancelActivationResponse(cancelled=request.id == 7)

    async def SuggestFilter(self, request: Any, context: Any) -> jobs_pb2.SuggestFilterResponse:  # noqa: N802
        await self.check(request, context)
        key, _, begun = request.text.partition(":")
        names = [job.key for job in self.jobs] if key == "job" else []
        terms = [f"{key}:{name}" for name in names if name.startswith(begun.strip('"'))]
        return jobs_pb2.SuggestFilterResponse(at=0, terms=terms)

    async def CountJobs(self, request: Any, context: Any) -> jobs_pb2.CountJobsResponse:  # noqa: N802
        await self.check(request, context)
        return jobs_pb2.CountJobsResponse(count=1_234)

    async def ListExecutions(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        if self.looked_to is not None:
            return executions_pb2.ListExecutionsResponse(next_page_token="more", looked_to=self.looked_to)
        where = request.filter
        since = where.since.ToNanoseconds()
        found = [each for each in self.executions if each.id > where.after_id and each.tick.ToNanoseconds() >= since]
        rows, token = self.page(found, request)
        return executions_pb2.ListExecutionsResponse(executions=rows, next_page_token=token)

    async def CountExecutions(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        return executions_pb2.CountExecutionsResponse(count=50_000, at_least=not request.filter.job)

    async def GetExecution(self, request: Any, context: Any) -> executions_pb2.Execution:  # noqa: N802
        await self.check(request, context)
        found = next((each for each in self.executions if each.id == request.id), None)
        answer = executions_pb2.Execution(output="hello\n")
        answer.MergeFrom(found or await self.not_found(context, f"execution {request.id}"))
        return answer

    async def CancelExecution(self, request: Any, context: Any) -> executions_pb2.Execution:  # noqa: N802
        answer = await self.GetExecution(request, context)
        if answer.outcome not in {"", "cancelled"}:
            message = f"execution {request.id} of billing.refresh is {answer.outcome}: it had completed 200ms before"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, message)
        return answer

    async def RetryExecution(self, request: Any, context: Any) -> jobs_pb2.Activation:  # noqa: N802
        await self.GetExecution(request, context)
        return self.activation("retry")

    async def FollowExecution(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[executions_pb2.OutputChunk]:
        """`printed` from the offset on, in small chunks; `cut` bytes of it are lost."""
        found = await self.GetExecution(request, context)
        offset = max(request.from_offset, self.cut)
        while offset < len(self.printed):
            data = self.printed[offset : offset + 3]
            yield executions_pb2.OutputChunk(offset=offset, data=data)
            offset += len(data)
            if self.breaks:
                self.breaks -= 1
                await context.abort(grpc.StatusCode.CANCELLED, "the server is shutting down")
        if self.cut_off is not None:
            await context.abort(*self.cut_off)
        yield executions_pb2.OutputChunk(offset=offset, execution=found)

    async def WatchExecutions(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[executions_pb2.ExecutionEvent]:
        """The next of `sessions`; then it drops the watcher, or, after the last one, fails for good."""
        await self.check(request, context)
        for event in self.sessions.pop(0):
            yield event
        if self.sessions:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "this watcher reads too slowly, and was dropped")
        raise StoreError("no more events")

    async def ListDue(self, request: Any, context: Any) -> cluster_pb2.ListDueResponse:  # noqa: N802
        await self.check(request, context)
        due = [cluster_pb2.DueJob(job=each.key, tick=each.next_tick, run_at=each.next_execution) for each in self.jobs]
        return cluster_pb2.ListDueResponse(due=due[: request.limit])

    def deployment(self) -> deployments_pb2.Deployment:
        return deployments_pb2.Deployment(
            key="billing-1", namespace="default", module="billing", digest="ab12", active=True, min_replicas=1,
            created_at=stamp(-60), schema_text="module billing {\n}\n", runners=1, jobs=2,
        )  # fmt: skip

    async def CreateDeployment(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        if request.schema.name == "refused":
            raise InvalidRequest([("schema.verbs[0].schedule", "it can never fire")])
        return deployments_pb2.CreateDeploymentResponse(
            deployment=self.deployment(),
            created=True,
            jobs_added=[f"billing.{verb.name}" for verb in request.schema.verbs],
            jobs_orphaned=self.orphaned,
            jobs_back=self.back,
            jobs_misfit=self.misfits,
        )

    async def ListDeployments(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        total = lists_pb2.Total(count=1_234) if request.total else None
        return deployments_pb2.ListDeploymentsResponse(deployments=self.versions or [self.deployment()], total=total)

    async def GetDeployment(self, request: Any, context: Any) -> deployments_pb2.Deployment:  # noqa: N802
        await self.check(request, context)
        if request.key != "billing-1":
            await self.not_found(context, f"deployment {request.key}")
        return self.deployment()

    async def KillDeployment(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        return deployments_pb2.KillDeploymentResponse(
            deployment=self.deployment(), jobs_removed=self.removed, jobs_orphaned=self.orphaned
        )

    async def GetJobStats(self, request: Any, context: Any) -> statistics_pb2.JobStats:  # noqa: N802
        await self.check(request, context)
        if request.job not in {each.key for each in self.jobs}:
            await self.not_found(context, f"job {request.job}")
        return statistics_pb2.JobStats(job=request.job, status="scheduled", executions=3, successes=3)

    async def GetJobDays(self, request: Any, context: Any) -> statistics_pb2.JobDays:  # noqa: N802
        await self.check(request, context)
        if request.job not in {each.key for each in self.jobs}:
            await self.not_found(context, f"job {request.job}")
        return statistics_pb2.JobDays(timezone="UTC")

    async def GetSchedulerStats(self, request: Any, context: Any) -> statistics_pb2.SchedulerStats:  # noqa: N802
        await self.check(request, context)
        return statistics_pb2.SchedulerStats(jobs={"scheduled": len(self.jobs)}, executions=3, successes=3)

    async def ListLimits(self, request: Any, context: Any) -> limits_pb2.ListLimitsResponse:  # noqa: N802
        await self.check(request, context)
        return limits_pb2.ListLimitsResponse(limits=self.limits)

    async def _asked_by_no_test(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - the name is the protocol's
        raise AssertionError(f"no test asks for {type(request).__name__}")

    SetLimit = RemoveLimit = _asked_by_no_test
    ListWebhooks = GetWebhook = RemoveWebhook = SetWebhookEnabled = TestWebhook = ListDeliveries = Redeliver = (
        _asked_by_no_test
    )


def _services(api: FakeApi) -> list[Callable[[Any], None]]:
    return [
        partial(jobs_pb2_grpc.add_JobsServicer_to_server, api),
        partial(executions_pb2_grpc.add_ExecutionsServicer_to_server, api),
        partial(deployments_pb2_grpc.add_DeploymentsServicer_to_server, api),
        partial(ledger_pb2_grpc.add_LedgerServicer_to_server, api),
        partial(limits_pb2_grpc.add_LimitsServicer_to_server, api),
        partial(notifications_pb2_grpc.add_NotificationsServicer_to_server, api),
        partial(statistics_pb2_grpc.add_StatisticsServicer_to_server, api),
        partial(history_pb2_grpc.add_HistoryServicer_to_server, api),
        partial(cluster_pb2_grpc.add_ClusterServicer_to_server, api),
        partial(forecast_pb2_grpc.add_ForecastServicer_to_server, api),
        partial(queues_pb2_grpc.add_QueuesServicer_to_server, api),
        partial(schedules_pb2_grpc.add_SchedulesServicer_to_server, api),
        partial(templates_pb2_grpc.add_TemplatesServicer_to_server, TemplatesService(api.templates, BOX)),
        partial(audit_log_pb2_grpc.add_AuditLogServicer_to_server, NothingOnRecord()),
    ]


@contextlib.contextmanager
def serving(api: FakeApi) -> Iterator[FakeApi]:
    """Listens on a free port of loopback until the end of the `with`."""

    async def serve(started: threading.Event, stop: asyncio.Event) -> None:
        server = grpc.aio.server()
        door: Any = Door(server, counting([]), Calls(api, counting([]), lambda: None), api.judge)
        api.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        for _, add in keyed([("", each) for each in _services(api)], api.keys):
            add(door)
        await server.start()
        started.set()
        await stop.wait()
        await server.stop(grace=None)

    with in_thread(serve):
        yield api
