import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.swim.member import Member, supersedes
from cronring.controller.core.swim.messages import Status, Update
from cronring.controller.core.swim.roster import Roster

ALIVE, SUSPECT, DEAD, LEFT = Status.ALIVE, Status.SUSPECT, Status.DEAD, Status.LEFT

# (heard, held): does it win when the heard incarnation is (lower, the same, higher)?
TABLE = {
    (ALIVE, ALIVE): (False, False, True),
    (ALIVE, SUSPECT): (False, False, True),
    (ALIVE, DEAD): (False, False, True),
    (ALIVE, LEFT): (False, False, True),
    (SUSPECT, ALIVE): (False, True, True),
    (SUSPECT, SUSPECT): (False, False, True),
    (SUSPECT, DEAD): (False, False, True),
    (SUSPECT, LEFT): (False, False, True),
    (DEAD, ALIVE): (False, True, True),
    (DEAD, SUSPECT): (False, True, True),
    (DEAD, DEAD): (False, False, True),
    (DEAD, LEFT): (False, False, True),
    (LEFT, ALIVE): (False, True, True),
    (LEFT, SUSPECT): (False, True, True),
    (LEFT, DEAD): (False, True, True),
    (LEFT, LEFT): (False, False, True),
}


def belief(status: Status, incarnation: int, draining: bool = False, member_id: str = "c-1") -> Update:
    return Update(member_id, "host:7", status, incarnation, draining)


def test_the_table_names_every_pair() -> None:
    assert set(TABLE) == set(itertools.product(Status, Status))


@pytest.mark.parametrize(("statuses", "wins"), TABLE.items(), ids=str)
def test_merge_rule(statuses: tuple[Status, Status], wins: tuple[bool, bool, bool]) -> None:
    heard, held = statuses
    found = tuple(supersedes(belief(heard, incarnation), belief(held, 5)) for incarnation in (4, 5, 6))
    assert found == wins


def test_draining_wins_between_equals() -> None:
    assert supersedes(belief(ALIVE, 3, draining=True), belief(ALIVE, 3))
    assert not supersedes(belief(ALIVE, 3), belief(ALIVE, 3, draining=True))


updates = st.builds(belief, st.sampled_from(Status), st.integers(0, 4), st.booleans())


@given(updates, updates)
def test_never_both_ways(one: Update, other: Update) -> None:
    assert not (supersedes(one, other) and supersedes(other, one))


@given(updates, updates, updates)
def test_transitive(a: Update, b: Update, c: Update) -> None:
    if supersedes(a, b) and supersedes(b, c):
        assert supersedes(a, c)


@given(st.lists(updates, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_a_roster_does_not_depend_on_the_order_of_rumours(heard: list[Update], rng: random.Random) -> None:
    def outcome(order: list[Update]) -> tuple[Status, int, bool]:
        roster = Roster()
        roster.merge(belief(ALIVE, 0), 0)
        for update in order:
            roster.merge(update, 0)
        held = roster.get("c-1")
        assert held is not None
        return (LEFT, 0, False) if held.status is LEFT else (held.status, held.incarnation, held.draining)

    shuffled = list(heard)
    rng.shuffle(shuffled)
    assert outcome(heard) == outcome(shuffled)


@pytest.mark.parametrize(
    ("status", "draining", "gossips", "owns_slots"),
    [
        (ALIVE, False, True, True),
        (ALIVE, True, True, False),
        (SUSPECT, False, True, True),
        (SUSPECT, True, True, False),
        (DEAD, False, False, False),
        (LEFT, False, False, False),
    ],
)
def test_who_gossips_and_who_owns_slots(status: Status, draining: bool, gossips: bool, owns_slots: bool) -> None:
    member = Member("c-1", "host:7", status, 0, draining)
    assert (member.gossips, member.owns_slots) == (gossips, owns_slots)
