"""What jobs of the cluster have that don't say it, and whose verbs don't. Instants are int microseconds since 1970."""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class DefaultsRow(NamedTuple):
    """None, and no retries: nobody has set it. `revision`: grows with each change; 0 before the first."""

    timeout_ms: int | None = None
    late_after_ms: int | None = None
    retries: int = 0
    revision: int = 0
    changed_at: int | None = None
    changed_by: str = ""
    note: str = ""


# docs/decisions/0101: an etag is checked under the lock
Decide = Callable[[DefaultsRow], DefaultsRow]
"""Is told what is there, while nobody else can change it. Gives what is wanted; raises to leave all as it is."""


class DefaultsStore(Protocol):
    """Each method is one statement or transaction. Raises StoreUnavailable and StoreError as
    controller.ports.store.Store.
    """

    async def get_defaults(self) -> DefaultsRow: ...

    async def set_defaults(self, decide: Decide, by: str, note: str = "") -> DefaultsRow:
        """As they are now. Of what `decide` gives only the values count. Where none is another, nothing is written.

        Jobs are not written either: whoever reads one reads the defaults with it. NOTIFYs controllers.
        """
        ...
