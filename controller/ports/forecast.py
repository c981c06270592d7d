"""What is asked of what is coming, and of what has just been."""

from typing import NamedTuple, Protocol

from cronring.controller.core.ledger.coming import Group
from cronring.controller.core.ledger.overloads import HostedPlaces
from cronring.controller.ports.reads import Namespaces


class Recent(NamedTuple):
    """Of runs that were claimed since. `outcomes`: how many ended so, or are "running". `skipped`: ticks, by reason.

    `p50_us`, `p99_us`: how late those of the last minutes began; None: none has.
    """

    outcomes: dict[str, int]
    skipped: dict[str, int]
    p50_us: int | None
    p99_us: int | None


class Forecast(Protocol):
    """Every method raises cronring.controller.errors.StoreUnavailable or StoreError."""

    async def groups(self, namespaces: Namespaces, limit: int) -> tuple[list[Group], int]:
        """The largest groups of jobs, and how many jobs are in none of them."""
        ...

    async def places(self) -> dict[str, HostedPlaces]:
        """Of each deployment that a live runner hosts, by its key."""
        ...

    async def recent(self, within_ms: int, late_within_ms: int, namespaces: Namespaces) -> Recent:
        """Runs of the last `within_ms`; how late they began, of the last `late_within_ms`."""
        ...
