import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.duration import (
    DURATION_LIMIT_MS,
    DurationError,
    duration_words,
    format_duration,
    measured,
    parse_duration,
)


@pytest.mark.parametrize(
    ("text", "milliseconds", "canonical", "words"),
    [
        ("30s", 30_000, "30s", "30 seconds"),
        ("1s", 1_000, "1s", "second"),
        ("25m", 1_500_000, "25m", "25 minutes"),
        ("6h", 21_600_000, "6h", "6 hours"),
        ("1d", 86_400_000, "1d", "day"),
        ("1h30m", 5_400_000, "1h30m", "1 hour and 30 minutes"),
        ("90m", 5_400_000, "1h30m", "1 hour and 30 minutes"),
        ("1d2h3m4s5ms", 93_784_005, "1d2h3m4s5ms", "1 day, 2 hours, 3 minutes, 4 seconds and 5 milliseconds"),
        ("0h5m", 300_000, "5m", "5 minutes"),
        ("007s", 7_000, "7s", "7 seconds"),
        ("500ms", 500, "500ms", "500 milliseconds"),
        ("36500d", DURATION_LIMIT_MS, "36500d", "36500 days"),
    ],
)
def test_texts(text: str, milliseconds: int, canonical: str, words: str):
    assert parse_duration(text) == milliseconds
    assert format_duration(milliseconds) == canonical
    assert duration_words(milliseconds) == words


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0ms"),
        (-0.04, "0ms"),
        (0.4, "0.4ms"),
        (9.96, "10ms"),
        (12.34, "12ms"),
        (-2_000, "-2s"),
        (999.4, "999ms"),
        (999.6, "1s"),
        (1_234, "1.2s"),
        (12_500, "12.5s"),
        (59_960, "1m"),
        (65_000, "1m5s"),
        (3_599_700, "1h"),
        (7_800_000, "2h10m"),
        (86_399_000, "1d"),
        (273_600_000, "3d4h"),
        (DURATION_LIMIT_MS, "36500d"),
    ],
)
def test_what_was_measured_has_two_units_at_most(milliseconds: float, text: str):
    assert measured(milliseconds) == text
    if milliseconds > 0:
        assert measured(milliseconds, signed=True) == f"+{text}"


@pytest.mark.parametrize(
    ("text", "position", "suggestion"),
    [
        ("", 0, None),
        ("5", 1, "5s"),
        ("s", 0, None),
        ("5x", 1, None),
        ("5M", 1, "5m"),
        ("5 min", 1, "5m"),
        ("1 hour and 30 minutes", 1, "1h30m"),
        ("1h, 30m", 2, "1h30m"),
        ("1h30", 4, None),
        ("30m1h", 4, None),
        ("1h1h", 3, None),
        ("0s", 0, None),
        ("36501d", 0, None),
        ("36500d1ms", 0, None),
        ("-5s", 0, None),
        ("1.5h", 1, None),
        ("\u0665s", 0, None),
        ("5s\n", 2, None),
        ("9" * 50 + "s", 50, None),
        ("5" * 10_000, 100, None),
    ],
)
def test_refused(text: str, position: int, suggestion: str | None):
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert (caught.value.position, caught.value.suggestion) == (position, suggestion)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    if suggestion is not None:
        parse_duration(suggestion)


@given(st.integers(1, DURATION_LIMIT_MS))
def test_round_trip(milliseconds: int):
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@given(st.text("0123456789dhms \nx", max_size=12))
def test_any_text_parses_or_says_where_it_does_not(text: str):
    error = None
    try:
        assert 0 < parse_duration(text) <= DURATION_LIMIT_MS
    except DurationError as caught:
        error = caught
    if error is not None:
        assert 0 <= error.position <= len(text)
        assert error.suggestion is None or parse_duration(error.suggestion) > 0


@pytest.mark.parametrize("milliseconds", [0, -1])
def test_nothing_has_no_text(milliseconds: int):
    with pytest.raises(ValueError, match="not above zero"):
        format_duration(milliseconds)
