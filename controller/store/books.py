"""Totals, read in one snapshot and added up by controller.core.totals."""

import asyncio
from collections import defaultdict

import asyncpg

from controller.core.totals import Books, Cut, Span, Totals, total
from controller.reads import TotalsRow
from controller.store.pool import Database


async def read_totals(database: Database, since: int | None, until: int | None) -> TotalsRow:
    """Ticks in [since, until]; None: all, and up to now."""
    async with database.transaction("reading the books", snapshot=True) as transaction:
        now: int = (await transaction.fetch("GetNow"))[0][0]
        end = now if until is None else min(until, now)
        spans = await transaction.fetch("GetScheduleSpans")
        executed = await transaction.fetch("CountExecutedTicks", since, end)
        skipped = await transaction.fetch("CountSkippedTicks", since, end)
        cuts = await transaction.fetch("GetCutSkips", since, end)
        outcomes = await transaction.fetch("CountOutcomes", since, end)

    def added_up() -> Totals:
        return total(_books(spans, executed, skipped, cuts), since, end, now)

    # In a thread: with many jobs it takes a while, and claims must not wait for it.
    totals = await asyncio.to_thread(added_up)
    return TotalsRow(now, totals, tuple((outcome, executions) for outcome, executions in outcomes))


def _books(
    spans: list[asyncpg.Record],
    executed: list[asyncpg.Record],
    skipped: list[asyncpg.Record],
    cuts: list[asyncpg.Record],
) -> list[Books]:
    jobs: dict[int, Books] = {}
    counts = {job_id: (ended, running) for job_id, ended, running in executed}
    skips: dict[int, dict[str, int]] = defaultdict(dict)
    for job_id, reason, ticks in skipped:
        skips[job_id][reason] = ticks
    cuts_of: dict[int, list[Cut]] = defaultdict(list)
    for job_id, *cut in cuts:
        cuts_of[job_id].append(Cut(*cut))
    for job_id, schedule, anchor, from_at, until_at, policy, executing, last_tick, undecided, next_run_at in spans:
        if job_id not in jobs:
            ended, running = counts.get(job_id, (0, 0))
            jobs[job_id] = Books(
                [], executing, last_tick, undecided, ended, running, skips[job_id], cuts_of[job_id], next_run_at
            )  # fmt: skip
        jobs[job_id].spans.append(Span(schedule, anchor, from_at, until_at, policy))
    return list(jobs.values())
