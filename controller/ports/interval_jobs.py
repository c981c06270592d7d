"""Jobs of the interval scheduler's contract, as they are kept. Instants are int microseconds since 1970."""

from typing import NamedTuple, Protocol

from cronring.controller.core.model import Activation, Job
from cronring.controller.core.orders.interval_states import IntervalOrder, IntervalStatus
from cronring.controller.ports.many import JobChange, NewJob


class Terms(NamedTuple):
    """What the caller has given, as canonical JSON; and its source, by which jobs are listed."""

    text: str
    source_id: str | None = None


class IntervalRun(NamedTuple):
    """An execution. `outcome` None: it goes on. `number`: of its job, 1, 2, 3... `metrics`: JSON."""

    execution_id: int
    number: int
    outcome: str | None
    claimed_at: int
    started_at: int | None
    ended_at: int | None
    error_type: str | None
    error_message: str | None
    stack: str | None
    cpu_us: int | None
    memory_peak_bytes: int | None
    attempt: int
    metrics: str | None


class LatestRun(NamedTuple):
    """The parts of a job's latest execution that are shown with the job; all None: it never ran."""

    claimed_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    attempt: int | None = None
    outcome: str | None = None
    error_type: str | None = None
    error_message: str | None = None


class IntervalJobRow(NamedTuple):
    """A job: the columns of the view cron_interval_job_details. `waiting_attempt`: of the run that waits beside the
    schedule, if one does.
    """

    interval_id: str
    job_id: int
    key: str
    namespace: str
    terms: Terms
    status: IntervalStatus
    created_at: int
    changed_at: int
    next_run_at: int | None
    paused_at: int | None
    cancelled_at: int | None
    orphaned: bool
    waiting_attempt: int | None
    latest: LatestRun = LatestRun()


class IntervalFilter(NamedTuple):
    """`status` "": any. `source_id` None: any."""

    namespace: str
    status: str = ""
    source_id: str | None = None


class IntervalFigures(NamedTuple):
    """Of all jobs of a namespace. `executions`: begun; `duration_us`: of the `ended`. `last_check`: when a controller
    last renewed its lease.
    """

    counted_at: int
    executions: int
    ended: int
    completed: int
    cancelled: int
    duration_us: int
    leases_cleared: int
    last_check: int | None


class Changed(NamedTuple):
    """The job as a node knows it, and the run that was made for it at once, if any."""

    job: Job
    activation: Activation | None = None


class IntervalJobs(Protocol):
    """Each method is one transaction. Raises StoreUnavailable and StoreError as controller.ports.store.Store, and
    NotFound for an id that no job of that namespace has.
    """

    async def make_interval_job(self, job: NewJob, terms: Terms, by: str, *, runs: bool) -> Changed:
        """The job's name is the id by which callers know it. `runs`: at once. Raises as Control.make_job."""
        ...

    async def change_interval_job(
        self, namespace: str, interval_id: str, change: JobChange, seen: Terms, terms: Terms, by: str, *, runs: bool
    ) -> Changed:
        """`runs`: at once, beside any schedule. Raises IllegalTransition. Raises Outdated where the terms are no longer
        `seen`, or the job is no longer what `change.seen` says.
        """
        ...

    async def order_interval_job(self, namespace: str, interval_id: str, order: IntervalOrder, by: str) -> Changed:
        """Raises IllegalTransition."""
        ...

    async def get_interval_job(self, namespace: str, interval_id: str) -> IntervalJobRow: ...


class IntervalReads(Protocol):
    """What is only read. Raises StoreUnavailable and StoreError as controller.ports.store.Store."""

    async def list_interval_jobs(
        self, where: IntervalFilter, limit: int, offset: int
    ) -> tuple[list[IntervalJobRow], int]:
        """The newest first, and how many there are."""
        ...

    async def count_interval_jobs(self, namespace: str) -> dict[str, int]:
        """By status."""
        ...

    async def list_interval_runs(self, job_id: int, limit: int, offset: int) -> tuple[list[IntervalRun], int]:
        """The newest first, and how many there are."""
        ...

    async def get_interval_run(self, namespace: str, execution_id: int) -> tuple[str, IntervalRun]:
        """With the id of its job. Raises NotFound."""
        ...

    async def interval_figures(self, namespace: str) -> IntervalFigures: ...


class IntervalStore(IntervalJobs, IntervalReads, Protocol):
    """Both."""
