"""The cluster's defaults, for jobs that set no value, and whose verbs set none. Instants: microseconds since 1970."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class DefaultsRow(NamedTuple):
    """None (retries: 0): nobody has set it. `revision`: grows with each change; 0 before the first one."""

    timeout_ms: int | None = None
    late_after_ms: int | None = None
    retries: int = 0
    revision: int = 0
    changed_at: int | None = None
    changed_by: str = ""
    note: str = ""


# docs/decisions/0101: an etag is checked under the lock
Decide = Callable[[DefaultsRow], DefaultsRow]
"""Gets the present row, while nobody else can change it. Returns the wanted row; raises to leave all as it is."""


class DefaultsStore(Protocol):
    """Each method is one statement or transaction. Raises StoreUnavailable and StoreError as
    controller.ports.store.Store.
    """

    async def get_defaults(self) -> DefaultsRow: ...

    async def set_defaults(self, decide: Decide, by: str, note: str = "") -> DefaultsRow:
        """Returns the new row. Of what `decide` returns only the values count. If none differs, nothing is written.

        Jobs are not written, since the defaults are read together with each job. NOTIFYs controllers.
        """
        ...
