"""Whether a controller may claim, and why not."""

from typing import Protocol


class Leased(Protocol):
    @property
    def lease_valid(self) -> bool: ...
    @property
    def draining(self) -> bool: ...


class Connected(Protocol):
    @property
    def database_ok(self) -> bool: ...
    @property
    def database_away_since_us(self) -> int | None: ...


class Readiness:
    """Not ready until it is connected to a node, and from then on as the node is."""

    def __init__(self) -> None:
        self._parts: tuple[Leased, Connected] | None = None

    def connect(self, node: Leased, database: Connected) -> None:
        self._parts = (node, database)

    def why_not(self) -> str | None:
        """None when ready."""
        if self._parts is None:
            return "waiting for PostgreSQL"
        node, database = self._parts
        if node.draining:
            return "draining: this controller is about to leave"
        if not database.database_ok:
            return "PostgreSQL can't be reached"
        if not node.lease_valid:
            return "the lease is not valid: PostgreSQL has not renewed it in time"
        return None

    def database_away_since(self) -> int | None:
        """Microseconds since 1970, on this host's clock; None while it answers."""
        return None if self._parts is None else self._parts[1].database_away_since_us

    def is_ready(self) -> bool:
        return self.why_not() is None
