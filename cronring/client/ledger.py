"""Calls about the books: did every tick end as it must, and why did one run, or not?"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cronring.client import convert, model
from cronring.client.channel import Failover
from cronring.protos.cronring.v1 import ledger_pb2
from cronring.protos.cronring.v1.ledger_pb2_grpc import LedgerStub

AUDIT_TIMEOUT_S: Final = 600.0


class LedgerCalls:
    """Audit, why, and books of jobs."""

    def __init__(self, failover: Failover) -> None:
        self._failover = failover

    async def audit(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        job: str = "",
        late_after_s: float | None = None,
        *,
        thorough: bool = False,
        timeout_s: float = AUDIT_TIMEOUT_S,
    ) -> model.Audit:
        """Ticks from `since` up to and including `until` (None: the beginning, and PostgreSQL's now) of one job or all.

        `late_after_s` None: 10 s. `thorough`: walk the ticks of all jobs, not only of those whose counts disagree.
        Raises NotFound where no job ever had the key.
        """
        request = ledger_pb2.AuditRequest(
            since=convert.timestamp(since),
            until=convert.timestamp(until),
            job=job,
            late_after_ms=None if late_after_s is None else round(late_after_s * 1_000),
            thorough=thorough,
        )
        return _audit(await self._failover.unary(lambda channel: LedgerStub(channel).Audit(request, timeout=timeout_s)))

    async def why(self, job: str, at: datetime | None = None) -> model.Why:
        """About the tick due at an instant (None: the latest that was due). Raises NotFound."""
        timeout = self._failover.timeout_s
        request = ledger_pb2.WhyRequest(job=job, at=convert.timestamp(at))
        return _why(await self._failover.unary(lambda channel: LedgerStub(channel).Why(request, timeout=timeout)))

    async def books(
        self, jobs: Sequence[str], last: int = 20, before: datetime | None = None
    ) -> dict[str, list[model.BookEntry]]:
        """The latest entries of the books of up to 100 jobs, by key, the latest tick first: at most `last` of each.

        `before` None: up to now. A job that isn't there, or has no entries, is left out.
        """
        timeout = self._failover.timeout_s
        request = ledger_pb2.ListBooksRequest(keys=jobs, last=last, before=convert.timestamp(before))
        answer = await self._failover.unary(lambda channel: LedgerStub(channel).ListBooks(request, timeout=timeout))
        return {book.job: list(map(_entry, book.entries)) for book in answer.books}


def _audit(message: ledger_pb2.AuditResponse) -> model.Audit:
    return model.Audit(
        ticks=message.ticks,
        executed=message.executed,
        skipped=dict(sorted(message.skipped.items())),
        late=message.late,
        unaccounted=message.unaccounted,
        duplicates=message.duplicates,
        early=message.early,
        undue=message.undue,
        on_time=message.on_time,
        caught_up=message.caught_up,
        backfilled=message.backfilled,
        running=message.running,
        pending=message.pending,
        outcomes=dict(sorted(message.outcomes.items())),
        findings=tuple(_finding(each) for each in message.findings),
        jobs=message.jobs,
        walked=message.walked,
        until=convert.instant(message.until),
        summarised_until=convert.instant(message.summarised_until),
        remark=message.remark,
    )


def _finding(message: ledger_pb2.Finding) -> model.Finding:
    tick = convert.instant(message.tick)
    assert tick is not None, "every finding is about a tick"
    return model.Finding(
        message.kind, message.job, tick, message.ticks, tuple(message.execution_ids), message.text, message.look
    )


def _why(message: ledger_pb2.WhyResponse) -> model.Why:
    return model.Why(
        sentences=tuple(message.sentences),
        verdict=message.verdict,
        job=message.job,
        now=convert.instant(message.now),
        at=convert.instant(message.at),
        tick=convert.instant(message.tick),
        previous_tick=convert.instant(message.previous_tick),
        following_tick=convert.instant(message.following_tick),
        attempts=tuple(convert.execution(each) for each in message.attempts),
        skip=_skip(message.skip) if message.HasField("skip") else None,
        next_tick=convert.instant(message.next_tick),
        next_run_at=convert.instant(message.next_run_at),
        next_tick_local=message.next_tick_local,
        paused_at=convert.instant(message.paused_at),
        paused_until=convert.instant(message.paused_until),
        paused_by=message.paused_by,
        paused_note=message.paused_note,
        removed_at=convert.instant(message.removed_at),
        waiting=tuple(_waiting(each) for each in message.waiting),
        hosted=message.hosted,
        deployment=message.deployment,
        timezone=message.timezone,
    )


def _entry(message: ledger_pb2.BookEntry) -> model.BookEntry:
    return model.BookEntry(
        tick=convert.instant(message.tick),
        last_tick=convert.instant(message.last_tick),
        ticks=message.ticks,
        skipped=message.reason,
        execution_id=message.execution_id or None,
        outcome=message.outcome,
        trigger=message.trigger,
        attempt=message.attempt,
        duration_ms=message.duration_ms,
        lateness_ms=message.lateness_ms,
        error_type=message.error_type,
    )


def _skip(message: ledger_pb2.Skip) -> model.Skip:
    return model.Skip(
        message.reason, convert.instant(message.first_tick), convert.instant(message.last_tick), message.ticks,
        message.controller or None, convert.instant(message.decided_at),
    )  # fmt: skip


def _waiting(message: ledger_pb2.WaitingRun) -> model.WaitingRun:
    return model.WaitingRun(
        message.id, message.trigger, convert.instant(message.tick), convert.instant(message.until_tick),
        message.attempt, convert.instant(message.run_at), message.requested_by,
    )  # fmt: skip
