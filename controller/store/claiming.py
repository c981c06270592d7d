"""Claims of due jobs: most are one statement, and few need a transaction."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from cronring.controller.core.model import ClaimRequest, ClaimResult
from cronring.controller.core.ticks import missed
from cronring.controller.store.messages import add_messages, in_halves, refuse_messages
from cronring.controller.store.placing import (
    Fetch,
    WantedPlace,
    find_places,
    lock_places,
    placed,
    take_places,
    who_waits,
)
from cronring.controller.store.plans import add_skips
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.rows import unless_null
from cronring.sql.parameters import StartCronJobs

_RESULT: Final = len(ClaimResult._fields)


class Claims:
    """The claims of one controller, at one instant."""

    def __init__(self, controller_id: str, hard_grace_ms: int, under_limits: set[int]) -> None:
        """`under_limits`: jobs that were under a limit at their last claim. Claims update it."""
        self._under_limits = under_limits
        self._controller_id = controller_id
        self._hard_grace_ms = hard_grace_ms
        self._results: dict[int, ClaimResult] = {}  # by job
        self._waiting: dict[int, int] = {}  # jobs under limits that wait for a place -> since when

    async def make(self, database: Database, requests: list[ClaimRequest]) -> list[ClaimResult]:
        """Their results, in order.

        Claims that pass ticks over, or whose jobs are under a limit, take a transaction. It comes behind the plain
        claims, which need not wait for it. Claims that put a message into a queue come last.
        """
        under_limits = self._under_limits
        plain = [each for each in requests if each.runner_id and not each.skipped and each.job_id not in under_limits]
        await self._claim(database.fetch, plain)
        # Chosen only now: the plain claim may have found limits that this controller didn't know.
        more = [each for each in requests if each.runner_id and (each.skipped or each.job_id in under_limits)]
        if more:
            async with database.transaction("claiming jobs") as transaction:
                await self._claim_whole(transaction, more)
        queued = [each for each in requests if not each.runner_id]
        await in_halves(queued, partial(self._enqueue, database), partial(self.refuse, database))
        return [self._results[request.job_id] for request in requests]

    async def refuse(self, database: Database, request: ClaimRequest, error: str) -> ClaimResult:
        """Claim a tick whose message PostgreSQL refuses with `error`. The execution is to end with that error."""
        async with database.transaction("claiming a tick without its message") as transaction:
            await refuse_messages(transaction.fetch, await self._claim_whole(transaction, [request]), error)
        return self._results[request.job_id]

    async def _enqueue(self, database: Database, requests: Sequence[ClaimRequest]) -> None:
        async with database.transaction("enqueueing messages") as transaction:
            await add_messages(transaction.fetch, await self._claim_whole(transaction, list(requests)))

    async def _claim_whole(self, transaction: Transaction, requests: list[ClaimRequest]) -> list[tuple[int, int]]:
        """(execution id, tick) of what was won."""
        await self._claim_more(transaction.fetch, requests)
        won = [each for each in requests if self._results[each.job_id].updated]
        passed = [(each.job_id, each.skipped) for each in won if each.skipped]
        await add_skips(transaction, passed, by=self._controller_id)
        found = [(self._results[each.job_id].execution_id, each.run_tick) for each in won]
        return [(execution_id, tick) for execution_id, tick in found if execution_id is not None]

    async def _claim_more(self, fetch: Fetch, requests: list[ClaimRequest]) -> None:
        """Claim, under limits only as many as there are places. The jobs are locked before places are counted."""
        self._waiting.clear()
        await self._claim(fetch, requests)
        if not self._waiting:
            return
        needs = await find_places(fetch, self._waiting)
        wanted = {
            each.job_id: WantedPlace(needs[each.job_id], each.turn, self._waiting[each.job_id])
            for each in requests
            if each.job_id in self._waiting
        }
        waits = who_waits(wanted, await lock_places(fetch, wanted.values()))
        await self._claim(fetch, [each for each in requests if each.job_id in wanted.keys() - waits], wanted)
        await take_places(fetch, [each for job_id, each in wanted.items() if self._results[job_id].updated])
        for job_id, limit in waits.items():
            self._results[job_id] = self._results[job_id]._replace(full=limit)

    async def _claim(
        self, fetch: Fetch, requests: list[ClaimRequest], places: dict[int, WantedPlace] | None = None
    ) -> None:
        """`places`: by job, what it needs a place of. None: jobs under a limit are not claimed.

        Either all requests have runners, or none has.
        """
        if not requests:
            return
        # Transposed in one go: attribute by attribute costs three times as much.
        job_ids, expected, ticks, run_ats, runners, keys, skips, triggers, next_ticks, next_run_ats, revisions, _ = zip(
            *requests, strict=True
        )
        records = await fetch(
            StartCronJobs(
                controller_id=self._controller_id,
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
                placed=places is not None,
                places=placed(places, job_ids) if places is not None else [],
                # A runner stops a run at its deadline, and needs time for that. A consumer gets no such time.
                hard_grace_ms=self._hard_grace_ms if requests[0].runner_id else 0,
            )
        )
        for record in records:
            result = ClaimResult._make(record[:_RESULT])
            self._results[result.job_id] = result
            if not result.updated and record["waits_from"] is not None:
                self._waiting[result.job_id] = record["waits_from"]
                self._under_limits.add(result.job_id)
            elif result.updated and places is None and result.job_id in self._under_limits:
                self._under_limits.discard(result.job_id)
