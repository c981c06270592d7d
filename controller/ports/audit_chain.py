"""The audit log as it is sealed, read and cut; and the refusals that are written into it."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from cronring.controller.ports.reads import Namespaces
from cronring.schema.audit_chain import AuditRow, ChainLink, ChainPart

COUNTED_MAX: Final = 10_000  # unsealed rows; more than this are not counted
SEALED_AT_ONCE: Final = 1_000
BYTES_AT_ONCE: Final = 1024 * 1024  # of `before` and `after` together; one row more may be read


class OnRefusal(Protocol):
    """Counts refusals for the metrics.

    `why`: what the caller was told, if they were refused because of who they are. Then the refusal goes on record too,
    with the call in hand.
    """

    def __call__(self, what: str, count: int = 1, *, why: str = "") -> None: ...


class NotedRefusal(NamedTuple):
    """`times`: how many equal refusals this stands for. `age_ms`: how long ago the first of them was."""

    age_ms: int
    refused: str
    times: int
    principal: str
    method: str
    origin: str
    why: str


class AuditFilter(NamedTuple):
    """Instants in microseconds since 1970; texts "": any. `before`: (at, id) of the row that the page follows."""

    since: int
    before: tuple[int, int]
    limit: int
    namespaces: Namespaces = None
    namespace: str = ""
    principal: str = ""
    method: str = ""
    subject: str = ""
    changes: bool = True
    refusals: bool = True


class Sealed(NamedTuple):
    """`head`: None if another controller was sealing. `unsealed`: before this round, COUNTED_MAX at most."""

    rows: int
    unsealed: int
    oldest_ms: int  # the age of the oldest that was not sealed
    head: ChainLink | None


class AuditLog(Protocol):
    """Every method raises StoreUnavailable and StoreError."""

    async def list_rows(self, wanted: AuditFilter) -> Sequence[AuditRow]:
        """The latest first."""
        ...

    async def read_chain(self, after_seq: int, limit: int) -> ChainPart:
        """Rows after a position, or the first ones if the chain begins after it. Large rows make short pages.

        An empty page is the last one.
        """
        ...

    async def seal(self) -> Sealed:
        """One batch of the rows that are committed get their positions."""
        ...

    async def note_refusals(self, refusals: Sequence[NotedRefusal], controller_id: str) -> None: ...
