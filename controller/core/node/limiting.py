"""Due jobs whose module or namespace runs as many as it may: they wait for a place, and no tick of theirs is skipped.

Each limit that refused a claim has a queue. Of those that wait there a few are tried when PostgreSQL tells that places
are free, or after a while all the same: one first, and twice as many whenever all got a place. The next claim decides
what becomes of the ticks that passed meanwhile, as after an outage. Which limit a job is under, only its refusals tell.
"""

from heapq import nsmallest
from typing import Final

from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.window import DueWindow, Entry, Stage

RETRY_BASE_MS: Final = 100
RETRY_CAP_MS: Final = 1_000  # NOTIFY may get lost
TRIED_MAX: Final = 500  # at once


class LimitQueue:
    """Those that wait for one limit, by job. `width`: how many are tried next."""

    __slots__ = ("failures", "refused", "retry_ns", "waiting", "width", "woken", "won")

    def __init__(self) -> None:
        self.waiting: dict[int, Entry] = {}
        self.width = 1
        self.failures = 0
        self.retry_ns = 0
        # Since the last turn:
        self.woken = False
        self.won = False
        self.refused = False


# docs/decisions/0066: three queues in which what is due waits
class Limiting:
    """Queues by the limit's id."""

    __slots__ = ("_context", "_lease", "_queues", "_window")

    def __init__(self, context: NodeContext, window: DueWindow, lease: Lease) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._queues: dict[int, LimitQueue] = {}

    def __len__(self) -> int:
        return sum(len(queue.waiting) for queue in self._queues.values())

    def refused(self, entry: Entry, limit: int) -> None:
        """The limit had no place for it."""
        queue = self._queues.get(limit)
        if queue is None:
            queue = self._queues[limit] = LimitQueue()
        queue.refused = True
        entry.limit = limit
        self._wait(entry, queue)

    def won(self, entry: Entry) -> None:
        """It got a place."""
        queue = None if entry.limit is None else self._queues.get(entry.limit)
        if queue is not None:
            queue.won = True

    def queues(self, entry: Entry) -> bool:
        """Whether it waits behind others, instead of being claimed."""
        queue = None if entry.limit is None else self._queues.get(entry.limit)
        if queue is not None:
            self._wait(entry, queue)
        return queue is not None

    def places_freed(self) -> None:
        for queue in self._queues.values():
            queue.woken = True

    def _wait(self, entry: Entry, queue: LimitQueue) -> None:
        self._window.move_to(entry, Stage.AWAITS_LIMIT)
        queue.waiting[entry.job.job_id] = entry

    def next_deadline(self) -> int | None:
        """Only while claims may be sent: what keeps them from that ends by an event."""
        if not self._queues or not self._lease.may_claim:
            return None
        return min(queue.retry_ns for queue in self._queues.values())

    def turn(self) -> list[Entry]:
        """Those that are to be tried now."""
        if not self._queues or not self._lease.may_claim:
            return []
        found: list[Entry] = []
        for limit, queue in list(self._queues.items()):
            if self._judge(queue):
                found += self._tried(queue)
                if not queue.waiting:
                    del self._queues[limit]
        return found

    def _judge(self, queue: LimitQueue) -> bool:
        """Whether some of the queue are tried, by what became of the last."""
        context = self._context
        woken, won, refused = queue.woken, queue.won, queue.refused
        queue.woken = queue.won = queue.refused = False
        if won:
            queue.failures = 0
        if refused:
            queue.failures += 1
            queue.width = 1
            queue.retry_ns = context.now_ns + context.backoff_ns(queue.failures, RETRY_BASE_MS, RETRY_CAP_MS)
            return False
        if won:
            queue.width = min(2 * queue.width, TRIED_MAX)
        return won or woken or context.now_ns >= queue.retry_ns

    def _tried(self, queue: LimitQueue) -> list[Entry]:
        """The first `width` of those that still wait there."""
        waits = self._window.waits
        queue.waiting = {job_id: entry for job_id, entry in queue.waiting.items() if waits(entry, Stage.AWAITS_LIMIT)}
        chosen = nsmallest(queue.width, queue.waiting.values(), key=_rank)
        for entry in chosen:
            del queue.waiting[entry.job.job_id]
        queue.retry_ns = self._context.now_ns + RETRY_CAP_MS * MS
        return chosen


def _rank(entry: Entry) -> tuple[int, int]:
    return entry.rank_us, entry.job.job_id
