"""The store, remembering which schedules were in force when: what check_accounts holds the books against."""

from collections.abc import Callable, Iterable

from controller.core.model import ClaimRequest, ClaimResult, EndRequest, EndResult, Job, Outcome, SkipRequest
from controller.core.redeploy import Carried, Removed
from controller.core.totals import Span
from controller.errors import StoreError
from controller.ports import Deployed
from schema.module import Module
from tests.support.memory_store import DeploymentRow, ExecutionRow, JobRow, MemoryStore


class RecordingStore(MemoryStore):
    """`spans`: by job, in order; the last one is open unless the job was removed."""

    def __init__(self, now_us: Callable[[], int], on_notify: Callable[[], None]) -> None:
        super().__init__(now_us, on_notify)
        self.spans: dict[int, list[Span]] = {}
        self.refused_job: int | None = None  # whatever would change it, is refused as a whole
        self.on_lost: Callable[[ExecutionRow], None] = lambda _: None

    def _apply(self, module: Module, deployment: DeploymentRow, jobs: list[JobRow], timeout_ms: int) -> Deployed:
        deployed = super()._apply(module, deployment, jobs, timeout_ms)
        for row in self.jobs.values():
            if row.job_id not in self.spans:
                self.spans[row.job_id] = [Span(row.schedule, row.anchor, row.anchor, None)]
        return deployed

    def _carry(self, carried: Carried, deployment: DeploymentRow) -> None:
        super()._carry(carried, deployment)
        if carried.rescheduled:
            at = self._close(carried.job_id)
            self.spans[carried.job_id].append(Span(carried.schedule, carried.anchor, at, None))

    def _remove(self, removed: Iterable[Removed]) -> None:
        removed = list(removed)
        super()._remove(removed)
        for each in removed:
            self._close(each.job_id)

    async def start_cron_jobs(
        self, controller_id: str, requests: list[ClaimRequest], hard_grace_ms: int
    ) -> tuple[int, list[ClaimResult]]:
        self._may_refuse(request.job_id for request in requests)
        return await super().start_cron_jobs(controller_id, requests, hard_grace_ms)

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
        self._may_refuse(request.report.job_id for request in requests)
        return await super().end_cron_jobs(controller_id, requests)

    async def skip_ticks(self, controller_id: str, requests: list[SkipRequest]) -> list[Job]:
        self._may_refuse(request.job_id for request in requests)
        return await super().skip_ticks(controller_id, requests)

    def _may_refuse(self, job_ids: Iterable[int]) -> None:
        if self.refused_job in tuple(job_ids):
            raise StoreError(f"refused, for the sake of job {self.refused_job}")

    def _end(self, controller_id: str, request: EndRequest) -> EndResult:
        result = super()._end(controller_id, request)
        if result.ended and request.report.outcome is Outcome.LOST:
            self.on_lost(self.executions[result.execution_id])
        return result

    def _close(self, job_id: int) -> int:
        """The instant from which another schedule may be in force.

        PostgreSQL's clock may have been set back: what ran or was skipped until then belongs to the schedule before.
        """
        spans = self.spans[job_id]
        skipped = [row.skipped.last_tick for row in self.skips if row.job_id == job_id]
        at = max(self.now_us(), spans[-1].from_at, self.jobs[job_id].last_tick or 0, *skipped)
        spans[-1] = spans[-1]._replace(until_at=at)
        return at
