"""Runs beside the schedule, in memory; see sql/queries/cron_activations.sql."""

from cronring.controller.core import ticks
from cronring.controller.core.model import Activation, ActivationRequest, ActivationResult
from cronring.controller.store.memory.limits import places_of
from cronring.controller.store.memory.messages import MemoryMessages
from cronring.controller.store.memory.rows import ActivationRow, StoredExecution, StoredJob
from cronring.schema.execution import Outcome, Trigger

SECOND_US = 1_000_000
SOON_US = 120_000_000  # followers of paused jobs wait here for the end of the pause
BESIDE_MAX = 10  # runs of one backfill beside its job's own, at once


class MemoryActivations(MemoryMessages):
    """The part of MemoryStore that is about activations."""

    def _add_activation(
        self, job: StoredJob, trigger: Trigger, tick: int, until_tick: int | None = None, *, attempt: int = 1,
        run_at: int, payload: str | None = None, beside: bool = False, again: bool = False, by: str = "",
        of_schedule: bool = False, counted_before: bool = False,
    ) -> ActivationRow:  # fmt: skip
        self.activations_made += 1
        row = ActivationRow(
            self.activations_made,
            job,
            trigger,
            tick,
            until_tick,
            attempt,
            run_at,
            payload,
            beside,
            again,
            by,
            of_schedule,
            counted_before,
        )
        self.activations[row.activation_id] = row
        return row

    def _follow(self, execution: StoredExecution) -> list[int] | None:
        """Activations of what follows a tick that has completed, each once; None if there is none."""
        job, tick = execution.job, execution.tick
        if execution.outcome is not Outcome.COMPLETED or tick % SECOND_US:  # a run by hand has no tick of a schedule
            return None
        waiting = {(each.job.job_id, each.tick) for each in self.activations.values() if each.trigger is Trigger.AFTER}
        made: list[int] = []
        for job_id in self.followers.of(job.key):
            row = self.jobs[job_id]
            is_gone = row.cancelled_at is not None or row.orphaned
            if not is_gone and (job_id, tick) not in self.attempts and (job_id, tick) not in waiting:
                added = self._add_activation(row, Trigger.AFTER, tick, run_at=self.now_us(), of_schedule=True)
                made.append(added.activation_id)
        return made or None

    async def get_activations(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Activation]]:
        now = self.now_us()
        if not self.activations:
            return now, []
        wanted, until = frozenset(slots), now + window_ms * 1_000
        return now, [
            row.activation()._replace(run_at=run_at)
            for row in self.activations.values()
            if row.job.slot in wanted and (run_at := _may_run_at(row)) is not None and run_at <= until
        ]

    async def get_followers(self, activation_ids: tuple[int, ...]) -> tuple[int, list[Activation]]:
        found = [self.activations[each] for each in sorted(activation_ids) if each in self.activations]
        now = self.now_us()
        return now, [
            row.activation()._replace(run_at=run_at)
            for row in found
            if (run_at := _may_run_at(row)) is not None and (not row.job.paused or run_at <= now + SOON_US)
        ]

    async def start_activations(
        self, controller_id: str, requests: list[ActivationRequest], hard_grace_ms: int
    ) -> tuple[int, list[ActivationResult]]:
        now = self.now_us()
        leased = self._lease_is_valid(controller_id)
        order = sorted(requests, key=self._place_of_activation) if self.limits else requests
        results = {
            each.activation_id: self._activate(controller_id, leased, each, now, hard_grace_ms) for each in order
        }
        return now, [results[request.activation_id] for request in requests]

    def _place_of_activation(self, request: ActivationRequest) -> tuple[int, int, int]:
        row = self.activations.get(request.activation_id)
        if row is None:
            return 0, 0, request.activation_id
        waits_from = row.run_at - ticks.priority(row.job.job(), row.trigger) * ticks.SECOND_US
        return request.turn, waits_from, request.activation_id

    def _activate(
        self, controller_id: str, leased: bool, request: ActivationRequest, now: int, hard_grace_ms: int
    ) -> ActivationResult:
        row = self.activations.get(request.activation_id)
        if row is None:
            return ActivationResult(request.activation_id, None, gone=True, next_tick=None)
        stands_at = row.tick if row.trigger is Trigger.BACKFILL else None
        if not leased or row.tick != request.tick or row.run_at > now:
            return ActivationResult(row.activation_id, None, gone=False, next_tick=stands_at)
        if row.trigger is Trigger.AFTER and (row.job.cancelled_at or (row.job.job_id, row.tick) in self.attempts):
            del self.activations[row.activation_id]
            return ActivationResult(row.activation_id, None, gone=True, next_tick=None)
        # A retry that somebody asked for is superseded by nothing.
        superseded = row.of_schedule and not row.by_hand and (row.job.last_tick or 0) > row.tick
        if row.job.removed or superseded:
            if not row.job.removed and not row.counted_before and (row.job.last_success or 0) < row.tick:
                row.job.failures += 1
            del self.activations[row.activation_id]
            return ActivationResult(row.activation_id, None, gone=True, next_tick=None)
        attempts = self.attempts.get((row.job.job_id, row.tick), [])
        completed = any(each.outcome is Outcome.COMPLETED for each in attempts)
        if row.trigger is Trigger.BACKFILL and completed and not row.again:
            self._move(row, request.next_tick, now)
            return ActivationResult(row.activation_id, None, request.next_tick is None, request.next_tick)
        if not self._may_run(row, request, attempts):
            return ActivationResult(row.activation_id, None, gone=False, next_tick=stands_at)
        full = self._full_limit(row.job)
        if full is not None:
            return ActivationResult(row.activation_id, None, gone=False, next_tick=stands_at, full=full)
        execution = self._start(row, request, controller_id, attempts, now, hard_grace_ms)
        self._move(row, request.next_tick, now)
        return ActivationResult(row.activation_id, execution.execution(), gone=False, next_tick=request.next_tick)

    def _may_run(self, row: ActivationRow, request: ActivationRequest, attempts: list[StoredExecution]) -> bool:
        job = row.job
        if job.orphaned or (job.paused and not row.by_hand):
            return False
        if any(each.outcome is None for each in attempts):
            return False
        # A tick that its schedule has yet to claim is the schedule's.
        upcoming = job.next_tick is not None and row.tick >= job.next_tick and row.tick > (job.last_tick or 0)
        if row.trigger is Trigger.BACKFILL and upcoming:
            return False
        if row.trigger is Trigger.BACKFILL and row.beside and self.beside_is_full(row):
            return False
        hosted = job.deployment.min_replicas > 0 and job.deployment.key == request.deployment
        return hosted and (row.beside or not job.full)

    def beside_is_full(self, row: ActivationRow) -> bool:
        """Each waits for the tenth before it, which had waited as well: so many run beside at most."""
        before = sorted(
            ((each.tick, each.attempt), each.outcome is None)
            for each in self.executions.values()
            if each.job is row.job and each.tick < row.tick
        )
        return len(before) >= BESIDE_MAX and before[-BESIDE_MAX][1]

    def _start(
        self, row: ActivationRow, request: ActivationRequest, controller_id: str, attempts: list[StoredExecution],
        now: int, hard_grace_ms: int,
    ) -> StoredExecution:  # fmt: skip
        job, first = row.job, attempts[0] if attempts else None
        holds_job = not row.beside and job.concurrency == 0
        execution = StoredExecution(
            len(self.executions) + 1, job, job.deployment, row.tick, row.run_at, now, controller_id,
            request.runner_id, now + (job.timeout_ms + (hard_grace_ms if request.runner_id else 0)) * 1000,
            attempt=max([row.attempt, *(each.attempt + 1 for each in attempts)]), trigger=row.trigger,
            missed=first.missed if first is not None and row.trigger is Trigger.RETRY else 0,
            previous_tick=_told(None if first is None else first.previous_tick, job.last_tick, row.tick),
            previous_success=_told(None if first is None else first.previous_success, job.last_success, row.tick),
            payload=row.payload, holds_job=holds_job, counted=not row.beside and not holds_job,
            of_schedule=row.of_schedule, counted_before=row.counted_before, places=tuple(places_of(self, job)),
        )  # fmt: skip
        self._add_execution(execution)
        if holds_job:
            job.execution_id = execution.execution_id
        job.running += execution.counted
        if not request.runner_id:
            self._add_message(execution)
        return execution

    def _move(self, row: ActivationRow, next_tick: int | None, now: int) -> None:
        """On to the next tick of a backfill, or away."""
        if next_tick is None:
            del self.activations[row.activation_id]
        else:
            row.tick, row.run_at, row.attempt = next_tick, now, 1


def _told(before: int | None, latest: int | None, tick: int) -> int | None:
    """What an earlier attempt was told, or the job's latest before the tick."""
    if before is not None:
        return before
    return latest if latest is not None and latest < tick else None


def _may_run_at(row: ActivationRow) -> int | None:
    """A pause keeps it waiting, but for what was asked for by hand; None: nobody knows until when."""
    if row.job.orphaned:
        return None
    if row.by_hand or not row.job.paused:
        return row.run_at
    return None if row.job.paused_until is None else max(row.run_at, row.job.paused_until)
