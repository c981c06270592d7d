"""Places of one runner's lane that this controller may fill: granted, taken by claims, given back."""

from typing import Final, NamedTuple

from cronring.schema.lanes import Grant, LaneDemand, LaneKey

URGENT_PARTS: Final = 2  # a demand that has doubled is told at once


class Stock:
    """Counts begin with the epoch. `free`: places that no claim has taken. `seen`: granted. `returned`: given back."""

    __slots__ = ("_told", "epoch", "free", "keep", "key", "returned", "runner_id", "seen", "short", "told_ns")

    def __init__(self, runner_id: str, key: LaneKey) -> None:
        self.runner_id = runner_id
        self.key = key
        self.epoch = 0
        self.seen = 0
        self.free = 0
        self.returned = 0
        self.short = False  # other controllers wait: keep at most `keep` places that nothing here waits for
        self.keep = 0
        self.told_ns = 0
        self._told = LaneDemand(*key, 0, 0, 0, 0, 0, 0, 0, False)

    def granted(self, grant: Grant) -> None:
        if grant.epoch != self.epoch:
            self.epoch, self.seen, self.returned, self.free = grant.epoch, 0, 0, 0
        self.free += max(0, grant.granted - self.seen)
        self.seen = max(grant.granted, self.seen)
        self.short, self.keep = grant.short, grant.keep

    def take(self) -> int:
        """Take a place for a claim. Returns the epoch of the place."""
        self.free -= 1
        return self.epoch

    def return_all_but(self, kept: int) -> None:
        """Give free places back to the runner, except `kept` of them."""
        back = max(0, self.free - kept)
        self.free -= back
        self.returned += back

    def tell(self, count: int, standby: int, rank_us: int, claim_us: int, closed: bool) -> LaneDemand | None:
        """The demand, if it differs from the one told last."""
        demand = LaneDemand(*self.key, self.epoch, self.seen, self.returned, count, standby, rank_us, claim_us, closed)
        told = self._told
        news = demand.returned != told.returned or demand.closed != told.closed or (count, standby) != (0, 0)
        if not news and not (told.wanted or told.standby):
            return None
        same = demand._replace(claim_us=told.claim_us) == told
        return None if same else demand

    def urgent(self, demand: LaneDemand) -> bool:
        """Whether the runner must hear this at once: its own count, from the last demand, is too far off."""
        told = self._told
        if (demand.returned, demand.closed) != (told.returned, told.closed):
            return True
        seen = demand.seen - told.seen if demand.epoch == told.epoch else demand.seen
        expected = max(0, told.wanted + told.standby - seen)
        count = demand.wanted + demand.standby
        return count > URGENT_PARTS * expected or (not count and expected > 0)

    def told(self, demand: LaneDemand, now_ns: int) -> None:
        self._told, self.told_ns = demand, now_ns


class Place(NamedTuple):
    """Where a run goes. `stock` None: a runner that grants no places takes whatever comes."""

    runner_id: str
    stock: Stock | None = None
    epoch: int = 0

    def give_back(self) -> None:
        """The place was not used. A place of an older epoch is void, so it isn't given back."""
        if self.stock is not None and self.stock.epoch == self.epoch:
            self.stock.free += 1
