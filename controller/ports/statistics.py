"""What the API asks about figures. Instants are int microseconds since 1970."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from cronring.controller.core.figures import Figures, Spread
from cronring.controller.ports.reads import Namespaces


class JobFigures(NamedTuple):
    """`last_...` of the latest execution that ended."""

    status: str
    figures: Figures
    duration: Spread | None
    lateness: Spread | None
    last_started_at: int | None
    last_ended_at: int | None
    last_outcome: str
    next_tick: int | None
    next_run_at: int | None


class DaySpread(NamedTuple):
    """Microseconds."""

    p50_us: int
    p99_us: int
    most_us: int


class DayFigures(NamedTuple):
    """Of the runs that ended. None: no run has it."""

    runs: int
    completed: int
    duration: DaySpread | None
    lateness: DaySpread | None


class SchedulerFigures(NamedTuple):
    """`jobs` by status. `last_check`: when a controller last renewed its lease; `last_maintenance`: None, never."""

    counted_at: int
    jobs: dict[str, int]
    figures: Figures
    leases_cleared: int
    last_check: int | None
    last_maintenance: int | None


class Folded(NamedTuple):
    """What a round of folding has done. `behind`: how many ids of executions it has left."""

    executions: int
    behind: int


class Statistics(Protocol):
    """Every method raises cronring.controller.errors.StoreUnavailable or StoreError."""

    async def job(self, key: str) -> JobFigures:
        """Raises cronring.controller.errors.NotFound."""
        ...

    async def days(self, job_id: int, starts: Sequence[int]) -> list[DayFigures]:
        """Between each of `starts` and the next one. Of more than 2,000 runs, only the latest 2,000 are looked at."""
        ...

    async def scheduler(
        self, namespaces: Namespaces = None, labels: Mapping[str, str] = MappingProxyType({})
    ) -> SchedulerFigures:
        """Figures of jobs in these namespaces with these labels. Without both: also of jobs that are quite gone."""
        ...
