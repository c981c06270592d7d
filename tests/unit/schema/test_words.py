import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.schema.pattern import CronPattern
from cronring.schema.schedule import parse_schedule
from cronring.schema.words import pattern_words
from tests.drawing import examples
from tests.unit.schema.strategies import PATTERNS
from tests.unit.schema.twin import Twin, instant

WORDS = [
    # rhythms
    ("* * * * * *", "every second"),
    ("5s", "every 5 seconds"),
    ("*/5 * * * * *", "every 5 seconds"),
    ("*/25 * * * * *", "at seconds 0, 25 and 50 of every minute"),
    ("30 * * * * *", "at second 30 of every minute"),
    ("3/7 * * * * *", "at every 7th second from 3 to 59 of every minute"),
    ("* * * * *", "every minute"),
    ("5m", "every 5 minutes"),
    ("25m", "at minutes 0, 25 and 50 of every hour"),
    ("15 * * * *", "at minute 15 of every hour"),
    ("0-10,20,30 * * * *", "at minutes 0 to 10, 20 and 30 of every hour"),
    ("*/15 9-17 * * 1-5", "every 15 minutes of hours 9 to 17 from Monday to Friday"),
    ("*/5 0 * * * *", "every 5 seconds of minute 0 of every hour"),
    ("* */2 * * * *", "every second of every 2nd minute from 0 to 58 of every hour"),
    ("30 * 9-17 * * *", "at second 30 of every minute of hours 9 to 17"),
    ("0 * * * *", "every hour"),
    ("2h", "every 2 hours"),
    ("0 9-17 * * *", "at minute 0 of hours 9 to 17"),
    ("30 9-17 * * *", "at minute 30 of hours 9 to 17"),
    # times of the day
    ("0 6 * * *", "at 06:00 every day"),
    ("12h", "at 00:00 and 12:00 every day"),
    ("30 0 6 * * *", "at 06:00:30 every day"),
    ("0,30 6,18 * * *", "at 06:00, 06:30, 18:00 and 18:30 every day"),
    # days
    ("0 6 1 * *", "at 06:00 on day 1 of every month"),
    ("0 6 1,15 * *", "at 06:00 on days 1 and 15 of every month"),
    ("0 0 */2 * *", "at 00:00 on every 2nd day from 1 to 31 of every month"),
    ("0 0 29 2 *", "at 00:00 on day 29 of February"),
    ("0 0 1 1,6-8 *", "at 00:00 on day 1 of January and June to August"),
    ("0 0 * 1 *", "at 00:00 every day in January"),
    ("Mon", "at 00:00 on Monday"),
    ("0 0 * * 1-5", "at 00:00 from Monday to Friday"),
    ("0 0 * * 5-7", "at 00:00 from Friday to Sunday"),
    ("0 0 * * 0,3", "at 00:00 on Wednesday and Sunday"),
    ("0 0 * 3-5 0", "at 00:00 on Sunday in March to May"),
    ("0 0 1 * 1", "at 00:00 on day 1 of every month or on Monday"),
    ("0 0 1 1 1", "at 00:00 on day 1 or on Monday in January"),
    ("0 0 */1 * 1", "at 00:00 every day"),
    ("0 0 1 * 0-6", "at 00:00 every day"),
    # years
    ("0 0 1 1 * 2026", "at 00:00 on day 1 of January in 2026"),
    ("0 0 1 1 * 2026-2030,2040", "at 00:00 on day 1 of January in 2026 to 2030 and 2040"),
    ("0 12 * * * 1970/4", "at 12:00 every day in every 4th year from 1970 to 2098"),
    ("* * * * * 2030", "every minute in 2030"),
    # intervals
    ("every 1s", "every second"),
    ("every 90m", "every 1 hour and 30 minutes"),
    ("every 1d", "every day"),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words(text: str, words: str):
    assert parse_schedule(text, 0).words() == words


@settings(max_examples=examples(300))
@given(PATTERNS, PATTERNS)
def test_patterns_of_the_same_words_have_the_same_ticks(one: str, other: str):
    first, second = CronPattern.parse(one), CronPattern.parse(other)
    if pattern_words(first.sets) == pattern_words(second.sets):
        tick = -1
        for _ in range(50):
            found = first.next_second(tick)
            assert found == second.next_second(tick)
            if found is None:
                break
            tick = found


FEW = st.sampled_from(["*", "0", "1", "*/2", "0-1", "1,3", "0-3"])


@settings(max_examples=examples(200))
@given(st.tuples(FEW, FEW, FEW), st.tuples(FEW, FEW, FEW))
def test_times_of_the_same_words_are_the_same(one: tuple[str, str, str], other: tuple[str, str, str]):
    """Small fields, so that different texts meet in the same words (`*/2` and `0/2`, `0-1` and `0,1`)."""
    first, second = (CronPattern.parse(" ".join([*times, "*", "*", "*"])) for times in (one, other))
    same = pattern_words(first.sets) == pattern_words(second.sets)
    assert same == (first.sets == second.sets)


@given(PATTERNS)
def test_words_name_every_year_that_restricts(text: str):
    words = pattern_words(CronPattern.parse(text).sets)
    assert words
    assert words == words.strip()
    assert "  " not in words
    assert (" in 19" in words or " in 20" in words or " year from " in words) == (len(Twin(text).values[6]) < 130), (
        instant(0)
    )
