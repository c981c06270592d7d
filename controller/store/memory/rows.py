"""The rows of the store in memory, by the columns of sql/migrations. They are public, for checkers to read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from cronring.controller.core.model import (
    Activation,
    CancelRequest,
    ClaimRequest,
    EnqueueRequest,
    Execution,
    Job,
    RunnerInfo,
)
from cronring.controller.core.orders.redeploy import Existing
from cronring.controller.core.ticks import upcoming
from cronring.controller.ports.defaults import DefaultsRow
from cronring.controller.ports.interval_jobs import Terms
from cronring.controller.ports.store import ActiveVersion, ControllerInfo
from cronring.schema.execution import Outcome, Report, Skipped, Trigger
from cronring.schema.job import JobSpec
from cronring.schema.module import Module
from cronring.schema.policy import parse_policy
from cronring.schema.timetable import PlannedTick


class LimitKey(NamedTuple):
    """`module` "": the namespace's own. `label`: of each of its values."""

    namespace: str
    module: str
    label: str


class PlaceKey(NamedTuple):
    """What an execution has a place of. `value`: of the limit's label."""

    limit: LimitKey
    value: str


@dataclass
class StoredDeployment:
    key: str
    module: tuple[str, str]
    digest: str
    min_replicas: int
    schema: Module
    fingerprint: str = ""

    @property
    def version(self) -> ActiveVersion:
        """While it is active."""
        return ActiveVersion(self.key, self.digest, self.min_replicas)


@dataclass
class StoredJob:
    job_id: int
    key: str
    slot: int
    deployment: StoredDeployment
    verb: str
    spec: JobSpec
    next_tick: int | None
    next_run_at: int | None
    revision: int = 1
    removed: bool = False
    execution_id: int | None = None
    running: int = 0
    last_tick: int | None = None
    last_outcome: Outcome | None = None
    last_success: int | None = None
    missed: int = 0  # since its latest claim, in statements of their own
    failures: int = 0
    paused_at: int | None = None
    paused_tick: int | None = None
    paused_until: int | None = None
    paused_by: str | None = None
    paused_note: str | None = None
    cancelled_at: int | None = None
    cancelled_by: str | None = None
    cancelled_note: str | None = None
    ahead_from: int | None = None
    ahead_until: int | None = None
    orphaned_at: int | None = None
    orphaned_tick: int | None = None
    source: str = "annotation"
    changed_by: str = ""
    template: str = ""  # that it was made from
    set_name: str = ""  # that owns it
    opened_at: int = 0  # of its present books, which are in cron_schedules; or where they ended, of a cancelled job
    now_us: Callable[[], int] = lambda: 0  # the store's clock, from when the job is in it
    defaults: Callable[[], DefaultsRow] = DefaultsRow  # the cluster's, likewise
    executions: int = 0  # claimed so far

    @property
    def paused(self) -> bool:
        """Its pause is in force."""
        return self.paused_at is not None and (self.paused_until is None or self.paused_until > self.now_us())

    @property
    def orphaned(self) -> bool:
        """No active version of its module has its verb."""
        return self.orphaned_at is not None

    @property
    def active(self) -> bool:
        """Its ticks run, and its retries."""
        return not (self.removed or self.cancelled_at is not None or self.orphaned or self.paused)

    @property
    def timeout_ms(self) -> int:
        """In force."""
        return self.spec.timeout_by(self.defaults().timeout_ms)

    @property
    def executing(self) -> bool:
        """An execution holds it."""
        return self.execution_id is not None

    @property
    def concurrency(self) -> int:
        return parse_policy(self.spec.policy).concurrency if self.spec.policy else 0

    @property
    def full(self) -> bool:
        """No further execution may begin."""
        return self.executing or self.running >= max(self.concurrency, 1)

    @property
    def upcoming(self) -> PlannedTick | None:
        """What is to run next, and when."""
        return upcoming(self.key, self.spec.timing, self.next_tick, self.next_run_at)

    def job(self) -> Job:
        spec = self.spec
        return Job(
            self.job_id, self.key, self.slot, self.deployment.key, self.verb, spec.schedule, spec.anchor or 0,
            self.revision, self.timeout_ms, spec.on_disconnect, self.full, self.next_tick, self.next_run_at,
            spec.policy, spec.payload, spec.labels.get("workspace", ""), self.defaults().retries,
        )  # fmt: skip

    def existing(self) -> Existing:
        over = self.paused_until is not None and (self.last_tick or 0) >= self.paused_until
        schedule, anchor, policy = self.spec.timing
        return Existing(
            self.job_id, self.key, schedule, anchor, self.executing, self.next_tick, self.last_tick, policy,
            self.verb, self.source, self.paused and not over, self.paused_tick, self.opened_at,
            self.cancelled_at is not None, self.paused_until, self.ahead_from, self.ahead_until, self.orphaned,
            self.orphaned_tick, self.next_run_at,
        )  # fmt: skip

    def is_due(self, request: ClaimRequest | EnqueueRequest, now: int) -> bool:
        """Whether the tick that is asked for is the job's next one, and due."""
        return (
            self.next_run_at is not None
            and self.next_tick == request.expected_tick
            and self.next_run_at <= now
            and request.run_at <= now
            and (self.last_tick is None or self.last_tick < request.run_tick)
        )


@dataclass
class IntervalRow:
    """What a job of the interval scheduler's contract has beside its row."""

    job: StoredJob
    terms: Terms
    created_at: int
    changed_at: int


class DecidedByClaim(NamedTuple):
    """How an execution ends that its claim itself has decided."""

    outcome: Outcome
    error_type: str = ""
    error_message: str = ""


@dataclass
class StoredExecution:
    execution_id: int
    job: StoredJob
    deployment: StoredDeployment
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
    counted_before: bool = False  # its tick had counted as one without success before it was tried again by hand
    retry_at: int | None = None
    outcome: Outcome | None = None
    report: Report | None = None
    number: int = 0  # of its job
    cancel: CancelRequest | None = None  # somebody wants it cancelled
    places: tuple[PlaceKey, ...] = ()  # of limits
    decided: DecidedByClaim | None = None
    of_job: str = field(init=False)  # the payload that its job had at the claim

    def __post_init__(self) -> None:
        self.of_job = self.job.spec.payload

    @property
    def ran_with(self) -> str:
        return self.of_job if self.payload is None else self.payload

    def execution(self) -> Execution:
        payload = self.job.spec.payload if self.payload is None else self.payload
        return Execution(
            self.execution_id, self.job.job(), self.tick, self.run_at, self.claimed_at, self.attempt, self.trigger,
            self.deployment.key, self.runner_id, self.missed, self.previous_tick, self.previous_success, payload,
            self.holds_job, self.of_schedule,
        )  # fmt: skip


@dataclass
class EnqueuedRow:
    message_id: int
    namespace: str
    queue: str
    workspace: str
    job: StoredJob
    execution_id: int
    tick: int
    run_at: int
    attempt: int
    payload: str
    awaited: bool
    hard_deadline: int | None
    enqueued_at: int
    ended_at: int | None = None
    outcome: Outcome | None = None
    error_type: str = ""
    error_message: str = ""
    output: str = ""


@dataclass
class ActivationRow:
    activation_id: int
    job: StoredJob
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
    counted_before: bool = False  # see StoredExecution

    @property
    def by_hand(self) -> bool:
        """Somebody asked for it: neither a later tick nor a pause keeps it from running. Backfills do wait."""
        return self.trigger is Trigger.MANUAL or (self.trigger is Trigger.RETRY and bool(self.requested_by))

    def is_retry_of(self, job: StoredJob, tick: int) -> bool:
        return self.trigger is Trigger.RETRY and self.job is job and self.tick == tick

    def activation(self) -> Activation:
        return Activation(
            self.activation_id, self.job.job(), self.tick, self.until_tick, self.attempt, self.trigger, self.run_at,
            self.payload or "", self.beside,
        )  # fmt: skip


@dataclass
class StoredAction:
    action: str
    actor: str
    note: str
    job_id: int | None
    details: dict[str, object]
    deployment: str = ""
    at: int = 0
    template: str = ""


@dataclass
class SkipRow:
    job_id: int
    skipped: Skipped
    controller_id: str
    decided_at: int


@dataclass
class StoredController:
    info: ControllerInfo
    draining: bool
    lease_expires_at: int
    held_since: int


@dataclass
class StoredRunner:
    info: RunnerInfo
    last_seen_at: int
    held_since: int
    left_at: int | None = None
