"""The books of the store in memory; see controller/store/ledger.py and sql/queries/ledger.sql."""

from collections import Counter

from cronring.controller.core.ledger.audit import RunCounts
from cronring.controller.core.ledger.audit_walk import AuditRun, SkipRange
from cronring.controller.core.ledger.books import Closed, JobStanding, Span
from cronring.controller.core.ledger.why_facts import ActionFact, Attempt, Facts, SkipFact, WaitingRun, WhyJob
from cronring.controller.ports.ledger import AuditReport, AuditRequest, CountedSkips, NumberedSpan, Twin, ZoneData
from cronring.controller.ports.reads import Namespaces, within
from cronring.controller.services.audit import audit
from cronring.controller.services.explaining import gather
from cronring.controller.store.memory.limits import full_in_words
from cronring.controller.store.memory.rows import StoredExecution, StoredJob
from cronring.controller.store.memory.tables import MemoryTables
from cronring.schema.execution import OF_A_TICK
from cronring.schema.queues import puts_messages


class MemoryLedger:
    """cronring.controller.ports.ledger.Ledger. A runner seen in the last `lost_after_ms` lives.

    Tests ask it: the simulator's audit, and those that hold both stores to one ledger.
    """

    def __init__(self, tables: MemoryTables, lost_after_ms: int) -> None:
        self._tables = tables
        self._lost_after_ms = lost_after_ms

    async def audit(self, request: AuditRequest) -> AuditReport:
        return await audit(MemoryBooks(self._tables, self._lost_after_ms), request)

    async def facts(self, key: str, at: int | None, namespaces: Namespaces = None) -> Facts:
        return await gather(MemoryArchive(self._tables, self._lost_after_ms), key, at, namespaces)


class MemoryBooks:
    """cronring.controller.ports.ledger.Books, as they are while nobody writes. A runner seen in the last
    `lost_after_ms` lives.
    """

    def __init__(self, tables: MemoryTables, lost_after_ms: int) -> None:
        self._tables = tables
        self._now = tables.now_us()
        alive = [row for row in tables.runners.values() if row.last_seen_at > self._now - lost_after_ms * 1_000]
        self._hosted = {key for row in alive for key in row.info.deployments}

    @property
    def now(self) -> int:
        return self._now

    async def standings(self, after_id: int, key: str, limit: int, namespaces: Namespaces = None) -> list[JobStanding]:
        rows = [
            row
            for _, row in sorted(self._tables.jobs.items())
            if row.job_id > after_id and (row.key == key or (not key and within(namespaces, row.key)))
        ]
        return [self._standing(row) for row in rows[:limit]]

    def _standing(self, row: StoredJob) -> JobStanding:
        undecided, kept = row.next_tick, ""
        if row.orphaned_tick is not None:
            undecided, kept = row.orphaned_tick, "no_verb"
        elif row.paused and row.paused_until is None:
            undecided, kept = row.paused_tick, "paused"
        return JobStanding(row.job_id, row.key, row.removed, kept, row.executing, row.last_tick, undecided)

    async def spans(self, job_ids: list[int], since: int, after: tuple[int, int], limit: int) -> list[NumberedSpan]:
        found = [
            NumberedSpan(job_id, number, span)
            for job_id in sorted(job_ids)
            for number, span in enumerate(self._tables.spans[job_id], 1)
            if (span.until_at is None or span.until_at >= since) and (job_id, number) > after
        ]
        return found[:limit]

    async def zone_data(self) -> list[ZoneData]:
        return [ZoneData(*each) for each in sorted(self._tables.zone_data.items(), key=lambda each: each[::-1])]

    async def closed(self, job_ids: list[int]) -> list[Closed]:  # noqa: ARG002 - nothing is removed here
        return []

    async def count_runs(
        self, job_ids: list[int], afters: list[int], until: int, late_after: int
    ) -> dict[int, RunCounts]:
        found = {}
        for job_id, after in zip(job_ids, afters, strict=True):
            runs = [_run(row) for row in self._runs_of(job_id) if after < row.tick <= until]
            if runs:
                found[job_id] = _counted(runs, late_after)
        return found

    async def count_skips(self, job_ids: list[int], afters: list[int], until: int) -> list[CountedSkips]:
        found = []
        for job_id, after in zip(job_ids, afters, strict=True):
            whole: Counter[str] = Counter()
            for part in self._ranges_of(job_id):
                if part.first_tick > until or part.last_tick <= after:
                    continue
                if part.first_tick > after and part.last_tick <= until:
                    whole[part.reason] += part.ticks
                else:
                    found.append(CountedSkips(job_id, part.reason, part.ticks, part.first_tick, part.last_tick))
            found += [CountedSkips(job_id, reason, ticks, None, None) for reason, ticks in sorted(whole.items())]
        return found

    async def runs(self, job_id: int, after: tuple[int, int], until: int, limit: int) -> list[AuditRun]:
        rows = sorted(self._runs_of(job_id), key=lambda row: (row.tick, row.attempt))
        return [_run(row) for row in rows if (row.tick, row.attempt) > after and row.tick <= until][:limit]

    async def skips(self, job_id: int, after: tuple[int, int], until: int, limit: int) -> list[SkipRange]:
        ranges = self._ranges_of(job_id)
        return [part for part in ranges if (part.first_tick, part.skip_id) > after and part.first_tick <= until][:limit]

    async def skip_reaching(self, job_id: int, beyond: int) -> SkipRange | None:
        before = [part for part in self._ranges_of(job_id) if part.first_tick <= beyond]
        return before[-1] if before and before[-1].last_tick > beyond else None

    async def twins(self, after: int, until: int, limit: int) -> list[Twin]:
        ran: dict[tuple[str, int], int] = {}
        found = []
        for row in sorted(self._tables.executions.values(), key=lambda row: (row.job.job_id, row.tick)):
            if row.trigger in OF_A_TICK and after < row.tick <= until and row.attempt == 1:
                name = (row.job.key, row.tick)
                if name in ran:
                    found.append(Twin(*name, ran[name], row.execution_id))
                ran[name] = row.execution_id
        return found[:limit]

    def _runs_of(self, job_id: int) -> list[StoredExecution]:
        return [row for row in self._tables.executions.values() if row.job.job_id == job_id]

    def _ranges_of(self, job_id: int) -> list[SkipRange]:
        ranges = [
            SkipRange(number, row.skipped.reason.value, *row.skipped[1:])
            for number, row in enumerate(self._tables.skips, 1)
            if row.job_id == job_id
        ]
        return sorted(ranges, key=lambda part: (part.first_tick, part.skip_id))


class MemoryArchive(MemoryBooks):
    """cronring.controller.services.explaining.Archive."""

    async def subjects(self, key: str) -> list[WhyJob]:
        rows = [row for row in self._tables.jobs.values() if row.key == key]
        return [self._subject(row) for row in sorted(rows, key=lambda row: -row.job_id)]

    def _subject(self, row: StoredJob) -> WhyJob:
        spans, key = self._tables.spans[row.job_id], row.deployment.key
        seen = [each.last_seen_at for each in self._tables.runners.values() if key in each.info.deployments]
        return WhyJob(
            row.job_id, row.key, row.spec.schedule, row.spec.policy, key, row.source, spans[0].from_at,
            spans[-1].until_at if row.removed else None, row.executing, row.execution_id, row.running, row.next_tick,
            row.next_run_at, row.last_tick, row.paused_at, row.paused_tick, row.paused_until, row.paused_by,
            row.paused_note, row.cancelled_at, row.cancelled_by, row.cancelled_note,
            row.orphaned_at, row.orphaned_tick, key in self._hosted or puts_messages(key), max(seen, default=None),
            full_in_words(self._tables, row), row.spec.timing[1],
        )  # fmt: skip

    async def spans_around(self, job_id: int, at: int, limit: int) -> list[Span]:
        spans = self._tables.spans[job_id]
        before = [span for span in spans if span.from_at < at]
        return before[-limit:] + spans[len(before) : len(before) + limit]

    async def attempts(self, job_id: int, tick: int, limit: int) -> list[Attempt]:
        return [_attempt(row) for row in self._by_tick(job_id) if row.tick == tick][::-1][:limit]

    async def run_before(self, job_id: int, instant: int) -> Attempt | None:
        rows = [row for row in self._by_tick(job_id) if row.tick < instant]
        return _attempt(rows[-1]) if rows else None

    async def run_after(self, job_id: int, instant: int) -> Attempt | None:
        rows = [row for row in self._by_tick(job_id) if row.tick > instant and row.trigger in OF_A_TICK]
        return _attempt(rows[0]) if rows else None

    async def skip_at(self, job_id: int, tick: int) -> SkipFact | None:
        rows = [row for row in self._tables.skips if row.job_id == job_id and row.skipped.first_tick <= tick]
        latest = max(rows, key=lambda row: row.skipped.first_tick, default=None)
        if latest is None or latest.skipped.last_tick < tick:
            return None
        return SkipFact(latest.skipped.reason.value, *latest.skipped[1:], latest.controller_id, latest.decided_at)

    async def waiting(self, job_id: int, limit: int) -> list[WaitingRun]:
        rows = [row for row in self._tables.activations.values() if row.job.job_id == job_id]
        return [
            WaitingRun(
                row.activation_id, row.trigger.value, row.tick, row.until_tick, row.attempt, row.run_at,
                row.requested_by,
            )
            for row in sorted(rows, key=lambda row: (row.run_at, row.activation_id))[:limit]
        ]  # fmt: skip

    async def actions_before(self, job_id: int, instant: int, limit: int) -> list[ActionFact]:
        deployment = self._tables.jobs[job_id].deployment.key
        return [
            ActionFact(row.at, row.action, row.actor, row.note, row.details)
            for row in reversed(self._tables.actions)
            if row.at <= instant and (row.job_id == job_id or row.deployment == deployment)
        ][:limit]

    def _by_tick(self, job_id: int) -> list[StoredExecution]:
        return sorted(self._runs_of(job_id), key=lambda row: (row.tick, row.attempt))


def _attempt(row: StoredExecution) -> Attempt:
    run, report = _run(row), row.report
    ended_at = None if report is None or run.started_at is None else max(run.started_at, report.ended_at)
    return Attempt(
        run.execution_id, run.tick, run.attempt, run.trigger, run.run_at, run.claimed_at, run.started_at, ended_at,
        run.outcome, "" if report is None else report.error_type, "" if report is None else report.error_message,
        row.controller_id, row.runner_id, row.retry_at, row.number, row.deployment.key,
    )  # fmt: skip


def _run(row: StoredExecution) -> AuditRun:
    started_at = None if row.report is None else max(row.claimed_at, row.report.started_at)
    return AuditRun(
        row.execution_id, row.tick, row.attempt, row.trigger.value, row.run_at, row.claimed_at, started_at,
        None if row.outcome is None else row.outcome.value,
    )  # fmt: skip


def _counted(runs: list[AuditRun], late_after: int) -> RunCounts:
    scheduled = [run for run in runs if run.trigger in OF_A_TICK]
    ended = [run for run in scheduled if run.outcome is not None]
    by_schedule = [run for run in ended if run.trigger == "schedule"]
    late = sum(run.lateness_us > late_after for run in by_schedule)
    outcomes = Counter(run.outcome or "running" for run in runs)
    return RunCounts(
        on_time=len(by_schedule) - late,
        late=late,
        caught_up=len(ended) - len(by_schedule),
        running=len(scheduled) - len(ended),
        again=sum(run.attempt > 1 for run in scheduled),
        backfills=sum(run.trigger == "backfill" for run in runs),
        ahead_of_run=max(run.run_at - run.began_at for run in runs),
        ahead_of_tick=max((run.tick - run.began_at for run in scheduled), default=RunCounts().ahead_of_tick),
        outcomes=tuple(sorted(outcomes.items())),
    )
