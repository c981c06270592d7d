"""How a runner divides its places among controllers, rule by rule."""

import pytest

from cronring.runner.core.ahead import EACH_MAX, MS_NS, Ahead, Pace, lead_ns
from cronring.runner.core.lanes import ModuleLanes
from cronring.runner.core.places import PATIENCE_NS, GrantedPlaces
from cronring.schema.execution import Outcome, Report, Run
from cronring.schema.lanes import Grant, LaneDemand, LaneKind

SYNC = "d", LaneKind.SYNC
S = 1_000_000_000


def _run(execution_id: int, epoch: int = 0, verb: str = "v") -> Run:
    return Run(execution_id, 1, "m.v", "d", verb, 0, 0, 0, 10**15, 1, "schedule", False, place_epoch=epoch)


class Divided:
    """Places of one module, and what each controller was told last of its lane for sync verbs."""

    def __init__(self, places: int, *addresses: str, concurrent: int = 4) -> None:
        self.places = GrantedPlaces((ModuleLanes(frozenset({"v"}), places, concurrent, 1),))
        self.now_ns = 10 * S
        self.told: dict[str, Grant] = {}
        self.messages = 0
        for address in addresses:
            self.places.link_up(address, ("d",), (), self.now_ns)
        self.settle()

    def settle(self) -> None:
        for address, grants in self.places.settle(self.now_ns).items():
            self.messages += 1
            for grant in grants:
                if grant.kind is LaneKind.SYNC:
                    self.told[address] = grant

    def demand(self, address: str, count: int = 0, *, returned: int = 0, rank_us: int = 0, closed: bool = False,
             standby: int = 0, seen: int | None = None) -> None:  # fmt: skip
        grant = self.told.get(address)
        epoch, granted = (grant.epoch, grant.granted) if grant else (0, 0)
        seen = granted if seen is None else seen
        demand = LaneDemand(*SYNC, epoch, seen, returned, count, standby, rank_us, 4_000, closed)
        self.places.demanded(address, [demand], self.now_ns, 10_000_000)
        self.settle()

    def send(self, address: str, execution_id: int) -> None:
        run = _run(execution_id, self.told[address].epoch)
        self.places.arrived(address, run, self.now_ns)
        self.places.took(run, self.now_ns)
        self.settle()

    def end(self, execution_id: int, ms: int = 10_000) -> None:
        self.now_ns += ms * MS_NS
        # One that was cancelled tells nothing of how long others take, so nothing is sent ahead.
        self.places.ended([Report(execution_id, 1, 0, Outcome.CANCELLED, 0, 0)], self.now_ns)
        self.settle()

    def out(self) -> dict[str, int]:
        (lane,) = (lane for lane in self.places.lanes() if lane.key == SYNC)
        return {address: share.out for address, share in lane.shares.items()}

    def wait(self, ms: int) -> None:
        ends_ns = self.now_ns + ms * MS_NS
        while (at_ns := self.places.next_deadline()) is not None and at_ns <= ends_ns:
            assert at_ns > self.now_ns, "it spins"
            self.now_ns = at_ns
            self.settle()
        self.now_ns = ends_ns


@pytest.mark.parametrize(("places", "parts"), [(6, [2, 2, 2]), (4, [1, 1, 2]), (1, [0, 0, 1]), (48, [16, 16, 16])])
def test_idle_places_are_spread(places: int, parts: list[int]) -> None:
    assert sorted(Divided(places, "a", "b", "c").out().values()) == parts


def test_what_is_used_is_not_granted_again_until_it_ends() -> None:
    divided = Divided(2, "a")
    divided.send("a", 1)
    divided.send("a", 2)
    assert divided.out() == {"a": 0}
    divided.end(1)
    assert divided.out() == {"a": 1}
    assert divided.told["a"].granted == 3


def test_a_demand_is_met_by_what_others_dont_need() -> None:
    divided = Divided(2, "a", "b")
    divided.demand("a", 3)
    assert divided.told["b"].short
    assert divided.told["b"].keep == 0
    divided.demand("b", returned=1)
    assert divided.out() == {"a": 2, "b": 0}


def test_a_free_place_goes_to_the_most_urgent_demand() -> None:
    divided = Divided(1, "a")
    divided.send("a", 1)
    divided.places.link_up("b", ("d",), (), divided.now_ns)
    divided.demand("a", 2, rank_us=9_000_000)
    divided.demand("b", 2, rank_us=8_000_000)
    divided.end(1)
    assert divided.out() == {"a": 0, "b": 1}


def test_who_was_granted_waits_behind_others_of_the_same_age() -> None:
    """Four wait at each since the same instant; what is granted in turn alternates."""
    divided = Divided(4, "a", "b")
    for number, address in enumerate(("a", "a", "b", "b")):
        divided.send(address, number)
    divided.demand("a", 4, rank_us=9_000_000)
    divided.demand("b", 4, rank_us=9_000_000)
    for number in range(4):
        divided.end(number, 0)
    assert divided.out() == {"a": 2, "b": 2}


def test_who_stands_in_for_others_gets_what_is_left_and_now_and_then_one() -> None:
    divided = Divided(1, "a", "b")
    first = next(address for address, count in divided.out().items() if count)
    divided.send(first, 0)
    divided.demand("a", 1_000, rank_us=1)
    divided.demand("b", standby=1_000, rank_us=0)
    got: list[str] = []
    for number in range(40):
        divided.end(number, 0)
        address = next(address for address, count in divided.out().items() if count)
        got.append(address)
        divided.send(address, number + 1)
    assert got.count("b") == 4


def test_a_controller_that_doesnt_answer_loses_what_others_wait_for_until_it_speaks() -> None:
    divided = Divided(2, "a", "b")
    divided.demand("a", 5)
    divided.wait(PATIENCE_NS // MS_NS - 1)
    assert divided.out() == {"a": 1, "b": 1}
    divided.wait(2)
    assert divided.out() == {"a": 2, "b": 0}
    assert divided.places.voided == ["b"]
    divided.send("a", 1)
    old = _run(7, 1)
    divided.places.arrived("b", old, divided.now_ns)  # its claim was under way: it runs, by no place
    divided.places.took(old, divided.now_ns)
    divided.settle()
    assert divided.out() == {"a": 1, "b": 0}
    divided.demand("b", 1)
    divided.send("a", 2)
    divided.end(7, 1)
    divided.end(1, 1)
    assert divided.out()["b"] == 1


def test_an_answer_of_an_epoch_before_counts_for_nothing() -> None:
    divided = Divided(2, "a", "b")
    before = divided.told["b"]
    divided.demand("a", 5)
    divided.wait(PATIENCE_NS // MS_NS + 1)
    demand = LaneDemand(*SYNC, before.epoch, before.granted, 1, 0, 0, 0, 4_000, False)
    divided.places.demanded("b", [demand], divided.now_ns, 10_000_000)
    divided.settle()
    assert divided.out() == {"a": 2, "b": 0}


def test_a_closed_controller_keeps_none_and_a_gone_one_leaves_its_places() -> None:
    divided = Divided(4, "a", "b")
    divided.demand("b", closed=True, returned=2)
    assert divided.out()["b"] == 0
    divided.demand("a", 9)
    assert divided.out() == {"a": 4, "b": 0}
    divided.places.link_down("a")
    divided.demand("b", 3)
    assert divided.out() == {"b": 4}


def test_runs_that_took_no_place_take_room_all_the_same() -> None:
    """Adopted from a dead controller."""
    divided = Divided(2, "a")
    for number in range(5):
        divided.places.took(_run(number), divided.now_ns)
    divided.settle()
    divided.send("a", 8)
    divided.send("a", 9)
    divided.demand("a", 4)
    for number in range(5):
        divided.end(number)
        assert divided.out() == {"a": 0}
    divided.end(8)
    assert divided.out() == {"a": 1}


def test_large_lanes_are_filled_up_now_and_then_only() -> None:
    """A burst of short runs costs no message for each of them."""
    divided = Divided(3_000, "a", "b", "c")
    before = divided.messages
    for number in range(1_000):
        divided.send("a", number)
        divided.end(number, 0)
    assert divided.messages - before <= 4


def test_a_draining_runner_grants_none() -> None:
    divided = Divided(1, "a")
    divided.send("a", 1)
    divided.places.close()
    divided.demand("a", 4)
    divided.end(1)
    assert divided.out() == {"a": 0}


def test_while_nobody_takes_its_results_a_runner_grants_no_places() -> None:
    divided = Divided(2, "a")
    divided.send("a", 1)
    divided.send("a", 2)
    divided.places.pause(True)
    divided.demand("a", 4)
    divided.end(1)
    assert divided.out() == {"a": 0}
    divided.places.pause(False)
    divided.settle()
    assert divided.out() == {"a": 1}


def test_a_demand_for_a_lane_that_isnt_here_is_ignored() -> None:
    divided = Divided(1, "a")
    divided.places.demanded("a", [LaneDemand("other", LaneKind.SYNC, 1, 1, 0, 5, 0, 0, 0, False)], divided.now_ns, 0)
    divided.places.demanded("z", [LaneDemand(*SYNC, 1, 1, 0, 5, 0, 0, 0, False)], divided.now_ns, 0)
    assert divided.places.settle(divided.now_ns) == {}


# Sent ahead


def _learnt(places: int, *durations_ms: int) -> Ahead:
    ahead = Ahead(places)
    for number, duration_ms in enumerate(durations_ms):
        ahead.took(number, "v", 0)
        ahead.ended(number, duration_ms * MS_NS, 0)
    return ahead


def test_the_next_is_sent_for_when_the_end_is_near() -> None:
    ahead = _learnt(1, 100, 100, 100)
    ahead.took(9, "v", 0)
    lead = 11 * MS_NS
    assert ahead.count(80 * MS_NS, lead) == 0
    assert ahead.next_ns(80 * MS_NS, lead) == 89 * MS_NS
    assert ahead.count(89 * MS_NS, lead) == 1
    assert ahead.count(110 * MS_NS, lead) == 1
    assert ahead.count(900 * MS_NS, lead) == 0  # it is none of those that this was learnt from


@pytest.mark.parametrize(("duration_ms", "count"), [(1, 56), (5, 12), (10, 6), (50, 2), (1_000, 0)])
def test_short_runs_are_sent_ahead_in_numbers(duration_ms: int, count: int) -> None:
    ahead = _learnt(1, *[duration_ms] * 4)
    ahead.took(9, "v", 0)
    assert ahead.count(0, 55 * MS_NS) == pytest.approx(count, abs=1)
    assert ahead.count(0, 10**12) <= EACH_MAX


def test_what_cant_be_foreseen_isnt_sent_ahead() -> None:
    ahead = _learnt(1, 100, 900, 20, 700, 300)
    ahead.took(9, "v", 0)
    assert ahead.count(400 * MS_NS, 200 * MS_NS) == 0
    unknown = Ahead(1)
    unknown.took(1, "v", 0)
    assert unknown.count(0, S) == 0


def test_the_lead_is_what_it_took_lately_or_a_claim_and_a_half() -> None:
    turnarounds = Pace()
    assert lead_ns(turnarounds, 4_000) == 11 * MS_NS
    assert lead_ns(turnarounds, 10**9) == 250 * MS_NS
    for _ in range(40):
        turnarounds.observe(30 * MS_NS)
    assert lead_ns(turnarounds, 4_000) == pytest.approx(30 * MS_NS, rel=0.1)


def test_demands_of_a_large_lane_are_met_in_batches() -> None:
    divided = Divided(3_200, "a")
    for number in range(3_200):
        divided.send("a", number)
    divided.demand("a", 9_000)
    before = divided.messages
    for number in range(1_000):
        divided.end(number, 0)
    assert 9 <= divided.messages - before <= 11
    divided.end(1_001, 0)
    divided.wait(6)
    assert divided.told["a"].granted == 4_201
