"""The part of the API with canned answers that takes orders to jobs."""

import json
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from cronring.protos.cronring.v1 import deployments_pb2, jobs_pb2, sets_pb2

TICK = Timestamp(seconds=1_795_248_300)  # 2026-11-21T08:05:00Z


class FakeOrders:
    """`fate`: of many jobs by key, a problem, "unchanged", or "" for done. `skipped_before`: by somebody else."""

    written: Any
    check: Any
    not_found: Any
    jobs: list[jobs_pb2.Job]

    def __init__(self) -> None:
        self.fate: dict[str, str] = {}
        self.skipped_before = False
        self.unchanged = False
        self.actions: list[jobs_pb2.Action] = []
        self.activated = deployments_pb2.ActivateDeploymentResponse()
        self.versions: list[deployments_pb2.Deployment] = []
        self.removed, self.orphaned = ["billing.refresh"], list[str]()
        self.back, self.misfits = list[str](), list[deployments_pb2.Misfit]()

    async def PauseJob(self, request: Any, context: Any) -> Any:  # noqa: N802 - gRPC's name
        pause = jobs_pb2.Pause(by="ada", note=request.note)
        if request.HasField("until"):
            pause.until.CopyFrom(request.until)
        return await self.written(request, context, status="paused", paused=pause, unchanged=self.unchanged)

    async def ResumeJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self.written(request, context, status="scheduled", unchanged=self.unchanged)

    async def SkipNextTick(self, request: Any, context: Any) -> Any:  # noqa: N802
        job = await self.written(request, context)
        skipped = not (request.dry_run or self.skipped_before)
        return jobs_pb2.SkipNextTickResponse(job=job, tick=TICK, skipped=skipped)

    async def CancelJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        cancelled = jobs_pb2.Cancellation(by="ada", note=request.note)
        job = await self.written(request, context, status="cancelled", cancelled=cancelled)
        return jobs_pb2.CancelJobResponse(job=job, cancelling=2)

    async def RestoreJob(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self.written(request, context, status="scheduled", unchanged=self.unchanged)

    async def ListActions(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        if request.job not in {"", *(job.key for job in self.jobs)}:
            await self.not_found(context, f"job {request.job}")
        return jobs_pb2.ListActionsResponse(actions=self.actions)

    async def ControlJobs(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        await self.check(request, context)
        yield jobs_pb2.ControlJobsProgress(total=len(self.fate))
        for position, (key, problem) in enumerate(self.fate.items(), 1):
            unchanged = problem == "unchanged"
            failed = bool(problem) and not unchanged
            yield jobs_pb2.ControlJobsProgress(
                key=key, done=not failed, problem=problem if failed else "", position=position, total=len(self.fate),
                unchanged=unchanged, details="" if problem else json.dumps({"ticks": 3}),
            )  # fmt: skip

    async def ActivateDeployment(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        return self.activated

    async def CompareDeployments(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(request, context)
        ticks = sets_pb2.TickDifference(
            before=288,
            after=168,
            gone=144,
            new=24,
            first_gone=[TICK],
            old_schedule="every 5m",
            new_schedule="0 * * * *",
        )
        changed = deployments_pb2.VerbDifference(
            verb="refresh", change="changed", ticks=ticks, changed_fields=["timeout_ms"]
        )
        return deployments_pb2.CompareDeploymentsResponse(
            key=request.key, from_key=request.from_key, verbs=[changed], same=2, from_at=TICK, until_at=TICK
        )
