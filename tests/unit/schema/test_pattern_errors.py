"""What is refused, with what, where, and what to write instead."""

import pickle
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cronring.schema.pattern import CronPattern, PatternError
from tests.support.costs import cpu_s
from tests.unit.schema.strategies import PATTERNS
from tests.unit.schema.twin import Twin


def fault(text: str) -> PatternError | None:
    try:
        CronPattern.parse(text)
    except PatternError as error:
        return error
    return None


REFUSED = [
    # text, position, suggestion, words of the message
    ("", 0, None, "empty"),
    ("   ", 3, None, "empty"),
    ("* * * *", 7, None, "4 fields"),
    ("* * * * * * * *", 14, None, "8 fields"),
    ("* * * * * * * * *", 14, None, "9 fields"),
    ("60 * * * *", 0, None, "minute field, character 1: `60` is outside 0 to 59"),
    ("1-10,4-5/1,59-61 * * * *", 14, None, "minute field, character 15: `61` is outside 0 to 59"),
    ("0 24 * * *", 2, None, "hour field, character 3: `24` is outside 0 to 23; midnight is 0"),
    ("0 0 0 * *", 4, None, "day-of-month"),
    ("0 0 32 * *", 4, None, "day-of-month"),
    ("4-5 * * 13 *", 8, None, "month field"),
    ("4-5 * * 0 *", 8, None, "month field"),
    ("4-5 * * -1 *", 8, None, "month field"),
    ("0 0 * * 8", 8, None, "day-of-week field, character 9: `8` is outside 0 to 7"),
    ("0 0 * * * 9999", 10, None, "year field"),
    ("0 0 * * * 1969", 10, None, "outside 1970 to 2099"),
    ("0 0 * * * 2100", 10, None, "outside 1970 to 2099"),
    ("* * * * * 0000", 10, None, "year field, character 11: `0000` is outside 1970 to 2099; of six fields"),
    ("* * * * * 0007", 10, None, "outside 1970 to 2099"),
    ("* * * * * 00007", 10, None, "outside 1970 to 2099"),
    ("* * * * * 0,0000", 10, None, "outside 1970 to 2099"),
    ("* * * * * *,0000", 12, None, "outside 1970 to 2099"),
    ("* * * * * 1-0005", 10, None, "outside 1970 to 2099"),
    ("* * * * * 0000-2030", 10, None, "outside 1970 to 2099"),
    ("* * * * * 2030-2100", 15, None, "outside 1970 to 2099"),
    ("* * * * * 0001/0002", 10, None, "outside 1970 to 2099"),
    ("0 0 0 * * * 0000", 12, None, "outside 1970 to 2099"),
    ("0 0 0 * * * 0", 12, None, "outside 1970 to 2099"),
    ("* * * * * \uff12\uff10\uff12\uff16", 10, "* * * * * 2026", "digit of another script"),
    ("* * * * * " + "9" * 1_900, 10, None, "outside 1970 to 2099"),
    # steps
    ("*/0 * * * *", 2, None, "step of 0"),
    ("* * 30/0 * *", 7, None, "step of 0"),
    ("*/60 * * * *", 2, "0 * * * *", "larger than the field's maximum, 59"),
    ("0 */24 * * *", 4, "0 0 * * *", "larger than the field's maximum, 23"),
    ("*/90 * * * *", 2, None, "larger"),
    ("0 0 * * */8", 10, None, "larger than the field's maximum, 7"),
    ("/5 * * * *", 0, "*/5 * * * *", "minute field"),
    ("5/ * * * *", 1, None, "`5/` is not a value"),
    ("*/2/3 * * * *", 3, None, "`*/2/3` is not a value"),
    ("*5 * * * *", 1, None, "`*5` is not a value"),
    ("1-2-3 * * * *", 3, None, "is not a value"),
    ("*-5 * * * *", 1, None, "is not a value"),
    # lists
    ("1,,2 * * * *", 2, "1,2 * * * *", "an item of the list is empty"),
    (",1 * * * *", 0, "1 * * * *", "an item of the list is empty"),
    ("1, * * * *", 2, "1 * * * *", "an item of the list is empty"),
    (", * * * *", 0, None, "an item of the list is empty"),
    # ranges that run backwards
    ("0 22-2 * * *", 2, "0 22-23,0-2 * * *", "runs backwards"),
    ("0 23-0 * * *", 2, "0 23,0 * * *", "runs backwards"),
    ("0 22-2/2 * * *", 2, "0 0,2,22 * * *", "runs backwards"),
    ("0 22-2/0 * * *", 2, None, "runs backwards"),
    ("0 22-2/24 * * *", 2, None, "runs backwards"),
    ("0 22-2/23 * * *", 2, "0 22 * * *", "runs backwards"),
    ("0 0 25-5/2 * *", 4, None, "runs backwards"),
    ("0 0 25-5 * *", 4, "0 0 25-31,1-5 * *", "runs backwards"),
    ("0 0 * 11-2 *", 6, "0 0 * 11-12,1-2 *", "runs backwards"),
    ("0 0 * * 5-1", 8, "0 0 * * 5-6,0-1", "runs backwards"),
    ("0 0 * * 5-0", 8, "0 0 * * 5-7", "runs backwards"),
    ("0 0 * * 7-0", 8, "0 0 * * 0", "runs backwards"),
    ("0 0 * * 7-2", 8, "0 0 * * 0-2", "runs backwards"),
    ("0 0 * * * 2030-2026", 10, "0 0 * * * 2026-2030", "runs backwards"),
    # other dialects
    ("@daily", 0, "0 0 * * *", "`@daily`"),
    ("@Yearly", 0, "0 0 1 1 *", "`@Yearly`"),
    ("@weekly", 0, "0 0 * * 0", "`@weekly`"),
    (" @hourly", 1, "0 * * * *", "`@hourly`"),
    ("@reboot", 0, None, "`@reboot`"),
    ("@every 5m", 0, "5m", "interval"),
    ("@every 90m", 0, None, "interval"),
    ("@fortnightly", 0, None, "not part of the dialect"),
    ("0 0 ? * *", 4, "0 0 * * *", "day-of-month field, character 5: `?`"),
    ("0 0 * JAN *", 6, "0 0 * 1 *", "month field, character 7: `JAN` is a name"),
    ("0 0 * * mon-FRI/2", 8, "0 0 * * 1-5/2", "day-of-week field, character 9: `mon` is a name"),
    ("0 0 * * fri-sunday", 8, "0 0 * * 5-7", "name"),
    ("0 0 ? January,mar MON", 4, "0 0 * 1,3 1", "`?`"),
    ("0 0 * * sat-mon/2", 8, "0 0 * * 1,6", "name"),
    ("0 0 * * JAN", 8, None, "`JAN` is not a number"),
    ("0 0 L * *", 4, None, "`L`"),
    ("0 0 15W * *", 6, None, "`W`"),
    ("0 0 LW * *", 4, None, "`LW`"),
    ("0 0 * * 5L", 9, None, "`L`"),
    ("0 0 * * 1#2", 9, None, "`#`"),
    ("H * * * *", 0, None, "`H`"),
    ("R * * * *", 0, None, "`R`"),
    ("0~30 * * * *", 1, None, "'~'"),
    ("+5 * * * *", 0, None, "'+'"),
    ("1.5 * * * *", 1, None, "'.'"),
    ("1_0 * * * *", 1, None, "'_'"),
    # characters
    ("\u0663 * * * *", 0, "3 * * * *", "digit of another script"),
    ("1\u0662 * * * *", 1, "12 * * * *", "digit of another script"),
    ("\u00b2 * * * *", 0, None, "no meaning"),
    ("9\u201317 * * * *", 1, "9-17 * * * *", "no meaning"),
    ("0 6 * * *\n", 9, "0 6 * * *", "newline"),
    ("0 6\n* * *", 3, "0 6 * * *", "newline"),
    ("0 6\r* * *", 3, "0 6 * * *", "newline"),
    ("0 6\u00a0* * *", 3, "0 6 * * *", "spaces or tabs"),
    ("0 6\x0b* * *", 3, "0 6 * * *", "spaces or tabs"),
    ("0 6 * * *\x00", 9, "0 6 * * *", "spaces or tabs"),
    # single words
    ("0s", 0, None, "counts from 1 to 59"),
    ("60s", 0, "1m", "counts from 1 to 59"),
    ("60m", 0, "1h", "counts from 1 to 59"),
    ("120m", 0, "2h", "counts from 1 to 59"),
    ("90s", 0, None, "an interval takes any amount"),
    ("24h", 0, "0 0 * * *", "counts from 1 to 23"),
    ("1d", 0, "0 0 * * *", "neither"),
    ("5S", 0, "5s", "neither"),
    ("15min", 0, "15m", "neither"),
    ("tues", 0, "tuesday", "neither"),
    ("mon-fri", 0, "0 0 * * 1-5", "neither"),
    ("Sun,Wed", 0, "0 0 * * 0,3", "neither"),
    ("mo", 0, None, "neither"),
    ("5", 0, None, "neither"),
    ("-5s", 0, None, "neither"),
    ("every", 0, None, "neither"),
    # never fires
    ("* * 30 2 *", 4, None, "February never reaches day 30"),
    ("0 0 31 2,4,6,9,11 *", 4, None, "never reach day 31"),
    ("0 0 30-31 2 *", 4, None, "never"),
    ("0 0 29 2 * 2021", 4, None, "29 February"),
    ("* * * 29 2 * 2021-2023,2099", 6, None, "29 February"),
]


@pytest.mark.parametrize(("text", "position", "suggestion", "words"), REFUSED)
def test_refused(text: str, position: int, suggestion: str | None, words: str):
    with pytest.raises(PatternError, match=re.escape(words)) as caught:
        CronPattern.parse(text)
    error = caught.value
    assert (error.position, error.suggestion) == (position, suggestion)
    assert words in error.message
    assert isinstance(error, ValueError)
    if suggestion is not None:
        CronPattern.parse(suggestion)
        assert suggestion in str(error)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("0 22-2 * * *", {22, 23, 0, 1, 2}),
        ("0 22-2/2 * * *", {22, 0, 2}),
        ("0 20-4/3 * * *", {20, 23, 2}),
        ("0 23-0 * * *", {23, 0}),
    ],
)
def test_a_suggestion_means_the_same(text: str, meaning: set[int]):
    with pytest.raises(PatternError) as caught:
        CronPattern.parse(text)
    assert caught.value.suggestion is not None
    assert Twin(caught.value.suggestion).values[2] == meaning


@pytest.mark.parametrize("step", [2, 3, 7, 29])
def test_a_stepped_range_that_runs_backwards_has_a_short_equal(step: int):
    for first in range(1, 60):
        last = first * 37 % 60 % first  # any that lies before it
        with pytest.raises(PatternError) as caught:
            CronPattern.parse(f"{first}-{last}/{step} * * * *")
        assert caught.value.suggestion is not None
        assert len(caught.value.suggestion) <= 40
        meaning = {value % 60 for value in range(first, last + 61, step)}
        assert Twin(caught.value.suggestion).values[1] == meaning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 0 25-5/2 * *", "one up to 31 and one on from 1"),
        ("0 0 1 1 * 2030-2020/2", "one up to 2099"),
        (",".join(["5-1"] * 12) + " * * * *", "one up to 59 and one on from 0"),
    ],
)
def test_what_has_no_short_equal_is_told_in_words(text: str, words: str):
    with pytest.raises(PatternError, match=f"write it as two, {words}") as caught:
        CronPattern.parse(text)
    assert caught.value.suggestion is None


HOSTILE = [
    "*" * 10_000,
    "0," * 5_000,
    "1-2/3," * 1_600 + "* * * * *",
    "* " * 5_000,
    " " * 10_000,
    "\t" * 9_999 + "\n",
    "9" * 10_000,
    "0" * 9_990 + " * * * *",
    "mon," * 2_500,
    "0 0 * * " + "sun-mon," * 240,
    "?," * 900 + "? * * * *",
    "2-1," * 490 + " * * * *",
    "1" * 1_900 + " * * * *",
    "*/" + "1" * 1_900 + " * * * *",
    "\u0663," * 900 + " * * * *",
    "@" * 10_000,
    "@every " + "1" * 1_900,
    "\U0001f4a5" * 10_000,
    "\x00" * 10_000,
    "5" * 1_900 + "m",
    "0 0 29,30,31 2,4,6,9,11 * " + ",".join(str(year) for year in range(1971, 2099, 2)),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_cost_no_more_than_a_few_milliseconds(text: str):
    error = fault(text)
    assert error is None or (0 <= error.position <= len(text) and len(str(error)) < 5_000)
    assert cpu_s(lambda: fault(text)) < 0.02


def test_the_longest_text():
    longest = " ".join(["0" * 1_991, "0", "1", "*", "*"])
    assert len(longest) == 1_999
    assert fault(f" {longest}") is None
    error = fault(f"  {longest}")
    assert error is not None
    assert "2001 characters; at most 2000" in error.message
    assert error.position == 2_000


def test_a_text_of_every_value_is_not_too_long():
    fields = [",".join(map(str, range(low, high + 1))) for low, high in [(0, 59)] * 2 + [(0, 23), (1, 31), (1, 12)]]
    fields += [",".join(map(str, range(7))), ",".join(map(str, range(1970, 2100)))]
    assert CronPattern.parse(" ".join(fields)).sets == CronPattern.parse("* * * 1-31 * 0-6 *").sets


ALPHABET = "0123456789*/-, \t\n?#@LWHRsmhdaMonJ\u0663\u00e9"


@given(st.text(ALPHABET, max_size=40) | st.text(max_size=20))
@example("0 0 * * 5-0/2")
def test_any_text_parses_or_says_where_it_does_not(text: str):
    error = fault(text)
    if error is None:
        pattern = CronPattern.parse(text)
        assert CronPattern.parse(pattern.text) == pattern
    else:
        assert 0 <= error.position <= len(text)
        assert error.message
        assert error.suggestion is None or fault(error.suggestion) is None


@given(PATTERNS, st.data())
def test_a_spoilt_pattern_names_a_place_inside_it(text: str, data: st.DataObject):
    place = data.draw(st.integers(0, len(text)))
    spoilt = text[:place] + "!" + text[place:]
    with pytest.raises(PatternError) as caught:
        CronPattern.parse(spoilt)
    assert 0 <= caught.value.position <= len(spoilt)


def test_errors_survive_a_pickle():
    with pytest.raises(PatternError) as caught:
        CronPattern.parse("0 0 ? * *")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.position, again.suggestion) == (str(caught.value), 4, "0 0 * * *")
