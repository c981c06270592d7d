"""The audit: what was due by the schedules alone, held against what the books say became of it.

Each tick ends as exactly one of executed (on time, late, caught up, backfilled), or skipped with a reason. Further
attempts and manual runs are no ticks of their own. Four things must be 0:

- ticks due that are nowhere;
- ticks that are in the books twice;
- executions that began before they might;
- ticks in the books that were never due.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cronring.controller.core.ledger.books import Closed, JobStanding, TickTimeline, decided_until
from cronring.schema.instant import format_instant

LATE_AFTER_US: Final = 10_000_000
"""A tick that began more than this after its run_at is late, unless the audit is asked with another `late_after`."""
FINDINGS_MAX: Final = 20  # of each kind
KINDS: Final = ("unaccounted", "duplicates", "early", "undue")


class Scope(NamedTuple):
    """Ticks in [since, until] are audited; `since` None: all. `now`: when the books were read. Microseconds."""

    since: int | None
    until: int
    now: int
    late_after: int = LATE_AFTER_US


class AuditFinding(NamedTuple):
    """Something that must not be. It is about `ticks` ticks, of which `tick` is the first, and `execution_ids`."""

    kind: str
    job: str
    tick: int
    ticks: int
    execution_ids: tuple[int, ...]
    text: str

    @property
    def look(self) -> str:
        """What to look at next."""
        if len(self.execution_ids) == 1 or self.kind == "early":
            return f"cronring executions get {self.execution_ids[0]}"
        return f"cronring why {self.job} --at {format_instant(self.tick)}"


class RunCounts(NamedTuple):
    """How the scheduled ticks of a job ran. The database counts; nothing is proved yet.

    `again`: scheduled runs of a tick that already had one. `ahead_of_run`: how long before its run_at a run began, at
    most (µs, all runs). `ahead_of_tick`: the same before its tick (scheduled runs only). Negative: no run began early.
    `backfills`: how many runs.
    """

    on_time: int = 0
    late: int = 0
    caught_up: int = 0
    running: int = 0
    again: int = 0
    backfills: int = 0
    ahead_of_run: int = -1
    ahead_of_tick: int = -(2**62)
    outcomes: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Audit:
    """Counts of ticks; `outcomes` are of executions. `summarised_until`: before this, rows may have been removed."""

    ticks: int = 0
    on_time: int = 0
    late: int = 0
    caught_up: int = 0
    backfilled: int = 0
    running: int = 0
    pending: int = 0
    unaccounted: int = 0
    duplicates: int = 0
    early: int = 0
    undue: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[AuditFinding] = field(default_factory=list)
    jobs: int = 0
    walked: int = 0
    in_zones: int = 0  # jobs with findings whose ticks are told by the clocks of a zone
    summarised_until: int | None = None

    @property
    def executed(self) -> int:
        return self.on_time + self.late + self.caught_up + self.backfilled

    @property
    def clean(self) -> bool:
        return not (self.unaccounted or self.duplicates or self.early or self.undue)

    def add(self, other: "Audit") -> None:
        """Add the audit of one more job. At most FINDINGS_MAX findings of each kind are kept."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.skipped.update(other.skipped)
        self.outcomes.update(other.outcomes)
        for finding in other.findings:
            self.note(finding)
        if other.summarised_until is not None:
            self.summarised_until = max(self.summarised_until or 0, other.summarised_until)

    def note(self, finding: AuditFinding) -> None:
        if sum(each.kind == finding.kind for each in self.findings) < FINDINGS_MAX:
            self.findings.append(finding)


_COUNTS: Final = (
    "ticks", "on_time", "late", "caught_up", "backfilled", "running", "pending", "unaccounted", "duplicates", "early",
    "undue", "jobs", "walked", "in_zones",
)  # fmt: skip


def begins_after(scope: Scope, timeline: TickTimeline, closed: Closed | None) -> int:
    """Where the rows of a job's books begin: its ticks after this instant are audited one by one."""
    after = (timeline.opens_at or 0) if scope.since is None else scope.since - 1
    return after if closed is None else max(after, closed.until_at)


def counted(
    scope: Scope,
    job: JobStanding,
    timeline: TickTimeline,
    runs: RunCounts,
    skipped: dict[str, int],
    closed: Closed | None,
) -> Audit | None:
    """The audit of a job whose counts agree. None: they disagree or prove nothing, so its ticks must be walked."""
    after = begins_after(scope, timeline, closed)
    until = max(after, decided_until(job, scope.until))
    due = timeline.count(after, until)
    booked = runs.on_time + runs.late + runs.caught_up + runs.running + sum(skipped.values())
    # A tick that ran again hides a missing one, and a backfill makes up for a skip: sums can't tell these apart.
    if due != booked or runs.again or runs.backfills or runs.ahead_of_run > 0:
        return None
    if runs.ahead_of_tick > timeline.early_us:
        return None
    found = Audit(due, runs.on_time, runs.late, runs.caught_up, running=runs.running)
    found.skipped.update(skipped)
    found.outcomes.update(dict(runs.outcomes))
    add_undecided(found, scope, job, timeline, until)
    add_closed(found, scope, closed)
    found.jobs = 1
    return found


def add_undecided(found: Audit, scope: Scope, job: JobStanding, timeline: TickTimeline, after: int) -> None:
    """Count due ticks that nobody has decided yet: kept by a pause or by a missing verb, waiting, or overdue.

    A tick is pending while it is its job's next tick or comes after that one. It waits for a runner, for a run to end,
    for its turn after an outage, or for a controller. A tick that its job has gone past is not pending.
    """
    until = min(scope.until, scope.now)
    waiting = timeline.count(after, until) if until > after else 0
    if not waiting:
        return
    found.ticks += waiting
    if job.kept:
        first = max(after, (job.undecided_tick or until + 1) - 1)
        kept = timeline.count(first, until) if until > first else 0
        found.skipped[job.kept] += kept
        waiting -= kept
    found.pending += waiting


def add_closed(found: Audit, scope: Scope, closed: Closed | None) -> None:
    """Add what retention has summarised. The summary has no parts, so an audit with `since` inside it can't use it."""
    if closed is None or (scope.since is not None and scope.since > closed.until_at):
        return
    found.summarised_until = max(found.summarised_until or 0, closed.until_at)
    if scope.since is not None or closed.until_at > scope.until:
        return
    skipped = sum(closed.skipped.values())
    found.ticks += closed.due
    found.on_time += closed.executed - closed.caught_up - closed.late
    found.late += closed.late
    found.caught_up += closed.caught_up
    found.skipped.update(closed.skipped)
    found.outcomes.update(closed.outcomes)
    # The rows are gone. So only the number of missing ticks, or of duplicates, is known.
    missing = closed.due - closed.executed - skipped
    found.unaccounted += max(missing, 0)
    found.duplicates += max(-missing, 0)


def add_twins(found: Audit, twins: Iterable[tuple[str, int, int, int]]) -> None:
    """Ticks that a job ran, and another one of the same key (removed since) as well: (key, tick, both executions)."""
    for key, tick, first, second in twins:
        found.duplicates += 1
        text = f"ran by schedule as execution {first}, and of a job of the same key as execution {second}"
        found.note(AuditFinding("duplicates", key, tick, 1, (first, second), text))
