"""Jitter: its texts, its bounds, and that it spreads evenly."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.jitter import AUTO, Bucket, JitterError, JitterRule, delay, parse_jitter, shift

S = 1_000_000
MINUTE = 60 * S
HOUR = 60 * MINUTE
DAY = 24 * HOUR
USUAL = AUTO


@pytest.mark.parametrize(
    ("text", "rule", "canonical"),
    [
        ("off", JitterRule(), "off"),
        ("None", JitterRule(), "off"),
        ("0", JitterRule(), "off"),
        ("0%", JitterRule(), "off"),
        ("10%", JitterRule(share=1_000), "10%"),
        (" 10 % ", JitterRule(share=1_000), "10%"),
        ("0.1", JitterRule(share=1_000), "10%"),
        ("1.0", JitterRule(share=10_000), "100%"),
        ("12.50%", JitterRule(share=1_250), "12.5%"),
        ("0.01%", JitterRule(share=1), "0.01%"),
        ("30s", JitterRule(fixed_ms=30_000), "30s"),
        ("auto", parse_jitter(AUTO)._replace(is_auto=True), "auto"),
        (" AUTO", parse_jitter(AUTO)._replace(is_auto=True), "auto"),
        ("±10%", JitterRule(share=1_000, both_ways=True), "±10%"),
        ("+-10%", JitterRule(share=1_000, both_ways=True), "±10%"),
        (" +/- 0.1", JitterRule(share=1_000, both_ways=True), "±10%"),
        ("±90s", JitterRule(fixed_ms=90_000, both_ways=True), "±1m30s"),
        ("±0", JitterRule(), "off"),
        ("90s", JitterRule(fixed_ms=90_000), "1m30s"),
        ("1h:10s, 5m:3s", JitterRule(buckets=(Bucket(300_000, 3_000), Bucket(3_600_000, 10_000))), "5m:3s 1h:10s"),
        ("7d:60s", JitterRule(buckets=(Bucket(604_800_000, 60_000),)), "7d:1m"),
    ],
)
def test_texts(text: str, rule: JitterRule, canonical: str):
    assert parse_jitter(text) == rule
    assert rule.text == canonical
    assert parse_jitter(canonical) == rule


@pytest.mark.parametrize(
    ("text", "position", "suggestion"),
    [
        ("", 0, None),
        ("101%", 0, "100%"),
        ("1.5", 0, "100%"),
        ("0.00001", 0, "off"),
        ("-10%", 0, None),
        ("+10%", 0, None),
        ("±", 1, None),
        (" +- ", 3, None),
        ("±±10%", 1, None),
        ("±auto", 1, None),
        ("+-5m:3s", 2, None),
        ("+-101%", 2, "±100%"),
        (" ± 5 min", 4, "±5m"),
        ("30", 2, "30s"),
        (" 5 min", 2, "5m"),
        ("5m:3s 1h", 6, None),
        ("5m:3", 4, "5m:3s"),
        ("5min:3s 1h:10s", 1, "5m:3s 1h:10s"),
        ("3s:5m", 0, "5m:3s"),
        ("5m:5m", 0, None),
        ("5m:3s 300s:4s", 6, None),
        (" ".join(f"{n}h:1s" for n in range(1, 19)), 0, None),
        ("x" * 400, 300, None),
    ],
)
def test_refused(text: str, position: int, suggestion: str | None):
    with pytest.raises(JitterError) as caught:
        parse_jitter(text)
    assert (caught.value.position, caught.value.suggestion) == (position, suggestion)
    assert suggestion is None or parse_jitter(suggestion)
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


@pytest.mark.parametrize(
    ("text", "gap", "most"),
    [
        (USUAL, MINUTE, 0),
        (USUAL, 5 * MINUTE - S, 0),
        (USUAL, 5 * MINUTE, 3 * S),
        (USUAL, HOUR - S, 3 * S),
        (USUAL, HOUR, 10 * S),
        (USUAL, DAY, 30 * S),
        (USUAL, 31 * DAY, MINUTE),
        (USUAL, None, MINUTE),
        ("10%", 10 * MINUTE, MINUTE),
        ("10%", None, 0),
        ("30s", MINUTE, 30 * S),
        ("30s", None, 30 * S),
        ("off", DAY, 0),
    ],
)
def test_the_most_by_the_gap_to_the_next_tick(text: str, gap: int | None, most: int):
    assert parse_jitter(text).most_us(gap) == most


GAPS = st.integers(1, 10**6).map(lambda seconds: seconds * S)


@given(st.text(max_size=20), st.integers(0, 4 * 10**15), st.integers(0, 10**13), st.none() | GAPS)
def test_cron_ticks_are_only_delayed_and_never_to_the_next(key: str, tick: int, most: int, gap: int | None):
    offset = delay(key, tick, most, gap)
    assert 0 <= offset <= most
    assert offset % 1_000 == 0
    assert gap is None or offset < gap
    assert delay(key, tick, most, gap) == offset


@given(st.text(max_size=20), st.integers(0, 4 * 10**15), st.integers(0, 10**13), GAPS)
def test_what_goes_both_ways_does_so_by_less_than_half(key: str, tick: int, most: int, interval: int):
    offset = shift(key, tick, most, interval)
    assert -most <= offset <= most
    assert abs(offset) * 2 < interval
    assert offset % 1_000 == 0


def test_the_instant_of_the_next_tick_is_never_reached():
    offsets = [delay(f"job{number}", 0, 10 * S, S) for number in range(10_000)]
    assert max(offsets) == S - 1_000
    assert min(offsets) == 0


def test_known_values():
    """Every controller of every version has to agree, so these never change."""
    assert AUTO == "5m:3s 1h:10s 1d:30s 7d:1m"
    assert delay("billing.close_month", 1_795_262_400 * S, 10 * S, HOUR) == 6_408_000
    assert delay("billing.close_month", 1_795_266_000 * S, 10 * S, HOUR) == 2_505_000
    assert shift("billing.close_month", 1_795_262_400 * S, MINUTE, 10 * MINUTE) == -53_560_000


def test_a_herd_is_spread_evenly():
    offsets = [delay(f"module.verb{number}", 1_795_262_400 * S, 10 * S, HOUR) for number in range(10_000)]
    tenths = [sum(n * S <= offset < (n + 1) * S for offset in offsets) for n in range(10)]
    assert all(850 < count < 1_150 for count in tenths)
