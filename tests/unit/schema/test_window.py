"""Windows: their texts, and when they are open, over both changes of the clocks."""

import datetime
import pickle
import zoneinfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.schema.instant import parse_instant
from cronring.schema.window import WindowError, canonical_window, parse_window
from tests.drawing import examples

S = 1_000_000
MINUTE = 60 * S
DAY = 86_400 * S
NAMES = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("08:00-18:00", "08:00-18:00"),
        ("  8:00-18:00 ", "08:00-18:00"),
        ("Mon-Fri 08:00-18:00", "Mon-Fri 08:00-18:00"),
        ("monday-FRIDAY 08:00-18:00 Europe/Berlin", "Mon-Fri 08:00-18:00 Europe/Berlin"),
        ("Sat-Mon 08:00-18:00", "Mon,Sat-Sun 08:00-18:00"),
        ("Sun, wed,Tue 08:00-18:00", "Tue-Wed,Sun 08:00-18:00"),
        ("Mon-Sun 08:00-18:00", "08:00-18:00"),
        ("Sat 09:00-24:00", "Sat 09:00-24:00"),
        ("Sat 09:00-00:00", "Sat 09:00-24:00"),
        ("22:00-06:00 UTC", "22:00-06:00 UTC"),
        ("Mon-Thu 08:00-18:00, Fri 08:00-14:00", "Mon-Thu 08:00-18:00, Fri 08:00-14:00"),
        ("Mon-Fri 08:00-12:00,13:00-18:00", "Mon-Fri 08:00-12:00, Mon-Fri 13:00-18:00"),
        ("08:00-12:00, Mon 13:00-18:00", "Mon-Sun 08:00-12:00, Mon 13:00-18:00"),
        ("08:00-12:00, 08:00-12:00", "08:00-12:00"),
    ],
)
def test_canonical_texts(text: str, canonical: str):
    assert canonical_window(text) == canonical
    assert canonical_window(canonical) == canonical


@pytest.mark.parametrize(
    ("text", "position", "suggestion"),
    [
        ("", 0, None),
        ("Mon-Fri", 7, "Mon-Fri 00:00-24:00"),
        ("Mon-Fri,", 7, None),
        ("08:00-18:00,", 12, None),
        ("Mon-Fri 8-18", 8, "Mon-Fri 08:00-18:00"),
        ("weekdays 9am - 5:30pm", 0, "Mon-Fri 09:00-17:30"),
        ("Mon\u2013Fri 08:00\u201318:00", 0, "Mon-Fri 08:00-18:00"),
        ("Mon to Fri 08:00 to 18:00", 4, "Mon-Fri 08:00-18:00"),
        ("Mon-Fry 08:00-18:00", 4, "Mon-Fri 08:00-18:00"),
        ("Tues,Thurs 08:00-18:00", 0, "Tue,Thu 08:00-18:00"),
        ("weekends and Monday 8-10 UTC", 0, "Mon,Sat-Sun 08:00-10:00 UTC"),
        ("Mon 08:00-18:00 Tue 08:00-18:00", 20, None),
        ("Mon 08:00-18:00 EST5", 16, "Mon 08:00-18:00 EST"),
        ("Mon 08:00-18:00 berlin", 16, "Mon 08:00-18:00 Europe/Berlin"),
        ("Mon 08:00-18:00 Europe/Berlin, Tue 09:00-10:00", 29, None),
        ("08:00-25:00", 6, None),
        ("08:60-18:00", 0, None),
        ("24:00-06:00", 0, None),
        ("08:00-08:00", 0, None),
        ("0800-1800", 0, "08:00-18:00"),
        ("1-5 08:00-18:00", 0, None),
        ("08:00-18:00:00", 0, "08:00-18:00"),
        ("x" * 600, 500, None),
    ],
)
def test_refused(text: str, position: int, suggestion: str | None):
    with pytest.raises(WindowError) as caught:
        parse_window(text)
    assert (caught.value.position, caught.value.suggestion) == (position, suggestion)
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


@given(st.text("MonFriSat tue,0812:-/ 4", max_size=40))
def test_suggestions_are_windows(text: str):
    fault = None
    try:
        canonical = canonical_window(text)
        assert canonical_window(canonical) == canonical
    except WindowError as error:
        fault = error
    if fault is not None:
        assert 0 <= fault.position <= len(text)
        assert fault.suggestion is None or canonical_window(fault.suggestion) == fault.suggestion


def show(instant: int | None) -> str:
    if instant is None:
        return "never"
    return f"{datetime.datetime.fromtimestamp(instant // S, datetime.UTC):%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize(
    ("text", "after", "opens", "closes"),
    [
        # 2026-11-21 is a Saturday
        ("08:00-18:00", "2026-11-21T07:59:59", "2026-11-21T08:00", "2026-11-21T18:00"),
        ("08:00-18:00", "2026-11-21T08:00", "2026-11-22T08:00", "2026-11-21T18:00"),
        ("08:00-18:00", "2026-11-21T18:00", "2026-11-22T08:00", "2026-11-22T18:00"),
        ("Mon-Fri 08:00-18:00", "2026-11-20T17:59", "2026-11-23T08:00", "2026-11-20T18:00"),
        ("Mon-Fri 08:00-18:00", "2026-11-20T18:00", "2026-11-23T08:00", "2026-11-23T18:00"),
        ("Sun 08:00-24:00", "2026-11-21T12:00", "2026-11-22T08:00", "2026-11-23T00:00"),
        ("Sat 08:00-24:00, Sun 00:00-12:00", "2026-11-21T12:00", "2026-11-28T08:00", "2026-11-22T12:00"),
        ("Sun 22:00-06:00", "2026-11-22T23:00", "2026-11-29T22:00", "2026-11-23T06:00"),
        ("Sun 22:00-06:00, Mon 06:00-07:00", "2026-11-22T23:00", "2026-11-29T22:00", "2026-11-23T07:00"),
        ("Fri 22:00-06:00", "2026-11-21T05:00", "2026-11-27T22:00", "2026-11-21T06:00"),
        ("00:00-24:00", "2026-11-21T05:00", "never", "never"),
        ("12:00-00:00, 00:00-12:00", "2026-11-21T05:00", "never", "never"),
        ("08:00-18:00 Asia/Kolkata", "2026-11-21T00:00", "2026-11-21T02:30", "2026-11-21T12:30"),
        # Berlin, 29 March: 02:00 to 03:00 (01:00 UTC) are skipped
        ("01:30-02:30 Europe/Berlin", "2026-03-28T23:00", "2026-03-29T00:30", "2026-03-29T01:00"),
        ("02:15-02:45 Europe/Berlin", "2026-03-28T23:00", "2026-03-30T00:15", "2026-03-30T00:45"),
        ("02:30-05:00 Europe/Berlin", "2026-03-28T23:00", "2026-03-29T01:00", "2026-03-29T03:00"),
        # 25 October: 02:00 to 03:00 come twice (00:00 to 02:00 UTC)
        ("00:00-02:30 Europe/Berlin", "2026-10-24T21:00", "2026-10-24T22:00", "2026-10-25T00:30"),
        ("00:00-02:30 Europe/Berlin", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"),
        ("02:00-03:00 Europe/Berlin", "2026-10-24T21:00", "2026-10-25T00:00", "2026-10-25T02:00"),
        # Apia went from Thursday the 29th to Saturday the 31st at midnight, so Friday's never came
        ("Fri 08:00-18:00 Pacific/Apia", "2011-12-29T12:00", "2012-01-05T18:00", "2012-01-06T04:00"),
        ("Sat 00:00-01:00 Pacific/Apia", "2011-12-29T12:00", "2011-12-30T10:00", "2011-12-30T11:00"),
    ],
)
def test_opens_and_closes(text: str, after: str, opens: str, closes: str):
    window = parse_window(text)
    instant = parse_instant(f"{after}Z" if after.count(":") else after)
    assert (show(window.next_open_after(instant)), show(window.next_close_after(instant))) == (opens, closes)
    if opens != "never":
        opened = window.next_open_after(instant)
        assert opened is not None
        assert window.contains(opened)
        assert not window.contains(opened - 1)


def test_the_zone_of_the_job_counts_unless_the_window_has_its_own():
    noon = parse_instant("2026-07-01T17:00Z")
    assert parse_window("08:00-18:00").contains(noon)
    assert not parse_window("08:00-18:00", "Europe/Berlin").contains(noon)
    assert parse_window("08:00-18:00 America/New_York", "Europe/Berlin").contains(noon)
    assert parse_window("08:00-18:00 UTC", "Europe/Berlin").contains(noon)


def is_open(text: str, instant: int) -> bool:
    """An oracle of its own: `zoneinfo`, and the text read minute by minute."""
    *parts, zone = text.rsplit(" ", 1)
    wall = datetime.datetime.fromtimestamp(instant // S, datetime.UTC).astimezone(zoneinfo.ZoneInfo(zone))
    for part in parts[0].split(", "):
        days, times = part.split(" ")
        opens, closes = times.split("-")
        listed = [NAMES.index(day) for day in days.split(",")]
        minute = f"{wall:%H:%M}"
        today, yesterday = wall.weekday() in listed, (wall.weekday() - 1) % 7 in listed
        if opens < closes:
            if today and opens <= minute < closes:
                return True
        elif (today and minute >= opens) or (yesterday and minute < closes):
            return True
    return False


MINUTES = st.integers(0, 95).map(lambda quarter: f"{quarter // 4:02}:{quarter % 4 * 15:02}")
PARTS = st.builds(
    lambda days, times: f"{','.join(days)} {times[0]}-{times[1]}",
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
    st.tuples(MINUTES, MINUTES).filter(lambda times: times[0] != times[1]),
)
TEXTS = st.builds(
    lambda parts, zone: f"{', '.join(parts)} {zone}",
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(
        ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata"]
    ),
)
CHANGES = ["2026-03-29T01:00Z", "2026-10-25T01:00Z", "2026-11-01T06:00Z", "2026-04-04T15:00Z", "2011-12-30T10:00Z"]
INSTANTS = st.builds(
    lambda change, minutes: parse_instant(change) + minutes * MINUTE, st.sampled_from(CHANGES), st.integers(-4000, 4000)
)


@settings(max_examples=examples(300))
@given(TEXTS, INSTANTS)
def test_as_zoneinfo_has_it(text: str, instant: int):
    window = parse_window(text)
    assert window.contains(instant) is is_open(text, instant)
    opens, closes = window.next_open_after(instant), window.next_close_after(instant)
    found_opens = found_closes = None
    step = 15 * MINUTE
    before = is_open(text, instant)
    for moment in range(instant - instant % step + step, instant + 9 * DAY, step):
        now = is_open(text, moment)
        found_opens = moment if found_opens is None and now and not before else found_opens
        found_closes = moment if found_closes is None and before and not now else found_closes
        before = now
        if found_opens is not None and found_closes is not None:
            break
    assert (opens, closes) == (found_opens, found_closes)
