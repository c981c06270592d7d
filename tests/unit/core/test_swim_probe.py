import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.controller.core.swim.messages import Status, Update
from cronring.controller.core.swim.probe import URGENT_CAPACITY, Probe, TargetOrder
from cronring.controller.core.swim.relays import CAPACITY, Relay, Relays
from cronring.controller.core.swim.roster import Roster
from cronring.controller.core.swim.seeds import Seeds
from tests.drawing import examples


@settings(max_examples=examples(50))
@given(st.integers(1, 30), st.integers(0, 2**32))
def test_everyone_is_probed_within_one_and_a_half_rounds(members: int, seed: int) -> None:
    order = TargetOrder(random.Random(seed))
    for number in range(members):
        order.add(f"m{number}")
    last: dict[str, int] = {}
    for turn in range(members * 20):
        target = order.next()
        assert target is not None
        if target in last:
            assert turn - last[target] <= (3 * members + 1) // 2
        last[target] = turn
    assert len(last) == members


def test_two_targets_take_turns() -> None:
    order = TargetOrder(random.Random(1))
    order.add("a")
    order.add("b")
    turns = [order.next() for _ in range(20)]
    assert turns[0::2] == [turns[0]] * 10
    assert turns[1::2] == [turns[1]] * 10
    assert turns[0] != turns[1]


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "next"]), st.integers(0, 9)), max_size=60))
def test_members_come_and_go(steps: list[tuple[str, int]]) -> None:
    order, present = TargetOrder(random.Random(3)), dict[str, None]()
    for step, number in steps:
        name = f"m{number}"
        if step == "add":
            order.add(name)
            present[name] = None
        elif step == "remove":
            order.remove(name)
            present.pop(name, None)
        else:
            target = order.next()
            assert target in present if present else target is None
    rest = [order.next() for _ in range(3 * len(present))]
    assert set(rest) == set(present)


def test_the_accused_come_first_once_and_are_bounded() -> None:
    order = TargetOrder(random.Random(1))
    for number in range(40):
        order.add(f"m{number}")
    order.prefer(f"m{number}" for number in range(40))
    order.prefer(["m0"])
    order.remove("m1")
    first = [order.next() for _ in range(URGENT_CAPACITY - 1)]
    assert first == ["m0", *(f"m{number}" for number in range(2, URGENT_CAPACITY))]


def test_a_probe_asks_helpers_and_then_ends_unless_it_is_answered() -> None:
    probe = Probe(sequence=1, target_id="a", ask_helpers_ns=200, ends_ns=500)
    assert probe.next_ns() == 200
    probe.asked = True
    assert probe.next_ns() == 500
    probe.delay(1000)
    assert (probe.ask_helpers_ns, probe.ends_ns) == (1200, 1500)
    answered = Probe(sequence=1, target_id="a", ask_helpers_ns=200, ends_ns=500, answered=True)
    assert answered.next_ns() == 500


def relay(nack_ns: int = 160, ends_ns: int = 500) -> Relay:
    return Relay("requester", "requester:7", 77, nack_ns, ends_ns)


def test_a_relay_is_nacked_once_and_a_late_ack_still_passed_on() -> None:
    relays = Relays()
    relays.add(5, relay())
    assert relays.next_ns() == 160
    assert relays.to_nack(159) == []
    assert [one.sequence for one in relays.to_nack(160)] == [77]
    assert relays.to_nack(161) == []
    assert relays.next_ns() == 500
    late = relays.answered(5)
    assert late is not None
    assert late.requester_id == "requester"
    assert relays.answered(5) is None
    assert relays.next_ns() is None


def test_relays_end_and_are_bounded() -> None:
    relays = Relays()
    relays.add(1, relay())
    assert relays.to_nack(500) == []
    assert relays.answered(1) is None
    for sequence in range(CAPACITY + 1):
        relays.add(sequence, relay())
    assert relays.answered(0) is None
    assert relays.answered(1) is not None


ME = "me:7"


@pytest.mark.parametrize(
    ("status", "unverified_by"),
    [(Status.ALIVE, False), (Status.SUSPECT, False), (Status.DEAD, True), (Status.LEFT, False)],
)
def test_who_of_the_listed_is_a_stranger(status: Status, unverified_by: bool) -> None:
    roster, seeds = Roster(), Seeds()
    roster.merge(Update("a", "a:7", Status.ALIVE, 0, False), 0)
    roster.merge(Update("a", "a:7", status, 0, False), 0)
    seeds.replace((("a", "a:7"), ("me", ME)))
    assert seeds.strangers(roster, ME) == ([("a", "a:7")] if unverified_by else [])


def test_a_new_list_replaces_the_old_but_not_what_was_joined() -> None:
    roster, seeds = Roster(), Seeds()
    seeds.replace((("", "join:7"),))
    seeds.replace((("a", "a:7"),))
    seeds.replace((("b", "b:7"),))
    assert seeds.strangers(roster, ME) == [("", "join:7"), ("b", "b:7")]
    roster.merge(Update("j", "join:7", Status.ALIVE, 0, False), 0)
    assert seeds.strangers(roster, ME) == [("b", "b:7")]


def test_a_new_process_at_an_old_address_makes_that_address_known() -> None:
    roster, seeds = Roster(), Seeds()
    seeds.replace((("old", "a:7"),))
    roster.merge(Update("new", "a:7", Status.ALIVE, 0, False), 0)
    assert seeds.strangers(roster, ME) == []
