"""Many jobs in one call: made, changed or deleted together. See `Control` for what is done to single ones."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from cronring.schema.job import JobSpec
from cronring.schema.keys import JobKey

# Jobs of one statement, and so of one piece of work on the loop.
WRITTEN_AT_ONCE: Final = 1_000

T = TypeVar("T")


def sliced(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """So many as one statement writes."""
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
    run_now: bool = False  # also once by hand, in the transaction that makes it; of one that is there already, nothing

    @property
    def key(self) -> str:
        """`module.verb:name`."""
        return str(JobKey(self.namespace, self.module, f"{self.verb}:{self.name}"))


class Seen(NamedTuple):
    """What of a job's row a change was judged by, and merged with."""

    job_id: int
    deployment: str
    spec: JobSpec


class JobChange(NamedTuple):
    """Fields of a job's spec, by `names`, that are to be as in this one; the others stay.

    `seen` None: whatever is there by now, the change goes with it.
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
    """Of one job among many. `job_id` 0: nothing was written. `unchanged`: it was so already.

    `updated`: it was to be made, and was there; as its target is a queue, it was changed into what was asked for.
    """

    key: str
    job_id: int = 0
    unchanged: bool = False
    updated: bool = False


def as_change(job: NewJob) -> JobChange:
    """What makes of the job of that key, whatever it is like, the one that is asked for."""
    anchor = () if job.spec.anchor is None else ("anchor",)
    return JobChange(job.spec, tuple(name for name in JobSpec._fields if name != "anchor") + anchor)


Outcome = JobDone | Exception
"""Or why nothing became of it: what the method for a single job would raise."""


def done(outcomes: Sequence[Outcome]) -> JobDone:
    """Of the one job. Raises what became of it otherwise."""
    (outcome,) = outcomes
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def fails(planned: Mapping[str, object]) -> bool:
    """Whether one of them does."""
    return any(isinstance(each, Exception) for each in planned.values())


class ManyJobs(Protocol):
    """Each method is one transaction, and tells what became of each job, in the order that they were given.

    `whole`: where one of them can't be done, none is; the others' outcomes have no ids then. `dry_run`: none is done.
    Raises StoreUnavailable and StoreError as Store does.
    """

    async def create_jobs(
        self, jobs: Sequence[NewJob], by: str, note: str = "", *, whole: bool = False, dry_run: bool = False
    ) -> list[Outcome]:
        """Idempotent: one that is there already, and the same, is it. Conflict for another one under its key.

        But one whose target is a queue is changed into what is asked for.
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
        """Conflict for one that lacks one of these labels by now; Outdated if it is no longer as it was `seen`.

        One that stands in it twice is deleted once.
        """
        ...
