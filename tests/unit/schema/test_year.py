from datetime import date

import pytest

from cronring.schema.instant import parse_instant
from cronring.schema.policy_model import Policy
from cronring.schema.schedule import parse_schedule
from cronring.schema.window import parse_window
from cronring.schema.year import FIRST_YEAR, LAST_YEAR, Year, day_starts, year_of
from cronring.schema.zone import load_zone

ANCHOR = parse_instant("2026-11-21T12:00:00Z")


def year(text: str, number: int, **policy: str) -> Year:
    policies = Policy(**policy)  # type: ignore[arg-type]  # texts only
    window = parse_window(policies.window, policies.timezone) if policies.window else None
    schedule = parse_schedule(text, ANCHOR, policies)
    return year_of(schedule, window, load_zone(policies.timezone or "UTC"), number)


def ticks_on(found: Year, day: str) -> int:
    """By its number in the year."""
    at = date.fromisoformat(day)
    return found.days[(at - date(at.year, 1, 1)).days]


def test_each_day_has_its_ticks():
    found = year("0 6 1 * *", 2028)
    assert len(found.days) == 366
    assert sum(found.days) == 12
    assert [ticks_on(found, day) for day in ("2028-01-01", "2028-02-29", "2028-03-01")] == [1, 0, 1]
    assert found.clock_changes == ()


def test_days_are_those_of_the_zone_and_its_changes_are_named():
    found = year("*/15 * * * *", 2027, timezone="Europe/Berlin")
    assert ticks_on(found, "2027-03-27") == 96
    assert ticks_on(found, "2027-03-28") == 92, "a day of 23 hours"
    assert ticks_on(found, "2027-10-31") == 100, "and one of 25"
    assert [each.day for each in found.clock_changes] == ["2027-03-28", "2027-10-31"]
    assert [each.change.moved_ms for each in found.clock_changes] == [3_600_000, -3_600_000]


def test_a_tick_that_the_clocks_skip_is_none_of_that_day():
    found = year("30 2 * * *", 2027, timezone="Europe/Berlin", dst_gap="skip")
    assert ticks_on(found, "2027-03-28") == 0
    assert sum(found.days) == 364


def test_what_the_window_leaves_out_does_not_run():
    found = year("0 * * * *", 2027, window="Mon-Fri 08:00-18:00")
    assert ticks_on(found, "2027-01-01") == 10, "a Friday"
    assert ticks_on(found, "2027-01-02") == 0, "a Saturday"


def test_a_day_that_a_zone_left_out_has_no_tick():
    """Samoa went from the 29th to the 31st of December 2011."""
    found = year("0 12 * * *", 2011, timezone="Pacific/Apia")
    assert len(found.days) == 365
    assert [ticks_on(found, f"2011-12-{day}") for day in (29, 30, 31)] == [1, 0, 2], "it runs once the clocks are there"
    skipping = year("0 12 * * *", 2011, timezone="Pacific/Apia", dst_gap="skip")
    assert [ticks_on(skipping, f"2011-12-{day}") for day in (29, 30, 31)] == [1, 0, 1]


@pytest.mark.parametrize("number", [FIRST_YEAR, LAST_YEAR])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12", "UTC"])
def test_first_and_last_years_are_whole_in_every_zone(number: int, zone: str):
    assert set(year("0 12 * * *", number, timezone=zone).days) == {1}


def test_days_begin_where_clocks_say_so():
    starts = day_starts(date(2027, 3, 28), date(2027, 3, 29), "Europe/Berlin")
    assert [starts[1] - starts[0]] == [23 * 3_600_000_000]
