import random
import time
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uhashring import HashRing

from cronring.controller.core.node import ring as ring_module
from cronring.controller.core.node.ring import NOBODY, POINTS_PER_MEMBER, Owners, Ring
from cronring.controller.core.swim.beliefs import MEMBERS_MAX
from cronring.schema.keys import SLOTS
from tests.drawing import examples

THIRTY: Final = tuple(f"host-{number}" for number in range(30))
member_sets = st.lists(st.from_regex(r"[a-z]{1,6}-[0-9a-f]{4}", fullmatch=True), max_size=12, unique=True)


def dumb_owners(points: list[tuple[int, str]], position: int) -> Owners:
    """The twin: look at every point on its own, with no order assumed and nothing shared with the ring."""
    size = 1 << 64
    by_distance = sorted(((point - position - 1) % size, member) for point, member in points)
    primary = by_distance[0][1] if by_distance else None
    backup = next((member for _, member in by_distance if member != primary), None)
    return primary, backup


def walked_owners(members: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The table as releases before arcs made it: all points in one HashRing, one walk over them and the slots."""
    index_of = {member: index for index, member in enumerate(members)}
    points = uhashring_of(list(members)).get_points()
    positions, owners = [position for position, _ in points], [index_of[member] for _, member in points]
    others = [NOBODY] * len(owners)
    for _ in range(2):
        following, other = owners[0], others[0]
        for at in range(len(owners) - 1, -1, -1):
            if following != owners[at]:
                other = following
            others[at] = other
            following = owners[at]
    at_slot = [bisect_right(positions, ring_module._position(f"slot-{slot}")) % len(points) for slot in range(SLOTS)]
    return tuple(owners[at] for at in at_slot), tuple(others[at] for at in at_slot)


def uhashring_of(members: list[str]) -> HashRing:
    return HashRing(members, vnodes=POINTS_PER_MEMBER, hash_fn=ring_module._position)


@settings(max_examples=examples(20))
@given(member_sets, st.randoms(use_true_random=False))
def test_owners_are_those_of_the_dumb_twin(members: list[str], rng: random.Random) -> None:
    ring = Ring.build(tuple(members))
    points = uhashring_of(members).get_points()
    for slot in rng.sample(range(SLOTS), 25):
        assert ring.owners(slot) == dumb_owners(points, ring_module._position(f"slot-{slot}"))


@pytest.mark.parametrize("count", [2, 3, 7, 25])
def test_owners_are_those_of_uhashrings_own_search(count: int) -> None:
    members = [f"c-{number}" for number in range(count)]
    ring, theirs = Ring.build(tuple(members)), uhashring_of(members)
    for slot in range(SLOTS):
        assert ring.owners(slot) == tuple(node["nodename"] for node in theirs.range(f"slot-{slot}", 2))


@settings(max_examples=examples(20))
@given(member_sets.filter(bool))
def test_owners_are_those_of_the_releases_before(members: list[str]) -> None:
    """All controllers of a cluster agree, during a rolling upgrade too."""
    ring = Ring.build(tuple(members))
    assert (ring.primary, ring.backup) == walked_owners(ring.members)


@settings(max_examples=examples(20))
@given(st.lists(member_sets, min_size=2, max_size=6))
def test_a_ring_over_other_members_is_the_one_that_is_built_of_them(courses: list[list[str]]) -> None:
    ring = Ring.build(())
    for members in courses:
        ring = ring.over(tuple(members))
        built = Ring.build(tuple(members))
        assert ring == built
        assert ring._arcs == built._arcs


def test_members_that_come_and_go_one_by_one_leave_the_table_of_the_releases_before() -> None:
    rng = random.Random(3)
    ring, names = Ring.build(()), [f"host-{number:03}" for number in range(120)]
    for step in range(200):
        present = set(ring.members) ^ {rng.choice(names) if step > 60 else names[step]}
        ring = ring.over(tuple(present))
        if step % 10 == 0:
            assert (ring.primary, ring.backup) == walked_owners(ring.members)
            assert ring == Ring.build(ring.members)


@settings(max_examples=examples(20))
@given(member_sets, st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(members: list[str], rng: random.Random) -> None:
    shuffled = list(members)
    rng.shuffle(shuffled)
    one, other = Ring.build(tuple(members)), Ring.build(tuple(shuffled + shuffled[:1]))
    assert one == other
    assert one.digest == other.digest


@settings(max_examples=examples(20))
@given(member_sets)
def test_every_slot_has_one_primary_and_another_as_backup(members: list[str]) -> None:
    ring = Ring.build(tuple(members))
    primaries = sorted(slot for member in members for slot in ring.primary_slots(member))
    backups = sorted(slot for member in members for slot in ring.backup_slots(member))
    assert primaries == (list(range(SLOTS)) if members else [])
    assert backups == (list(range(SLOTS)) if len(members) > 1 else [])
    for member in members:
        assert list(ring.primary_slots(member)) == sorted(ring.primary_slots(member))
        assert not set(ring.primary_slots(member)) & set(ring.backup_slots(member))
        assert all(ring.owners(slot)[0] == member for slot in ring.primary_slots(member))
        assert all(ring.owners(slot)[1] == member for slot in ring.backup_slots(member))


def test_nobody_one_and_strangers() -> None:
    assert Ring.build(()).owners(0) == (None, None)
    assert Ring.build(()).primary == (NOBODY,) * SLOTS
    assert Ring.build(("c-1",)).owners(4095) == ("c-1", None)
    assert Ring.build(("c-1",)).primary_slots("c-1") == tuple(range(SLOTS))
    assert Ring.build(("c-1",)).backup_slots("c-1") == ()
    assert Ring.build(("c-1",)).primary_slots("c-2") == ()


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_who_goes_hands_its_slots_to_their_backups_and_nothing_else_moves(count: int) -> None:
    members = tuple(f"c-{number}" for number in range(count))
    before = Ring.build(members)
    for gone in members:
        after = Ring.build(tuple(member for member in members if member != gone))
        for slot in range(SLOTS):
            primary, backup = before.owners(slot)
            if primary == gone:
                assert after.owners(slot)[0] == backup
            else:
                assert after.owners(slot)[0] == primary
                assert backup == gone or after.owners(slot)[1] == backup


@pytest.mark.parametrize(("count", "most"), [(2, 1.25), (3, 1.3), (5, 1.35), (10, 1.4), (30, 1.6)])
def test_load_is_even(count: int, most: float) -> None:
    """Over 20 clusters of random ids: nobody owns more than `most` times its share, as primary or as both together."""
    rng = random.Random(count)
    for _ in range(20):
        members = tuple(f"host-{rng.randrange(16**8):08x}" for _ in range(count))
        ring = Ring.build(members)
        share = SLOTS / count
        assert max(len(ring.primary_slots(member)) for member in members) <= most * share
        both = [len(ring.primary_slots(member)) + len(ring.backup_slots(member)) for member in members]
        assert max(both) <= most * 2 * share


@pytest.mark.parametrize(
    ("count", "digest"),
    [
        (1, "a4238c7c964b6d2d"),
        (2, "e889926eacca2f18"),
        (3, "570ad5cc3de7fae9"),
        (10, "26723b3309fc2f44"),
        (100, "849d80d8674ca22e"),
        (1000, "34fa69eef9d3ebec"),
    ],
)
def test_the_table_is_for_ever(count: int, digest: str) -> None:
    """Controllers of two releases share a ring, so this digest may only change with a migration of all of them."""
    members = tuple(f"c-{number}" for number in range(1, count + 1))
    assert Ring.build(members).digest == digest
    assert Ring.build(members[: count // 2]).over(members).digest == digest


def test_digests_differ_where_tables_do() -> None:
    rings = [Ring.build(tuple(f"c-{number}" for number in range(count))) for count in range(6)]
    assert len({ring.digest for ring in rings}) == 6


def test_building_hashes_each_point_once_and_no_slot_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost that does not depend on the machine: 160 hashes for each member, whatever the number of slots."""
    Ring.build(("warm",))
    hashed: list[str] = []
    position = ring_module._position

    def counted(key: str) -> int:
        hashed.append(key)
        return position(key)

    monkeypatch.setattr(ring_module, "_position", counted)
    Ring.build(tuple(f"c-{number}" for number in range(30)))
    assert len(hashed) == 30 * POINTS_PER_MEMBER


def test_a_ring_over_other_members_hashes_the_points_of_who_came_and_who_went(monkeypatch: pytest.MonkeyPatch) -> None:
    members = tuple(f"c-{number}" for number in range(30))
    ring = Ring.build(members)
    hashed: list[str] = []
    position = ring_module._position

    def counted(key: str) -> int:
        hashed.append(key)
        return position(key)

    monkeypatch.setattr(ring_module, "_position", counted)
    ring.over((*members[1:], "c-30"))
    assert {key.rpartition("-")[0] for key in hashed} == {"c-0", "c-30"}
    assert len(hashed) == 2 * POINTS_PER_MEMBER
    hashed.clear()
    ring.over(("c-0",))  # rather from nothing
    assert len(hashed) == POINTS_PER_MEMBER


def hashing_s(members: tuple[str, ...]) -> float:
    """What every ring must do at least: the measure of a machine that is slow or busy."""
    keys = [f"{member}-{point}" for member in members for point in range(POINTS_PER_MEMBER)]
    return best_s(lambda: sorted(ring_module._position(key) for key in keys))


def best_s(measured: Callable[[], object]) -> float:
    """Of several, in CPU time: the machine may be busy."""
    best = float("inf")
    for _ in range(10):
        began = time.process_time()
        measured()
        best = min(best, time.process_time() - began)
    return best


def test_building_thirty_members_costs_little_more_than_to_hash_their_points() -> None:
    """11 ms, of which 3.4 are hashing."""
    assert best_s(lambda: Ring.build(THIRTY)) < 7 * hashing_s(THIRTY)


def test_one_of_256_members_goes_and_comes_for_less_than_thirty_are_built() -> None:
    """As many as SWIM takes in: 4 ms."""
    ring = Ring.build(tuple(f"host-{number}" for number in range(MEMBERS_MAX)))
    without = ring.over(ring.members[1:])
    assert best_s(lambda: ring.over(without.members)) < 4 * hashing_s(THIRTY)
    assert best_s(lambda: without.over(ring.members)) < 4 * hashing_s(THIRTY)
