"""What the shell must offer a node. `Store` is held by tests/conformance against memory and PostgreSQL alike."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from cronring.controller.core.model import (
    Activation,
    ActivationRequest,
    ActivationResult,
    ClaimRequest,
    ClaimResult,
    EndRequest,
    EndResult,
    EnqueueRequest,
    EnqueueResult,
    Execution,
    Job,
    LeaseRenewal,
    RunnerInfo,
    SkipRequest,
)
from cronring.controller.core.orders.orders import JobOrder
from cronring.controller.core.orders.orphaning import Misfit
from cronring.controller.errors import Conflict
from cronring.controller.ports.many import JobChange, ManyJobs, NewJob, Seen
from cronring.schema.execution import Report
from cronring.schema.module import Module


class ControllerInfo(NamedTuple):
    """A controller as its row in `controllers` describes it."""

    controller_id: str
    grpc_address: str  # for people and services
    http_address: str
    pid: int
    version: str
    zone_data: str = ""  # the version of it by which this one reckons ticks; "": not known
    peer_address: str = ""  # for controllers and runners; "": grpc_address

    @property
    def gossip_address(self) -> str:
        return self.peer_address or self.grpc_address


class SentModule(NamedTuple):
    """A module that was not judged yet.

    `fingerprint`: hex SHA-256 of its bytes. `judge`: returns it in canonical form, or raises InvalidModule.
    """

    namespace: str
    name: str
    fingerprint: str
    judge: Callable[[], Awaitable[Module]]


class ActiveVersion(NamedTuple):
    """Of a module. None: none is active."""

    deployment: str | None = None
    digest: str | None = None
    min_replicas: int = 0


CheckActive = Callable[[ActiveVersion], None]
"""Is told which version is active, under its module's lock; raises to leave all as it is."""


class Deployed(NamedTuple):
    """What CreateDeployment did. `jobs` are the added and the carried-over ones, as they are now.

    For a runner that comes back they are empty: it needs its deployment's key only. `orphaned`: jobs made through the
    API that have lost their verb by it; `back`: those that have it again. `misfits`: of a dry run, the jobs whose
    payload this version's verb doesn't take.
    """

    key: str
    active: bool
    created: bool  # False: this digest was already the active one
    added: tuple[str, ...]
    removed: tuple[str, ...]
    carried_over: tuple[str, ...]
    jobs: list[Job]
    orphaned: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    misfits: Sequence[Misfit] = ()


class ActivatedDeployment(NamedTuple):
    """`deployed.created` False: it was the active one already. `previous`: the key of the one whose place it took.

    `running`: executions of the module's other versions that go on to their end.
    """

    deployed: Deployed
    previous: str | None
    running: int


class Killed(NamedTuple):
    """What KillDeployment did: `removed` were declared, `orphaned` were made through the API."""

    removed: tuple[str, ...] = ()
    orphaned: tuple[str, ...] = ()


class Store(Protocol):
    """What controllers do in PostgreSQL: each method is one statement or one transaction.

    Every method raises StoreUnavailable (controller/errors.py) when the database can't be reached, or the outcome of
    the statement is unknown: retry later. It raises StoreError for anything that a retry won't mend.
    """

    async def create_deployment(
        self,
        module: Module,
        digest: str,
        min_replicas: int,
        timeout_ms: int,
        activate: bool,
        default_jitter: str = "",
        by: str = "",
        note: str = "",
        *,
        dry_run: bool = False,
        fingerprint: str = "",
    ) -> Deployed:
        """Make this version the active one. Idempotent by digest. `by` and `note` are kept. `dry_run`: change nothing.

        `fingerprint`: of the bytes that the module was read from, kept for `register_deployment`.

        Raises controller.errors.Conflict if that digest names another schema, or jobs would follow each other.

        `activate` False (a runner registers): activate it only if its digest was never seen. A known digest stays as
        it is: a runner that merely reconnects must undo neither a newer version nor a kill.

        One transaction: the new one active, the previous one's min_replicas 0; jobs removed, added, or carried over by
        (module, verb). Those made through the API are orphaned instead of removed. NOTIFYs. `timeout_ms` and
        `default_jitter`: for verbs that state none.
        """
        ...

    async def register_deployment(
        self, sent: SentModule, digest: str, timeout_ms: int, default_jitter: str = "", by: str = "",
        soon_ms: int | None = None,
    ) -> Deployed:  # fmt: skip
        """As create_deployment with `activate` False. If the same bytes came before, the module is not judged again.

        `soon_ms`: the answer's `jobs` are only those due within this time, as there may be ten thousand. If several
        ask at once, one judges the module; the others wait. Raises what `judge` raises.
        """
        ...

    async def activate_deployment(
        self, key: str, min_replicas: int, timeout_ms: int, default_jitter: str = "", by: str = "", note: str = "",
        *, dry_run: bool = False, check: CheckActive | None = None,
    ) -> ActivatedDeployment:  # fmt: skip
        """Make an existing version the active one; as create_deployment. Raises controller.errors.NotFound."""
        ...

    async def kill_deployment(
        self, key: str, by: str = "", note: str = "", *, dry_run: bool = False, check: CheckActive | None = None
    ) -> Killed:
        """min_replicas 0, jobs removed, or orphaned. Raises cronring.controller.errors.NotFound."""
        ...

    async def find_active(self, keys: Collection[str]) -> frozenset[str]:
        """Those of these deployments that are the active ones of their modules."""
        ...

    async def renew_lease(
        self,
        controller: ControllerInfo,
        draining: bool,
        lease_ms: int,
        runner_ids: tuple[str, ...],
        lost_after_ms: int,
        cancelling: tuple[int, ...] = (),
    ) -> LeaseRenewal:
        """Renew the leases of it and its runners. Returns what to sweep, and what to cancel besides `cancelling`."""
        ...

    async def remove_controller(self, controller_id: str) -> None:
        """A graceful leave: the lease ends. Others adopt what still runs, and the row stays until then."""
        ...

    async def find_peers(self) -> list[ControllerInfo]:
        """Controllers whose lease is valid."""
        ...

    async def note_zone_data(self, version: str) -> None:
        """From now on ticks may be decided by this version of the zones' rules."""
        ...

    async def register_runner(self, runner: RunnerInfo) -> None: ...
    async def runner_left(self, runner_id: str) -> None: ...
    async def get_cron_jobs(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Job]]:
        """(PostgreSQL's now, jobs of the slots due before now + window, executing ones among them)."""
        ...

    async def get_overdue_jobs(self, slots: tuple[int, ...], delay_ms: int, at_most: int) -> tuple[int, list[Job]]:
        """(PostgreSQL's now, idle jobs of active deployments in the slots with next_execution <= now - delay).

        In order of ids; if there are more than `at_most`, the first of them.
        """
        ...

    async def start_cron_jobs(
        self, controller_id: str, requests: list[ClaimRequest], hard_grace_ms: int
    ) -> tuple[int, list[ClaimResult]]: ...

    async def enqueue_cron_jobs(
        self, controller_id: str, requests: list[EnqueueRequest]
    ) -> tuple[int, list[EnqueueResult]]:
        """Complete due ticks by putting their messages into their queues, under a valid lease.

        A message that PostgreSQL refuses fails its own tick alone: that one is claimed, and its report tells the error.
        """
        ...

    async def end_cron_jobs(self, controller_id: str, requests: list[EndRequest]) -> list[EndResult]: ...
    async def skip_ticks(self, controller_id: str, requests: list[SkipRequest]) -> list[Job]: ...
    async def get_activations(self, slots: tuple[int, ...], window_ms: int) -> tuple[int, list[Activation]]:
        """(PostgreSQL's now, waiting activations of the slots with run_at before now + window)."""
        ...

    async def get_followers(self, activation_ids: tuple[int, ...]) -> tuple[int, list[Activation]]:
        """(PostgreSQL's now, the existing ones of these activations whose jobs are not paused)."""
        ...

    async def start_activations(
        self, controller_id: str, requests: list[ActivationRequest], hard_grace_ms: int
    ) -> tuple[int, list[ActivationResult]]:
        """Claim those that are due, whose job may run now (idle, or `beside`, or with room among its executions), if
        the lease is valid. A retry whose tick is no longer its job's latest is removed: the next tick superseded it.
        """
        ...

    async def adopt_executions(
        self, controller_id: str, from_ids: tuple[str, ...], runner_ids: tuple[str, ...] = ()
    ) -> list[Execution]:
        """Take over what these controllers left unfinished, on these runners or (none named) on all."""
        ...

    async def get_unfinished(self, execution_ids: tuple[int, ...]) -> list[Execution]: ...
    async def get_held(self, controller_id: str, execution_ids: tuple[int, ...]) -> list[Execution]:
        """Those that are unfinished, and that nobody else has adopted."""
        ...

    async def get_lost(self, lost_after_ms: int) -> list[Execution]: ...
    async def get_overdue_executions(self) -> list[Execution]: ...
    async def get_queue_reports(self, controller_id: str, known: tuple[int, ...], at_most: int) -> list[Report]:
        """How unfinished executions without a runner ended, by consumers or by claims: those of this controller.

        Those of `known` are left out.
        """
        ...


class OutputState(Enum):
    """What a part of a run's output says of the run. After any but RUNNING, no part follows."""

    RUNNING = "running"
    ENDED = "ended"  # this is the rest of it
    UNKNOWN = "unknown"  # its runner doesn't run it (yet, or any more)
    REFUSED = "refused"  # too many follow runs of that runner
    AWAY = "away"  # its runner's stream to this controller has ended
    SLOW = "slow"  # the follower has left too much unread


class OutputPart(NamedTuple):
    """`offset`: of the first byte of `data` in all that the run has printed."""

    offset: int
    data: bytes
    state: OutputState


class OutputParts(Protocol):
    """The first part comes at once, empty if nothing has been printed yet."""

    async def next(self) -> OutputPart: ...
    def close(self) -> None: ...


class Outputs(Protocol):
    """What runs print, from connected runners."""

    def follow(self, runner_id: str, execution_id: int, from_offset: int) -> OutputParts | None:
        """None: that runner isn't connected here."""
        ...


class Topic(Enum):
    """What is notified, on a channel that begins with the schema's name."""

    JOBS = "jobs"  # some have changed
    CANCELS = "cancels"  # somebody wants executions cancelled
    PLACES = "places"  # a limit that was full has a place
    CONSUMED = "consumed"  # consumers have ended messages that executions wait for
    WEBHOOKS = "webhooks"  # there is a first webhook to tell


class Notified(NamedTuple):
    """`payload`: of places, the limit that has one; "": any may."""

    topic: Topic
    payload: str = ""


class Notifications(Protocol):
    """PostgreSQL's NOTIFY, as a hint: a lost one costs time, never a tick."""

    def listen(self) -> AsyncIterator[frozenset[Notified]]: ...


class Backfill(NamedTuple):
    """Ticks of [from_at, until_at], one after the other; `beside` the job's own runs, `again` though they completed."""

    from_at: int
    until_at: int
    beside: bool
    again: bool


class RunByHand(NamedTuple):
    """As an order to many jobs: run once. `payload` None: each one's own."""

    payload: str | None = None
    note: str = ""


class Controlled(NamedTuple):
    """What an order made of a job. `changed` False: it was so already. `details`: as they are kept with the action.

    `running_execution_id`: what held it when the order came. `cancelling`: how many of its executions are told to stop.
    `activation`: of a run by hand.
    """

    job: Job
    changed: bool
    details: Mapping[str, object]
    running_execution_id: int | None = None
    cancelling: int = 0
    activation: Activation | None = None


class MadeJob(NamedTuple):
    """`unchanged`: it was there already, and the same."""

    job: Job
    unchanged: bool


class Control(ManyJobs, Protocol):
    """What operators do to jobs: each method is one transaction, idempotent where a repetition means the same.

    Raises StoreUnavailable and StoreError as Store does, and NotFound for a key that no job has. It raises Conflict if
    the job's state doesn't allow the order; the message says what state that would take.
    """

    async def make_job(self, job: NewJob, by: str, note: str = "") -> MadeJob:
        """Conflict if the module isn't active, lacks the verb, or another job with this key differs.

        cronring.controller.core.orders.control.NeverRuns for a schedule whose ticks are all past; so update_job.
        """
        ...

    async def update_job(self, key: str, change: JobChange, by: str, note: str = "") -> Job:
        """A new schedule takes effect at its next tick; the old one never runs again. Conflict unless source api.

        A job that is so already stays untouched, and no action is kept.
        cronring.controller.errors.Outdated if the row is no longer what `change.seen` says: nothing is changed then.
        """
        ...

    async def delete_job(self, key: str, by: str, note: str = "", seen: Seen | None = None) -> None:
        """What runs finishes. Conflict unless source api; Outdated if it is no longer what `seen` says."""
        ...

    async def pause_job(self, key: str, by: str, note: str) -> Job: ...
    async def resume_job(self, key: str, by: str) -> Job:
        """Ticks since the pause are skipped with that reason."""
        ...

    async def order_job(self, key: str, order: JobOrder, by: str, *, dry_run: bool = False) -> Controlled:
        """See cronring.controller.core.orders.orders. `dry_run`: only say what it would do. Raises
        IllegalTransition, too.
        """
        ...

    async def order_jobs(
        self, job_ids: Sequence[int], order: JobOrder | RunByHand, by: str, *, dry_run: bool = False
    ) -> list[Controlled | Conflict | None]:
        """The same for many at once: what became of each, or why nothing did; None: there is no such job any more."""
        ...

    async def trigger_job(self, key: str, by: str, payload: str | None, note: str = "") -> Activation: ...
    async def backfill_job(self, key: str, by: str, backfill: Backfill, note: str = "") -> Activation | None:
        """None: no tick in the range."""
        ...

    async def list_activations(
        self, key: str, *, after: tuple[int, int] | None = None, limit: int | None = None
    ) -> list[Activation]:
        """What waits: retries, manual runs, backfills; the next one first. `after`: a run_at and an id."""
        ...

    async def cancel_activation(self, key: str, activation_id: int, by: str = "", note: str = "") -> bool: ...


class ExecutionControl(Protocol):
    """What operators do to single executions. Raises as Control does."""

    async def cancel_execution(self, execution_id: int, by: str, note: str) -> bool:
        """Mark it, and NOTIFY. False: it does not exist, has ended, or was marked before. Its runner isn't told here.

        The job's policy does not retry a marked execution, however it ends.
        """
        ...

    async def retry_execution(self, execution_id: int, by: str, note: str = "") -> Activation:
        """A further attempt at its tick, as soon as the job is free. Neither a later tick nor a pause prevents it.

        A retry that waits already is returned, and skips the rest of its backoff. NotFound; Conflict if an attempt at
        this tick runs or has completed, or the job was removed.
        """
        ...
