"""Claims and skips: what is done to jobs that are due."""

from cronring.controller.core.model import ClaimRequest, ClaimResult, Job, SkipRequest
from cronring.controller.core.ticks import missed
from cronring.controller.store.pool import Database
from cronring.controller.store.rows import count_ticks, job_of, skip_columns, unless_null
from cronring.sql.parameters import GetCronJobs, GetNow, GetOverdueJobs, SkipTicks, StartCronJobs
from cronring.sql.records import Statement


class JobStatements:
    """The part of PostgresStore that is about jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_cron_jobs(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Job]]:
        """(PostgreSQL's now, jobs of the slots due before now + window, executing ones among them)."""
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
        """Claim what is idle and due, under a valid lease; every request is answered, in order."""
        if not requests:
            return (await self._database.fetch(GetNow()))[0][0], []
        # Transposed at once: attribute by attribute costs three times as much.
        job_ids, expected, ticks, run_ats, runners, keys, skips, triggers, next_ticks, next_run_ats, revisions = zip(
            *requests, strict=True
        )
        skipped = [(request.job_id, part) for request in requests for part in request.skipped] if any(skips) else []
        passed = skip_columns([part for _, part in skipped])
        records = await self._database.fetch(
            StartCronJobs(
                controller_id=controller_id,
                job_ids=job_ids,
                expected_ticks=expected,
                ticks=ticks,
                run_ats=run_ats,
                runner_ids=runners,
                deployments=keys,
                triggers=triggers,
                missed=[missed(ranges) if ranges else 0 for ranges in skips],
                next_ticks=unless_null(next_ticks),
                next_run_ats=unless_null(next_run_ats),
                revisions=revisions,
                skip_job_ids=[job_id for job_id, _ in skipped],
                skip_reasons=passed.reasons,
                skip_first_ticks=passed.first_ticks,
                skip_last_ticks=passed.last_ticks,
                skip_tick_counts=passed.tick_counts,
                hard_grace_ms=hard_grace_ms,
            )
        )
        results = list(map(ClaimResult._make, records))
        if skipped:
            # Of a claim that another controller won, that one wrote and counted what was passed over.
            won = {result.job_id for result in results if result.updated}
            count_ticks(self._database.skipped, (part for job_id, part in skipped if job_id in won))
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
        own = (part for request in requests if request.job_id in moved for part in request.skipped)
        count_ticks(self._database.skipped, own)
        return [job_of(record) for record in records]
