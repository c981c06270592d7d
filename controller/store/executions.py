"""Ends, adoptions and sweeps: what is done to executions that have been claimed."""

import functools

from cronring.controller.core.model import EndRequest, EndResult, Execution
from cronring.controller.store.ending import EndBatch, Partitions
from cronring.controller.store.pool import Database
from cronring.controller.store.rows import execution_of
from cronring.schema.execution import Outcome, Report
from cronring.sql.parameters import AdoptExecutions, GetLost, GetOverdueExecutions, GetQueueReports, GetUnfinished
from cronring.sql.records import Statement


class ExecutionStatements:
    """The part of PostgresStore that is about executions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @functools.cached_property
    def _partitions(self) -> Partitions:
        return Partitions()

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
        """End what is unfinished under the reported claim. Every request is answered, in order. Safe to repeat."""
        if not requests:
            return []
        return await EndBatch(controller_id, requests, self._partitions).make(self._database)

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
        """Those of the ids that are unfinished, and that this controller holds."""
        return await self._executions(GetUnfinished(execution_ids=execution_ids, controller_id=controller_id))

    async def get_lost(self, lost_after_ms: int) -> list[Execution]:
        """Unfinished executions of runners not seen for so long, without jobs that have on_disconnect "finish"."""
        return await self._executions(GetLost(lost_after_ms=lost_after_ms))

    async def get_overdue_executions(self) -> list[Execution]:
        """Unfinished executions past their hard timeout."""
        return await self._executions(GetOverdueExecutions())

    async def get_queue_reports(self, controller_id: str, known: tuple[int, ...], at_most: int) -> list[Report]:
        """Reports of executions of this controller that consumers, or their claims, have decided. Those of `known` are
        left out.
        """
        records = await self._database.fetch(GetQueueReports(controller_id=controller_id, known=known, limit=at_most))
        return [
            Report(execution_id, job_id, claimed_at, Outcome(outcome), claimed_at, max(ended_at, claimed_at), *texts)
            for execution_id, job_id, claimed_at, outcome, ended_at, *texts in records
        ]

    async def _executions(self, statement: Statement) -> list[Execution]:
        return [execution_of(record) for record in await self._database.fetch(statement)]
