"""Ticks that are completed once their messages are in their queues. Most take one statement, and few a transaction."""

from collections.abc import Sequence
from functools import partial

import asyncpg

from cronring.controller.core.model import ClaimRequest, EnqueueRequest, EnqueueResult
from cronring.controller.core.ticks import missed
from cronring.controller.store.claiming import Claims
from cronring.controller.store.messages import in_halves
from cronring.controller.store.placing import Fetch
from cronring.controller.store.plans import add_skips
from cronring.controller.store.pool import Database, Transaction
from cronring.controller.store.rows import unless_null
from cronring.sql.parameters import EnqueueCronJobs, FollowTicks


class Enqueues:
    """One batch of one controller."""

    def __init__(self, controller_id: str, claims: Claims) -> None:
        """`claims`: claims the ticks whose messages PostgreSQL refuses."""
        self._controller_id = controller_id
        self._claims = claims
        self._results: dict[int, EnqueueResult] = {}  # by job
        self._more: list[EnqueueRequest] = []

    async def make(self, database: Database, requests: list[EnqueueRequest]) -> list[EnqueueResult]:
        """Their results, in order. An error of one request fails only that request."""
        plain = [each for each in requests if not (each.skipped or each.passed)]
        self._more = [each for each in requests if each.skipped or each.passed]
        refuse = partial(self._refuse, database)
        await in_halves(plain, partial(self._enqueue, database), refuse)
        await in_halves(sorted(self._more), partial(self._enqueue_whole, database), refuse)
        return [self._results[request.job_id] for request in requests]

    async def _enqueue(self, database: Database, requests: Sequence[EnqueueRequest]) -> None:
        records = await self._fetched(database.fetch, requests, whole=False)
        self._more += [each for each, record in zip(requests, records, strict=True) if record["more"]]

    async def _enqueue_whole(self, database: Database, requests: Sequence[EnqueueRequest]) -> None:
        """Enqueue, and write what the ticks pass over, and the activations of followers."""
        async with database.transaction("enqueueing messages") as transaction:
            records = await self._fetched(transaction.fetch, requests, whole=True)
            won = [each for each, record in zip(requests, records, strict=True) if record["updated"]]
            passed = [(each.job_id, ranges) for each in won for ranges in (each.skipped, each.passed) if ranges]
            await add_skips(transaction, passed, by=self._controller_id)
            pairs = zip(requests, records, strict=True)
            await self._follow(transaction, [(each, record) for each, record in pairs if record["followed"]])

    async def _fetched(self, fetch: Fetch, requests: Sequence[EnqueueRequest], *, whole: bool) -> list[asyncpg.Record]:
        job_ids, expected, ticks, run_ats, keys, skips, triggers, after, next_ticks, next_run_ats, revisions = zip(
            *requests, strict=True
        )
        records = await fetch(
            EnqueueCronJobs(
                controller_id=self._controller_id,
                job_ids=job_ids,
                expected_ticks=expected,
                ticks=ticks,
                run_ats=run_ats,
                deployments=keys,
                triggers=triggers,
                missed=[missed(ranges) if ranges else 0 for ranges in skips],
                missed_after=[missed(ranges) if ranges else 0 for ranges in after],
                next_ticks=unless_null(next_ticks),
                next_run_ats=unless_null(next_run_ats),
                revisions=revisions,
                whole=whole,
            )
        )
        for record in records:
            self._results[record[0]] = EnqueueResult(*record[:9])
        return records

    async def _follow(self, transaction: Transaction, ends: list[tuple[EnqueueRequest, asyncpg.Record]]) -> None:
        done = [(each, record["execution_id"]) for each, record in ends if record["updated"]]
        if not done:
            return
        following = FollowTicks(
            execution_ids=[execution_id for _, execution_id in done],
            job_ids=[each.job_id for each, _ in done],
            ticks=[each.run_tick for each, _ in done],
        )
        made = dict(map(tuple, await transaction.fetch(following)))
        for each, execution_id in done:
            result = self._results[each.job_id]
            self._results[each.job_id] = result._replace(followers=made.get(execution_id))

    async def _refuse(self, database: Database, request: EnqueueRequest, error: str) -> None:
        claim = ClaimRequest(
            request.job_id,
            request.expected_tick,
            request.run_tick,
            request.run_at,
            "",
            request.deployment,
            request.skipped,
            request.trigger,
            revision=request.revision,
        )
        result = await self._claims.refuse(database, claim, error)
        self._results[request.job_id] = EnqueueResult(*result[:9], refused=result.updated)
