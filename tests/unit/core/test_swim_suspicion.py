import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.swim.suspicion import (
    CONFIRMATIONS,
    Suspicion,
    minimum_ns,
    timeout_ns,
    wanted_confirmations,
)

MS = 1_000_000


@pytest.mark.parametrize(
    ("multiplier", "interval_ms", "members", "milliseconds"),
    [
        (4, 500, 1, 2000),
        (4, 500, 3, 2000),  # log10 below 1 counts as 1
        (4, 500, 10, 2000),
        (4, 500, 100, 4000),
        (4, 500, 1000, 6000),
        (5, 1000, 128, 10536),  # the paper's cluster: alpha 5, an interval of 1 s, 128 members
    ],
)
def test_minimum(multiplier: int, interval_ms: int, members: int, milliseconds: int) -> None:
    assert minimum_ns(multiplier, interval_ms * MS, members) // MS == milliseconds


# Lifeguard, section IV.B, with beta = 6 and K = 3: max - (max - min) log(C + 1) / log(K + 1), min = 10 s, max = 60 s.
@pytest.mark.parametrize(
    ("confirmations", "wanted", "milliseconds"),
    [
        (0, 3, 60_000),
        (1, 3, 35_000),  # log 2 / log 4 is a half
        (2, 3, 20_375),
        (3, 3, 10_000),
        (4, 3, 10_000),
        (0, 2, 60_000),
        (1, 2, 28_453),
        (2, 2, 10_000),
        (0, 1, 60_000),
        (1, 1, 10_000),
        (0, 0, 10_000),  # nobody left to ask
    ],
)
def test_timeout(confirmations: int, wanted: int, milliseconds: int) -> None:
    assert timeout_ns(10_000 * MS, confirmations, wanted) // MS == milliseconds


@given(st.integers(1, 10**12), st.integers(0, 6), st.integers(0, 3))
def test_timeout_falls_with_every_confirmation_and_stays_within_bounds(min_ns: int, count: int, wanted: int) -> None:
    earlier, later = timeout_ns(min_ns, count, wanted), timeout_ns(min_ns, count + 1, wanted)
    assert min_ns <= later <= earlier <= 6 * min_ns
    assert math.isclose(timeout_ns(min_ns, wanted, wanted), min_ns)


@pytest.mark.parametrize(("possible", "wanted"), [(-1, 0), (0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (1000, 3)])
def test_as_many_confirmations_as_can_be_had(possible: int, wanted: int) -> None:
    assert wanted_confirmations(possible) == wanted


def test_only_independent_accusers_count_and_no_more_than_anybody_needs() -> None:
    suspicion = Suspicion(started_ns=0, accusers=["a"])
    assert not suspicion.accuse("a")
    assert [suspicion.accuse(name) for name in "bcde"] == [True, True, True, False]
    assert len(suspicion.accusers) == CONFIRMATIONS + 1


def test_deadline_counts_from_the_start() -> None:
    suspicion = Suspicion(started_ns=5_000 * MS, accusers=["a"])
    assert suspicion.deadline_ns(2_000 * MS, possible=10) == 17_000 * MS
    suspicion.accuse("b")
    assert suspicion.deadline_ns(2_000 * MS, possible=10) == 12_000 * MS
    assert suspicion.deadline_ns(2_000 * MS, possible=0) == 7_000 * MS


def test_a_verdict_is_as_good_as_every_confirmation() -> None:
    suspicion = Suspicion(started_ns=0, accusers=[], verdict=True)
    assert suspicion.deadline_ns(2_000 * MS, possible=10) == 2_000 * MS
