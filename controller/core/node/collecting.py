"""Ends of executions that no runner has: consumers write them into PostgreSQL, and this part fetches them.

A fetched report becomes an end, as a runner's report does. Until that end is committed, PostgreSQL goes on naming the
report to the controller that holds the execution. NOTIFY and each renewal say when there are reports.
"""

from collections.abc import Collection
from typing import Final

from cronring.controller.core.node.context import REFUSED_RETRY_NS, NodeContext
from cronring.controller.core.node.effects import FetchQueueReports
from cronring.controller.core.node.events import QueueReported, StoreFailed

AT_MOST: Final = 1_000
WAITING_MAX: Final = 5_000  # ends under way; while there are so many, PostgreSQL keeps the other reports


class Collecting:
    """One look under way, and whether another one is wanted."""

    __slots__ = ("_asked", "_context", "_not_before_ns", "_wanted")

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._wanted = False
        self._asked = False
        self._not_before_ns = 0

    def ask_soon(self) -> None:
        """There is something, or may be."""
        self._wanted = True

    def next_deadline(self) -> int | None:
        waiting = self._wanted and not self._asked and self._context.store_ok
        return self._not_before_ns if waiting and self._context.now_ns < self._not_before_ns else None

    @property
    def looks(self) -> bool:
        """Whether `look` may ask now. If not, the caller saves a list of what is ending, which is as long as a herd."""
        return (
            self._wanted and not self._asked and self._context.store_ok and self._context.now_ns >= self._not_before_ns
        )

    def look(self, ending: Collection[int]) -> None:
        """`ending`: what was fetched, and whose end is not committed yet."""
        context = self._context
        if len(ending) < WAITING_MAX:
            self._wanted, self._asked = False, True
            known = tuple(sorted(ending))
            context.effects.append(FetchQueueReports(context.request(self), known, AT_MOST))

    def fetched(self, event: QueueReported) -> None:
        self._asked = False
        self._wanted = self._wanted or len(event.reports) >= AT_MOST

    def failed(self, _: StoreFailed) -> None:
        self._asked, self._wanted = False, True
        self._not_before_ns = self._context.now_ns + REFUSED_RETRY_NS
