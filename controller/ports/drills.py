"""Drills: what a controller in a drill agrees on with the others, in PostgreSQL."""

from typing import NamedTuple, Protocol


class Drill(NamedTuple):
    """`noted`: it may hold a drill. `ready`: other controllers that could take over. `other`: one in a drill."""

    noted: bool
    ready: int
    other: str | None


class Drills(Protocol):
    """Each method is one statement. Raises StoreUnavailable and StoreError as cronring.controller.ports.store.Store."""

    async def hold_drill(self, controller_id: str, for_ms: int, forced: bool) -> Drill:
        """Note that it claims nothing for `for_ms`, unless another is in a drill already, or none could take over.

        `forced`: note it whatever the others do. A controller without a row is never noted.
        """
        ...

    async def claim_again(self, controller_id: str) -> None:
        """The drill is over before its time. Without this call, the note is void when its time is over."""
        ...
