"""Due jobs whose limit is full: they wait for a place, and none of their ticks is skipped. Each limit that refused a
claim has a queue, and so has each value of a limit by label. When PostgreSQL tells of free places, or after a while, a
few of the queue are tried: one at first, and twice as many after each try in which all got a place. Shares take turns
(fair.py). The next claim decides about ticks that passed meanwhile, as after an outage. Only a refusal tells which
limit a job is under.
"""

from typing import Final

from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.fair import FairQueue
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.timers import Timers
from cronring.controller.core.node.window import DueWindow, Entry, Stage

RETRY_BASE_MS: Final = 100
RETRY_CAP_MS: Final = 1_000  # NOTIFY may get lost
TRIED_MAX: Final = 500  # at once
PATIENT: Final = 100  # so many queues are tried each second without a NOTIFY; the more there are, the rarer
PATIENCE_MAX: Final = 30  # seconds


class LimitQueue:
    """Those that wait for one limit. `width`: how many are tried next."""

    __slots__ = ("failures", "refused", "retry_ns", "waiting", "width", "woken", "won")

    def __init__(self) -> None:
        self.waiting: FairQueue[Entry] = FairQueue()
        self.width = 1
        self.failures = 0
        self.retry_ns = 0
        # Since the last step:
        self.woken = False
        self.won = False
        self.refused = False


# docs/decisions/0066: three queues in which what is due waits
class Limiting:
    """Queues by the id of the limit, or of the value. A step looks only at queues to which something has happened."""

    __slots__ = ("_context", "_lease", "_queues", "_retries", "_serial", "_stirred", "_window")

    def __init__(self, context: NodeContext, window: DueWindow, lease: Lease) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._queues: dict[int, LimitQueue] = {}
        self._retries = Timers()  # on the monotonic clock
        self._stirred: dict[int, None] = {}
        self._serial = 0

    def __len__(self) -> int:
        return sum(len(queue.waiting) for queue in self._queues.values())

    def refused(self, entry: Entry, limit: int) -> None:
        """The limit had no place for it."""
        queue = self._queues.get(limit)
        if queue is None:
            queue = self._queues[limit] = LimitQueue()
        elif entry.limit == limit:  # it came from this queue: its share gets the turn back
            queue.waiting.give_back(entry.job.share)
        queue.refused = True
        self._stirred[limit] = None
        entry.limit = limit
        self._wait(entry, queue)

    def won(self, entry: Entry) -> None:
        """It got a place."""
        if entry.limit is not None and (queue := self._queues.get(entry.limit)) is not None:
            queue.won = True
            self._stirred[entry.limit] = None

    def queues(self, entry: Entry) -> bool:
        """Let it wait if its limit has a queue. True: it waits, and isn't claimed now."""
        queue = None if entry.limit is None else self._queues.get(entry.limit)
        if queue is not None:
            self._wait(entry, queue)
        return queue is not None

    def places_freed(self, limit: int | None) -> None:
        """None: which one isn't known."""
        for each in self._queues if limit is None else {limit}:
            queue = self._queues.get(each)
            if queue is not None:
                queue.woken = True
                self._stirred[each] = None

    def _wait(self, entry: Entry, queue: LimitQueue) -> None:
        self._window.move_to(entry, Stage.AWAITS_LIMIT)
        self._serial += 1
        entry.limit_serial, entry.turn = self._serial, 0
        queue.waiting.push(entry.job.share, (entry.rank_us, self._serial, entry))

    def next_deadline(self) -> int | None:
        """None while claims may not be sent: that ends with an event, which brings a step."""
        if not self._queues or not self._lease.may_claim:
            return None
        return self._context.now_ns if self._stirred else self._retries.next_us()

    def act(self) -> list[Entry]:
        """Those that are to be tried now."""
        if not self._queues or not self._lease.may_claim:
            return []
        found: list[Entry] = []
        stirred, self._stirred = self._stirred, {}
        stirred.update(dict.fromkeys(self._retries.pop_due(self._context.now_ns)))
        for limit in stirred:
            queue = self._queues.get(limit)
            if queue is None:
                continue
            if self._judge(queue):
                found += self._tried(queue)
            if queue.waiting.head(self._waits) is None:
                del self._queues[limit]
                self._retries.disarm(limit)
            else:
                self._retries.arm(limit, queue.retry_ns)
        return found

    def _judge(self, queue: LimitQueue) -> bool:
        """Whether some of the queue are tried now, by how the last try went."""
        context = self._context
        woken, won, refused = queue.woken, queue.won, queue.refused
        queue.woken = queue.won = queue.refused = False
        if won:
            queue.failures = 0
        if refused:
            queue.failures += 1
            queue.width = 1
            cap_ms = RETRY_CAP_MS * self._patience()
            queue.retry_ns = context.now_ns + context.backoff_ns(queue.failures, RETRY_BASE_MS, cap_ms)
            return False
        if won:
            queue.width = min(2 * queue.width, TRIED_MAX)
        return won or woken or context.now_ns >= queue.retry_ns

    def _tried(self, queue: LimitQueue) -> list[Entry]:
        """The first `width` of those that still wait there."""
        waiting, began = queue.waiting, None
        chosen: list[Entry] = []
        while len(chosen) < queue.width and (ranked := waiting.pop(self._waits)) is not None:
            began = waiting.turns.now if began is None else began
            ranked[2].turn = waiting.turns.now - began
            chosen.append(ranked[2])
        queue.retry_ns = self._context.now_ns + RETRY_CAP_MS * MS * self._patience()
        return chosen

    def _patience(self) -> int:
        return min(1 + len(self._queues) // PATIENT, PATIENCE_MAX)

    def _waits(self, entry: Entry, serial: int) -> bool:
        return entry.limit_serial == serial and self._window.waits(entry, Stage.AWAITS_LIMIT)
