"""Maintenance of history: makes partitions ahead, replaces old ones by what is kept of them, and closes books.

Retention adds up rows into cron_closed_books in the transaction that removes them. Up to a job's `until_at` these sums
are its books; after that, its rows are. Claims don't wait for maintenance: its long statements only read. Those that
lock give up after `LOCK_TIMEOUT_MS`, and the next round tries again.
"""

import asyncio
from collections import defaultdict
from typing import Any, Final

import asyncpg

from cronring.controller.config import DEFAULT_SCHEMA
from cronring.controller.core.ledger.audit import LATE_AFTER_US
from cronring.controller.core.ledger.books import Span, TickTimeline
from cronring.controller.ports.maintenance import Maintained, Retention
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.errors import translated
from cronring.controller.store.folding import fold
from cronring.schema.duration import parse_duration
from cronring.schema.policy import parse_policy
from cronring.sql.parameters import (
    AddPartition,
    AddToClosedBooks,
    ClearClosings,
    CutAuditChain,
    CutSkips,
    DropCutRows,
    DropGone,
    DropIdleValues,
    FillClosings,
    FillHistories,
    FoldGone,
    ForgetActions,
    ForgetDeadLetters,
    ForgetIdentities,
    ForgetLanes,
    ForgetListeners,
    ForgetLives,
    ForgetRequests,
    ForgetVerbCalls,
    GetBoundary,
    GetClosingSpans,
    GetHistoryPolicies,
    GetRecent,
    LockCutSkips,
    RecordMaintenance,
    StageKept,
    SumClosings,
    SwapStaged,
    TryLockMaintenance,
)
from cronring.sql.records import Statement

LOCK_TIMEOUT_MS: Final = 200
IDENTITIES_KEPT_MS: Final = 90 * 86_400_000  # after their end, so that one can still look up what a token was
_SWAPS_TRIED: Final = 20
_FOLDED_AT_ONCE: Final = 1_000
_CUT_AT_ONCE: Final = 10_000  # rows of the audit log
SETTINGS: Final = {"timezone": "UTC", "lock_timeout": f"{LOCK_TIMEOUT_MS}ms", "jit": "off"}


class _Busy(Exception):
    """A lock was busy, or rows have changed since they were copied."""


async def maintain(url: str, retention: Retention, *, schema: str = DEFAULT_SCHEMA) -> Maintained:
    """One round. Raises cronring.controller.errors.StoreUnavailable and StoreError."""
    connection = await connect(url, "cronring maintenance", dict(SETTINGS), schema=schema)
    try:
        with translated("looking after history"):
            if not await _value(connection, TryLockMaintenance()):
                return Maintained(ours=False)
            return await _maintain(connection, retention)
    finally:
        await connection.close(timeout=5)


async def _maintain(connection: Connection, retention: Retention) -> Maintained:
    made = closed = 0
    waiting = False
    try:
        while await _value(connection, AddPartition(ahead_ms=retention.ahead_ms)):
            made += 1
        await _value(connection, DropGone())
        await _fold(connection)
        boundary: int | None = await _value(connection, GetBoundary(history_ms=retention.history_ms))
        if boundary is not None:
            closed = await _retire(connection, boundary, retention)
        while await _value(connection, FoldGone(history_ms=retention.history_ms, limit=_FOLDED_AT_ONCE)):
            pass
        await connection.execute(*ForgetActions(history_ms=retention.history_ms))
        await connection.execute(*ForgetLives(history_ms=retention.history_ms))
        await connection.execute(*ForgetIdentities(kept_ms=IDENTITIES_KEPT_MS))
        for forget in (ForgetRequests(), ForgetVerbCalls(), ForgetDeadLetters(), ForgetLanes(), ForgetListeners()):
            await connection.execute(*forget)
        await connection.execute(*DropIdleValues())
        await _cut_audit_log(connection, retention.audit_log_ms)
    except (_Busy, asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
        waiting = True
    await connection.execute(*RecordMaintenance())
    return Maintained(True, made, closed, waiting)


async def _cut_audit_log(connection: Connection, kept_ms: int) -> None:
    """Remove old rows from the beginning of the chain, and note where the rest begins (the cut)."""
    cut = True
    while cut:
        async with connection.transaction():
            cut = await _value(connection, CutAuditChain(kept_ms=kept_ms, limit=_CUT_AT_ONCE)) is not None
            if cut:
                await connection.execute(*DropCutRows())


async def _fold(connection: Connection) -> None:
    """Fold all that can be folded: retention keeps executions that are not in their job's figures yet."""

    async def fetch(statement: Statement) -> list[asyncpg.Record]:
        return await connection.fetch(*statement)

    known = False  # the first round may only find out how far the next one can go
    while True:
        async with connection.transaction():
            done = await fold(fetch)
        if done is None or (known and not done.executions):
            return
        known = True


async def _retire(connection: Connection, boundary: int, retention: Retention) -> int:
    """Replace partitions up to the boundary by the rows to keep, and close the books of the others."""
    await connection.execute(*ClearClosings())
    # One snapshot, so that no row is both kept and summed, or neither. `recent` describes the rows: if any has changed
    # by the time of the swap, nothing is swapped.
    async with connection.transaction(isolation="repeatable_read"):
        await _fill_histories(connection, retention)
        recent = await connection.fetchrow(*GetRecent(boundary=boundary))
        await connection.execute(*FillClosings(boundary=boundary, runs=retention.runs))
        await connection.execute(*SumClosings(boundary=boundary, late_after_us=LATE_AFTER_US))
        await connection.execute(*StageKept(boundary=boundary, runs=retention.runs))
        timelines = _timelines(await connection.fetch(*GetClosingSpans()))
    assert recent is not None
    staged = SwapStaged(boundary=boundary, **recent)
    due = await asyncio.to_thread(_due, timelines)  # with many jobs it takes a while, and claims must not wait for it
    for _ in range(_SWAPS_TRIED):
        try:
            # Short, and with a short lock timeout: claims queue behind a lock request that waits.
            async with connection.transaction():
                await _close(connection, timelines, due)
                if not await _value(connection, staged):
                    raise _Busy  # claimed or ended there meanwhile
            break
        except asyncpg.LockNotAvailableError:
            continue
    else:
        raise _Busy
    await _value(connection, DropGone())
    return len(due)


async def _fill_histories(connection: Connection, retention: Retention) -> None:
    """How long each job with a policy for it keeps its history. At least as long as the cluster, as partitions go as a
    whole.
    """
    found = [(job_id, parse_policy(text)) for job_id, text in await connection.fetch(*GetHistoryPolicies())]
    await connection.execute(
        *FillHistories(
            job_ids=[job_id for job_id, _ in found],
            histories_ms=[
                max(parse_duration(policy.history) if policy.history else 0, retention.history_ms)
                for _, policy in found
            ],
            runs=[policy.history_runs or retention.runs for _, policy in found],
        )
    )


_Timelines = dict[int, tuple[TickTimeline, int, int]]


def _timelines(records: list[asyncpg.Record]) -> _Timelines:
    """By job: its schedules, and from when to when its books close."""
    spans: dict[int, list[Span]] = defaultdict(list)
    times: dict[int, tuple[int, int]] = {}
    for job_id, *span, closed_at, closes_at in records:
        spans[job_id].append(Span(*span))
        times[job_id] = (closed_at, closes_at)
    return {job_id: (TickTimeline(found), *times[job_id]) for job_id, found in spans.items()}


def _due(timelines: _Timelines) -> dict[int, int]:
    """Ticks that were due in the time that is closed, by job."""
    return {job_id: timeline.count(after, until) for job_id, (timeline, after, until) in timelines.items()}


async def _close(connection: Connection, timelines: _Timelines, due: dict[int, int]) -> None:
    """Write the closed books: what was due, what ran, what was skipped. A skipped range that reaches beyond is cut in
    two.
    """
    kept: list[tuple[int, int, int]] = []
    gone: list[tuple[int, str, int]] = []
    cut = await connection.fetch(*LockCutSkips())
    for skip_id, job_id, reason, first_tick, _, ticks, until_at in cut:
        timeline = timelines[job_id][0]
        passed = timeline.count(first_tick - 1, until_at)
        following = timeline.next_after(until_at)
        assert following is not None, "the range has a tick after it"
        gone.append((job_id, reason, passed))
        kept.append((skip_id, following, ticks - passed))
    await connection.execute(
        *CutSkips(
            skip_ids=[skip_id for skip_id, _, _ in kept],
            first_ticks=[first_tick for _, first_tick, _ in kept],
            tick_counts=[ticks for _, _, ticks in kept],
        )
    )
    await connection.execute(
        *AddToClosedBooks(
            job_ids=list(due),
            due=list(due.values()),
            cut_job_ids=[job_id for job_id, _, _ in gone],
            cut_reasons=[reason for _, reason, _ in gone],
            cut_tick_counts=[ticks for _, _, ticks in gone],
        )
    )


async def _value(connection: Connection, statement: Statement) -> Any:
    return await connection.fetchval(*statement)
