"""The store in memory, by the same rules as sql/: what tests/conformance holds against PostgreSQL.

Its async methods never await anything, so a simulator may run them by `coroutine.send(None)`. Time is whatever `now_us`
says. The rows are public, for checkers to read.
"""

from cronring.controller.core import ticks
from cronring.controller.core.model import (
    ClaimRequest,
    ClaimResult,
    EndRequest,
    EndResult,
    Execution,
    Job,
    LeaseRenewal,
    RunnerInfo,
    SkipRequest,
)
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.memory.defaults import MemoryDefaults
from cronring.controller.store.memory.deployments import MemoryDeployments
from cronring.controller.store.memory.enqueuing import MemoryEnqueuing
from cronring.controller.store.memory.execution_control import MemoryExecutionControl
from cronring.controller.store.memory.interval_jobs import MemoryIntervalJobs
from cronring.controller.store.memory.limits import places_of
from cronring.controller.store.memory.lives import MemoryLives
from cronring.controller.store.memory.registering import MemoryRegistering
from cronring.controller.store.memory.rows import (
    StoredController,
    StoredExecution,
    StoredJob,
    StoredRunner,
)
from cronring.controller.store.memory.sets import MemorySets
from cronring.controller.store.memory.templates import MemoryTemplates
from cronring.controller.store.memory.verb_calls import MemoryVerbCalls
from cronring.schema.execution import Outcome, Skipped, SkipReason, Trigger
from cronring.schema.policy import parse_policy
from cronring.schema.schedule import MANUAL

CONTROLLER_KEPT_US = 60_000_000  # after its lease ran out
RUNNER_KEPT_US = 86_400_000_000  # after it was last seen
RUNNERS_KEPT = 1_000  # the newest; beyond, a runner is kept so long:
RUNNER_KEPT_BEYOND_US = 60_000_000


class MemoryStore(
    MemoryDeployments,
    MemoryDefaults,
    MemoryExecutionControl,
    MemoryTemplates,
    MemoryRegistering,
    MemoryIntervalJobs,
    MemorySets,
    MemoryVerbCalls,
    MemoryEnqueuing,
    MemoryLives,
):
    """Implements controller.ports.store.Store, Control and ExecutionControl, and of controller.ports Templates, Sets,
    IntervalJobs, VerbCalls, DefaultsStore and Lives.
    """

    # Leases

    async def renew_lease(
        self,
        controller: ControllerInfo,
        draining: bool,
        lease_ms: int,
        runner_ids: tuple[str, ...],
        lost_after_ms: int,
        cancelling: tuple[int, ...] = (),
    ) -> LeaseRenewal:
        now = self.now_us()
        own_id = controller.controller_id
        held_since = self._held_since(own_id)
        self.controllers[own_id] = StoredController(controller, draining, now + lease_ms * 1000, held_since)
        renewed = tuple(sorted({runner_id for runner_id in runner_ids if runner_id in self.runners}))
        for runner_id in renewed:
            runner = self.runners[runner_id]
            runner.held_since, runner.last_seen_at = self._seen_since(runner_id), now
        self._forget(now)
        dead = [row for row in self.controllers.values() if row.lease_expires_at <= now]
        unfinished = list(self.unfinished.values())
        held_by = {row.controller_id for row in unfinished}
        lost = {row.runner_id for row in self._lost(lost_after_ms)}
        return LeaseRenewal(
            now,
            renewed,
            tuple(sorted(row.info.controller_id for row in dead if row.info.controller_id in held_by)),
            tuple(sorted(lost)),
            any(row.hard_deadline <= now for row in unfinished),
            self._to_cancel(controller.controller_id, frozenset(cancelling)),
            tuple((row.info.controller_id, row.info.grpc_address) for _, row in sorted(self.controllers.items())),
            self._has_queue_reports(controller.controller_id),
        )

    def _forget(self, now: int) -> None:
        controllers = {row.controller_id for row in self.unfinished.values()}
        runners = {row.runner_id for row in self.unfinished.values()}
        for controller_id, controller in list(self.controllers.items()):
            if controller.lease_expires_at <= now - CONTROLLER_KEPT_US and controller_id not in controllers:
                self._controller_lived(self.controllers.pop(controller_id))
        seen = sorted((runner.last_seen_at for runner in self.runners.values()), reverse=True)
        newest = seen[RUNNERS_KEPT - 1] if len(seen) >= RUNNERS_KEPT else now - RUNNER_KEPT_US
        for runner_id, runner in list(self.runners.items()):
            at = runner.last_seen_at
            forgotten = at <= now - RUNNER_KEPT_US or (at <= now - RUNNER_KEPT_BEYOND_US and at < newest)
            if forgotten and runner_id not in runners:
                self._runner_lived(self.runners.pop(runner_id))

    async def remove_controller(self, controller_id: str) -> None:
        row = self.controllers.get(controller_id)
        if row is not None:
            row.lease_expires_at, row.draining = min(row.lease_expires_at, self.now_us()), True

    async def find_peers(self) -> list[ControllerInfo]:
        valid = [row.info for row in self.controllers.values() if row.lease_expires_at > self.now_us()]
        return sorted(valid)

    async def note_zone_data(self, version: str) -> None:
        self.zone_data.setdefault(version, self.now_us())

    async def register_runner(self, runner: RunnerInfo) -> None:
        held_since = self._seen_since(runner.runner_id)
        self.runners[runner.runner_id] = StoredRunner(runner, self.now_us(), held_since)

    async def runner_left(self, runner_id: str) -> None:
        runner = self.runners.get(runner_id)
        if runner is not None and all(row.runner_id != runner_id for row in self.unfinished.values()):
            runner.left_at = self.now_us() if runner.left_at is None else runner.left_at

    # Jobs

    async def get_cron_jobs(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Job]]:
        now = self.now_us()
        return now, [row.job() for row in self._due(slots, now + window_ms * 1000)]

    async def get_overdue_jobs(self, slots: tuple[int, ...], delay_ms: int, at_most: int) -> tuple[int, list[Job]]:
        now = self.now_us()
        overdue = [
            row.job()
            for row in self._due(slots, now - delay_ms * 1000)
            if not row.full and row.deployment.min_replicas > 0
        ]
        return now, sorted(overdue)[:at_most]

    def _due(self, slots: tuple[int, ...], until: int) -> list[StoredJob]:
        wanted = frozenset(slots)
        return [
            row
            for row in self.jobs.values()
            if row.next_run_at is not None and row.next_run_at <= until and row.slot in wanted
        ]

    async def start_cron_jobs(
        self, controller_id: str, requests: list[ClaimRequest], hard_grace_ms: int
    ) -> tuple[int, list[ClaimResult]]:
        now = self.now_us()
        leased = self._lease_is_valid(controller_id)
        # Of jobs under a limit those that have waited longest come first, in their turn: a level of priority is worth a
        # second.
        order = sorted(requests, key=self._place) if self.limits else requests
        results = {each.job_id: self._claim(controller_id, leased, each, hard_grace_ms) for each in order}
        return now, [results[request.job_id] for request in requests]

    def _place(self, request: ClaimRequest) -> tuple[int, int, int]:
        row = self.jobs.get(request.job_id)
        if row is None or row.next_run_at is None:
            return 0, 0, request.job_id
        waits_from = row.next_run_at - ticks.priority(row.job()) * ticks.SECOND_US
        return request.turn, waits_from, request.job_id

    def _claim(self, controller_id: str, leased: bool, request: ClaimRequest, hard_grace_ms: int) -> ClaimResult:
        now = self.now_us()
        row = self.jobs.get(request.job_id)
        if row is None:
            return ClaimResult(request.job_id, False, False, None, now, False, None, None, 0)
        active = row.deployment.min_replicas > 0
        hosted = active and row.deployment.key == request.deployment
        claimable = leased and hosted and not row.full and row.is_due(request, now)
        plain = (
            not row.spec.policy and request.run_tick == request.expected_tick
        )  # neither schedule nor policy was asked
        claimable = claimable and (plain or row.revision == request.revision)
        if not claimable:
            return ClaimResult(
                row.job_id, False, active, None, now, row.full, row.next_tick, row.next_run_at, row.revision
            )  # fmt: skip
        full = self._full_limit(row)
        if full is not None:
            return ClaimResult(
                row.job_id, False, True, None, now, False, row.next_tick, row.next_run_at, row.revision, full=full
            )  # fmt: skip
        previous_tick, row.last_tick = row.last_tick, request.run_tick
        missed, row.missed = row.missed + ticks.missed(request.skipped), 0
        execution = StoredExecution(
            len(self.executions) + 1, row, row.deployment, request.run_tick, request.run_at, now, controller_id,
            request.runner_id, now + (row.timeout_ms + (hard_grace_ms if request.runner_id else 0)) * 1000, 1,
            request.trigger,
            missed, previous_tick, row.last_success,
            holds_job=row.concurrency == 0, counted=row.concurrency > 0, places=tuple(places_of(self, row)),
        )  # fmt: skip
        self._add_execution(execution)
        if execution.holds_job:
            row.execution_id = execution.execution_id
        else:
            row.running, row.next_tick, row.next_run_at = row.running + 1, request.next_tick, request.next_run_at
        self._skip(row, request.skipped, controller_id)
        if not request.runner_id:
            self._add_message(execution)
        return ClaimResult(
            row.job_id, True, True, execution.execution_id, now, row.full, row.next_tick, row.next_run_at,
            row.revision, previous_tick, row.last_success, missed,
        )  # fmt: skip

    async def skip_ticks(self, controller_id: str, requests: list[SkipRequest]) -> list[Job]:
        leased = self._lease_is_valid(controller_id)
        for request in requests:
            row = self.jobs.get(request.job_id)
            if row is None or not leased or not _may_skip(row, request):
                continue
            if row.next_tick == request.expected_tick and row.revision == request.revision:
                row.next_tick, row.next_run_at = request.next_tick, request.next_run_at
                row.missed += ticks.missed(request.skipped)
                self._skip_on(row, request.skipped, controller_id)
        return [self.jobs[request.job_id].job() for request in requests if request.job_id in self.jobs]

    def _skip_on(self, row: StoredJob, ranges: tuple[Skipped, ...], controller_id: str) -> None:
        """A range that goes on where the job's latest one ended, for the same reason, takes its place."""
        latest, first = self.latest_skip.get(row.job_id), ranges[0]
        if (
            latest is not None
            and latest.skipped.reason == first.reason
            and (row.last_tick or 0) < latest.skipped.last_tick < first.first_tick
            and latest.skipped.first_tick > self.spans[row.job_id][-1].from_at
        ):
            latest.skipped = Skipped(
                first.reason, latest.skipped.first_tick, first.last_tick, latest.skipped.ticks + first.ticks
            )
            latest.controller_id, latest.decided_at = controller_id, self.now_us()
            ranges = ranges[1:]
        self._skip(row, ranges, controller_id)

    # Executions

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
        return [self._end(controller_id, request) for request in requests]

    def _end(self, controller_id: str, request: EndRequest) -> EndResult:
        report = request.report
        execution = self.unfinished.get(report.execution_id)
        row = self.jobs.get(report.job_id)
        ended, paused, moved, retry_id, followers = False, False, False, None, None
        if self._held_by_consumer(request) or self._is_back(request):
            return EndResult(report.execution_id, report.job_id, False, None, None, request.revision, busy=True)
        stale = execution is not None and row is not None and row.revision != request.revision
        if not stale:
            self._delete_message(request)
        if execution is not None and execution.claimed_at == report.claimed_at and not stale:
            ended = True
            del self.unfinished[report.execution_id]
            if self.limits:
                self._places_freed(execution)
            execution.outcome, execution.report = report.outcome, report
            # What somebody wanted cancelled is not tried again, however it ended; nor what a later tick has superseded.
            superseded = execution.of_schedule and (execution.job.last_tick or 0) > execution.tick
            execution.retry_at = request.retry_at if execution.cancel is None and not superseded else None
            retry_id = self._retry(execution)
            followers = self._follow(execution)
            if execution.holds_job or execution.counted:
                moved = self._free(execution, request, controller_id)
                paused = self._tally(execution, request.report.outcome, final=retry_id is None)
        if row is None:
            return EndResult(report.execution_id, report.job_id, ended, None, None, 0)
        next_tick, next_run_at = (None, None) if row.full else (row.next_tick, row.next_run_at)
        return EndResult(
            report.execution_id, report.job_id, ended, next_tick, next_run_at, row.revision, stale, retry_id, paused,
            followers, moved,
        )  # fmt: skip

    def _is_back(self, request: EndRequest) -> bool:
        if request.unseen is None:
            return False
        runner = self.runners.get(request.unseen.runner_id)
        return runner is not None and runner.last_seen_at >= self.now_us() - request.unseen.for_ms * 1_000

    def _retry(self, execution: StoredExecution) -> int | None:
        row = execution.job
        if execution.retry_at is None or not row.active:
            return None
        beside = not (execution.holds_job or execution.counted)
        return self._add_activation(
            row, Trigger.RETRY, execution.tick, attempt=execution.attempt + 1, run_at=execution.retry_at,
            payload=execution.payload, beside=beside, of_schedule=execution.of_schedule,
            counted_before=execution.counted_before,
        ).activation_id  # fmt: skip

    def _free(self, execution: StoredExecution, request: EndRequest, controller_id: str) -> bool:
        """Whether it moved the job's next run."""
        row = execution.job
        row.last_outcome = request.report.outcome
        held = row.execution_id == execution.execution_id
        if execution.counted:
            row.running -= 1
        elif held:
            row.execution_id = None
        # Of several, the last one decides once only one might.
        if (held or (execution.counted and not row.full)) and _counts(row, request):
            row.next_tick, row.next_run_at = request.next_tick, request.next_run_at
            row.missed += ticks.missed(request.skipped)
            self._skip(row, request.skipped, controller_id)
            if request.anchor is not None:
                self._move_anchor(row, request.anchor, request.closes_at)
                return True
        return False

    def _tally(self, execution: StoredExecution, outcome: Outcome, *, final: bool) -> bool:
        """Whether it paused the job."""
        row = execution.job
        if not execution.of_schedule:
            return False
        if outcome is Outcome.COMPLETED:
            row.failures, row.last_success = 0, max(execution.tick, row.last_success or 0)
            return False
        row.failures += final and not execution.counted_before and outcome is not Outcome.CANCELLED
        return self._pause_failing(row)

    def _move_anchor(self, row: StoredJob, anchor: int, closes_at: int | None) -> None:
        row.spec, row.revision = row.spec._replace(anchor=anchor), row.revision + 1
        if closes_at is not None:
            row.ahead_from = row.ahead_until = None  # of the books that end here: nothing takes them back
            self._open_span(row, self._close_span(row, closes_at))

    def _pause_failing(self, row: StoredJob) -> bool:
        most = parse_policy(row.spec.policy).pause_after_failures if row.spec.policy else 0
        if not 0 < most <= row.failures or not row.active or (row.next_tick is None and row.spec.schedule != MANUAL):
            return False
        row.paused_at, row.paused_until = self.now_us(), None
        row.paused_tick, row.next_tick, row.next_run_at = row.next_tick, None, None
        row.paused_by, row.paused_note = "cronring", f"ticks in a row without success: {row.failures}"
        row.revision += 1
        return True

    async def adopt_executions(
        self, controller_id: str, from_ids: tuple[str, ...], runner_ids: tuple[str, ...] = ()
    ) -> list[Execution]:
        left_behind = [row for row in self.unfinished.values() if row.controller_id in from_ids]
        adopted = [row for row in left_behind if not runner_ids or row.runner_id in runner_ids]
        for row in adopted:
            row.controller_id = controller_id
        return [row.execution() for row in adopted]

    async def get_unfinished(self, execution_ids: tuple[int, ...]) -> list[Execution]:
        wanted = sorted(set(execution_ids))
        return [self.unfinished[each].execution() for each in wanted if each in self.unfinished]

    async def get_held(self, controller_id: str, execution_ids: tuple[int, ...]) -> list[Execution]:
        rows = (self.unfinished[each] for each in sorted(set(execution_ids)) if each in self.unfinished)
        return [row.execution() for row in rows if row.controller_id == controller_id]

    async def get_lost(self, lost_after_ms: int) -> list[Execution]:
        return [row.execution() for row in self._lost(lost_after_ms)]

    def _lost(self, lost_after_ms: int) -> list[StoredExecution]:
        seen_before = self.now_us() - lost_after_ms * 1000
        return [
            row
            for row in self.unfinished.values()
            if row.job.spec.on_disconnect == "stop"
            and row.runner_id in self.runners
            and self.runners[row.runner_id].last_seen_at < seen_before
        ]

    async def get_overdue_executions(self) -> list[Execution]:
        return [row.execution() for row in self.unfinished.values() if row.hard_deadline <= self.now_us()]


def _may_skip(row: StoredJob, request: SkipRequest) -> bool:
    """Where only one may run, the end of what runs decides; where several may, one that ended leaves no overlap."""
    if not row.concurrency:
        return not row.full
    return row.full or request.skipped[0].reason is not SkipReason.OVERLAP


def _counts(row: StoredJob, request: EndRequest) -> bool:
    """Whether the end of the run that held the job decides how it goes on. See EndAnyRun."""
    moved_back = request.anchor is not None and request.next_tick is not None and request.next_tick <= row.opened_at
    return not (row.concurrency or moved_back) and (row.active or row.next_tick == request.tick)
