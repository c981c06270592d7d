"""One controller's part of a lane's places: what it was granted, has used and returned, and what it demands."""

from collections import deque
from collections.abc import Sequence
from itertools import repeat
from typing import Final

from cronring.schema.lanes import Grant, LaneDemand, LaneKey

SUSPENDED_NS: Final = 1_000_000_000
SILENT_NS: Final = 3_600 * SUSPENDED_NS  # as good as for ever: a stream that is silent for seconds is hung up


class Share:
    """Counts are since the beginning of the epoch."""

    __slots__ = (
        "_next_rank_us",
        "_since_ns",
        "_step_us",
        "_told",
        "claim_us",
        "closed",
        "count",
        "epoch",
        "granted",
        "kept",
        "moved_ns",
        "returned",
        "seen",
        "standby",
        "suspended_ns",
        "used",
        "voided_ns",
    )

    def __init__(self, epoch: int, now_ns: int) -> None:
        self.count = 0
        self.standby = 0
        self.claim_us = 0
        self.closed = False
        self.suspended_ns = 0  # until then it gets nothing
        self.voided_ns = 0  # when it last lost its places
        self._next_rank_us = 0
        self._step_us = 0
        self._begin(epoch, now_ns)

    def _begin(self, epoch: int, now_ns: int) -> None:
        self.epoch = epoch
        self.granted = self.used = self.returned = self.seen = 0
        self.kept = 0  # what it may keep while others wait
        self.moved_ns = now_ns  # since when nothing that is out has been used or returned
        self._since_ns: deque[int] = deque()  # of each place that is out: when a demand got it; 0: it was a free one
        self._told: tuple[int, int, bool, int] | None = None

    @property
    def out(self) -> int:
        """Granted, and neither used nor returned: free at the controller, or in a claim."""
        return self.granted - self.used - self.returned

    @property
    def unmet(self) -> int:
        """Ticks that wait at the controller, and for which no place is on its way."""
        return max(0, self.count - (self.granted - self.seen))

    @property
    def unmet_standby(self) -> int:
        return max(0, self.standby - max(0, self.granted - self.seen - self.count))

    @property
    def pressed(self) -> bool:
        """The controller demands places, or knows that others do."""
        return bool(self.count or self.standby) or (self._told is not None and self._told[2])

    # docs/decisions/0038: a controller that lost its places gets none until it says something
    def able(self, now_ns: int) -> bool:
        """The controller may be granted places."""
        return now_ns >= self.suspended_ns

    @property
    def rank_us(self) -> int:
        """The rank of the tick that the next place is for, guessed: as if its waiting ticks came due evenly spaced."""
        return self._next_rank_us

    def take_in(self, demand: LaneDemand, now_ns: int, now_us: int) -> None:
        if demand.epoch == self.epoch:
            self.seen = min(max(demand.seen, self.seen), self.granted)
            returned = min(max(demand.returned, self.returned), self.granted - self.used)
            if returned != self.returned:
                self.moved_ns = now_ns
            for _ in range(returned - self.returned):
                self._since_ns.popleft()
            self.returned = returned
        waited = bool(self.count or self.standby)
        self.suspended_ns = min(self.suspended_ns, self.voided_ns + SUSPENDED_NS)
        self.closed = demand.closed
        self.count, self.standby = (0, 0) if demand.closed else (demand.wanted, demand.standby)
        self.claim_us = demand.claim_us
        if not waited and (self.count or self.standby):
            self.moved_ns = now_ns
        self._step_us = max(0, now_us - demand.rank_us) // max(1, demand.wanted)
        self._next_rank_us = demand.rank_us + self._step_us * (self.granted - self.seen)

    def grant(self, count: int, now_ns: int, *, demanded: bool = False) -> None:
        if count and not self.out:
            self.moved_ns = now_ns
        self.granted += count
        self._since_ns.extend(repeat(now_ns if demanded else 0, count))
        self._next_rank_us += self._step_us * count

    def use(self, epoch: int, now_ns: int) -> int | None:
        """A run has used a place of that epoch. Returns how long after the grant, in ns; None: no demand got it."""
        self.suspended_ns = 0  # a controller that sends runs is well
        if epoch != self.epoch or not self.out:
            return None
        self.used += 1
        self.moved_ns = now_ns
        since_ns = self._since_ns.popleft()
        return now_ns - since_ns if since_ns else None

    def void(self, epoch: int, now_ns: int) -> None:
        """Its unused places are void. It gets others once it sends a run, or a second from now if it demands some."""
        self._begin(epoch, now_ns)
        self.voided_ns = now_ns
        self.suspended_ns = now_ns + SILENT_NS

    def tell(self, key: LaneKey, short: bool, keep: int, now_ns: int) -> Grant | None:
        """What the controller has to hear now, if anything."""
        recalled = short and not (self.unmet or self.unmet_standby)
        told = self._told
        self.kept = keep if recalled else 0
        if told is not None and told[:2] == (self.epoch, self.granted):
            news = recalled and self.out > keep and told[2:] != (True, keep)
            if not news:
                return None
            self.moved_ns = now_ns
        self._told = self.epoch, self.granted, recalled, keep
        return Grant(*key, self.epoch, self.granted, recalled, keep)


def most_urgent(shares: Sequence[Share], *, standby: bool) -> Share | None:
    """The share whose demand of that kind comes next; None: there is no demand."""
    demanding = [share for share in shares if (share.unmet_standby if standby else share.unmet)]
    return min(demanding, key=_rank, default=None)


def free_share(shares: Sequence[Share], turn: int) -> Share:
    """One of those that have the fewest, in turn."""
    count = len(shares)
    return min(
        (shares[(turn + number) % count] for number in range(count)),
        key=_out,
    )


def _rank(share: Share) -> tuple[int, int]:
    return share.rank_us, share.out


def _out(share: Share) -> int:
    return share.out
