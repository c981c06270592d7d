"""Many jobs in one call: made, changed or deleted together. See `Control` for what is done to single ones."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from cronring.schema.job import JobSpec
from cronring.schema.keys import JobKey

# Jobs in one statement. Their rows are handled at once on the loop, so this bounds that, too.
WRITTEN_AT_ONCE: Final = 1_000

T = TypeVar("T")


def sliced(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Slices, each of as many items as one statement writes."""
    return (items[at : at + WRITTEN_AT_ONCE] for at in range(0, len(items), WRITTEN_AT_ONCE))


class NewJob(NamedTuple):
    """A job for a verb of an active module, made through the API.

    One whose target is a queue stands under the module of that queue (cronring.schema.queues).
    """

    namespace: str
    module: str
    verb: str
    name: str
    spec: JobSpec
    template: str = ""  # that it starts from; its values stand in the spec
    run_now: bool = False  # run it once, too, in the transaction that makes it; not if the job is there already

    @property
    def key(self) -> str:
        """`module.verb:name`."""
        return str(JobKey(self.namespace, self.module, f"{self.verb}:{self.name}"))


class Seen(NamedTuple):
    """The parts of a job's row by which a change was judged, and with which it was merged."""

    job_id: int
    deployment: str
    spec: JobSpec


class JobChange(NamedTuple):
    """The fields `names` of a job's spec become as in `spec`; the others stay.

    `seen` None: make the change even if the job was changed meanwhile.
    """

    spec: JobSpec
    names: tuple[str, ...]
    seen: Seen | None = None

    @classmethod
    def to(cls, seen: Seen | None = None, **fields: Any) -> "JobChange":
        """To these."""
        return cls(JobSpec(**fields), tuple(fields), seen)


class Who(NamedTuple):
    """Who writes jobs, and why. `set_name`: the set by whose file it is done; "": by hand."""

    by: str
    note: str = ""
    set_name: str = ""

    @property
    def details(self) -> dict[str, object]:
        """What the action keeps of it."""
        return {"set": self.set_name} if self.set_name else {}


class JobDone(NamedTuple):
    """The outcome for one job of many. `job_id` 0: nothing was written. `unchanged`: it was so already.

    `updated`: it was to be made, but existed. As its target is a queue, it was changed into what was asked for.
    """

    key: str
    job_id: int = 0
    unchanged: bool = False
    updated: bool = False


def as_change(job: NewJob) -> JobChange:
    """The change that turns an existing job of that key into the job that is asked for."""
    anchor = () if job.spec.anchor is None else ("anchor",)
    return JobChange(job.spec, tuple(name for name in JobSpec._fields if name != "anchor") + anchor)


Outcome = JobDone | Exception
"""Or why nothing became of it: what the method for a single job would raise."""


def done(outcomes: Sequence[Outcome]) -> JobDone:
    """The outcome of the only job. Raises it if it is an error."""
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def fails(planned: Mapping[str, object]) -> bool:
    """Whether one of them does."""
    return any(isinstance(each, Exception) for each in planned.values())


class ManyJobs(Protocol):
    """Each method is one transaction. It returns what became of each job, in the order given.

    `whole`: if one of them can't be done, none is; the others' outcomes then have no ids. `dry_run`: nothing is done.
    Raises StoreUnavailable and StoreError as Store does.
    """

    async def create_jobs(
        self, jobs: Sequence[NewJob], by: str, note: str = "", *, whole: bool = False, dry_run: bool = False
    ) -> list[Outcome]:
        """Idempotent: if the same job exists already, nothing changes. Conflict if its key has a different job.

        But a job whose target is a queue is changed into what is asked for.
        """
        ...

    async def update_jobs(
        self,
        changes: Mapping[str, JobChange],
        by: str,
        note: str = "",
        *,
        whole: bool = False,
        dry_run: bool = False,
    ) -> list[Outcome]:
        """By their keys."""
        ...

    async def delete_jobs(
        self,
        keys: Sequence[str],
        by: str,
        note: str = "",
        *,
        labels: Mapping[str, str] = MappingProxyType({}),
        seen: Mapping[str, Seen] = MappingProxyType({}),
        whole: bool = False,
        dry_run: bool = False,
    ) -> list[Outcome]:
        """Conflict for a job that lacks one of these labels by now; Outdated if it is no longer as `seen`.

        A key that is given twice is deleted once.
        """
        ...
