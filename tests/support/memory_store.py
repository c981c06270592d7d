"""The store in memory, by the same rules as sql/: what tests/conformance holds against PostgreSQL.

Its async methods never await anything, so a simulator may run them by `coroutine.send(None)`. Time is whatever `now_us`
says. The rows are public, for checkers to read.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller.core.model import (
    ClaimRequest,
    ClaimResult,
    EndRequest,
    EndResult,
    Execution,
    Job,
    LeaseRenewal,
    Outcome,
    Report,
    RunnerInfo,
    Skipped,
    SkipRequest,
)
from controller.core.redeploy import Carried, Existing, Removed, deployment_key, plan_redeploy, plan_removal
from controller.errors import NotFound
from controller.ports import ControllerInfo, Deployed
from schema.module import Module

CONTROLLER_KEPT_US = 60_000_000  # after its lease ran out
RUNNER_KEPT_US = 86_400_000_000  # after it was last seen


@dataclass
class DeploymentRow:
    key: str
    module: tuple[str, str]
    digest: str
    min_replicas: int


@dataclass
class JobRow:
    job_id: int
    key: str
    slot: int
    deployment: DeploymentRow
    verb: str
    schedule: str
    anchor: int
    timeout_ms: int
    on_disconnect: str
    next_tick: int | None
    next_run_at: int | None
    policy: str = ""
    payload: str = ""
    revision: int = 1
    removed: bool = False
    execution_id: int | None = None
    last_tick: int | None = None
    last_outcome: Outcome | None = None

    @property
    def executing(self) -> bool:
        return self.execution_id is not None

    def job(self) -> Job:
        return Job(
            self.job_id, self.key, self.slot, self.deployment.key, self.verb, self.schedule, self.anchor,
            self.revision, self.timeout_ms, self.on_disconnect, self.executing, self.next_tick, self.next_run_at,
            self.policy, self.payload,
        )  # fmt: skip

    def existing(self) -> Existing:
        return Existing(
            self.job_id, self.key, self.schedule, self.anchor, self.executing, self.next_tick, self.last_tick,
            self.policy, self.verb,
        )  # fmt: skip


@dataclass
class ExecutionRow:
    execution_id: int
    job: JobRow
    deployment: DeploymentRow
    tick: int
    run_at: int
    claimed_at: int
    controller_id: str
    runner_id: str
    hard_deadline: int
    outcome: Outcome | None = None
    report: Report | None = None
    ended_by: str = ""

    def execution(self) -> Execution:
        return Execution(
            self.execution_id, self.job.job(), self.tick, self.run_at, self.claimed_at, 1, "schedule",
            self.deployment.key, self.runner_id,
        )  # fmt: skip


@dataclass
class SkipRow:
    job_id: int
    skipped: Skipped
    controller_id: str
    decided_at: int


@dataclass
class ControllerRow:
    info: ControllerInfo
    draining: bool
    lease_expires_at: int


@dataclass
class RunnerRow:
    info: RunnerInfo
    last_seen_at: int


class MemoryStore:
    """Implements controller.ports.Store. `now_us` is PostgreSQL's clock; `on_notify` is called for each NOTIFY."""

    def __init__(self, now_us: Callable[[], int], on_notify: Callable[[], None] = lambda: None) -> None:
        self.now_us = now_us
        self.on_notify = on_notify
        self.deployments: list[DeploymentRow] = []
        self.jobs: dict[int, JobRow] = {}
        self.executions: dict[int, ExecutionRow] = {}
        self.unfinished: dict[int, ExecutionRow] = {}
        self.skips: list[SkipRow] = []
        self.controllers: dict[str, ControllerRow] = {}
        self.runners: dict[str, RunnerRow] = {}

    # Deployments

    async def create_deployment(
        self,
        module: Module,
        digest: str,
        min_replicas: int,
        timeout_ms: int,
        activate: bool,
        default_jitter: str = "",
    ) -> Deployed:
        name = (module.namespace, module.name)
        active = next((row for row in self.deployments if row.module == name and row.min_replicas), None)
        row = next((row for row in self.deployments if row.module == name and row.digest == digest), None)
        jobs = self._jobs_of(name)
        if row is not None and row is active:
            row.min_replicas = min_replicas
            keys = tuple(job.key for job in jobs)
            return Deployed(row.key, True, False, (), (), keys, [job.job() for job in jobs])
        is_new = row is None
        if row is None:
            row = DeploymentRow(deployment_key(module, digest), name, digest, 0)
            self.deployments.append(row)
        if not activate and not is_new:
            return Deployed(row.key, False, is_new, (), (), (), [])
        if active is not None:
            active.min_replicas = 0
        row.min_replicas = min_replicas
        return self._apply(module, row, jobs, timeout_ms, default_jitter)

    def _jobs_of(self, name: tuple[str, str]) -> list[JobRow]:
        rows = [row for row in self.jobs.values() if row.deployment.module == name and not row.removed]
        return sorted(rows, key=lambda row: row.key)

    def _apply(
        self, module: Module, deployment: DeploymentRow, jobs: list[JobRow], timeout_ms: int, default_jitter: str
    ) -> Deployed:
        plan = plan_redeploy(module, [job.existing() for job in jobs], self.now_us(), timeout_ms, default_jitter)
        self._remove(plan.removed)
        for carried in plan.carried:
            self._carry(carried, deployment)
        for added in plan.added:
            job_id = len(self.jobs) + 1
            self.jobs[job_id] = JobRow(
                job_id, added.key, added.slot, deployment, added.verb, added.schedule, added.anchor, added.timeout_ms,
                added.on_disconnect, added.next_tick, added.next_run_at, added.policy, added.payload,
            )  # fmt: skip
        self.on_notify()
        return Deployed(
            deployment.key, True, True, tuple(sorted(job.key for job in plan.added)),
            tuple(job.key for job in plan.removed), tuple(sorted(job.key for job in plan.carried)),
            [job.job() for job in self._jobs_of(deployment.module)],
        )  # fmt: skip

    def _carry(self, carried: Carried, deployment: DeploymentRow) -> None:
        row = self.jobs[carried.job_id]
        row.deployment = deployment
        row.timeout_ms = row.timeout_ms if carried.timeout_ms is None else carried.timeout_ms
        row.on_disconnect = row.on_disconnect if carried.on_disconnect is None else carried.on_disconnect
        row.payload = row.payload if carried.payload is None else carried.payload
        if carried.rescheduled:
            row.schedule, row.anchor, row.revision = carried.schedule, carried.anchor, row.revision + 1
            row.next_tick, row.next_run_at = carried.next_tick, carried.next_run_at
            row.policy = carried.policy
        self._skip(row, carried.skipped, "")

    def _remove(self, removed: Iterable[Removed]) -> None:
        for each in removed:
            row = self.jobs[each.job_id]
            row.removed, row.next_tick, row.next_run_at, row.revision = True, None, None, row.revision + 1
            self._skip(row, each.skipped, "")

    def _skip(self, row: JobRow, ranges: tuple[Skipped, ...], controller_id: str) -> None:
        self.skips += [SkipRow(row.job_id, skipped, controller_id, self.now_us()) for skipped in ranges]

    async def kill_deployment(self, key: str) -> tuple[str, ...]:
        row = next((row for row in self.deployments if row.key == key), None)
        if row is None:
            raise NotFound(f"no deployment {key}")
        was_active = row.min_replicas > 0
        row.min_replicas = 0
        if not was_active:
            return ()
        removed = plan_removal([job.existing() for job in self._jobs_of(row.module)], self.now_us())
        self._remove(removed)
        self.on_notify()
        return tuple(each.key for each in removed)

    # Leases

    async def renew_lease(
        self, controller: ControllerInfo, draining: bool, lease_ms: int, runner_ids: tuple[str, ...], lost_after_ms: int
    ) -> LeaseRenewal:
        now = self.now_us()
        self.controllers[controller.controller_id] = ControllerRow(controller, draining, now + lease_ms * 1000)
        renewed = tuple(sorted({runner_id for runner_id in runner_ids if runner_id in self.runners}))
        for runner_id in renewed:
            self.runners[runner_id].last_seen_at = now
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
        )

    def _forget(self, now: int) -> None:
        controllers = {row.controller_id for row in self.unfinished.values()}
        runners = {row.runner_id for row in self.unfinished.values()}
        for controller_id, controller in list(self.controllers.items()):
            if controller.lease_expires_at <= now - CONTROLLER_KEPT_US and controller_id not in controllers:
                del self.controllers[controller_id]
        for runner_id, runner in list(self.runners.items()):
            if runner.last_seen_at <= now - RUNNER_KEPT_US and runner_id not in runners:
                del self.runners[runner_id]

    async def remove_controller(self, controller_id: str) -> None:
        row = self.controllers.get(controller_id)
        if row is not None:
            row.lease_expires_at, row.draining = min(row.lease_expires_at, self.now_us()), True

    async def find_peers(self) -> list[ControllerInfo]:
        valid = [row.info for row in self.controllers.values() if row.lease_expires_at > self.now_us()]
        return sorted(valid)

    async def register_runner(self, runner: RunnerInfo) -> None:
        self.runners[runner.runner_id] = RunnerRow(runner, self.now_us())

    def _lease_is_valid(self, controller_id: str) -> bool:
        row = self.controllers.get(controller_id)
        return row is not None and row.lease_expires_at > self.now_us()

    # Jobs

    async def get_cron_jobs(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Job]]:
        now = self.now_us()
        return now, [row.job() for row in self._due(slots, now + window_ms * 1000)]

    async def get_overdue_jobs(self, slots: tuple[int, ...], delay_ms: int) -> tuple[int, list[Job]]:
        now = self.now_us()
        return now, [row.job() for row in self._due(slots, now - delay_ms * 1000) if not row.executing]

    def _due(self, slots: tuple[int, ...], until: int) -> list[JobRow]:
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
        return now, [self._claim(controller_id, leased, request, hard_grace_ms) for request in requests]

    def _claim(self, controller_id: str, leased: bool, request: ClaimRequest, hard_grace_ms: int) -> ClaimResult:
        now = self.now_us()
        row = self.jobs.get(request.job_id)
        if row is None:
            return ClaimResult(request.job_id, False, False, None, now, False, None, None, 0)
        active = row.deployment.min_replicas > 0
        hosted = active and row.deployment.key == request.deployment
        claimable = leased and hosted and not row.executing and self._is_due(row, request)
        if claimable:
            row.execution_id, row.last_tick = len(self.executions) + 1, request.run_tick
            execution = ExecutionRow(
                row.execution_id, row, row.deployment, request.run_tick, request.run_at, now, controller_id,
                request.runner_id, now + (row.timeout_ms + hard_grace_ms) * 1000,
            )  # fmt: skip
            self.executions[row.execution_id] = self.unfinished[row.execution_id] = execution
            self._skip(row, request.skipped, controller_id)
        return ClaimResult(
            row.job_id, claimable, active, row.execution_id if claimable else None, now, row.executing,
            row.next_tick, row.next_run_at, row.revision,
        )  # fmt: skip

    def _is_due(self, row: JobRow, request: ClaimRequest) -> bool:
        now = self.now_us()
        return (
            row.next_run_at is not None
            and row.next_tick == request.expected_tick
            and row.next_run_at <= now
            and request.run_at <= now
            and (row.last_tick is None or row.last_tick < request.run_tick)
        )

    async def skip_ticks(self, controller_id: str, requests: list[SkipRequest]) -> list[Job]:
        leased = self._lease_is_valid(controller_id)
        for request in requests:
            row = self.jobs.get(request.job_id)
            if row is None or not leased or row.executing:
                continue
            if row.next_tick == request.expected_tick and row.revision == request.revision:
                row.next_tick, row.next_run_at = request.next_tick, request.next_run_at
                self._skip(row, request.skipped, controller_id)
        return [self.jobs[request.job_id].job() for request in requests if request.job_id in self.jobs]

    # Executions

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]:
        return [self._end(controller_id, request) for request in requests]

    def _end(self, controller_id: str, request: EndRequest) -> EndResult:
        report = request.report
        execution = self.unfinished.get(report.execution_id)
        ended = execution is not None and execution.claimed_at == report.claimed_at
        if ended and execution is not None:
            del self.unfinished[report.execution_id]
            execution.outcome, execution.report, execution.ended_by = report.outcome, report, controller_id
            if execution.job.execution_id == report.execution_id:
                self._free(execution.job, request, controller_id)
        row = self.jobs.get(report.job_id)
        if row is None:
            return EndResult(report.execution_id, report.job_id, ended, None, None, 0)
        next_tick, next_run_at = (None, None) if row.executing else (row.next_tick, row.next_run_at)
        return EndResult(report.execution_id, report.job_id, ended, next_tick, next_run_at, row.revision)

    def _free(self, row: JobRow, request: EndRequest, controller_id: str) -> None:
        row.execution_id, row.last_outcome = None, request.report.outcome
        if row.revision == request.revision:
            row.next_tick, row.next_run_at = request.next_tick, request.next_run_at
            self._skip(row, request.skipped, controller_id)

    async def adopt_executions(self, controller_id: str, from_ids: tuple[str, ...]) -> list[Execution]:
        adopted = [row for row in self.unfinished.values() if row.controller_id in from_ids]
        for row in adopted:
            row.controller_id = controller_id
        return [row.execution() for row in adopted]

    async def get_unfinished(self, execution_ids: tuple[int, ...]) -> list[Execution]:
        wanted = sorted(set(execution_ids))
        return [self.unfinished[each].execution() for each in wanted if each in self.unfinished]

    async def get_lost(self, lost_after_ms: int) -> list[Execution]:
        return [row.execution() for row in self._lost(lost_after_ms)]

    def _lost(self, lost_after_ms: int) -> list[ExecutionRow]:
        seen_before = self.now_us() - lost_after_ms * 1000
        return [
            row
            for row in self.unfinished.values()
            if row.job.on_disconnect == "stop"
            and row.runner_id in self.runners
            and self.runners[row.runner_id].last_seen_at < seen_before
        ]

    async def get_overdue_executions(self) -> list[Execution]:
        return [row.execution() for row in self.unfinished.values() if row.hard_deadline <= self.now_us()]
