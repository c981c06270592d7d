"""What patterns mean, by examples of the dialect."""

import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cronring import schema
from cronring.schema.pattern import CronPattern

NOW = datetime(2026, 11, 21, 8, 7, 6, 5, tzinfo=UTC)  # a Saturday


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_package_exports_patterns():
    assert schema.CronPattern is CronPattern
    assert issubclass(schema.PatternError, ValueError)


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 6 1 * *", NOW, ["2026-12-01 06:00", "2027-01-01 06:00"]),
        ("* * * * *", NOW, ["2026-11-21 08:08", "2026-11-21 08:09"]),
        ("* * * * * *", NOW, ["2026-11-21 08:07:07", "2026-11-21 08:07:08"]),
        ("*/10 * * * * *", at("2020-01-01 00:00:17"), ["2020-01-01 00:00:20"]),
        # FTL's own examples: six fields with a year, a leap day, the turn of a day
        ("*/10 * * * * 2022/2", at("2023-06-09 18:12:02"), ["2024-01-01 00:00", "2024-01-01 00:10"]),
        ("* * * * * * *", at("2024-02-28 23:59:59"), ["2024-02-29 00:00"]),
        ("* * * * *", at("2022-02-28 23:59:06"), ["2022-03-01 00:00"]),
        # steps
        ("3/7 * * * *", NOW, ["2026-11-21 08:10", "2026-11-21 08:17"]),
        ("50/30 * * * *", NOW, ["2026-11-21 08:50", "2026-11-21 09:50"]),
        ("10-20/5 * * * *", NOW, ["2026-11-21 08:10", "2026-11-21 08:15", "2026-11-21 08:20", "2026-11-21 09:10"]),
        ("0 0 */31 * *", NOW, ["2026-12-01", "2027-01-01"]),
        ("0 0 1 */12 *", NOW, ["2027-01-01", "2028-01-01"]),
        # day-of-week
        ("0 0 * * 7", NOW, ["2026-11-22", "2026-11-29"]),
        ("0 0 * * 0", NOW, ["2026-11-22", "2026-11-29"]),
        ("0 0 * * 5-7", NOW, ["2026-11-22", "2026-11-27", "2026-11-28", "2026-11-29"]),
        ("0 0 * * 0-7/7", NOW, ["2026-11-22", "2026-11-29"]),
        ("0 0 * * 1/2", NOW, ["2026-11-23", "2026-11-25", "2026-11-27", "2026-11-30"]),  # to Saturday, so no Sunday
        ("0 0 * * */2", NOW, ["2026-11-22", "2026-11-24", "2026-11-26", "2026-11-28", "2026-11-29"]),
        ("0 0 * * 4/2", NOW, ["2026-11-26", "2026-11-28", "2026-12-03"]),
        ("0 0 * * 7/2", NOW, ["2026-11-22", "2026-11-29"]),
        # both day fields: either
        ("0 0 24 * 1", NOW, ["2026-11-23", "2026-11-24", "2026-11-30", "2026-12-07"]),
        ("0 0 */10 * 1", NOW, ["2026-11-23", "2026-11-30", "2026-12-01", "2026-12-07", "2026-12-11"]),
        ("0 0 */1 * 1", NOW, ["2026-11-22", "2026-11-23", "2026-11-24"]),  # restricted, though by nothing
        ("0 0 1 * 0-7", NOW, ["2026-11-22", "2026-11-23"]),
        ("0 0 30 2 1", NOW, ["2027-02-01", "2027-02-08"]),
        # sparse
        ("0 0 29 2 *", NOW, ["2028-02-29", "2032-02-29"]),
        ("0 0 31 4,5 *", NOW, ["2027-05-31", "2028-05-31"]),
        # years
        ("0 0 1 1 * 2030", NOW, ["2030-01-01", None]),
        ("0 0 1 1 * 2020-2024", NOW, [None]),
        ("0 0 0 1 1 * */50", NOW, ["2070-01-01", None]),
        ("0 0 1 1 * 1970/60", NOW, ["2030-01-01", "2090-01-01", None]),
        ("0 0 1 1 *", at("2098-12-31"), ["2099-01-01", None]),
        ("* * * * * *", at("2099-12-31 23:59:58"), ["2099-12-31 23:59:59", None]),
        ("* * * * *", datetime(1, 1, 1, tzinfo=UTC), ["1970-01-01 00:00", "1970-01-01 00:01"]),
        ("* * * * *", datetime.max.replace(tzinfo=UTC), [None]),
        # notation
        ("\t 00  06\t01 * * ", NOW, ["2026-12-01 06:00"]),
        ("0 0 * * * 02027", NOW, ["2027-01-01"]),
        ("0 0 0 * * 007", NOW, ["2026-11-22"]),
        ("0 0 0 * * */0007", NOW, ["2026-11-22"]),  # a step is no year
        ("0 0 0 * * 2/0004", NOW, ["2026-11-24", "2026-11-28"]),
        ("1,1,1-2 0 * * *", NOW, ["2026-11-22 00:01", "2026-11-22 00:02", "2026-11-23 00:01"]),
        # short forms: aligned with the clock
        ("5s", NOW, ["2026-11-21 08:07:10", "2026-11-21 08:07:15"]),
        ("25m", NOW, ["2026-11-21 08:25", "2026-11-21 08:50", "2026-11-21 09:00"]),
        ("12h", NOW, ["2026-11-21 12:00", "2026-11-22 00:00"]),
        ("5h", at("2026-11-21 19:00"), ["2026-11-21 20:00", "2026-11-22 00:00"]),
        ("Mon", NOW, ["2026-11-23", "2026-11-30"]),
        ("SUNDAY", NOW, ["2026-11-22"]),
    ],
)
def test_next_ticks(text: str, after: datetime, expected: list[str | None]):
    pattern = CronPattern.parse(text)
    moment = after
    for wanted in expected:
        found = pattern.next_after(moment)
        assert found == (None if wanted is None else at(wanted))
        if found is not None:
            assert found.tzinfo is UTC
            moment = found


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("5s", "*/5 * * * * * *"),
        ("25m", "0 */25 * * * * *"),
        ("025m", "0 */25 * * * * *"),
        ("12h", "0 0 */12 * * * *"),
        ("59s", "*/59 * * * * * *"),
        ("23h", "0 0 */23 * * * *"),
        ("wednesday", "0 0 0 * * 3 *"),
        ("0 6 1 * *", "0 0 6 1 * * *"),
        ("30 0 6 1 * *", "30 0 6 1 * * *"),
        ("0 6 1 * * 2030", "0 0 6 1 * * 2030"),
        ("0 6 1 * * 7,2030", None),
    ],
)
def test_the_seven_fields_behind_a_text(text: str, fields: str | None):
    if fields is None:
        with pytest.raises(schema.PatternError, match="year field, character 11"):
            CronPattern.parse(text)
        return
    short, whole = CronPattern.parse(text), CronPattern.parse(fields)
    assert short.sets == whole.sets
    assert CronPattern.parse(" ".join(short.fields)).sets == whole.sets


def test_text_is_what_was_written_with_single_spaces():
    assert CronPattern.parse("\t00  6 1\t* * ").text == "00 6 1 * *"
    assert str(CronPattern.parse(" Mon")) == "Mon"
    assert CronPattern.parse("0  6 1 * *") == CronPattern.parse("0 6 1 * *")


def test_any_time_zone_goes_in_and_utc_comes_out():
    berlin_in_winter = timezone(timedelta(hours=1))
    found = CronPattern.parse("0 6 * * *").next_after(datetime(2026, 11, 21, 6, 30, tzinfo=berlin_in_winter))
    assert found == at("2026-11-21 06:00")
    assert found is not None
    assert found.tzinfo is UTC


@pytest.mark.parametrize("offset", [-23, 23])
def test_the_ends_of_the_calendar_in_any_zone(offset: int):
    zone = timezone(timedelta(hours=offset))
    pattern = CronPattern.parse("0 0 * * *")
    assert pattern.next_after(datetime.max.replace(tzinfo=zone)) is None
    assert pattern.next_after(datetime.min.replace(tzinfo=zone)) == at("1970-01-01")


def test_a_naive_moment_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"no time zone.*replace\(tzinfo=datetime.UTC\)"):
        CronPattern.parse("* * * * *").next_after(datetime(2026, 1, 1))  # noqa: DTZ001


def test_fractions_of_a_second_never_make_a_tick_early_or_come_twice():
    pattern = CronPattern.parse("* * * * * *")
    just_before = at("2026-11-21 08:00:00") - timedelta(microseconds=1)
    assert pattern.next_after(just_before) == at("2026-11-21 08:00:00")
    assert pattern.next_after(at("2026-11-21 08:00:00")) == at("2026-11-21 08:00:01")
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert pattern.next_after(before_1970) == at("1970-01-01")


def test_patterns_survive_a_pickle():
    pattern = CronPattern.parse("0 6 1 * *")
    assert pickle.loads(pickle.dumps(pattern)) == pattern
