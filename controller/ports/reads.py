"""What the API asks of PostgreSQL. Reading only; instants are int microseconds since 1970, None where there is none."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from cronring.controller.core.ledger.lateness import lateness_us
from cronring.schema.job import JobSpec
from cronring.schema.keys import namespace_of

Namespaces = tuple[str, ...] | None
"""What a reading is confined to, beside what it asks for; None: to nothing. docs/decisions/0069."""


def within(namespaces: Namespaces, key: str) -> bool:
    """Whether a job, a deployment or a template of that key is in them."""
    return namespaces is None or namespace_of(key) in namespaces


Cursor = tuple[int, ...]
"""Where a page of a list ended, so that the next one goes on there; (): at the first. What it holds, Reads knows."""


class JobSort(StrEnum):
    """What of a list of jobs comes first."""

    KEY = "key"  # in the order of their keys
    NEXT = "next"  # those that run next
    LAST = "last"  # those that ran last
    LATENESS = "lateness"  # those whose last run began the latest after its run_at
    SUCCESS = "success"  # those that have run, and whose last success is the longest ago
    FAILURES = "failures"  # those with the most ticks in a row that ended without success


class ExecutionSort(StrEnum):
    """What of a list of executions comes first."""

    NEWEST = "newest"
    SLOWEST = "slowest"  # from start to end
    LATEST = "latest"  # those that began the longest after their run_at


class JobFilter(NamedTuple):
    """Empty: any. `outcomes`: of the last run that has ended. `keys`: any of them.

    `contains`: texts that are in the key, in any case.
    """

    namespace: str = ""
    module: str = ""
    verb: str = ""
    statuses: tuple[str, ...] = ()
    labels: Mapping[str, str] = MappingProxyType({})
    namespaces: Namespaces = None
    outcomes: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class ActionRow(NamedTuple):
    """What an operator did to a job, deployment, execution or template; "" and None: to none. `details`: JSON."""

    action_id: int
    at: int
    job: str
    deployment: str
    execution_id: int | None
    action: str
    actor: str
    note: str
    details: str
    template: str = ""


class ActionFilter(NamedTuple):
    """Of the jobs that have had this key, or of this deployment, or template; "": of any, in these namespaces.

    `since`: at or after.
    """

    job: str = ""
    deployment: str = ""
    since: int | None = None
    template: str = ""
    namespaces: Namespaces = None


class JobRow(NamedTuple):
    """A job as people see it: the columns of the view cron_job_details, which says what `status` is.

    `next_run_at` is `next_execution` in the API. `spec`: with a payload only from get_job. `failures`: ticks in a row
    that ended without success. `last_success`: the latest tick whose execution completed. `running`: executions of an
    overlap "allow" that run now. `last_tick`: the latest one claimed. `paused_tick`: the first that a pause keeps from
    running.
    """

    job_id: int
    key: str
    namespace: str
    module: str
    verb: str
    status: str
    slot: int
    deployment: str
    created_at: int
    removed_at: int | None
    next_tick: int | None
    next_run_at: int | None
    last_outcome: str | None
    last_run_at: int | None
    last_started_at: int | None
    last_ended_at: int | None
    running_execution_id: int | None
    source: str = "annotation"
    paused_at: int | None = None
    paused_by: str | None = None
    paused_note: str | None = None
    failures: int = 0
    last_success: int | None = None
    running: int = 0
    last_tick: int | None = None
    paused_tick: int | None = None
    paused_until: int | None = None
    cancelled_at: int | None = None
    cancelled_by: str | None = None
    cancelled_note: str | None = None
    template: str = ""
    set_name: str = ""  # that owns it
    orphaned_at: int | None = None
    default_timeout_ms: int | None = None  # of the cluster's defaults, as the next two
    default_late_after_ms: int | None = None
    default_retries: int = 0
    spec: JobSpec = JobSpec()
    skipped: tuple[tuple[str, int], ...] = ()  # (reason, ticks) of all time; empty in answers of job_changes


class ExecutionFilter(NamedTuple):
    """Empty: any. `outcomes`: any of them; "running" is one. `since`, `until`: tick at or after, at or before.

    `after_id`: only ids above. `namespace`, `module`, `verb`, `labels`: of their jobs, as these are now.
    """

    job: str = ""
    outcomes: tuple[str, ...] = ()
    since: int | None = None
    after_id: int = 0
    until: int | None = None
    namespaces: Namespaces = None
    namespace: str = ""
    module: str = ""
    verb: str = ""
    labels: Mapping[str, str] = MappingProxyType({})
    runner: str = ""


class ExecutionRow(NamedTuple):
    """An execution: the columns of the view cron_execution_details, and five more that only get_execution knows.

    `started_at` is known once its runner has reported. `payload`: what it ran with. `payload_of`: whose payload that
    was, "run" (its own), "job", or "" if nobody knows any more. `holds_job` False: it ran beside others.
    `cancel_requested_at`: when somebody wanted it cancelled. `number`: counts the job's executions, from 1. `cpu_us`,
    `memory_peak_bytes`: what its code used. The peak is that of its child process; `memory_shared`: other runs were in
    that child meanwhile. `metrics`: JSON that the verb reported.
    """

    execution_id: int
    job: str
    deployment: str
    tick: int
    run_at: int
    claimed_at: int
    started_at: int | None
    ended_at: int | None
    outcome: str | None
    attempt: int
    trigger: str
    controller_id: str
    runner_id: str
    error_type: str | None
    error_message: str | None
    missed: int = 0
    previous_tick: int | None = None
    previous_success: int | None = None
    holds_job: bool = True
    retry_at: int | None = None
    cancel_requested_at: int | None = None
    cancel_requested_by: str | None = None
    cancel_note: str | None = None
    number: int = 0
    cpu_us: int | None = None
    memory_peak_bytes: int | None = None
    memory_shared: bool | None = None
    job_id: int = 0
    output: str | None = None
    payload: str | None = None
    stack: str | None = None
    metrics: str | None = None
    payload_of: str = ""

    @property
    def lateness_us(self) -> int:
        return lateness_us(self.run_at, self.claimed_at, self.started_at)


class ExecutionPage(NamedTuple):
    """`next`: where the next page begins; (): this was the last. A page with few or no rows need not be the last one.

    `looked_to`: of such a page, the tick down to which all executions were looked at.
    """

    rows: list[ExecutionRow]
    next: Cursor = ()
    looked_to: int | None = None


class ExecutionCount(NamedTuple):
    """`at_least`: there may be more executions, which were not looked at."""

    executions: int
    at_least: bool


class JobPage(NamedTuple):
    """As ExecutionPage; all rows that fit are looked at."""

    rows: list[JobRow]
    next: Cursor = ()


class TickRun(NamedTuple):
    """The latest attempt at a tick. `outcome` None: it runs. `completed`: some attempt has."""

    tick: int
    execution_id: int
    outcome: str | None
    completed: bool


class DeploymentFilter(NamedTuple):
    """Empty: any."""

    namespace: str = ""
    module: str = ""
    active_only: bool = False
    namespaces: Namespaces = None


class DeploymentRow(NamedTuple):
    """`runners`: how many live runners host it. `jobs`: how many jobs it has now."""

    deployment_id: int
    key: str
    namespace: str
    module: str
    digest: str
    min_replicas: int
    created_at: int
    activated_at: int | None
    deactivated_at: int | None
    schema_text: str
    runners: int
    jobs: int


class DueRow(NamedTuple):
    """A job's next tick."""

    job: str
    tick: int
    run_at: int
    running: bool  # a run of the job goes on


class BookRow(NamedTuple):
    """An entry of a job's books: a run, or (`skipped`: why) a range of ticks that didn't run."""

    job: str
    tick: int
    last_tick: int
    ticks: int
    skipped: str
    execution_id: int
    outcome: str
    trigger: str
    attempt: int
    run_at: int
    claimed_at: int
    started_at: int | None
    ended_at: int | None
    error_type: str


class ControllerRow(NamedTuple):
    """A row of `controllers`. A row with an expired lease stays until no unfinished execution has its id.

    `drill_until`: the controller is in a drill, and claims nothing until then; None: it claims what is due.
    """

    controller_id: str
    grpc_address: str
    http_address: str
    pid: int
    version: str
    draining: bool
    started_at: int
    lease_expires_at: int
    leased: bool
    drill_until: int | None = None


class RunnerRow(NamedTuple):
    runner_id: str
    hostname: str
    pid: int
    version: str
    deployments: tuple[str, ...]
    started_at: int
    last_seen_at: int
    alive: bool
    left_at: int | None = None  # it drained and went
    sync_places: int = 0  # see RunnerInfo
    async_places: int = 0


class WatchPosition(Protocol):
    """How far a watcher has read. Its contents are known to Reads alone."""

    @property
    def database_now(self) -> int: ...


class ExecutionChange(NamedTuple):
    """`started`: its start is news. Its end is news too, if the row has an outcome."""

    row: ExecutionRow
    started: bool


class JobReads(Protocol):
    """What is asked before a job is changed. Raises as Reads does."""

    async def database_now(self) -> int: ...

    async def list_jobs(self, where: JobFilter, after_key: str, limit: int) -> list[JobRow]:
        """Jobs that are not removed, in order of their keys, from after `after_key` on ("": from the first)."""
        ...

    async def get_job(self, key: str) -> JobRow:
        """Raises cronring.controller.errors.NotFound."""
        ...

    async def list_deployments(self, where: DeploymentFilter, before_id: int, limit: int) -> list[DeploymentRow]:
        """The newest first, from before `before_id` on (0: from the newest)."""
        ...

    async def count_deployments(self, where: DeploymentFilter) -> int:
        """How many list_deployments has, on all pages."""
        ...

    async def get_deployment(self, key: str) -> DeploymentRow:
        """Raises cronring.controller.errors.NotFound."""
        ...


class Reads(JobReads, Protocol):
    """Every method raises cronring.controller.errors.StoreUnavailable or StoreError, as Store's do."""

    async def list_actions(self, where: ActionFilter, before_id: int, limit: int) -> list[ActionRow]:
        """The newest first, from before `before_id` on (0: from the newest). NotFound for what never was."""
        ...

    async def rank_jobs(self, where: JobFilter, sort: JobSort, cursor: Cursor, limit: int) -> JobPage:
        """From after `cursor` on, by anything but the key. Raises Conflict for more than can be ranked."""
        ...

    async def find_jobs(self, where: JobFilter, after_id: int, limit: int) -> list[tuple[int, str]]:
        """Ids and keys of jobs that are not removed, in order of their ids."""
        ...

    async def count_jobs(self, where: JobFilter) -> int:
        """How many jobs find_jobs finds on all pages."""
        ...

    async def suggest(self, kind: str, begun: str, namespaces: Namespaces, limit: int) -> list[str]:
        """Names that begin with `begun`, in order. `kind`: "job", "label" (KEY=VALUE), "verb", "module" or "namespace".

        The look is bounded, so names may be missing.
        """
        ...

    async def get_jobs(self, keys: Sequence[str]) -> list[JobRow]:
        """The existing jobs of these keys, with their payloads, and without counts of skipped ticks."""
        ...

    async def list_executions(
        self, where: ExecutionFilter, sort: ExecutionSort, cursor: Cursor, limit: int
    ) -> ExecutionPage:
        """From after `cursor` on. The newest: the highest id first; of some jobs, the latest tick.

        Raises NotFound when there is no such job, and Conflict for more than can be ranked.
        """
        ...

    async def count_executions(self, where: ExecutionFilter) -> ExecutionCount:
        """Counts as far as one answer looks. Raises NotFound when there is no such job."""
        ...

    async def get_execution(self, execution_id: int) -> ExecutionRow:
        """Raises cronring.controller.errors.NotFound."""
        ...

    async def list_tick_runs(self, job_id: int, first_tick: int, last_tick: int) -> list[TickRun]:
        """What ran of a job's ticks in [first_tick, last_tick], ascending; ticks that never ran are absent.

        Manual runs are of no tick of the schedule.
        """
        ...

    async def list_books(
        self, keys: Sequence[str], last: int, before: int | None, namespaces: Namespaces = None
    ) -> list[BookRow]:
        """The latest `last` entries of each existing job, in the order of `keys`, the latest tick first."""
        ...

    async def list_due(self, within_ms: int, limit: int, namespaces: Namespaces = None) -> list[DueRow]:
        """What is due within so long, the earliest first."""
        ...

    async def list_controllers(self) -> list[ControllerRow]: ...
    async def list_runners(self) -> list[RunnerRow]: ...
    async def job_position(self) -> WatchPosition:
        """Where job_changes begins: nothing that changes from now on is left out."""
        ...

    async def job_changes(self, position: WatchPosition) -> tuple[WatchPosition, Sequence[JobRow]]:
        """The position after this one, and jobs that may have changed in between; removed ones have `removed_at`."""
        ...

    async def execution_position(self) -> WatchPosition:
        """Where execution_changes begins: every start and end from now on."""
        ...

    async def execution_changes(self, position: WatchPosition) -> tuple[WatchPosition, Sequence[ExecutionChange]]:
        """The position after this one, and what has started or ended in between; by id, up to 20,000 at a time."""
        ...

    def having_told(
        self, position: WatchPosition, after: WatchPosition, changes: Sequence[ExecutionChange]
    ) -> WatchPosition:
        """The position of a watcher between `position` and `after`, who was told only these of the changes there."""
        ...

    def news(self, position: WatchPosition, change: ExecutionChange) -> ExecutionChange | None:
        """The part of this change that is news after `position`: all of it, its end alone, or nothing (None)."""
        ...

    def encode_position(self, position: WatchPosition) -> bytes:
        """A position as bytes, for callers' tokens."""
        ...

    def decode_position(self, packed: bytes) -> WatchPosition:
        """What encode_position gave. Raises ValueError for anything else."""
        ...
