"""Ends and sweeps: what is done to executions that have been claimed."""

from controller.core.model import EndRequest, EndResult, Execution
from controller.store.pool import Database
from controller.store.rows import execution_of, skip_columns, storable


class ExecutionStatements:
    """The part of PostgresStore that is about executions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
        """End what is unfinished under the reported claim; every request is answered, in order. Safe to repeat."""
        if not requests:
            return []
        reports = [request.report for request in requests]
        records = await self._database.fetch(
            "EndCronJob",
            controller_id,
            [report.execution_id for report in reports],
            [report.job_id for report in reports],
            [report.claimed_at for report in reports],
            [report.outcome for report in reports],
            [report.started_at for report in reports],
            [report.ended_at for report in reports],
            [storable(report.error_type) or None for report in reports],
            [storable(report.error_message) or None for report in reports],
            [storable(report.output) or None for report in reports],
            [request.revision for request in requests],
            [request.next_tick for request in requests],
            [request.next_run_at for request in requests],
            [request.retry_at for request in requests],
            [request.anchor for request in requests],
            [request.skipped[-1].last_tick if request.skipped else None for request in requests],
            [request.report.execution_id for request in requests for _ in request.skipped],
            [request.report.job_id for request in requests for _ in request.skipped],
            *skip_columns([skipped for request in requests for skipped in request.skipped]),
        )
        return list(map(EndResult._make, records))

    async def adopt_executions(self, controller_id: str, from_ids: tuple[str, ...]) -> list[Execution]:
        """Take over what these controllers left unfinished; the own id may be among them."""
        return await self._executions("AdoptExecutions", controller_id, from_ids)

    async def get_unfinished(self, execution_ids: tuple[int, ...]) -> list[Execution]:
        """Those of the ids that are unfinished."""
        return await self._executions("GetUnfinished", execution_ids)

    async def get_lost(self, lost_after_ms: int) -> list[Execution]:
        """Unfinished ones of runners not seen for so long, but for jobs with on_disconnect "finish"."""
        return await self._executions("GetLost", lost_after_ms)

    async def get_overdue_executions(self) -> list[Execution]:
        """Unfinished ones past their hard deadline."""
        return await self._executions("GetOverdueExecutions")

    async def _executions(self, name: str, *arguments: object) -> list[Execution]:
        return [execution_of(record) for record in await self._database.fetch(name, *arguments)]
