"""What is asked of the past: who was there, what ran, and what went wrong."""

from typing import NamedTuple, Protocol

from cronring.controller.core.ledger.happenings import BadRun, Deed
from cronring.controller.core.ledger.lateness import LateRun
from cronring.controller.core.ledger.lives import Life
from cronring.controller.ports.reads import ExecutionRow, Namespaces


class RunsThen(NamedTuple):
    """What ran at an instant, the newest first. `looked_to`: runs claimed before it were not looked at; None: all were.

    `late`: runs that still waited, or had begun late within the minutes before; the latest run_at first.
    """

    running: list[ExecutionRow]
    late: list[LateRun]
    looked_to: int | None


class Lives(Protocol):
    """Both stores have it. Raises cronring.controller.errors.StoreUnavailable or StoreError."""

    async def list_lives(self, since: int, until: int, lost_after_ms: int) -> list[Life]:
        """Lives at some time from `since` to `until`, in no order: all that go on, and those that ended latest.

        A runner goes on if it was seen in the last `lost_after_ms`.
        """
        ...


class History(Protocol):
    """Every method raises cronring.controller.errors.StoreUnavailable or StoreError."""

    async def lives(self, since: int, until: int) -> list[Life]:
        """As Lives.list_lives."""
        ...

    async def known_since(self) -> int | None:
        """Since when lives are known. None: there is none."""
        ...

    async def runs_at(self, at: int, namespaces: Namespaces, limit: int) -> RunsThen:
        """At most `limit` of each kind."""
        ...

    async def troubles(self, since: int, until: int, namespaces: Namespaces) -> tuple[list[BadRun], int | None]:
        """Runs that ended without success, and the end of the oldest if there are more; None: these are all."""
        ...

    async def deeds(self, since: int, until: int, namespaces: Namespaces) -> tuple[list[Deed], int | None]:
        """What people did, the newest first, and the oldest instant if there is more before; None: this is all."""
        ...
