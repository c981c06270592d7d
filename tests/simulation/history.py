"""The store in memory, with what a simulation may do to it, and wants to hear."""

from collections.abc import Callable, Iterable

from controller.core.model import ClaimRequest, ClaimResult, EndRequest, EndResult, Job, Outcome, SkipRequest
from controller.errors import StoreError
from cronring.virtual.memory_rows import ExecutionRow
from cronring.virtual.memory_store import MemoryStore


class RecordingStore(MemoryStore):
    def __init__(self, now_us: Callable[[], int], on_notify: Callable[[], None]) -> None:
        super().__init__(now_us, on_notify)
        self.refused_job: int | None = None  # whatever would change it, is refused as a whole
        self.on_lost: Callable[[ExecutionRow], None] = lambda _: None

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
