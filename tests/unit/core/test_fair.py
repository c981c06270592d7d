"""Shares take turns: shares are equal within one, nobody starves, and a pick costs about the same however many wait."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.node.fair import FairQueue, Turns

SHARES = "abcd"


def _alive(item: str, serial: int) -> bool:
    return True


def _filled(waiting: dict[str, int]) -> FairQueue[str]:
    """So many of each share, those of the first share being the oldest."""
    queue: FairQueue[str] = FairQueue()
    serial = 0
    for place, (share, count) in enumerate(waiting.items()):
        for _ in range(count):
            serial += 1
            queue.push(share, (1_000 * place + serial, serial, share))
    return queue


def _popped(queue: FairQueue[str], count: int) -> list[str]:
    return [found[2] for _ in range(count) if (found := queue.pop(_alive)) is not None]


def test_three_of_one_wait_for_three_of_the_five_thousand_of_another() -> None:
    queue = _filled({"loud": 5_000, "quiet": 3})
    assert _popped(queue, 7) == ["loud", "quiet"] * 3 + ["loud"]
    assert len(queue) == 4_996


def test_in_a_round_and_in_a_share_the_most_urgent_goes_first() -> None:
    queue: FairQueue[str] = FairQueue()
    for serial, (share, rank) in enumerate((("a", 30), ("b", 20), ("a", 10), ("b", 5), ("c", 40)), 1):
        queue.push(share, (rank, serial, f"{share}{rank}"))
    assert _popped(queue, 9) == ["b5", "a10", "c40", "b20", "a30"]


def test_without_shares_the_rank_alone_decides() -> None:
    queue: FairQueue[str] = FairQueue()
    ranks = random.Random(3).sample(range(1_000), 200)
    for serial, rank in enumerate(ranks):
        queue.push("", (rank, serial, str(rank)))
    assert _popped(queue, 200) == list(map(str, sorted(ranks)))


def test_who_comes_late_joins_the_round_and_has_no_credit() -> None:
    queue = _filled({"a": 100, "b": 100})
    _popped(queue, 100)
    for serial in range(1_000, 1_050):
        queue.push("c", (serial, serial, "c"))
    assert Counter(_popped(queue, 61)) == {"a": 20, "b": 20, "c": 21}


def test_who_comes_back_in_the_same_round_has_had_its_turn() -> None:
    queue = _filled({"a": 1, "b": 10})
    assert _popped(queue, 1) == ["a"]
    queue.push("a", (0, 99, "a"))
    assert _popped(queue, 3) == ["b", "a", "b"]


def test_a_turn_that_came_to_nothing_is_had_again() -> None:
    queue = _filled({"a": 5, "b": 5})
    assert _popped(queue, 2) == ["a", "b"]
    queue.give_back("b")
    queue.push("b", (0, 99, "b again"))
    assert _popped(queue, 3) == ["b again", "a", "b"]


def test_what_waits_no_more_takes_no_turn() -> None:
    queue = _filled({"a": 3, "b": 3})
    gone = {1, 2, 4}
    popped = [found[1] for _ in range(9) if (found := queue.pop(lambda _, serial: serial not in gone)) is not None]
    assert popped == [3, 5, 6]
    assert len(queue) == 0
    assert queue.head(_alive) is None


def test_a_refill_keeps_who_has_had_a_turn() -> None:
    queue = _filled({"a": 3, "b": 3})
    _popped(queue, 1)
    queue.refill(list(queue))
    assert _popped(queue, 2) == ["b", "a"]


@given(st.lists(st.tuples(st.sampled_from(SHARES), st.integers(0, 50)), min_size=1, max_size=200))
def test_while_they_wait_shares_get_equally_many_within_one(pushed: list[tuple[str, int]]) -> None:
    queue: FairQueue[str] = FairQueue()
    left: Counter[str] = Counter()
    for serial, (share, rank) in enumerate(pushed):
        queue.push(share, (rank, serial, share))
        left[share] += 1
    got: Counter[str] = Counter()
    while (found := queue.pop(_alive)) is not None:
        waited = {share for share, count in left.items() if count}
        got[found[2]] += 1
        left[found[2]] -= 1
        assert got[found[2]] <= min(got[share] for share in waited) + 1
    assert got == Counter(share for share, _ in pushed)


@given(st.data())
def test_whoever_comes_and_goes_nobody_waits_for_more_than_two_turns_of_each_other(data: st.DataObject) -> None:
    """Of a share whose head waits: the others have had two turns each since then at most, as ranks only rise."""
    queue: FairQueue[str] = FairQueue()
    waiting: Counter[str] = Counter()
    since: dict[str, Counter[str]] = {}
    for serial in range(data.draw(st.integers(1, 150))):
        if data.draw(st.booleans()) or not waiting:
            share = data.draw(st.sampled_from(SHARES))
            queue.push(share, (serial, serial, share))
            since.setdefault(share, Counter())
            waiting[share] += 1
            continue
        found = queue.pop(_alive)
        assert found is not None
        got = found[2]
        waiting[got] -= 1
        if not waiting[got]:
            del waiting[got]
        since.pop(got)
        if got in waiting:
            since[got] = Counter()
        for counts in since.values():
            counts[got] += 1
        since = {share: counts for share, counts in since.items() if share in waiting}
        assert all(count <= 2 for share, counts in since.items() for other, count in counts.items() if other != share)


@pytest.mark.parametrize("shares", [1, 50, 5_000])
def test_a_pick_looks_at_few_however_many_wait(shares: int) -> None:
    """Each answer of `alive` is a look; comparisons are those of heaps."""
    queue: FairQueue[str] = FairQueue()
    for serial in range(10_000):
        queue.push(f"s{serial % shares}", (serial * 7_919 % 10_000, serial, ""))
    looks = 0

    def alive(item: str, serial: int) -> bool:
        nonlocal looks
        looks += 1
        return True

    for _ in range(10_000):
        assert queue.pop(alive) is not None
    assert looks <= 2 * 10_000
    assert len(queue._heads) <= 2 * shares  # it is amortised: what is stale goes


def test_shares_that_are_gone_are_forgotten() -> None:
    turns = Turns()
    for number in range(10_000):
        turns.take(f"s{number}")
        turns.now += 1
    assert len(turns._next) < 1_000  # nothing else tells
