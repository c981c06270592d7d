"""Token buckets, on a clock that stands where it is put."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.rates import Buckets, Rate

MS = 1_000_000
S = 1_000 * MS


def taken(buckets: Buckets, key: str, now_ns: int) -> int:
    """How many tokens there are at an instant."""
    return next(number for number in range(100_000) if buckets.take(key, now_ns))


def test_a_burst_and_then_the_rate() -> None:
    buckets = Buckets(Rate(10, 5), 100)
    assert taken(buckets, "ann", 0) == 5
    assert taken(buckets, "ann", 100 * MS) == 1
    assert taken(buckets, "ann", 250 * MS) == 1
    assert taken(buckets, "ann", 300 * MS) == 1, "what is left of a token is not lost"
    assert taken(buckets, "ann", 60 * S) == 5


def test_whoever_is_refused_is_told_when_to_come_and_gets_it_then() -> None:
    buckets = Buckets(Rate(4, 1), 100)
    assert buckets.take("ann", 7) == 0
    assert buckets.take("ann", 7) == 250 * MS
    assert buckets.take("ann", 7 + 249 * MS) == 1 * MS
    assert buckets.take("ann", 7 + 250 * MS) == 0


def test_being_refused_costs_nothing() -> None:
    buckets = Buckets(Rate(1, 1), 100)
    buckets.take("ann", 0)
    assert [buckets.take("ann", 0) for _ in range(100)] == [S] * 100


def test_each_has_a_bucket_of_its_own() -> None:
    buckets = Buckets(Rate(1, 3), 100)
    assert taken(buckets, "ann", 0) == 3
    assert taken(buckets, "bob", 0) == 3


def test_what_was_taken_for_nothing_is_given_back() -> None:
    buckets = Buckets(Rate(1, 2), 100)
    assert taken(buckets, "ann", 0) == 2
    buckets.give_back("ann")
    assert taken(buckets, "ann", 0) == 1
    buckets.give_back("nobody")


def test_full_buckets_are_not_kept() -> None:
    buckets = Buckets(Rate(1, 10), 100)
    for number in range(50):
        buckets.take(number, 0)
    assert len(buckets) == 50
    buckets.take("late", 2 * S)
    assert len(buckets) == 1


def test_past_the_bound_the_one_asked_for_the_longest_ago_goes() -> None:
    buckets = Buckets(Rate(1, 1), 3)
    for key in ("ann", "bob", "carl"):
        buckets.take(key, 0)
    assert buckets.take("ann", 1) > 0, "she asks again, and is refused"
    buckets.take("dora", 1)
    assert len(buckets) == 3
    assert buckets.take("ann", 1) > 0
    assert buckets.take("bob", 1) == 0, "he was forgotten"


@given(
    st.integers(1, 1_000),
    st.integers(1, 50),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2 * S)), max_size=200),
)
def test_no_more_than_burst_and_rate_in_any_time(per_s: int, burst: int, asked: list[tuple[str, int]]) -> None:
    buckets, now_ns = Buckets(Rate(per_s, burst), 100), 0
    got: dict[str, list[int]] = {"a": [], "b": []}
    for key, later_ns in asked:
        now_ns += later_ns
        if not buckets.take(key, now_ns):
            got[key].append(now_ns)
    for instants in got.values():
        for count, begin, end in spans(instants):
            assert count <= burst + (end - begin) * per_s / S + 1e-6 * count


def spans(instants: list[int]) -> Iterator[tuple[int, int, int]]:
    for first in range(len(instants)):
        for last in range(first, len(instants)):
            yield last - first + 1, instants[first], instants[last]
