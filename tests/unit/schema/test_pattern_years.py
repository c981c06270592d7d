"""Which field a number stands in, and which years there are: every shape of a last field, against the dialect's words.

The oracle here reads the rule of docs/schedules.md by hand, and shares nothing with `schema` or the twin.
"""

from datetime import UTC, datetime
from itertools import product

import pytest

from cronring.schema.pattern import CronPattern, PatternError

WRITTEN = ["0", "5", "7", "8", "000", "006", "0000", "0005", "0007", "00000", "999", "1969", "1970", "2026", "2099"]
WRITTEN += ["2100", "00001970", "02099", "9999", "99999999999999999999"]
STEPS = ["", "/1", "/0002", "/7", "/40", "/0000"]


def understood(field: str) -> set[int] | None:
    """The years or days of the week that the last of six fields means; None: it is refused."""
    terms = [term.partition("/") for term in field.split(",")]
    is_year = any(len(number) >= 4 for body, _, _ in terms for number in body.split("-"))
    low, high, top = (1970, 2099, 2099) if is_year else (0, 7, 6)
    values: set[int] = set()
    for body, slash, step_text in terms:
        step = int(step_text) if slash else 1
        first, _, last = body.partition("-")
        start = low if body == "*" else int(first)
        end = int(last) if last else max(start, top) if slash or body == "*" else start
        if not low <= start <= end <= high or not 1 <= step <= high:
            return None
        values.update(range(start, end + 1, step))
    return values if is_year else {value % 7 for value in values}


def terms() -> list[str]:
    plain = [number + step for number, step in product(WRITTEN, STEPS)] + [f"*{step}" for step in STEPS]
    ranges = [f"{first}-{last}{step}" for first, last in product(WRITTEN, WRITTEN) for step in STEPS[:3]]
    return plain + ranges


FIELDS = terms() + [
    f"{one},{other}" for one, other in product([*WRITTEN, "*"], [*WRITTEN, "*/2", "1-5", "1970-2099/2"])
]


def test_every_last_field_of_six_is_read_as_the_rule_says():
    years, days, refused = 0, 0, 0
    for field in FIELDS:
        text, meant = f"* * * * * {field}", understood(field)
        if meant is None:
            with pytest.raises(PatternError):
                CronPattern.parse(text)
            refused += 1
            continue
        parsed = CronPattern.parse(text)
        if min(meant) >= 1970:
            assert {year for year in range(1970, 2100) if ticks_in(parsed, year)} == meant, text
            years += 1
        else:
            assert {day for day in range(7) if ticks_on(parsed, day)} == meant, text
            days += 1
    assert min(years, days, refused) > 50


def test_nothing_but_a_year_takes_a_number_of_a_year():
    for place, number in product(range(5), ["1970", "2026", "2099"]):
        words = ["*"] * 5
        words[place] = number
        with pytest.raises(PatternError, match=f"`{number}` is outside"):
            CronPattern.parse(" ".join(words))


def ticks_in(pattern: CronPattern, year: int) -> int:
    return pattern.count_seconds(second(year, 1, 1) - 1, second(year + 1, 1, 1) - 1)


def ticks_on(pattern: CronPattern, weekday: int) -> int:
    """1 March 2026 was a Sunday."""
    start = second(2026, 3, 1 + weekday)
    return pattern.count_seconds(start - 1, start + 86_399)


def second(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())
