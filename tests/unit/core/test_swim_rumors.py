import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.swim.health import WORST, Health
from cronring.controller.core.swim.messages import Status, Update
from cronring.controller.core.swim.rumors import PACKET_UPDATES, Rumors, retransmit_limit


def about(member_id: str, status: Status = Status.ALIVE, incarnation: int = 0, accuser_id: str = "") -> Update:
    return Update(member_id, f"{member_id}:7", status, incarnation, False, accuser_id)


@pytest.mark.parametrize(
    ("members", "limit"), [(1, 4), (3, 4), (9, 4), (10, 8), (99, 8), (100, 12), (200, 12), (1000, 16)]
)
def test_retransmit_limit(members: int, limit: int) -> None:
    assert retransmit_limit(members) == limit


@given(st.integers(1, 200), st.integers(1, 30), st.integers(1, 60))
def test_each_rumour_is_told_exactly_as_often_as_the_limit(members: int, rumours: int, at_most: int) -> None:
    queue = Rumors()
    for number in range(rumours):
        queue.add(about(f"m{number}"))
    told: dict[str, int] = {}
    while len(queue):
        packet = queue.take(members, at_most)
        assert 0 < len(packet) <= at_most
        assert len({update.member_id for update in packet}) == len(packet)
        for update in packet:
            told[update.member_id] = told.get(update.member_id, 0) + 1
        assert max(told.values()) - min(told.get(f"m{number}", 0) for number in range(rumours)) <= 1
    assert told == {f"m{number}": retransmit_limit(members) for number in range(rumours)}


def test_least_told_first_and_newer_before_older() -> None:
    queue = Rumors()
    queue.add(about("old"))
    assert [update.member_id for update in queue.take(3)] == ["old"]
    queue.add(about("new"))
    queue.add(about("newer"))
    assert [update.member_id for update in queue.take(3, 2)] == ["newer", "new"]
    assert [update.member_id for update in queue.take(3, 1)] == ["newer"]


def test_a_newer_rumour_replaces_the_older_and_starts_afresh() -> None:
    queue = Rumors()
    queue.add(about("a"))
    for _ in range(3):
        queue.take(3)
    queue.add(about("a", incarnation=1))
    assert [queue.take(3) for _ in range(5)] == [(about("a", incarnation=1),)] * 4 + [()]


def test_accusers_stand_side_by_side_until_something_else_is_said() -> None:
    queue = Rumors()
    queue.add(about("a", Status.SUSPECT, 1, "x"))
    queue.add(about("a", Status.SUSPECT, 1, "y"))
    assert {update.accuser_id for update in queue.take(3)} == {"x", "y"}
    queue.add(about("a", Status.SUSPECT, 2, "z"))
    assert queue.take(3) == (about("a", Status.SUSPECT, 2, "z"),)
    queue.add(about("a", Status.ALIVE, 3))
    assert queue.take(3) == (about("a", Status.ALIVE, 3),)


def test_what_does_not_count_is_told_again() -> None:
    queue = Rumors()
    queue.add(about("a"))
    for _ in range(20):
        assert queue.take(3, counts=False) == (about("a"),)
    assert [len(queue.take(3)) for _ in range(5)] == [1, 1, 1, 1, 0]


def test_bounded_and_the_most_told_is_forgotten() -> None:
    queue = Rumors(capacity=3)
    queue.add(about("told"))
    queue.take(3)
    for name in ("a", "b", "c"):
        queue.add(about(name))
    assert len(queue) == 3
    assert {update.member_id for update in queue.take(3)} == {"a", "b", "c"}


def test_a_packet_is_bounded() -> None:
    queue = Rumors()
    for number in range(500):
        queue.add(about(f"m{number}"))
    assert len(queue.take(500)) == PACKET_UPDATES


def test_health_stays_within_its_bounds_and_scales() -> None:
    health = Health()
    health.better()
    assert (health.score, health.scale(200)) == (0, 200)
    for _ in range(20):
        health.worse()
    assert (health.score, health.scale(200)) == (WORST, 1800)
    health.better()
    assert health.score == WORST - 1
