"""cronring.v1.Ledger: whether every tick ended as it must, and why one ran, or not."""

from itertools import groupby
from typing import Final

from cronring.controller.api.lookup import unknown_job
from cronring.controller.api.messages import NEVER, UTC_NAME, local_text
from cronring.controller.api.problems import InvalidRequest
from cronring.controller.api.requests import Context, instant, name, number, required
from cronring.controller.api.scope import namespaces, sees, shows_outputs
from cronring.controller.core.ledger.audit import LATE_AFTER_US, AuditFinding
from cronring.controller.core.ledger.lateness import lateness_us
from cronring.controller.core.ledger.why import explain, verdict
from cronring.controller.core.ledger.why_facts import Attempt, Facts, SkipFact, WaitingRun
from cronring.controller.errors import NotFound
from cronring.controller.ports.ledger import AuditReport, AuditRequest, Ledger
from cronring.controller.ports.reads import BookRow, Reads
from cronring.protos.cronring.v1 import executions_pb2, ledger_pb2, ledger_pb2_grpc
from cronring.protos.instants import timestamp
from cronring.schema.identity import Permission

_BOOKS_MAX: Final = 100
_LAST_DEFAULT: Final = 20
_LAST_MAX: Final = 200
_LATE_AFTER_MS_MAX: Final = 366 * 86_400_000


class LedgerService(ledger_pb2_grpc.LedgerServicer):
    """Reading only."""

    def __init__(self, ledger: Ledger, reads: Reads) -> None:
        self._ledger = ledger
        self._reads = reads

    async def Audit(self, request: ledger_pb2.AuditRequest, context: Context) -> ledger_pb2.AuditResponse:
        since = instant("since", request.since) if request.HasField("since") else None
        until = instant("until", request.until) if request.HasField("until") else None
        if since is not None and until is not None and since > until:
            raise InvalidRequest([("until", "is before since")])
        if since is not None and since > await self._reads.database_now():
            raise InvalidRequest(
                [("since", "is to come, so nothing can be said of it; give an instant that has passed")]
            )
        late_after_ms = number(request, "late_after_ms", LATE_AFTER_US // 1_000, _LATE_AFTER_MS_MAX, lowest=0)
        key = name("job", request.job)
        if key and not sees(key):
            raise await unknown_job(self._reads, key)
        visible = namespaces(Permission.VIEW)
        wanted = AuditRequest(since, until, key, late_after_ms * 1_000, request.thorough, visible)
        try:
            return _audit_message(await self._ledger.audit(wanted))
        except NotFound:
            raise await unknown_job(self._reads, request.job) from None

    async def ListBooks(self, request: ledger_pb2.ListBooksRequest, context: Context) -> ledger_pb2.ListBooksResponse:
        keys = [required("keys", key, "a job's key, like module.verb") for key in dict.fromkeys(request.keys)]
        if not 1 <= len(keys) <= _BOOKS_MAX:
            raise InvalidRequest([("keys", f"has {len(keys)}; it must have 1 to {_BOOKS_MAX}")])
        last = number(request, "last", _LAST_DEFAULT, _LAST_MAX)
        before = instant("before", request.before) if request.HasField("before") else None
        rows = await self._reads.list_books(keys, last, before, namespaces(Permission.VIEW))
        return ledger_pb2.ListBooksResponse(
            books=[
                ledger_pb2.JobBook(job=job, entries=map(_entry_message, entries))
                for job, entries in groupby(rows, key=lambda row: row.job)
            ]
        )

    async def Why(self, request: ledger_pb2.WhyRequest, context: Context) -> ledger_pb2.WhyResponse:
        key = required("job", request.job, "a job's key, like module.verb or module.verb:name")
        at = instant("at", request.at) if request.HasField("at") else None
        if not sees(key):
            raise await unknown_job(self._reads, key)
        try:
            return _why_message(_shown(await self._ledger.facts(key, at, namespaces(Permission.VIEW))))
        except NotFound:
            raise await unknown_job(self._reads, key) from None


def _shown(facts: Facts) -> Facts:
    """The facts as the caller may see them: without outputs of jobs whose outputs they may not read."""
    upstream = None if facts.upstream is None else _shown(facts.upstream)
    if shows_outputs(facts.subject.key):
        return facts._replace(upstream=upstream)
    return facts._replace(
        upstream=upstream,
        attempts=tuple(run._replace(error_message="") for run in facts.attempts),
        before=facts.before and facts.before._replace(error_message=""),
        after=facts.after and facts.after._replace(error_message=""),
    )


def _audit_message(report: AuditReport) -> ledger_pb2.AuditResponse:
    audit = report.audit
    return ledger_pb2.AuditResponse(
        ticks=audit.ticks,
        executed=audit.executed,
        on_time=audit.on_time,
        late=audit.late,
        caught_up=audit.caught_up,
        backfilled=audit.backfilled,
        skipped={reason: ticks for reason, ticks in audit.skipped.items() if ticks},
        running=audit.running,
        pending=audit.pending,
        unaccounted=audit.unaccounted,
        duplicates=audit.duplicates,
        early=audit.early,
        undue=audit.undue,
        outcomes={outcome: executions for outcome, executions in audit.outcomes.items() if executions},
        findings=[_finding_message(finding) for finding in audit.findings],
        jobs=audit.jobs,
        walked=audit.walked,
        until=timestamp(report.until),
        summarised_until=timestamp(audit.summarised_until),
        remark=report.remark,
    )


def _finding_message(finding: AuditFinding) -> ledger_pb2.Finding:
    return ledger_pb2.Finding(
        kind=finding.kind,
        job=finding.job,
        tick=timestamp(finding.tick),
        ticks=finding.ticks,
        execution_ids=finding.execution_ids,
        text=finding.text,
        look=finding.look,
    )


def _why_message(facts: Facts) -> ledger_pb2.WhyResponse:
    subject = facts.subject
    tick, run_at = subject.upcoming or NEVER
    return ledger_pb2.WhyResponse(
        sentences=explain(facts),
        verdict=verdict(facts),
        job=subject.key,
        now=timestamp(facts.now),
        at=timestamp(facts.at),
        tick=timestamp(facts.tick),
        previous_tick=timestamp(facts.previous_tick),
        following_tick=timestamp(facts.following_tick),
        attempts=[_attempt_message(subject.key, run) for run in facts.attempts],
        skip=None if facts.skip is None else _skip_message(facts.skip),
        next_tick=timestamp(tick),
        next_run_at=timestamp(run_at),
        next_tick_local="" if tick is None else local_text(tick, subject.zone or UTC_NAME),
        paused_at=timestamp(subject.paused_at) if subject.paused(facts.now) else None,
        paused_until=timestamp(subject.paused_until) if subject.paused(facts.now) else None,
        paused_by=(subject.paused_by or "") if subject.paused(facts.now) else "",
        paused_note=(subject.paused_note or "") if subject.paused(facts.now) else "",
        removed_at=timestamp(subject.removed_at),
        waiting=[_waiting_message(each) for each in facts.waiting],
        hosted=subject.hosted,
        deployment=subject.deployment,
        timezone=subject.zone or UTC_NAME,
    )


def _attempt_message(key: str, run: Attempt) -> executions_pb2.Execution:
    return executions_pb2.Execution(
        id=run.execution_id,
        job=key,
        tick=timestamp(run.tick),
        run_at=timestamp(run.run_at),
        claimed_at=timestamp(run.claimed_at),
        started_at=timestamp(run.started_at),
        ended_at=timestamp(run.ended_at),
        outcome=run.outcome or "",
        attempt=run.attempt,
        trigger=run.trigger,
        controller=run.controller_id,
        runner=run.runner_id,
        lateness_ms=lateness_us(run.run_at, run.claimed_at, run.started_at) / 1_000,
        error_type=run.error_type,
        error_message=run.error_message,
        retry_at=timestamp(run.retry_at),
        number=run.number,
        deployment=run.deployment,
    )


def _entry_message(row: BookRow) -> ledger_pb2.BookEntry:
    began = row.claimed_at if row.started_at is None else row.started_at
    return ledger_pb2.BookEntry(
        tick=timestamp(row.tick),
        last_tick=timestamp(row.last_tick),
        ticks=row.ticks,
        reason=row.skipped,
        execution_id=row.execution_id,
        outcome=row.outcome,
        trigger=row.trigger,
        attempt=row.attempt,
        duration_ms=0.0 if row.ended_at is None else (row.ended_at - began) / 1_000,
        lateness_ms=0.0 if row.skipped else (began - row.run_at) / 1_000,
        error_type=row.error_type,
    )


def _skip_message(skip: SkipFact) -> ledger_pb2.Skip:
    return ledger_pb2.Skip(
        reason=skip.reason,
        first_tick=timestamp(skip.first_tick),
        last_tick=timestamp(skip.last_tick),
        ticks=skip.ticks,
        controller=skip.controller_id,
        decided_at=timestamp(skip.decided_at),
    )


def _waiting_message(each: WaitingRun) -> ledger_pb2.WaitingRun:
    return ledger_pb2.WaitingRun(
        id=each.activation_id,
        trigger=each.trigger,
        tick=timestamp(each.tick),
        until_tick=timestamp(each.until_tick),
        attempt=each.attempt,
        run_at=timestamp(each.run_at),
        requested_by=each.requested_by,
    )
