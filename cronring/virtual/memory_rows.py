"""The rows of the store in memory, by the columns of sql/migrations. They are public, for checkers to read."""

from dataclasses import dataclass, field

from controller.core.model import Activation, Execution, Job, Outcome, Report, RunnerInfo, Skipped, Trigger
from controller.core.redeploy import Existing
from controller.ports import ControllerInfo
from schema.module import Module
from schema.policy import parse_policy


@dataclass
class DeploymentRow:
    key: str
    module: tuple[str, str]
    digest: str
    min_replicas: int
    schema: Module


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
    running: int = 0
    last_tick: int | None = None
    last_outcome: Outcome | None = None
    last_success: int | None = None
    missed: int = 0  # since its latest claim, in statements of their own
    failures: int = 0
    paused: bool = False
    paused_tick: int | None = None
    paused_by: str = ""
    paused_note: str = ""
    source: str = "annotation"
    labels: dict[str, str] = field(default_factory=dict)
    changed_by: str = ""
    opened_at: int = 0  # of its present books, which are in cron_schedules

    @property
    def executing(self) -> bool:
        """An execution holds it."""
        return self.execution_id is not None

    @property
    def concurrency(self) -> int:
        return parse_policy(self.policy).concurrency if self.policy else 0

    @property
    def full(self) -> bool:
        """No further execution may begin."""
        return self.executing or self.running >= max(self.concurrency, 1)

    def job(self) -> Job:
        return Job(
            self.job_id, self.key, self.slot, self.deployment.key, self.verb, self.schedule, self.anchor,
            self.revision, self.timeout_ms, self.on_disconnect, self.full, self.next_tick, self.next_run_at,
            self.policy, self.payload,
        )  # fmt: skip

    def existing(self) -> Existing:
        return Existing(
            self.job_id, self.key, self.schedule, self.anchor, self.executing, self.next_tick, self.last_tick,
            self.policy, self.verb, self.source, self.paused, self.paused_tick, self.opened_at,
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
    attempt: int = 1
    trigger: Trigger = Trigger.SCHEDULE
    missed: int = 0
    previous_tick: int | None = None
    previous_success: int | None = None
    payload: str | None = None
    holds_job: bool = True
    counted: bool = False
    of_schedule: bool = True
    retry_at: int | None = None
    outcome: Outcome | None = None
    report: Report | None = None
    ended_by: str = ""

    def execution(self) -> Execution:
        payload = self.job.payload if self.payload is None else self.payload
        return Execution(
            self.execution_id, self.job.job(), self.tick, self.run_at, self.claimed_at, self.attempt, self.trigger,
            self.deployment.key, self.runner_id, self.missed, self.previous_tick, self.previous_success, payload,
            self.holds_job, self.of_schedule,
        )  # fmt: skip


@dataclass
class ActivationRow:
    activation_id: int
    job: JobRow
    trigger: Trigger
    tick: int
    until_tick: int | None
    attempt: int
    run_at: int
    payload: str | None
    beside: bool
    again: bool
    requested_by: str
    of_schedule: bool = False  # a retry of a tick of its schedule

    def activation(self) -> Activation:
        return Activation(
            self.activation_id, self.job.job(), self.tick, self.until_tick, self.attempt, self.trigger, self.run_at,
            self.payload or "", self.beside,
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
