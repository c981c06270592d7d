"""The books as stores offer them: to the audit, and to "why"."""

from typing import NamedTuple, Protocol

from cronring.controller.core.ledger.audit import Audit, RunCounts
from cronring.controller.core.ledger.audit_walk import AuditRun, SkipRange
from cronring.controller.core.ledger.books import Closed, JobStanding, Span
from cronring.controller.core.ledger.why_facts import Facts
from cronring.controller.ports.reads import Namespaces, within


class AuditRequest(NamedTuple):
    """Ticks in [since, until] (None: all; up to now) of one key, or of all jobs in the namespaces.

    `thorough`: walk every job.
    """

    since: int | None
    until: int | None
    key: str
    late_after: int
    thorough: bool
    namespaces: Namespaces = None

    def concerns(self, key: str) -> bool:
        return self.key == key if self.key else within(self.namespaces, key)


class CountedSkips(NamedTuple):
    """Of one job and reason. `first_tick` and `last_tick` only of a range that reaches beyond what is audited."""

    job_id: int
    reason: str
    ticks: int
    first_tick: int | None
    last_tick: int | None


class NumberedSpan(NamedTuple):
    job_id: int
    revision: int
    span: Span


class ZoneData(NamedTuple):
    """A version of the zones' rules, and since when controllers of this cluster have reckoned by it (microseconds)."""

    version: str
    first_used_at: int


class Twin(NamedTuple):
    """A tick that ran by schedule of two jobs of one key."""

    key: str
    tick: int
    first_id: int
    second_id: int


class Books(Protocol):
    """The books as of one instant, `now`. Every method raises StoreUnavailable or StoreError."""

    @property
    def now(self) -> int: ...
    async def standings(self, after_id: int, key: str, limit: int, namespaces: Namespaces = None) -> list[JobStanding]:
        """How jobs stand, removed ones too, in order of ids; `key` "": of all in the namespaces."""
        ...

    async def spans(self, job_ids: list[int], since: int, after: tuple[int, int], limit: int) -> list[NumberedSpan]:
        """In order of job and revision, from after (job, revision) on; those that ended before `since` left out."""
        ...

    async def closed(self, job_ids: list[int]) -> list[Closed]: ...
    async def count_runs(
        self, job_ids: list[int], afters: list[int], until: int, late_after: int
    ) -> dict[int, RunCounts]:
        """Of runs with ticks in (after, until] of each job; a job without any is absent."""
        ...

    async def count_skips(self, job_ids: list[int], afters: list[int], until: int) -> list[CountedSkips]: ...
    async def runs(self, job_id: int, after: tuple[int, int], until: int, limit: int) -> list[AuditRun]:
        """From after (tick, attempt) on, in that order."""
        ...

    async def skips(self, job_id: int, after: tuple[int, int], until: int, limit: int) -> list[SkipRange]:
        """Ranges from after (first tick, id) on that begin at or before `until`, in that order."""
        ...

    async def skip_reaching(self, job_id: int, beyond: int) -> SkipRange | None:
        """The range that begins at or before an instant and reaches beyond it."""
        ...

    async def twins(self, after: int, until: int, limit: int) -> list[Twin]: ...
    async def zone_data(self) -> list[ZoneData]:
        """The versions of zone rules that may have decided ticks, in the order of their first use."""
        ...


class AuditReport(NamedTuple):
    """What was audited: up to `until`, as of `now`. `remark`: what else may explain findings; empty: nothing."""

    now: int
    until: int
    audit: Audit
    remark: str = ""


class Ledger(Protocol):
    """What the API asks of the books. Both raise StoreUnavailable or StoreError."""

    async def audit(self, request: AuditRequest) -> AuditReport:
        """Raises NotFound where no job ever had the key that is asked for."""
        ...

    async def facts(self, key: str, at: int | None, namespaces: Namespaces = None) -> Facts:
        """Around the tick due at an instant (None: the latest that was due). Raises NotFound.

        Of a job that this one follows, only where it is in the namespaces.
        """
        ...
