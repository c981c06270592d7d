"""Ends and sweeps: what is done to executions that have been claimed."""

from collections.abc import Iterable
from typing import Any, Final

from cronring.controller.core.model import EndRequest, EndResult, Execution
from cronring.controller.core.ticks import missed
from cronring.controller.store.pool import Database
from cronring.controller.store.rows import count_ticks, execution_of, skip_columns, texts_or_null, unless_null
from cronring.schema.execution import Report
from cronring.sql.parameters import AdoptExecutions, EndCronJob, GetLost, GetOverdueExecutions, GetUnfinished
from cronring.sql.records import Statement

_PARAMETERS: Final = EndCronJob.__annotations__
# For each field of a report its parameter, which may be in the plural; "" for what only the core looks at.
_REPORTED: Final = tuple(
    next((name for name in (field, f"{field}s") if name in _PARAMETERS), "") for field in Report._fields
)
_TEXTS: Final = {
    name for name, field in zip(_REPORTED, Report._fields, strict=True) if Report._field_defaults.get(field) == ""
}  # an empty text is null


class ExecutionStatements:
    """The part of PostgresStore that is about executions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
        """End what is unfinished under the reported claim; every request is answered, in order. Safe to repeat."""
        if not requests:
            return []
        # Transposed at once: attribute by attribute costs three times as much.
        (
            reports, ticks, revisions, next_ticks, next_run_ats, skips, retries, anchors, closings
        ) = zip(*requests, strict=True)  # fmt: skip
        skipped = [(request.report, part) for request in requests for part in request.skipped] if any(skips) else []
        passed = skip_columns([part for _, part in skipped])
        records = await self._database.fetch(
            EndCronJob(
                **_reported(reports),
                controller_id=controller_id,
                revisions=revisions,
                next_ticks=next_ticks,
                next_run_ats=next_run_ats,
                retry_ats=unless_null(retries),
                anchors=unless_null(anchors),
                closes_ats=unless_null(closings),
                skip_execution_ids=[report.execution_id for report, _ in skipped],
                skip_job_ids=[report.job_id for report, _ in skipped],
                skip_reasons=passed.reasons,
                skip_first_ticks=passed.first_ticks,
                skip_last_ticks=passed.last_ticks,
                skip_tick_counts=passed.tick_counts,
                ticks=ticks,
                missed=[missed(ranges) if ranges else 0 for ranges in skips],
            )
        )
        results = list(map(EndResult._make, records))
        if skipped:
            decided = {each.execution_id for each, made in zip(results, requests, strict=True) if _decided(each, made)}
            # An end that came second, or found the job's row changed, wrote none of what it asked for: nothing is
            # counted.
            own = (part for report, part in skipped if report.execution_id in decided)
            count_ticks(self._database.skipped, own)
        return results

    async def adopt_executions(
        self, controller_id: str, from_ids: tuple[str, ...], runner_ids: tuple[str, ...] = ()
    ) -> list[Execution]:
        """Take over what these controllers left unfinished, on these runners or all; the own id may be among them."""
        return await self._executions(
            AdoptExecutions(controller_id=controller_id, from_ids=from_ids, runner_ids=runner_ids or None)
        )

    async def get_unfinished(self, execution_ids: tuple[int, ...]) -> list[Execution]:
        """Those of the ids that are unfinished."""
        return await self._executions(GetUnfinished(execution_ids=execution_ids, controller_id=None))

    async def get_held(self, controller_id: str, execution_ids: tuple[int, ...]) -> list[Execution]:
        """Those of the ids that are unfinished, and that nobody else has adopted."""
        return await self._executions(GetUnfinished(execution_ids=execution_ids, controller_id=controller_id))

    async def get_lost(self, lost_after_ms: int) -> list[Execution]:
        """Unfinished ones of runners not seen for so long, but for jobs with on_disconnect "finish"."""
        return await self._executions(GetLost(lost_after_ms=lost_after_ms))

    async def get_overdue_executions(self) -> list[Execution]:
        """Unfinished ones past their hard deadline."""
        return await self._executions(GetOverdueExecutions())

    async def _executions(self, statement: Statement) -> list[Execution]:
        return [execution_of(record) for record in await self._database.fetch(statement)]


def _reported(reports: Iterable[Report]) -> dict[str, Any]:
    """EndCronJob's parameters that are columns of reports, by their fields' names."""
    columns = zip(_REPORTED, zip(*reports, strict=True), strict=True)
    return {name: texts_or_null(column) if name in _TEXTS else column for name, column in columns if name}


def _decided(result: EndResult, request: EndRequest) -> bool:
    """Whether this end set its job's next tick, and so wrote what passed before."""
    return result.ended and (result.paused or result.next_tick == request.next_tick)
