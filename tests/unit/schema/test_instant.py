"""Instants: texts, and wall-clock times that come never or twice."""

import datetime
import pickle
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronring.schema.instant import InstantError, format_instant, parse_instant
from cronring.schema.zone import ZoneError

S = 1_000_000


@pytest.mark.parametrize(
    ("text", "timezone", "canonical"),
    [
        ("2026-03-01T08:00:00Z", "", "2026-03-01T08:00:00Z"),
        ("2026-03-01T08:00:00Z", "Europe/Berlin", "2026-03-01T08:00:00Z"),
        ("2026-03-01T08:00:00.000Z", "", "2026-03-01T08:00:00Z"),
        ("2026-03-01 08:00", "", "2026-03-01T08:00:00Z"),
        ("2026-03-01 08:00", "Europe/Berlin", "2026-03-01T07:00:00Z"),
        ("2026-07-01 08:00", "Europe/Berlin", "2026-07-01T06:00:00Z"),
        ("2026-03-01T08:00+05:30", "Europe/Berlin", "2026-03-01T02:30:00Z"),
        ("2026-03-01T08:00-0330", "", "2026-03-01T11:30:00Z"),
        ("2026-03-01", "Asia/Tokyo", "2026-02-28T15:00:00Z"),
        ("1970-01-01T09:00", "Asia/Tokyo", "1970-01-01T00:00:00Z"),
        ("2099-12-31T23:59:59", "", "2099-12-31T23:59:59Z"),
        # twice: the first of the two
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z"),
        ("2026-10-25T02:59:59", "Europe/Berlin", "2026-10-25T00:59:59Z"),
        ("2026-10-25T03:00", "Europe/Berlin", "2026-10-25T02:00:00Z"),
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45:00Z"),
        # a day whose midnight is skipped begins an hour later, and one that is skipped as a whole as the next one does
        ("2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        ("2011-12-30", "Pacific/Apia", "2011-12-30T10:00:00Z"),
    ],
)
def test_instants(text: str, timezone: str, canonical: str):
    instant = parse_instant(text, timezone)
    assert format_instant(instant) == canonical
    if not canonical.startswith("1969"):
        assert parse_instant(canonical, "Asia/Tokyo") == instant


@pytest.mark.parametrize(
    ("text", "timezone", "last"),
    [
        ("2026-03-01", "", "2026-03-01T23:59:59Z"),
        ("2026-10-25", "Europe/Berlin", "2026-10-25T22:59:59Z"),  # a day of 25 hours
        ("2018-11-03", "America/Sao_Paulo", "2018-11-04T02:59:59Z"),
        ("2011-12-30", "Pacific/Apia", "2011-12-30T09:59:59Z"),  # of no hour at all: it ended as it began
        ("2026-03-01T08:00", "", "2026-03-01T08:00:00Z"),
    ],
)
def test_the_end_of_a_day(text: str, timezone: str, last: str):
    assert format_instant(parse_instant(text, timezone, end_of_day=True)) == last


@pytest.mark.parametrize(
    ("text", "timezone", "position", "suggestion"),
    [
        ("", "", 0, None),
        ("tomorrow", "", 0, None),
        ("2026-3-1", "", 6, "2026-03-01"),
        ("2026/03/01 8:00 utc", "", 4, "2026-03-01T08:00:00Z"),
        ("01.03.2026", "", 2, None),
        ("2026-03-01T8:00", "", 12, "2026-03-01T08:00:00"),
        ("2026-03-01T08", "", 13, None),
        ("2026-03-01T08:00:00 CET", "", 19, None),
        ("2026-03-01T08:00:00.5Z", "", 19, "2026-03-01T08:00:00Z"),
        ("2026-02-29", "", 0, None),
        ("2026-03-01T24:00", "", 0, None),
        ("2026-03-01T08:60", "", 0, None),
        ("2026-03-01T08:00+25:00", "", 0, None),
        ("1969-12-31", "", 0, None),
        ("2100-01-01", "", 0, None),
        ("\u0662026-03-01", "", 0, None),
        ("2" * 100, "", 64, None),
        # never: the first time after the gap
        ("2026-03-29T02:30", "Europe/Berlin", 0, "2026-03-29T03:00:00"),
        ("2026-03-29 02:00:00", "Europe/Berlin", 0, "2026-03-29T03:00:00"),
        ("2026-10-04T02:15", "Australia/Lord_Howe", 0, "2026-10-04T02:30:00"),
        ("2011-12-30T12:00", "Pacific/Apia", 0, "2011-12-31T00:00:00"),
    ],
)
def test_refused(text: str, timezone: str, position: int, suggestion: str | None):
    with pytest.raises(InstantError) as caught:
        parse_instant(text, timezone)
    assert (caught.value.position, caught.value.suggestion) == (position, suggestion)
    if suggestion is not None:
        parse_instant(suggestion, timezone)
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


def test_an_unknown_zone():
    with pytest.raises(ZoneError):
        parse_instant("2026-03-01", "Europe/Belrin")


ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Africa/Cairo",
]


@given(st.sampled_from(ZONES), st.dates(datetime.date(1971, 1, 1), datetime.date(2036, 12, 31)), st.times())
def test_as_zoneinfo_has_it(zone: str, day: datetime.date, time: datetime.time):
    moment = datetime.datetime.combine(day, time.replace(microsecond=0, fold=0))
    aware = moment.replace(tzinfo=zoneinfo.ZoneInfo(zone))
    instant = int(aware.timestamp()) * S
    shown_again = datetime.datetime.fromtimestamp(instant // S, zoneinfo.ZoneInfo(zone)).replace(tzinfo=None, fold=0)
    text = moment.isoformat()
    if shown_again == moment:
        assert parse_instant(text, zone) == instant
    else:
        with pytest.raises(InstantError, match="skip this time"):
            parse_instant(text, zone)


@pytest.mark.parametrize(
    ("text", "timezone"),
    [("1970-01-01", "Asia/Tokyo"), ("2099-12-31T23:00", "America/New_York"), ("1970-01-01T00:00+00:01", "")],
)
def test_what_could_not_be_written_in_utc_is_refused(text: str, timezone: str) -> None:
    with pytest.raises(InstantError, match="in UTC it is outside the years 1970 to 2099"):
        parse_instant(text, timezone)
