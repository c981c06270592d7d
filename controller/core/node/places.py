"""What is due and waits for a place on a runner. It is claimed only once a runner has one, and stays in its row until
then.

Each lane of a deployment has a queue. Shares take turns in it, each with its most urgent item in front. Runners hear
how many wait here, and grant places (cronring.runner.core.places). What is called in has its place already. Standbys
wait apart: as long as places are short, their primary most likely waits as well.
"""

from collections.abc import Iterable
from typing import Final

from cronring.controller.core import ticks
from cronring.controller.core.model import Job
from cronring.controller.core.node.activation import WaitingActivation
from cronring.controller.core.node.connected_runners import ConnectedRunners, Picker
from cronring.controller.core.node.context import MS, NodeContext
from cronring.controller.core.node.effects import Level, SendDemands
from cronring.controller.core.node.fair import FairQueue
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.stock import Place, Stock
from cronring.controller.core.node.window import DueWindow, Duty, Entry, Stage
from cronring.schema.lanes import Grant, LaneDemand, LaneKey

TELL_GAP_NS: Final = 50 * MS  # at least, before a demand that is not urgent
SIFT_NS: Final = 1_000 * MS
FEW: Final = 32  # a queue up to this length is counted exactly each time
LOGGED_LATE_MS: Final = 1_000
LOG_GAP_NS: Final = 60_000 * MS
_WEIGHT: Final = 8
NOWHERE: Final = Place("")

Item = Entry | WaitingActivation


class LaneQueue:
    """Those that wait for a place in one lane: shares take turns."""

    __slots__ = ("first", "logged_ns", "sifted_ns", "since_ns", "standby")

    def __init__(self, now_ns: int) -> None:
        self.since_ns = now_ns  # since then something has waited here, and claims were possible
        self.first: FairQueue[Item] = FairQueue()
        self.standby: FairQueue[Item] = FairQueue()
        self.sifted_ns = 0
        self.logged_ns: int | None = None

    def __len__(self) -> int:
        return len(self.first) + len(self.standby)


# docs/decisions/0066: three queues in which what is due waits
class Places:
    """Queues by lane, and the places of what was called in."""

    __slots__ = (
        "_claim_us",
        "_context",
        "_dirty",
        "_lease",
        "_open",
        "_queues",
        "_runners",
        "_serial",
        "_taken",
        "_window",
    )

    def __init__(self, context: NodeContext, window: DueWindow, lease: Lease, runners: ConnectedRunners) -> None:
        self._context = context
        self._window = window
        self._lease = lease
        self._runners = runners
        self._queues: dict[LaneKey, LaneQueue] = {}
        self._taken: dict[int, Place] = {}  # by the serial of what was called in
        self._serial = 0
        self._open = False
        self._claim_us = 0  # how long a claim takes, smoothed
        self._dirty: dict[tuple[str, LaneKey], None] = {}  # lanes of runners that may have to be told something

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    # Places for claims

    # docs/decisions/0050: without a place nothing is claimed
    def take(self, item: Item, job: Job, picker: Picker) -> Place | None:
        """A place for the item. None: it has to wait, or no runner is there at all. Messages need no place: NOWHERE."""
        if ticks.puts_message(job):
            return NOWHERE
        place = self._taken.pop(item.queued, None) if item.queued else None
        item.queued = 0
        if place is not None and self._runners.valid(place):
            return place
        lane = self._runners.lane(job)
        # Items in the queue came before, or are more urgent: nothing may pass them.
        if lane in self._queues and len(self._queues[lane]):
            return None
        return picker.pick(lane)

    def wait(self, item: Item, job: Job) -> bool:
        """Let the item wait for a place. False: no runner hosts its deployment."""
        lane = self._runners.lane(job)
        if not self._runners.hosting(lane[0]):
            return False
        queue = self._queues.get(lane)
        if queue is None:
            queue = self._queues[lane] = LaneQueue(self._context.now_ns)
        if isinstance(item, Entry):
            self._window.move_to(item, Stage.AWAITS_PLACE)
        self._serial += 1
        item.queued = self._serial
        waiting = queue.standby if self._stands_in(item) else queue.first
        waiting.push(job.share, (item.rank_us, self._serial, item))
        self._touch(lane)
        return True

    def forgo(self, item: Item) -> None:
        """An item that was called in isn't claimed after all: give its place back."""
        place = self._taken.pop(item.queued, None) if item.queued else None
        item.queued = 0
        if place is not None:
            self.give_back(place)

    def give_back(self, place: Place) -> None:
        """The claim was not won."""
        place.give_back()
        if place.stock is not None:
            self._dirty[place.runner_id, place.stock.key] = None

    def epoch(self, place: Place) -> int:
        """What the runner is to be told with the run that takes it; 0: it takes none."""
        if place.stock is None or not self._runners.valid(place):
            return 0
        # docs/decisions/0050: the claimed run is dispatched later, and takes no place then
        if not self._lease.valid:  # nothing is dispatched without a lease
            self.give_back(place)
            return 0
        return place.epoch

    # What happens

    def claim_took(self, duration_ns: int) -> None:
        taken_us = duration_ns // 1_000
        self._claim_us += (taken_us - self._claim_us) // _WEIGHT if self._claim_us else taken_us

    def granted(self, runner_id: str, grants: Iterable[Grant]) -> None:
        runner = self._runners.by_id.get(runner_id)
        if runner is None:
            return
        for grant in grants:
            stock = runner.granted(grant)
            if stock is not None:
                self._dirty[runner_id, stock.key] = None

    def runners_changed(self) -> list[Item]:
        """Release what waits for lanes that no runner hosts any more, or in which a runner takes whatever comes."""
        released: list[Item] = []
        for lane, queue in list(self._queues.items()):
            hosting = self._runners.hosting(lane[0])
            # A runner without stocks grants nothing and takes whatever comes, so nobody has to wait.
            if hosting and all(runner.stocks is not None for runner in hosting):
                self._touch(lane)
                continue
            del self._queues[lane]
            every = (*queue.first, *queue.standby)
            released += [item for _, (_, serial, item) in every if self._waits(item, serial)]
        for item in released:
            item.queued = 0
            if isinstance(item, Entry):
                item.hosted_us = self._context.now_us
        return released

    def duties_changed(self) -> None:
        """Duties changed: sort anew what waits as a standby."""
        for lane, queue in self._queues.items():
            every = [*queue.first, *queue.standby]
            queue.first.refill([each for each in every if not self._stands_in(each[1][2])])
            queue.standby.refill([each for each in every if self._stands_in(each[1][2])])
            self._touch(lane)

    # What follows

    def call(self) -> list[Item]:
        """Take from the queues what has a place now, in the order of turns."""
        if not self._lease.may_claim or not self._queues:
            return []
        called: list[Item] = []
        lanes = dict.fromkeys(lane for _, lane in self._dirty if lane in self._queues)
        for lane in lanes:
            picker = Picker(self._runners)
            queue = self._queues[lane]
            while (waiting := self._next(queue)) is not None and (place := picker.pick(lane)) is not None:
                ranked = waiting.pop(self._waits)
                assert ranked is not None, "there is one in front"
                self._taken[ranked[1]] = place
                called.append(ranked[2])
            self._touch(lane)
            if not len(queue):
                del self._queues[lane]
        return called

    def _next(self, queue: LaneQueue) -> FairQueue[Item] | None:
        """The queue to take from: standbys come last. None: nothing waits."""
        for waiting in (queue.first, queue.standby):
            if waiting.head(self._waits) is not None:
                return waiting
        return None

    def next_deadline(self) -> int | None:
        return self._context.now_ns + TELL_GAP_NS if self._dirty else None

    def tell(self) -> None:
        """Tell runners what waits here, and give back places that nothing here waits for."""
        is_open = self._lease.may_claim
        if is_open != self._open:
            self._open = is_open
            for queue in self._queues.values():
                queue.since_ns = self._context.now_ns
            for each in self._runners.by_id.values():
                self._dirty.update(((each.info.runner_id, lane), None) for lane in each.stocks or ())
        if not self._dirty:
            return
        told: dict[str, list[LaneDemand]] = {}
        dirty, self._dirty = self._dirty, {}
        for runner_id, lane in dirty:
            runner = self._runners.by_id.get(runner_id)
            if runner is None or runner.stocks is None:
                continue
            stock = runner.stocks.get(lane)
            if stock is None:
                stock = runner.stocks[lane] = Stock(runner_id, lane)
            demand = self._demand(stock)
            if demand is not None:
                told.setdefault(runner_id, []).append(demand)
        for runner_id, demands in told.items():
            self._context.effects.append(SendDemands(runner_id, demands))

    def _demand(self, stock: Stock) -> LaneDemand | None:
        """What to tell that runner of this lane now. None: nothing."""
        context = self._context
        queue = self._queues.get(stock.key)
        count = standby = rank_us = 0
        if not self._open:
            stock.return_all_but(0)
        elif queue is not None and len(queue):
            count, standby, rank_us = self._look(stock.key, queue)
        # docs/decisions/0050: other controllers wait, and nothing waits here: give them the places
        elif stock.short:
            stock.return_all_but(stock.keep)
        demand = stock.tell(count, standby, rank_us, self._claim_us, not self._open)
        if demand is None:
            return None
        # Each start and each claim changes the count. A later demand replaces an earlier one, so skipping some does no
        # harm.
        if context.now_ns - stock.told_ns < TELL_GAP_NS and not stock.urgent(demand):
            self._dirty[stock.runner_id, stock.key] = None
            return None
        stock.told(demand, context.now_ns)
        return demand

    def _look(self, lane: LaneKey, queue: LaneQueue) -> tuple[int, int, int]:
        """How many items wait, how many standbys wait beside them, and the lowest rank."""
        now_ns = self._context.now_ns
        if len(queue) <= FEW or now_ns - queue.sifted_ns >= SIFT_NS:
            queue.sifted_ns = now_ns
            queue.first.sift(self._waits)
            queue.standby.sift(self._waits)
        oldest = queue.first.oldest(self._waits) or queue.standby.oldest(self._waits)
        if oldest is None:
            return 0, 0, 0
        # Not the head: that may have come late, and go first by the turn of its share. A demand is as urgent as its
        # oldest item.
        rank_us, _, item = oldest
        self._log_late(lane, queue, item)
        return len(queue.first), len(queue.standby), rank_us

    def _log_late(self, lane: LaneKey, queue: LaneQueue, item: Item) -> None:
        context = self._context
        run_at = item.run_at if isinstance(item, Entry) else item.activation.run_at
        late_ms = (context.now_us - (run_at or context.now_us)) // 1_000
        # After an outage, only the wait since then counts: runners may have been idle all the time.
        waited_ms = min(late_ms, (context.now_ns - queue.since_ns) // MS)
        lately = queue.logged_ns is not None and context.now_ns - queue.logged_ns < LOG_GAP_NS
        if lately or waited_ms < LOGGED_LATE_MS:
            return
        queue.logged_ns = context.now_ns
        kind = lane[1].name.lower()
        context.log(
            Level.WARNING, "waiting_for_place", deployment=lane[0], lane=kind, jobs=len(queue), lateness_ms=late_ms
        )

    def _touch(self, lane: LaneKey) -> None:
        """All runners that host this lane may have to be told."""
        for runner in self._runners.hosting(lane[0]):
            if runner.stocks is not None:
                self._dirty[runner.info.runner_id, lane] = None

    def _stands_in(self, item: Item) -> bool:
        if isinstance(item, Entry):
            return self._window.duty(item) is not Duty.PRIMARY
        return not item.own and self._window.duties[item.activation.job.slot] is not Duty.PRIMARY

    def _waits(self, item: Item, serial: int) -> bool:
        """Whether the item still waits under this serial. It may be forgotten, have moved on, or wait anew."""
        if item.queued != serial:
            return False
        return not isinstance(item, Entry) or self._window.waits(item, Stage.AWAITS_PLACE)
