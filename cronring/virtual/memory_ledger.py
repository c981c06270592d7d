"""The books of the store in memory, for the audit; see controller/store/ledger.py and sql/queries/ledger.sql."""

from collections import Counter

from controller.core.audit import Runs
from controller.core.audit_walk import SCHEDULED, Run, SkipRange
from controller.core.books import Closed, Standing
from controller.ledger import CountedSkips, NumberedSpan, Twin
from cronring.virtual.memory_rows import ExecutionRow, JobRow
from cronring.virtual.memory_tables import MemoryTables


class MemoryBooks:
    """controller.ledger.Books, as they are while nobody writes. A runner seen in the last `lost_after_ms` lives."""

    def __init__(self, tables: MemoryTables, lost_after_ms: int) -> None:
        self._tables = tables
        self._now = tables.now_us()
        alive = [row for row in tables.runners.values() if row.last_seen_at > self._now - lost_after_ms * 1_000]
        self._hosted = {key for row in alive for key in row.info.deployments}

    @property
    def now(self) -> int:
        return self._now

    async def standings(self, after_id: int, key: str, limit: int) -> list[Standing]:
        rows = [row for _, row in sorted(self._tables.jobs.items()) if row.job_id > after_id and key in {"", row.key}]
        return [self._standing(row) for row in rows[:limit]]

    def _standing(self, row: JobRow) -> Standing:
        ends = [
            each.report.ended_at for each in self._runs_of(row.job_id) if each.holds_job and each.report is not None
        ]
        undecided = row.next_tick
        if undecided is None and row.paused_until is None:
            undecided = row.paused_tick
        return Standing(
            row.job_id, row.key, row.removed, row.paused and row.paused_until is None, row.executing,
            row.last_tick,
            undecided, row.next_run_at, max(ends, default=None), row.deployment.key in self._hosted,
        )  # fmt: skip

    async def spans(self, job_ids: list[int], since: int, after: tuple[int, int], limit: int) -> list[NumberedSpan]:
        found = [
            NumberedSpan(job_id, number, span)
            for job_id in sorted(job_ids)
            for number, span in enumerate(self._tables.spans[job_id], 1)
            if (span.until_at is None or span.until_at >= since) and (job_id, number) > after
        ]
        return found[:limit]

    async def closed(self, job_ids: list[int]) -> list[Closed]:  # noqa: ARG002 - nothing is removed here
        return []

    async def count_runs(self, job_ids: list[int], afters: list[int], until: int, late_after: int) -> dict[int, Runs]:
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

    async def runs(self, job_id: int, after: tuple[int, int], until: int, limit: int) -> list[Run]:
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
            if row.trigger in SCHEDULED and after < row.tick <= until and row.attempt == 1:
                name = (row.job.key, row.tick)
                if name in ran:
                    found.append(Twin(*name, ran[name], row.execution_id))
                ran[name] = row.execution_id
        return found[:limit]

    def _runs_of(self, job_id: int) -> list[ExecutionRow]:
        return [row for row in self._tables.executions.values() if row.job.job_id == job_id]

    def _ranges_of(self, job_id: int) -> list[SkipRange]:
        ranges = [
            SkipRange(number, row.skipped.reason.value, *row.skipped[1:])
            for number, row in enumerate(self._tables.skips, 1)
            if row.job_id == job_id
        ]
        return sorted(ranges, key=lambda part: (part.first_tick, part.skip_id))


def _run(row: ExecutionRow) -> Run:
    started_at = None if row.report is None else max(row.claimed_at, row.report.started_at)
    return Run(
        row.execution_id, row.tick, row.attempt, row.trigger.value, row.run_at, row.claimed_at, started_at,
        None if row.outcome is None else row.outcome.value,
    )  # fmt: skip


def _counted(runs: list[Run], late_after: int) -> Runs:
    scheduled = [run for run in runs if run.trigger in SCHEDULED]
    ended = [run for run in scheduled if run.outcome is not None]
    by_schedule = [run for run in ended if run.trigger == "schedule"]
    late = sum(run.lateness > late_after for run in by_schedule)
    outcomes = Counter(run.outcome or "running" for run in runs)
    return Runs(
        on_time=len(by_schedule) - late,
        late=late,
        caught_up=len(ended) - len(by_schedule),
        running=len(scheduled) - len(ended),
        again=sum(run.attempt > 1 for run in scheduled),
        backfills=sum(run.trigger == "backfill" for run in runs),
        ahead_of_run=max(run.run_at - run.began_at for run in runs),
        ahead_of_tick=max((run.tick - run.began_at for run in scheduled), default=Runs().ahead_of_tick),
        outcomes=tuple(sorted(outcomes.items())),
    )
