"""How many runs each controller may send to this runner: the places of its lanes, divided among the controllers.

A place is for one run. It is granted to a controller, used by a run that comes, and free again when the run has ended.
A tick without a place is not claimed. While no tick waits, free places are spread over the controllers, so that a
claim goes out at its run_at. When a controller waits for places, the others return what they don't need, and free
places go to the most urgent demand. A controller that keeps unused places while others wait loses them after a while.
"""

from collections.abc import Iterable
from typing import Final

from cronring.runner.core.ahead import MS_NS, Ahead, Pace, lead_ns
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.shares import Share, free_share, most_urgent
from cronring.schema.execution import Outcome, Report, Run
from cronring.schema.lanes import Grant, LaneDemand, LaneKey, LaneKind

PATIENCE_NS: Final = 700 * MS_NS  # how long a controller may keep places that others wait for; more if claims are slow
STANDBY_TURN: Final = 10  # when places are short, every 10th goes to a demand for standby ticks
FLOOR_PARTS: Final = 8  # however short places are, each controller may keep an eighth of its part of the lane
FEW: Final = 64  # async lanes up to this size are filled ahead, so that no place is idle during a claim
BATCH_PARTS: Final = 32  # a large lane meets demands once a 32nd of it is free, or
BATCH_NS: Final = 5 * MS_NS  # this often: a message for each run would cost more than the run
BULK: Final = 8  # a controller's part of this size is filled up only when half of it is used


class Lane:
    """One lane: how many runs it holds, and each controller's share by its address."""

    __slots__ = ("ahead", "held", "key", "next_ns", "places", "served_ns", "shares", "turnarounds", "turns")

    def __init__(self, key: LaneKey, places: int) -> None:
        self.key = key
        self.places = places
        self.held = 0
        self.shares: dict[str, Share] = {}
        self.ahead = None if key[1] is LaneKind.ASYNC and places > FEW else Ahead(places)
        self.turns = 0
        self.served_ns = 0  # when demands were last met
        self.turnarounds = Pace()  # from the grant of what was demanded to its use
        self.next_ns: int | None = None  # when to divide again although nothing has happened

    @property
    def room(self) -> int:
        """Places that are neither taken nor granted; below 0 when runs came without."""
        return self.places - self.held - sum(share.out for share in self.shares.values())


class GrantedPlaces:
    """Lanes by deployment and kind. `modules` in the order of Hello."""

    def __init__(self, modules: tuple[ModuleLanes, ...]) -> None:
        self._modules = modules
        self._hosted: dict[str, ModuleLanes] = {}
        self._lanes: dict[LaneKey, Lane] = {}
        self._lane_of: dict[int, Lane] = {}
        self._touched: dict[LaneKey, None] = {}
        self._epoch = 0
        self._closed = False
        self._paused = False
        self.voided: list[str] = []  # addresses of those that have just lost places; the core clears it

    def lanes(self) -> Iterable[Lane]:
        return self._lanes.values()

    # What happens

    def link_up(self, address: str, deployments: tuple[str, ...], held: Iterable[Run], now_ns: int) -> None:
        """A controller that demands places is connected. `deployments`: the keys of the modules ("": refused)."""
        fresh: list[str] = []
        for deployment, module in zip(deployments, self._modules, strict=False):
            if deployment and deployment not in self._hosted:
                self._hosted[deployment] = module
                fresh.append(deployment)
        for run in held if fresh else ():
            if run.deployment in fresh:
                self.took(run, now_ns)
        for deployment in deployments:
            hosted = self._hosted.get(deployment)
            if hosted is not None:
                for kind in LaneKind:
                    self._share(address, (deployment, kind), hosted, now_ns)

    def _share(self, address: str, key: LaneKey, module: ModuleLanes, now_ns: int) -> None:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, module.places(key[1]))
        lane.shares[address] = Share(self._next_epoch(), now_ns)
        self._touched[key] = None

    def link_down(self, address: str) -> None:
        """Its unused places are free: no run can come over that stream any more."""
        for lane in self._lanes.values():
            if lane.shares.pop(address, None) is not None:
                self._touched[lane.key] = None

    def pause(self, paused: bool) -> None:
        """Whether to grant no places for now, because no controller takes the results of runs."""
        if paused != self._paused:
            self._paused = paused
            self._touched.update(dict.fromkeys(self._lanes))

    def close(self) -> None:
        """The runner drains: it grants no more."""
        self._closed = True

    def arrived(self, address: str, run: Run, now_ns: int) -> None:
        """A run came that takes a place, whether or not it is then started."""
        lane = self._lane(run)
        share = None if lane is None else lane.shares.get(address)
        if lane is not None and share is not None:
            turnaround_ns = share.use(run.place_epoch, now_ns)
            if turnaround_ns is not None:
                lane.turnarounds.observe(turnaround_ns)
            self._touched[lane.key] = None

    def took(self, run: Run, now_ns: int) -> None:
        """The run is held from now on."""
        lane = self._lane(run)
        if lane is None:
            return
        self._lane_of[run.execution_id] = lane
        lane.held += 1
        if lane.ahead is not None:
            lane.ahead.took(run.execution_id, run.verb, now_ns)
        self._touched[lane.key] = None

    def ended(self, results: list[Report], now_ns: int) -> None:
        for result in results:
            lane = self._lane_of.pop(result.execution_id, None)
            if lane is None:
                continue
            lane.held -= 1
            if lane.ahead is not None:
                lane.ahead.ended(result.execution_id, _duration_ns(result), now_ns)
            self._touched[lane.key] = None

    def demanded(self, address: str, demands: Iterable[LaneDemand], now_ns: int, now_us: int) -> None:
        for demand in demands:
            lane = self._lanes.get((demand.deployment, demand.kind))
            share = None if lane is None else lane.shares.get(address)
            if lane is not None and share is not None:
                share.take_in(demand, now_ns, now_us)
                self._touched[lane.key] = None

    def _lane(self, run: Run) -> Lane | None:
        module = self._hosted.get(run.deployment)
        if module is None:
            return None
        key = run.deployment, module.kind(run)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(key, module.places(key[1]))
        return lane

    def _next_epoch(self) -> int:
        self._epoch += 1
        return self._epoch

    # What follows

    def next_deadline(self) -> int | None:
        return min((lane.next_ns for lane in self._lanes.values() if lane.next_ns is not None), default=None)

    def settle(self, now_ns: int) -> dict[str, list[Grant]]:
        """Divide lanes in which something has changed. Returns the grants to send, by controllers' addresses."""
        for lane in self._lanes.values():
            if lane.next_ns is not None and lane.next_ns <= now_ns:
                self._touched[lane.key] = None
        if not self._touched:
            return {}
        told: dict[str, list[Grant]] = {}
        touched, self._touched = self._touched, {}
        for key in touched:
            self._divide(self._lanes[key], now_ns, told)
        return told

    def _divide(self, lane: Lane, now_ns: int, told: dict[str, list[Grant]]) -> None:
        lane.next_ns = None
        if self._closed or self._paused or not lane.shares:
            return
        shares = list(lane.shares.values())
        if any(share.unmet or share.unmet_standby for share in shares):
            self._expire(lane, now_ns)
            self._serve(lane, now_ns)
        short = any(share.unmet or share.unmet_standby for share in shares if share.able(now_ns))
        part = max(0, lane.places - lane.held) // len(shares)
        if not short:
            self._spread(lane, part, now_ns)
        keep = lane.places // (FLOOR_PARTS * len(shares)) if short else part
        uneven = short or (part > 0 and lane.room <= 0 and any(not each.out and not each.closed for each in shares))
        for address, share in lane.shares.items():
            grant = share.tell(lane.key, uneven, keep, now_ns)
            if grant is not None:
                told.setdefault(address, []).append(grant)
        self._plan(lane, short, now_ns)

    def _serve(self, lane: Lane, now_ns: int) -> None:
        """Free places go to demands, the most urgent first. Every 10th one goes to a demand for standby ticks."""
        able = [share for share in lane.shares.values() if share.able(now_ns)]
        room = lane.room
        if lane.ahead is not None and any(share.unmet for share in able):
            room += lane.ahead.count(now_ns, self._lead_ns(lane))
        if room >= sum(share.unmet + share.unmet_standby for share in able):
            for share in able:
                share.grant(share.unmet + share.unmet_standby, now_ns, demanded=True)
            return
        if 0 < room < lane.places // BATCH_PARTS and now_ns < lane.served_ns + BATCH_NS:
            lane.next_ns = lane.served_ns + BATCH_NS
            return
        lane.served_ns = now_ns
        while room > 0:
            lane.turns += 1
            standby = lane.turns % STANDBY_TURN == 0
            next_one = most_urgent(able, standby=standby) or most_urgent(able, standby=not standby)
            if next_one is None:
                return
            next_one.grant(1, now_ns, demanded=True)
            room -= 1

    def _spread(self, lane: Lane, part: int, now_ns: int) -> None:
        """No tick waits: free places are divided, so that no controller has to ask when its next ticks come due."""
        able = [share for share in lane.shares.values() if share.able(now_ns) and not share.closed]
        room = lane.room
        low = part // 2 if part >= BULK else part - 1
        for share in able:
            if room > 0 and share.out <= low:
                count = min(room, part - share.out)
                share.grant(count, now_ns)
                room -= count
        while part < BULK and room > 0 and able:
            fewest = free_share(able, lane.turns)
            if fewest.out > part:
                return
            lane.turns += 1
            fewest.grant(1, now_ns)
            room -= 1

    # docs/decisions/0050: a controller that keeps unused places would starve the others
    def _expire(self, lane: Lane, now_ns: int) -> None:
        """Take places from controllers that have kept them for too long while others wait."""
        for address, share in lane.shares.items():
            others = any(other.unmet or other.unmet_standby for other in lane.shares.values() if other is not share)
            if others and share.pressed and share.out > share.kept and now_ns >= share.moved_ns + _patience_ns(share):
                share.void(self._next_epoch(), now_ns)
                self.voided.append(address)

    def _plan(self, lane: Lane, short: bool, now_ns: int) -> None:
        """Set when the lane is to be divided again, even if nothing happens until then."""
        instants = [share.suspended_ns for share in lane.shares.values() if share.suspended_ns > now_ns]
        if short:
            instants += [
                share.moved_ns + _patience_ns(share)
                for share in lane.shares.values()
                if share.pressed and share.out > share.kept
            ]
            if lane.ahead is not None:
                next_ns = lane.ahead.next_ns(now_ns, self._lead_ns(lane))
                instants += [] if next_ns is None else [next_ns]
        instants += [] if lane.next_ns is None else [lane.next_ns]
        lane.next_ns = min((instant for instant in instants if instant > now_ns), default=None)

    def _lead_ns(self, lane: Lane) -> int:
        claim_us = max((share.claim_us for share in lane.shares.values() if share.unmet), default=0)
        return lead_ns(lane.turnarounds, claim_us)


def _patience_ns(share: Share) -> int:
    return max(PATIENCE_NS, min(2_000 * share.claim_us, 4 * PATIENCE_NS))


def _duration_ns(result: Report) -> int | None:
    """How long the run took; None if it did not end by itself."""
    if result.outcome not in (Outcome.COMPLETED, Outcome.FAILED):
        return None
    return (result.ended_at - result.started_at) * 1_000
