"""Claims and skips: what is done to jobs that are due."""

from cronring.controller.core.model import (
    ClaimRequest,
    ClaimResult,
    EnqueueRequest,
    EnqueueResult,
    Job,
    SkipRequest,
)
from cronring.controller.core.ticks import missed
from cronring.controller.store.claiming import Claims
from cronring.controller.store.enqueuing import Enqueues
from cronring.controller.store.pool import Database
from cronring.controller.store.rows import count_ticks, job_of, skip_columns
from cronring.sql.parameters import GetCronJobs, GetNow, GetOverdueJobs, SkipTicks
from cronring.sql.records import Statement


class JobStatements:
    """The part of PostgresStore that is about jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._under_limits: set[int] = set()

    async def get_cron_jobs(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Job]]:
        """(PostgreSQL's now, jobs of the slots that are due before now + window, with executing ones)."""
        return await self._get(GetCronJobs(slots=slots, window_ms=window_ms))

    async def get_overdue_jobs(self, slots: tuple[int, ...], delay_ms: int, at_most: int) -> tuple[int, list[Job]]:
        """(PostgreSQL's now, idle jobs of active deployments in the slots with next_execution <= now - delay).

        In order of ids; if there are more than `at_most`, the first of them.
        """
        return await self._get(GetOverdueJobs(slots=slots, delay_ms=delay_ms, limit=at_most))

    async def _get(self, statement: Statement) -> tuple[int, list[Job]]:
        records = await self._database.fetch(statement)
        database_now: int = records[0][0]
        if records[0][1] is None:
            return database_now, []
        return database_now, [job_of(record, 1) for record in records]

    async def start_cron_jobs(
        self, controller_id: str, requests: list[ClaimRequest], hard_grace_ms: int
    ) -> tuple[int, list[ClaimResult]]:
        """Claim jobs that are idle and due, under a valid lease. Every request is answered, in order."""
        if not requests:
            return (await self._database.fetch(GetNow()))[0][0], []
        results = await Claims(controller_id, hard_grace_ms, self._under_limits).make(self._database, requests)
        return results[0].claimed_at, results

    async def enqueue_cron_jobs(
        self, controller_id: str, requests: list[EnqueueRequest]
    ) -> tuple[int, list[EnqueueResult]]:
        """Put the messages of due ticks into their queues, under a valid lease; every request is answered, in order."""
        if not requests:
            return (await self._database.fetch(GetNow()))[0][0], []
        claims = Claims(controller_id, 0, self._under_limits)
        results = await Enqueues(controller_id, claims).make(self._database, requests)
        return results[0].claimed_at, results

    async def skip_ticks(self, controller_id: str, requests: list[SkipRequest]) -> list[Job]:
        """Move idle jobs past ticks that are not run, under a valid lease; the jobs as they are now, in order."""
        if not requests:
            return []
        first = skip_columns([request.skipped[0] for request in requests])
        further = skip_columns([skipped for request in requests for skipped in request.skipped[1:]])
        records = await self._database.fetch(
            SkipTicks(
                controller_id=controller_id,
                job_ids=[request.job_id for request in requests],
                expected_ticks=[request.expected_tick for request in requests],
                revisions=[request.revision for request in requests],
                next_ticks=[request.next_tick for request in requests],
                next_run_ats=[request.next_run_at for request in requests],
                reasons=first.reasons,
                first_ticks=first.first_ticks,
                last_ticks=first.last_ticks,
                tick_counts=first.tick_counts,
                further_job_ids=[request.job_id for request in requests for _ in request.skipped[1:]],
                further_reasons=further.reasons,
                further_first_ticks=further.first_ticks,
                further_last_ticks=further.last_ticks,
                further_tick_counts=further.tick_counts,
                missed=[missed(request.skipped) for request in requests],
            )
        )
        moved = {record["id"] for record in records if record["moved"]}
        made = {request.job_id: request for request in requests if request.job_id in moved}
        count_ticks(self._database.skipped, (part for request in made.values() for part in request.skipped))
        return [_moved(job, made.get(job.job_id)) for job in map(job_of, records)]


def _moved(job: Job, request: SkipRequest | None) -> Job:
    """The statement returns the row as it was before: put in what the statement has written."""
    return job._replace(next_tick=request.next_tick, next_run_at=request.next_run_at) if request else job
