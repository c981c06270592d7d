"""What became of each job in a span of virtual time, and what changes of the clocks did to its ticks."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from cronring.controller.store.memory.rows import SkipRow, StoredExecution, StoredJob
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import OF_A_TICK, Trigger
from cronring.schema.explain import clock_change, clock_note, wall_text, zoned_pattern
from cronring.schema.instant import from_us
from cronring.schema.policy import parse_policy
from cronring.schema.schedule import Schedule, parse_schedule

NOTES_MAX: Final = 12  # about ticks beside a change of the clocks, for each job
_NEAR_US: Final = 86_400_000_000  # repeated and made-up-for ticks lie within a day of the change
_SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class JobReport:
    """`due` = `ran` + all of `skipped` + `open`: ticks of the span, of a job that follows another one those that have
    succeeded there. Retries and manual runs are counted apart.
    """

    job: str
    schedule: str
    timezone: str
    due: int
    ran: int
    skipped: dict[str, int] = field(default_factory=dict)
    """Ticks by reason."""
    open: int = 0
    """Neither run nor skipped: they wait, or would be decided by the end of a run under way."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Of all executions, retries included."""
    retries: int = 0
    caught_up: int = 0
    beside: int = 0
    """Manual runs and backfills."""
    first_tick: datetime | None = None
    last_tick: datetime | None = None
    """Of those that ran."""
    paused: bool = False
    clock_changes: tuple[str, ...] = ()


def job_reports(store: MemoryStore, start_us: int, until_us: int) -> list[JobReport]:
    """Every job's, over its ticks in (start, until]."""
    executions: dict[int, list[StoredExecution]] = {}
    for execution in store.executions.values():
        if execution.tick <= until_us:
            executions.setdefault(execution.job.job_id, []).append(execution)
    skips: dict[int, list[SkipRow]] = {}
    for skip in store.skips:
        skips.setdefault(skip.job_id, []).append(skip)
    rows = sorted(store.jobs.values(), key=lambda row: row.key)
    return [_report(row, executions.get(row.job_id, []), skips.get(row.job_id, []), start_us, until_us) for row in rows]


def _report(
    row: StoredJob, executions: list[StoredExecution], skips: list[SkipRow], start_us: int, until_us: int
) -> JobReport:
    text, anchor, said = row.spec.timing
    policy = parse_policy(said)
    schedule = parse_schedule(text, anchor, policy)
    of_ticks = sorted(each.tick for each in executions if each.trigger in (*OF_A_TICK, Trigger.AFTER))
    skipped: Counter[str] = Counter()
    for skip in skips:
        skipped[str(skip.skipped.reason)] += _ticks_until(skip, schedule, until_us)
    accounted = len(of_ticks) + skipped.total()
    triggers = Counter(each.trigger for each in executions)
    return JobReport(
        row.key,
        text,
        policy.timezone or "UTC",
        max(accounted, _due(row, schedule, start_us, until_us)),
        len(of_ticks),
        dict(sorted(skipped.items())),
        max(0, _due(row, schedule, start_us, until_us) - accounted),
        dict(sorted(Counter(str(each.outcome or "running") for each in executions).items())),
        triggers[Trigger.RETRY],
        triggers[Trigger.CATCH_UP],
        triggers[Trigger.MANUAL] + triggers[Trigger.BACKFILL],
        from_us(of_ticks[0]) if of_ticks else None,
        from_us(of_ticks[-1]) if of_ticks else None,
        row.paused,
        tuple(_clock_changes(schedule, of_ticks, start_us, until_us)),
    )


def _due(row: StoredJob, schedule: Schedule, start_us: int, until_us: int) -> int:
    """By the schedule alone. Of one whose verb has moved it, nothing is said: its books begin anew at each move."""
    moved = row.revision > 1 and row.source == "annotation"
    return 0 if moved else schedule.count_between(start_us, until_us)


def _ticks_until(skip: SkipRow, schedule: Schedule, until_us: int) -> int:
    _, first_tick, last_tick, ticks = skip.skipped
    return ticks if last_tick <= until_us else schedule.count_between(first_tick - 1, until_us)


def _clock_changes(schedule: Schedule, ran: list[int], start_us: int, until_us: int) -> Iterable[str]:
    """Each change in the span, and what ran beside it because of it."""
    pattern = zoned_pattern(schedule)
    if pattern is None:
        return
    for change in pattern.zone.changes_between(start_us // _SECOND_US, until_us // _SECOND_US):
        found = clock_change(pattern, change)
        yield found.happens
        if not found.times:
            continue
        near = [tick for tick in ran if abs(tick - found.instant) <= _NEAR_US]
        notes = [(tick, note) for tick in near if (note := clock_note(pattern, tick // _SECOND_US))]
        for tick, note in notes[:NOTES_MAX]:
            yield f"ran {wall_text(pattern.zone, tick)}: {note}"
        if len(notes) > NOTES_MAX:
            yield f"and {len(notes) - NOTES_MAX} more"
