"""What the API tells, as plain values. Instants are aware datetimes in UTC; None where there is none (yet)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Pause:
    """Who stopped a job's ticks, and why."""

    at: datetime | None
    by: str
    note: str
    until: datetime | None  # it ends by itself then; None: when somebody resumes it


@dataclass(frozen=True, slots=True)
class Cancellation:
    """Who ended a job until it is restored, and why."""

    at: datetime | None
    by: str
    note: str


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What may be set of a job. `policy`: values by the names of schema.policy.FIELDS. The defaults are the verb's."""

    schedule: str = ""  # a pattern, "every 30m", "at 2026-03-01T08:00:00Z", or "manual"
    policy: Mapping[str, str | int | list[str]] = field(default_factory=dict)
    anchor: datetime | None = None  # of an interval
    payload: Any = None  # for the verb's parameter: a value that JSON has, or JsonText; None: none
    labels: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    on_disconnect: str = ""


@dataclass(frozen=True, slots=True)
class VerbTarget:
    """What a job runs, and the job's name beside it."""

    module: str
    verb: str
    name: str
    namespace: str = "default"


@dataclass(frozen=True, slots=True)
class QueueTarget:
    """Where a job puts a message for each tick, and the job's name beside it."""

    queue: str
    workspace: str = ""
    name: str = ""  # "": default
    namespace: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(JobSpec):
    """A schedule bound to a verb: its spec, with nothing left to defaults, and how it stands.

    `policy`: what isn't the default. `payload`: only from `get`, and from what changes a job.
    """

    key: str
    namespace: str
    module: str
    verb: str
    schedule_words: str
    status: str
    next_tick: datetime | None
    next_execution: datetime | None  # run_at of the next tick
    last_outcome: str | None
    last_started_at: datetime | None
    last_ended_at: datetime | None
    last_lateness_ms: float | None  # None before the first run
    deployment: str
    slot: int
    id: int
    created_at: datetime | None
    running_execution_id: int | None
    skipped: Mapping[str, int]  # ticks by reason
    timezone: str
    next_tick_local: str  # on the clocks of `timezone`, with their offset; "" for no tick
    source: str  # "annotation" | "api"
    paused: Pause | None
    failures: int  # ticks in a row without success
    last_success: datetime | None  # the latest tick that completed
    running: int  # executions that run now, with overlap "allow"
    cancelled: Cancellation | None
    unchanged: bool  # in the answer to what was to change it: it was so already
    jitter_is_default: bool = False  # the policy's jitter is what the cluster gives to a job that states none
    template: str = ""  # that it was made from
    set_name: str = ""  # that owns it
    orphaned_at: datetime | None = None  # since when no active version of its module has its verb; None: one has
    queue: str = ""  # where its ticks go as messages; "": its target is a verb
    workspace: str = ""  # of the queue
    timeout_from: str = ""  # who says its timeout: "cluster", "built_in"; "": the job, or its verb
    default_late_after: str = ""  # the cluster's, where its policy says none
    default_retries: int = 0  # likewise
    updated: bool = False  # in the answer to `schedule`: it was there, and was changed
    etag: str = ""  # of its definition, for `update` and `delete`; only from `get`, `create` and `update`


@dataclass(frozen=True, slots=True)
class Template:
    """Named defaults that jobs start from. `jobs`: that came from it, and are not deleted. `unchanged`: it was so."""

    namespace: str
    name: str
    description: str
    spec: JobSpec
    schedule_words: str
    created_at: datetime | None
    created_by: str
    changed_at: datetime | None
    changed_by: str
    revision: int
    jobs: int
    unchanged: bool = False
    etag: str = ""  # for `set` and `delete`; not from `list`


@dataclass(frozen=True, slots=True)
class SkippedTick:
    """`skipped` False: a dry run, or it was skipped so before."""

    job: Job
    tick: datetime | None
    skipped: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """How it went with one of many jobs. `problem` "": nothing was wrong. `key` "": only says how many there are."""

    key: str
    done: bool
    problem: str
    position: int
    total: int
    unchanged: bool
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Action:
    """What an operator did. `job`, `deployment`, `template` "" and `execution_id` None: to none."""

    id: int
    at: datetime | None
    job: str
    deployment: str
    execution_id: int | None
    action: str
    actor: str
    note: str
    details: Mapping[str, object]
    template: str = ""  # namespace/name


@dataclass(frozen=True, slots=True)
class Activation:
    """A run that waits beside a job's schedule."""

    id: int
    job: str
    trigger: str  # "retry" | "manual" | "backfill" | "after"
    tick: datetime | None
    until_tick: datetime | None  # of a backfill
    ticks_left: int  # of a backfill
    attempt: int
    run_at: datetime | None
    payload: str  # "": the job's own
    beside: bool
    execution_id: int = 0  # of `jobs.trigger`: what it has begun as; 0: it waits
    outputs_hidden: bool = False  # the payload is empty: it is not for you
    payload_of: str = ""  # "run": `payload`; "job": the job's, as it is when this begins


@dataclass(frozen=True, slots=True)
class BackfillTick:
    """A tick that a backfill would run, and how its latest attempt went before: `outcome` None: none ended."""

    tick: datetime | None
    execution_id: int | None
    outcome: str | None
    completed: bool


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill runs. `first_ticks`: of a dry run, 1,000 at most. `activation` None: it was one, or no tick."""

    ticks: int
    first_ticks: tuple[BackfillTick, ...]
    activation: Activation | None


class JobEventKind(StrEnum):
    """PRESENT: part of the first listing. LISTED: that listing is complete (`job` is None)."""

    PRESENT = "present"
    LISTED = "listed"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One step of a watch."""

    kind: JobEventKind
    job: Job | None


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt at one tick. `outcome` is None while it runs; `output` comes with `get` only."""

    id: int
    job: str
    tick: datetime | None
    run_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    outcome: str | None
    attempt: int
    trigger: str
    controller: str
    runner: str
    lateness_ms: float | None  # None before it started
    deployment: str
    error_type: str
    error_message: str
    output: str
    missed: int  # ticks passed over since the execution before
    previous_tick: datetime | None
    previous_success: datetime | None
    payload: str  # that it ran with; comes with `get` only, as does whose it was: "run", "job" or "" (not known)
    payload_of: str
    retry_at: datetime | None
    beside: bool  # it neither held the job nor set its next tick
    cancel_requested_at: datetime | None  # somebody wanted it cancelled, whatever became of it
    cancel_requested_by: str
    cancel_note: str
    number: int  # of its job: 1, 2, 3...
    duration_ms: float | None  # None while it runs
    cpu_ms: float | None  # what its code used; None: not known
    memory_peak_bytes: int | None  # of its child process; None: not known
    memory_shared: bool  # that process ran others meanwhile
    stack: str  # the author's frames of its traceback; comes with `get` only, as does the next
    metrics: dict[str, float | str | bool]  # what the verb reported
    trace_id: str  # by W3C Trace Context, as `ctx.traceparent` has it
    outputs_hidden: bool = False  # error_message, output, payload, stack and metrics are empty: they are not for you


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """Output of an execution, in UTF-8; it may end within a character. `gap`: bytes before it that are lost.

    `execution`: only in the last chunk, how it ended (or stands); without its output.
    """

    offset: int
    data: bytes
    gap: int
    execution: Execution | None


class ExecutionEventKind(StrEnum):
    """What happened. An execution that ended soon after its start is told of twice."""

    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class ExecutionEvent:
    """One step of a watch; its execution has no output."""

    kind: ExecutionEventKind
    execution: Execution


@dataclass(frozen=True, slots=True)
class Member:
    """A controller, as the one that answered sees it."""

    id: str
    grpc_address: str
    http_address: str
    status: str
    incarnation: int
    share: float  # of the slots, as primary, 0..1
    primary_slots: int
    backup_slots: int
    lease_expires_at: datetime | None
    pid: int
    version: str
    started_at: datetime | None
    drill_until: datetime | None = None  # for a drill: it claims nothing until then


@dataclass(frozen=True, slots=True)
class Runner:
    """A runner process that has registered. `left_at`: it drained and went; else, not alive, it is dead."""

    id: str
    hostname: str
    pid: int
    started_at: datetime | None
    last_seen_at: datetime | None
    deployments: tuple[str, ...]
    alive: bool
    left_at: datetime | None = None
    sync_places: int = 0  # runs of sync verbs that it holds at once of each module; 0: not told
    async_places: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """One controller's view of all. `clock_offset_ms`: its own wall clock minus PostgreSQL's.

    `console_url`: where browsers find the console. `trace_url_template`: where they find the trace of
    an execution, with {trace_id} in its place; "": controllers weren't told. `cluster_id`: the same from all
    controllers of this cluster, and from those of no other one.
    """

    answered_by: str
    members: tuple[Member, ...]
    runners: tuple[Runner, ...]
    database_time: datetime | None
    clock_offset_ms: float
    ring_digest: str
    console_url: str = ""
    trace_url_template: str = ""
    cluster_id: str = ""


@dataclass(frozen=True, slots=True)
class Ring:
    """Who owns each slot: indexes into `members`, -1 for none."""

    members: tuple[str, ...]
    primary: tuple[int, ...]
    backup: tuple[int, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Due:
    """A job's next tick, and when it is attempted."""

    job: str
    tick: datetime | None
    run_at: datetime | None


@dataclass(frozen=True, slots=True)
class Owners:
    """Who runs a job, and who is next. None: nobody."""

    job: str
    slot: int
    primary: str | None
    backup: str | None
    third: str | None  # who is the backup once the primary is gone


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be. `tick`: the first of `ticks`. `look`: the command to look with next."""

    kind: str
    job: str
    tick: datetime
    ticks: int
    execution_ids: tuple[int, ...]
    text: str
    look: str


@dataclass(frozen=True, slots=True)
class Audit:
    """What became of every tick that was due. `unaccounted`, `duplicates`, `early` and `undue` must be 0.

    `executed` is the sum of `on_time`, `late`, `caught_up` and `backfilled`. `pending`: due, and not decided yet.
    `undue`: executed or skipped by schedule, and never due. `outcomes`: of executions, unfinished ones as "running".
    `findings`: at most 20 of each kind. `walked`: jobs whose ticks were looked at one by one. `summarised_until`: of
    some jobs only counts are kept of ticks up to this. `remark`: what else may explain findings; empty: nothing.
    """

    ticks: int
    executed: int
    skipped: Mapping[str, int]
    late: int
    unaccounted: int
    duplicates: int
    early: int
    undue: int
    on_time: int
    caught_up: int
    backfilled: int
    running: int
    pending: int
    outcomes: Mapping[str, int]
    findings: tuple[Finding, ...]
    jobs: int
    walked: int
    until: datetime | None
    summarised_until: datetime | None
    remark: str = ""

    @property
    def clean(self) -> bool:
        return not (self.unaccounted or self.duplicates or self.early or self.undue)


@dataclass(frozen=True, slots=True)
class Skip:
    """Consecutive ticks that didn't run, for one reason. `controller` None: an operator, or a deployment."""

    reason: str
    first_tick: datetime | None
    last_tick: datetime | None
    ticks: int
    controller: str | None
    decided_at: datetime | None


@dataclass(frozen=True, slots=True)
class BookEntry:
    """A run, or (`skipped`: why) consecutive ticks that didn't run. `execution_id` None: it is no run."""

    tick: datetime | None
    last_tick: datetime | None
    ticks: int
    skipped: str
    execution_id: int | None
    outcome: str  # "": it runs
    trigger: str
    attempt: int
    duration_ms: float
    lateness_ms: float
    error_type: str


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A retry, a manual run or a backfill (`until_tick`) that waits beside the schedule."""

    id: int
    trigger: str
    tick: datetime | None
    until_tick: datetime | None
    attempt: int
    run_at: datetime | None
    requested_by: str


@dataclass(frozen=True, slots=True)
class Why:
    """What the books say around an instant, in sentences and as facts.

    `verdict`: executed, running, skipped, paused, waiting, overdue, future, not_due, not_followed, summarised or
    unaccounted.
    `tick` None: none was due at `at`. From `next_tick` on: how the job stands now.
    """

    sentences: tuple[str, ...]
    verdict: str
    job: str
    now: datetime | None
    at: datetime | None
    tick: datetime | None
    previous_tick: datetime | None
    following_tick: datetime | None
    attempts: tuple[Execution, ...]
    skip: Skip | None
    next_tick: datetime | None
    next_run_at: datetime | None
    next_tick_local: str
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str
    paused_note: str
    removed_at: datetime | None
    waiting: tuple[WaitingRun, ...]
    hosted: bool
    deployment: str
    timezone: str
