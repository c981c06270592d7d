"""Along the books of one job, tick by tick: which are missing, which are in twice, which began early or were never due.

Runs and skipped ranges come in order of their ticks, in portions. What lies between two of them is counted by
arithmetic. So the walk costs what is in the books, not what was due.
"""

from typing import NamedTuple

from cronring.controller.core.ledger.audit import Audit, AuditFinding, Scope, add_closed, add_undecided, begins_after
from cronring.controller.core.ledger.books import Closed, JobStanding, TickTimeline, decided_until
from cronring.controller.core.ledger.lateness import lateness_us
from cronring.schema.duration import measured
from cronring.schema.execution import OF_A_TICK
from cronring.schema.instant import format_instant


class AuditRun(NamedTuple):
    """An execution as the walk needs it. `started_at` None: its runner hasn't said. `outcome` None: it runs."""

    execution_id: int
    tick: int
    attempt: int
    trigger: str
    run_at: int
    claimed_at: int
    started_at: int | None
    outcome: str | None

    @property
    def began_at(self) -> int:
        """The earlier of claim and start: both are held against run_at."""
        return self.claimed_at if self.started_at is None else min(self.claimed_at, self.started_at)

    @property
    def lateness_us(self) -> int:
        return lateness_us(self.run_at, self.claimed_at, self.started_at)


class SkipRange(NamedTuple):
    """Consecutive ticks that did not run, for one reason."""

    skip_id: int
    reason: str
    first_tick: int
    last_tick: int
    ticks: int


class Walk:
    """Give it every run (`run`) and every range (`skip`) of the job in order of tick or first tick, then `finish`."""

    def __init__(self, scope: Scope, job: JobStanding, timeline: TickTimeline, closed: Closed | None) -> None:
        self._scope = scope
        self._job = job
        self._timeline = timeline
        self._closed = closed
        self._found = Audit(jobs=1, walked=1)
        self._start = begins_after(scope, timeline, closed)
        self._decided = decided_until(job, scope.until)
        self._done = self._start  # every tick up to here has been accounted for
        self._latest: AuditRun | None = None  # the scheduled run of `_done`, if it was one
        self._backfilled = 0  # the latest tick that a backfill made up for
        self._cover: SkipRange | None = None  # the range that reaches farthest

    @property
    def start(self) -> int:
        return self._start

    @property
    def cuts(self) -> bool:
        """Whether the audit begins inside the job's history: a range, or a due tick, may reach into it."""
        return self._scope.since is not None or self._closed is not None

    def run(self, run: AuditRun) -> None:
        """The next run; those of one tick in order of their attempts."""
        self._found.outcomes[run.outcome or "running"] += 1
        if run.began_at < run.run_at:
            self._note_early(run, f"began {measured((run.run_at - run.began_at) / 1_000)} before its run_at")
        if run.trigger in OF_A_TICK:
            self._scheduled(run)
        elif run.trigger == "backfill" and run.outcome is not None:
            self._backfill(run)

    def skip(self, part: SkipRange) -> None:
        """The next range. What of it lies outside the audited time is cut off."""
        first, last = max(part.first_tick, self._start + 1), min(part.last_tick, self._scope.until)
        if first > last:
            return
        self._pass_gap(first)
        covered = min(last, self._done)
        twice = self._timeline.count(first - 1, covered) if first <= covered else 0
        rest = self._timeline.count(max(first - 1, self._done), last) if last > self._done else 0
        is_cut = (first, last) != (part.first_tick, part.last_tick)
        # The row counts the ticks of the whole range, so that number can't be checked against a part of it.
        booked = twice + rest if is_cut else part.ticks
        self._found.skipped[part.reason] += booked
        name = f"skipped ({part.reason}) from {format_instant(part.first_tick)} to {format_instant(part.last_tick)}"
        if twice:
            other = "in another range" if self._latest is None else f"ran as execution {self._latest.execution_id}"
            ids = () if self._latest is None else (self._latest.execution_id,)
            self._note("duplicates", first, twice, ids, f"{name}, and {other}")
        if booked > twice + rest:
            text = f"{name}: the range counts {booked} ticks, and {twice + rest} were due"
            self._note("undue", first, booked - twice - rest, (), text)
        elif booked < twice + rest:
            text = f"{name}: the range counts {booked} ticks, and {twice + rest} were due"
            self._note("unaccounted", first, twice + rest - booked, (), text)
        if last > self._done:
            self._done, self._latest, self._cover = last, None, part

    def finish(self) -> Audit:
        """The job's audit."""
        end = max(self._done, self._decided)
        self._pass_gap(end + 1)
        found = self._found
        found.ticks = self._timeline.count(self._start, end) if end > self._start else 0
        add_undecided(found, self._scope, self._job, self._timeline, end)
        add_closed(found, self._scope, self._closed)
        return found

    def _scheduled(self, run: AuditRun) -> None:
        if self._latest is not None and self._latest.tick == run.tick:
            ids = (self._latest.execution_id, run.execution_id)
            self._note(
                "duplicates", run.tick, 1, ids, f"ran by schedule as execution {ids[0]}, and as execution {ids[1]}"
            )
            return
        self._classify(run)
        if self._timeline.next_after(self._done, run.tick) == run.tick:  # usual: due, and none missing before it
            self._check_begin(run)
            self._done, self._latest, self._cover = run.tick, run, None
            return
        self._pass_gap(run.tick)
        if run.tick <= self._done and self._cover is not None and self._timeline.is_due(run.tick):
            text = f"ran as execution {run.execution_id}, and is skipped ({self._cover.reason})"
            self._note("duplicates", run.tick, 1, (run.execution_id,), text)
        self._check_due(run)
        if run.tick > self._done:
            self._done, self._cover = run.tick, None
        self._latest = run

    def _classify(self, run: AuditRun) -> None:
        found = self._found
        if run.outcome is None:
            found.running += 1
        elif run.trigger == "catch_up":
            found.caught_up += 1
        elif run.lateness_us > self._scope.late_after:
            found.late += 1
        else:
            found.on_time += 1

    def _check_due(self, run: AuditRun) -> None:
        if not self._timeline.is_due(run.tick):
            text = f"execution {run.execution_id} ran by schedule, and no schedule of the job had this tick"
            self._note("undue", run.tick, 1, (run.execution_id,), text)
            return
        self._check_begin(run)

    def _check_begin(self, run: AuditRun) -> None:
        if run.began_at >= run.tick or run.began_at < run.run_at:
            return
        early = self._timeline.early_us_at(run.tick, cut=self.cuts)
        if early is not None and run.began_at < run.tick - early:
            self._note_early(run, f"began {measured((run.tick - run.began_at) / 1_000)} before its tick")

    def _backfill(self, run: AuditRun) -> None:
        """A skipped tick that a backfill made up for counts as executed, and no longer as skipped."""
        cover = self._cover
        if cover is None or not cover.first_tick <= run.tick <= cover.last_tick or run.tick == self._backfilled:
            return
        if self._timeline.is_due(run.tick):
            self._backfilled = run.tick
            self._found.backfilled += 1
            self._found.skipped[cover.reason] -= 1

    def _pass_gap(self, tick: int) -> None:
        """Ticks that were due after `_done` and before `tick` are in no row: they are unaccounted for.

        The exception: ticks that nobody could decide yet, before a tick that was decided ahead of its time. They are
        pending.
        """
        if tick - 1 <= self._done:
            return
        decided = min(tick - 1, max(self._decided, self._done))
        missing = self._timeline.count(self._done, decided)
        if missing:
            first = self._timeline.next_after(self._done)
            assert first is not None, "one was counted"
            last = self._timeline.last_at_or_before(decided) or first
            until = "" if missing == 1 else f", and so were the ticks after it until {format_instant(last)}"
            self._note("unaccounted", first, missing, (), f"was due{until}: neither executed nor skipped")
        self._found.pending += self._timeline.count(decided, tick - 1)
        self._done, self._latest, self._cover = tick - 1, None, None

    def _note_early(self, run: AuditRun, text: str) -> None:
        self._note("early", run.tick, 1, (run.execution_id,), f"execution {run.execution_id} {text}")

    def _note(self, kind: str, tick: int, ticks: int, execution_ids: tuple[int, ...], text: str) -> None:
        setattr(self._found, kind, getattr(self._found, kind) + ticks)
        self._found.note(AuditFinding(kind, self._job.key, tick, ticks, execution_ids, text))
