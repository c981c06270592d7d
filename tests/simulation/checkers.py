"""The invariants of ARCHITECTURE.md, judged from what really happened: verbs that ran, and rows that were committed.

Each checker is named for its invariant. `Journal` judges while the cluster runs; the others when it has come to rest.
"""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from cronring.controller.core.ledger.audit import LATE_AFTER_US, Audit, AuditFinding
from cronring.controller.core.ledger.books import Span
from cronring.controller.ports.ledger import AuditRequest
from cronring.controller.store.memory.ledger import MemoryLedger
from cronring.controller.store.memory.rows import SkipRow, StoredExecution, StoredJob
from cronring.controller.store.memory.store import MemoryStore
from cronring.schema.execution import OF_A_TICK, Outcome, Run, SkipReason
from cronring.schema.schedule import parse_schedule
from tests.simulation.history import RecordingStore, takes_a_place

if TYPE_CHECKING:
    from tests.simulation.world import World


_REASONS = (SkipReason.OVERLAP, SkipReason.NO_RUNNER, SkipReason.SUPERSEDED, SkipReason.DEPLOYMENT_REMOVED)
_RUNNER_LOST_AFTER_MS = 10_000


class Running(NamedTuple):
    execution: StoredExecution
    runner_id: str
    since_us: int


class Journal:
    """Starts and ends of verbs, as only the runners' machines know them."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._running: dict[int, dict[int, Running]] = {}  # by job, and execution
        self.started_us: dict[int, int] = {}  # by execution
        self.finished: dict[int, tuple[str, int, str]] = {}  # execution -> runner, when (us), outcome

    def started(self, run: Run, runner_id: str) -> None:
        """Once; never early; no overlap."""
        now_us = self._world.database.now_us()
        self._world.log(f"{runner_id} starts {run.execution_id} of job {run.job_id} tick {run.tick_us}")
        assert run.execution_id not in self.started_us, f"once: execution {run.execution_id} was started twice"
        # Once claimed in time, a run starts, even if PostgreSQL's clock is set back meanwhile.
        early_us = run.run_at_us - now_us - self._world.database.stepped_back_us
        assert early_us <= 0, f"never early: execution {run.execution_id}, by {early_us} us"
        row = self._world.database.store.executions[run.execution_id]
        running = self._running.setdefault(run.job_id, {})
        self._no_overlap(row, [each for each in running.values() if takes_a_place(each.execution)], runner_id)
        self.started_us[run.execution_id] = now_us
        running[run.execution_id] = Running(row, runner_id, now_us)

    def _no_overlap(self, row: StoredExecution, others: list[Running], runner_id: str) -> None:
        """One at a time, or as many as the policy allows. Backfills beside the job take nobody's place.

        The latest claim counts those before it, started or not, and under the policy of its own time.
        """
        if not others or not takes_a_place(row):
            return
        latest = max(row.execution_id, *(each.execution.execution_id for each in others))
        most = self._world.database.store.allowed[latest]
        assert len(others) < most, f"no overlap: {row.execution_id} on {runner_id} started beside {others}"

    def is_running(self, execution_id: int) -> bool:
        return any(execution_id in running for running in self._running.values())

    def ended(self, run: Run, outcome: str | None) -> None:
        """With what outcome; None: killed."""
        running = self._running[run.job_id].pop(run.execution_id)
        self._world.log(f"{running.runner_id} ended {run.execution_id}: {outcome or 'killed'}")
        if outcome is not None:
            self.finished[run.execution_id] = running.runner_id, self._world.database.now_us(), outcome


def check_once(store: MemoryStore) -> None:
    """Invariant 1: for a (job, tick, attempt) one execution, one by the schedule, and none before its run_at."""
    seen: dict[tuple[int, int, int], int] = {}
    by_schedule: dict[tuple[int, int], int] = {}
    for row in store.executions.values():
        key = row.job.job_id, row.tick, row.attempt
        assert key not in seen, f"once: executions {seen[key]} and {row.execution_id} are the same attempt"
        seen[key] = row.execution_id
        if row.trigger in OF_A_TICK:
            other = by_schedule.setdefault(key[:2], row.execution_id)
            assert other == row.execution_id, f"once: {other} and {row.execution_id} have the same job and tick"
        assert row.claimed_at >= row.run_at, f"never early: execution {row.execution_id} was claimed before its run_at"


def check_results(world: "World") -> None:
    """Invariant 5: what a living runner finished is committed, as it finished, unless it had been given up before."""
    living = [runner.name for runner in world.runners if runner.alive]
    lied_about = {execution_id for runner in world.runners for execution_id in runner.lied_about}
    just_now_us = world.database.now_us() - 1_000_000  # may still be under way
    for execution_id, (runner_id, finished_us, outcome) in world.journal.finished.items():
        row = world.database.store.executions[execution_id]
        if runner_id not in living or finished_us > just_now_us:
            continue
        if execution_id in lied_about:
            continue  # by its own runner, which may have had its true report refused with the false one
        assert row.outcome is not None, f"result lost: {execution_id} finished on {runner_id}, and is not ended"
        assert row.report is not None
        given_up = row.outcome is Outcome.LOST or row.report.error_type == "HardTimeout"
        assert given_up or row.outcome == outcome, f"result lost: {execution_id} was {outcome}, has {row.report}"


def check_lost(world: "World", row: StoredExecution) -> None:
    """Invariant 5: an execution is given up only if its runner is dead, or was without contact since the claim."""
    runner = next(runner for runner in world.runners if runner.name == row.runner_id)
    given_up = not runner.alive or runner.fenced or runner.fenced_us >= row.claimed_at - world.database.stepped_back_us
    assert given_up, f"lost: {row.execution_id} on {row.runner_id}, which was in contact all the time"


def check_accounts(store: RecordingStore) -> None:
    """Invariant 4: each tick of each schedule was executed, or skipped with a reason, once; and no other tick was."""
    accounted: dict[int, dict[int, str]] = {job_id: {} for job_id in store.jobs}
    for row in store.executions.values():
        accounted[row.job.job_id][row.tick] = f"execution {row.execution_id}"
    for skip in store.skips:
        _enter_skip(store, skip, accounted[skip.job_id])
    for job in store.jobs.values():
        due = [tick for span in store.spans[job.job_id] for tick in _ticks(span, job)]
        books = accounted[job.job_id]
        missing = [tick for tick in due if tick not in books]
        assert not missing, f"unaccounted: {job.key} ticks {missing}, next is {job.next_tick}"
        strange = books.keys() - due
        assert not strange, f"never due: {job.key} ticks {[(tick, books[tick]) for tick in sorted(strange)]}"


def _ticks(span: Span, job: StoredJob) -> list[int]:
    """Those that are decided: all of a schedule that is no more; up to the one that runs, or before the next one.

    While a retry runs, the tick after it is decided already.
    """
    schedule = parse_schedule(span.schedule, span.anchor)
    until = span.until_at
    if until is None:
        until = max(job.last_tick or 0, (job.next_tick or 0) - 1)
    ticks: list[int] = []
    tick = schedule.next_after(span.from_at)
    while tick is not None and tick <= until:
        ticks.append(tick)
        tick = schedule.next_after(tick)
    return ticks


def _enter_skip(store: RecordingStore, skip: SkipRow, accounted: dict[int, str]) -> None:
    skipped = skip.skipped
    assert skipped.reason in _REASONS
    spans = store.spans[skip.job_id]
    span = next(s for s in spans if s.until_at is None or skipped.first_tick <= s.until_at)
    schedule = parse_schedule(span.schedule, span.anchor)
    count = 0
    tick: int | None = skipped.first_tick
    while tick is not None and tick <= skipped.last_tick:
        assert tick not in accounted, f"job {skip.job_id} tick {tick} is skipped ({skipped}), and has {accounted[tick]}"
        accounted[tick] = f"skip {skipped.reason}"
        count += 1
        tick = schedule.next_after(tick)
    assert count == skipped.ticks, f"{skipped} of job {skip.job_id} counts {skipped.ticks}, and names {count}"


def check_audit(store: MemoryStore, stepped_back_us: int = 0) -> Audit:
    """What `cronring audit --thorough` says: computed another way than by the checkers here.

    One thing is not promised: a job that was removed, and made anew in the time by which PostgreSQL's clock was set
    back, has ticks of that time again. It is another job, whose books know nothing of the first one's.
    """
    request = AuditRequest(None, None, "", LATE_AFTER_US, thorough=True)
    audit = asyncio.run(MemoryLedger(store, _RUNNER_LOST_AFTER_MS).audit(request)).audit
    findings = [each for each in audit.findings if not (stepped_back_us and _of_two_jobs(store, each))]
    assert not findings, findings
    return audit


def _of_two_jobs(store: MemoryStore, finding: AuditFinding) -> bool:
    jobs = {store.executions[execution_id].job.job_id for execution_id in finding.execution_ids}
    return finding.kind == "duplicates" and len(jobs) > 1


def check_converged(world: "World") -> None:
    """Invariant 6: with the faults gone, everyone agrees, nothing is stuck, and ticks are on time again."""
    alive = [controller for controller in world.controllers if controller.alive]
    names = tuple(sorted(controller.name for controller in alive))
    for controller in alive:
        ring = controller.node.ring
        assert ring.members == names, f"rings disagree: {controller.name} has {ring.members}, alive are {names}"
        assert controller.node.lease_valid, f"{controller.name} has no lease"
    now_us = world.database.now_us()
    store = world.database.store
    living = [runner.name for runner in world.runners if runner.alive]
    lied_about = {execution_id for runner in world.runners for execution_id in runner.lied_about}
    for row in store.unfinished.values():
        if (row.job.spec.on_disconnect == "finish" and row.runner_id not in living) or row.execution_id in lied_about:
            continue  # only its hard timeout ends it: a true report may have been refused with a false one
        if world.journal.is_running(row.execution_id):
            continue  # a long one
        _, last_moved_us, _ = world.journal.finished.get(row.execution_id, ("", row.claimed_at, None))
        assert now_us - last_moved_us < 10_000_000, f"stuck: execution {row.execution_id} since {row.claimed_at}"
    for job in store.jobs.values():
        if job.removed or job.full or job.next_run_at is None:
            continue
        assert now_us - job.next_run_at < 1_000_000, f"stuck: {job.key} is due since {now_us - job.next_run_at} us"
    check_on_time(world, now_us - world.calm_us)


def check_on_time(world: "World", since_us: int) -> None:
    """What was claimed since then came no later than within a second, or after the run of its job before."""
    store = world.database.store
    for row in store.executions.values():
        if row.execution_id <= world.database.stepped_after:
            continue  # claimed by another clock than `since_us`: set back since, it seems to have been just now
        if row.claimed_at > since_us and row.trigger in OF_A_TICK:
            late_us = row.claimed_at - max(row.run_at, _free_since(store, row))
            assert late_us < 1_000_000, f"late: execution {row.execution_id} of {row.job.key}, by {late_us} us"


def _free_since(store: RecordingStore, row: StoredExecution) -> int:
    """When the last of its job's runs before was over, for PostgreSQL: backlogs are worked off one after the other."""
    ended = (store.ended_us.get(each.execution_id, 0) for each in store.executions.values() if each.job is row.job)
    return max((at_us for at_us in ended if at_us <= row.claimed_at), default=0)
