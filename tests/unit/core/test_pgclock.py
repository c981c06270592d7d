from hypothesis import given
from hypothesis import strategies as st

from cronring.controller.core.node.pgclock import DatabaseClock

MS = 1_000_000
DATABASE_US = 1_800_000_000_000_000


def test_the_best_round_trip_rules() -> None:
    clock = DatabaseClock()
    clock.sample(0, 40 * MS, DATABASE_US + 5_000)  # the truth is 0 -> DATABASE_US; the middle of this is 15 ms off
    clock.sample(100 * MS, 101 * MS, DATABASE_US + 100_500)
    clock.sample(200 * MS, 240 * MS, DATABASE_US + 235_000)
    assert clock.now_us(300 * MS) == DATABASE_US + 300_000
    assert clock.reaches_at_ns(DATABASE_US + 300_000) == 300 * MS


def test_an_old_sample_loses_its_weight() -> None:
    clock = DatabaseClock()
    clock.sample(0, 1 * MS, DATABASE_US + 500)
    late_ns = 100_000 * MS  # at 500 ppm, 50 ms of drift
    clock.sample(late_ns, late_ns + 4 * MS, DATABASE_US + 100_000_000 + 2_000 + 20_000)
    assert clock.now_us(late_ns) == DATABASE_US + 100_000_000 + 20_000
    assert not clock.steps


def test_a_step_is_followed_at_once_and_reckoned() -> None:
    clock = DatabaseClock()
    for second in range(5):
        clock.sample(second * 1_000 * MS, second * 1_000 * MS + MS, DATABASE_US + second * 1_000_000 + 500)
    stepped = clock.sample(5_000 * MS, 5_001 * MS, DATABASE_US + 5_000_500 + 60_000_000)
    assert stepped
    assert clock.now_us(6_000 * MS) == DATABASE_US + 66_000_000
    assert clock.stepped_ns == 5_001 * MS
    assert clock.stepped_forward_since_us(DATABASE_US + 4_000_000) == 60_000_000
    assert clock.stepped_forward_since_us(DATABASE_US + 66_000_000) == 0


def test_a_step_back_is_followed_too_but_no_time_was_skipped() -> None:
    clock = DatabaseClock()
    clock.sample(0, MS, DATABASE_US)
    assert clock.sample(1_000 * MS, 1_001 * MS, DATABASE_US - 59_000_000)
    assert clock.stepped_forward_since_us(0) == 0
    assert clock.now_us(1_000 * MS) < DATABASE_US


@given(
    st.lists(st.tuples(st.integers(0, 50 * MS), st.integers(0, 50 * MS)), min_size=1, max_size=30),
    st.integers(-400, 400),
)
def test_the_estimate_is_never_further_off_than_it_says(trips: list[tuple[int, int]], drift_ppm: int) -> None:
    """Whatever the two ways take, and with clocks that drift apart less than is allowed for."""
    clock = DatabaseClock()
    now_ns = 0

    def truth_us(at_ns: int) -> int:
        return DATABASE_US + (at_ns + at_ns * drift_ppm // 1_000_000) // 1_000

    for there_ns, back_ns in trips:
        sent_ns = now_ns
        now_ns += there_ns + back_ns
        assert not clock.sample(sent_ns, now_ns, truth_us(sent_ns + there_ns))
        assert abs(clock.now_us(now_ns) - truth_us(now_ns)) <= clock.error_us(now_ns) + 2
        now_ns += 1_000 * MS
