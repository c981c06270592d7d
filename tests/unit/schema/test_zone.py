"""Zones: names, what is said of wrong ones, and offsets held against zoneinfo over the same tzdata."""

import pickle
import subprocess
import sys
from datetime import UTC, datetime
from importlib import resources
from zoneinfo import ZoneInfo

import pytest

from cronring.schema import zone_hint
from cronring.schema.search import CLOCK_END
from cronring.schema.zone import OffsetChange, ZoneError, load_zone, zone_names
from cronring.schema.zone_rule import parse_rule


def instant(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def reference(name: str) -> ZoneInfo:
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def test_every_name_loads_and_every_offset_is_that_of_zoneinfo():
    for name in zone_names():
        zone, theirs = load_zone(name), reference(name)
        instants = {edge + beside for edge in zone.starts[1:] for beside in (-1, 0)} | {-4_000_000_000, 0, CLOCK_END}
        for second in sorted(one for one in instants if one <= CLOCK_END):
            offset = datetime.fromtimestamp(second, UTC).astimezone(theirs).utcoffset()
            assert offset is not None
            assert zone.offset_at(second) == offset.total_seconds(), (name, second)


@pytest.mark.parametrize(
    "name", ["Europe/Dublin", "Africa/Casablanca", "Asia/Gaza", "America/Nuuk", "Antarctica/Troll"]
)
def test_no_change_is_overlooked(name: str):
    """Week by week: a change that we didn't know would show as an offset of theirs that isn't ours."""
    zone, theirs = load_zone(name), reference(name)
    for second in range(-400_000_000, CLOCK_END, 7 * 86_400):
        offset = datetime.fromtimestamp(second, UTC).astimezone(theirs).utcoffset()
        assert offset is not None
        assert zone.offset_at(second) == offset.total_seconds(), second


def test_changes_are_of_the_offset_and_lie_in_the_span():
    apia = instant("2011-12-30T10:00")
    zone = load_zone("Pacific/Apia")
    assert zone.changes_between(apia - 1, apia) == [OffsetChange(apia, -36_000, 50_400)]
    assert zone.changes_between(apia, apia + 86_400) == []
    assert zone.changes_between(apia + 1, apia) == []
    assert load_zone("UTC").changes_between(-(1 << 61), 1 << 61) == []
    dublin = load_zone("Europe/Dublin").changes_between(instant("2026-01-01"), instant("2027-01-01"))
    assert dublin == [
        OffsetChange(instant("2026-03-29T01:00"), 0, 3600),
        OffsetChange(instant("2026-10-25T01:00"), 3600, 0),
    ]


def test_a_change_of_name_alone_is_none():
    """Casablanca's winter became its summer's standard in 2018, Moscow and Pyongyang renamed their hours."""
    for name in ("Africa/Casablanca", "Europe/Moscow", "Asia/Pyongyang", "America/Danmarkshavn"):
        for change in load_zone(name).changes_between(-(1 << 60), 1 << 60):
            assert change.before != change.after


def test_one_object_for_each_name_also_through_a_pickle():
    zone = load_zone("Europe/Berlin")
    assert load_zone("Europe/Berlin") is zone
    assert pickle.loads(pickle.dumps(zone)) is zone
    assert str(zone) == "Europe/Berlin"


def test_the_host_has_no_say(tmp_path):
    """With a lying zoneinfo tree, and with none, the answer is tzdata's."""
    lie = tmp_path / "Europe" / "Berlin"
    lie.parent.mkdir()
    lie.write_bytes(resources.files("tzdata.zoneinfo").joinpath("Asia", "Tokyo").read_bytes())
    code = "from cronring.schema.zone import load_zone; print(load_zone('Europe/Berlin').offset_at(1_790_000_000))"
    for path in (str(tmp_path), "/nowhere", ""):
        environment = {"PYTHONTZPATH": path, "TZ": "Asia/Tokyo"}
        assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip() == "7200"


REFUSED = [
    ("", None, "empty"),
    ("  ", None, "empty"),
    ("Europe/Belrin", "Europe/Berlin", "no time zone"),
    ("America/Sao Paolo", "America/Sao_Paulo", "no time zone"),
    ("europe/berlin", "Europe/Berlin", "spells"),
    ("EUROPE/BERLIN", "Europe/Berlin", "spells"),
    (" UTC", "UTC", "spells"),
    ("utc", "UTC", "spells"),
    ("Z", "UTC", "not a time zone"),
    ("America/New York", "America/New_York", "spells"),
    ("america/port-au-prince", "America/Port-au-Prince", "spells"),
    ("Berlin", "Europe/Berlin", "no time zone"),
    ("new york", "America/New_York", "no time zone"),
    ("Berln", "Europe/Berlin", "no time zone"),
    ("PST", "America/Los_Angeles", "abbreviation"),
    ("pdt", "America/Los_Angeles", "abbreviation"),
    ("CEST", "Europe/Berlin", "abbreviation"),
    ("IST", "Asia/Kolkata", "abbreviation"),
    ("+02:00", "Etc/GMT-2", "Etc/GMT-2"),
    ("-0500", "Etc/GMT+5", "west is +"),
    ("UTC+2", "Etc/GMT-2", "offset"),
    ("GMT-03", "Etc/GMT+3", "offset"),
    ("\u22125", "Etc/GMT+5", "offset"),
    ("+00:00", "UTC", "offset"),
    ("+05:30", "Asia/Kolkata", "offset"),
    ("+05:15", None, "offset"),
    ("+15", None, "15 hours away"),
    ("-13", None, "13 hours away"),
    ("Factory", None, "no time zone"),
    ("../../etc/passwd", None, "no time zone"),
    ("/etc/localtime", None, "no time zone"),
    ("Europe", None, "no time zone"),
    # Far from all, so nothing is guessed, and the list is named.
    ("Europe/Nowhere", None, "List_of_tz_database_time_zones"),
    ("Mars/Olympus", None, "List_of_tz_database_time_zones"),
    ("Foo", None, "List_of_tz_database_time_zones"),
    ("Etc/GMT+15", None, "List_of_tz_database_time_zones"),
    ("Europe/CEST", "Europe/Berlin", "abbreviation"),
    ("ET", "America/New_York", "abbreviation"),
    ("Asia/Berlin", "Europe/Berlin", "no time zone"),
    ("Eruope/Berlni", "Europe/Berlin", "no time zone"),
    ("Europe/Stokholm", "Europe/Stockholm", "no time zone"),
    ("America/Argentina/Buenos Airs", "America/Argentina/Buenos_Aires", "no time zone"),
    ("Kolkatta", "Asia/Kolkata", "no time zone"),
    ("Europe/Berlin\n", "Europe/Berlin", "spells"),
    ("\u0665", None, "no time zone"),
    ("x" * 100_000, None, "100000 characters"),
]


@pytest.mark.parametrize(("name", "suggestion", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refused(name: str, suggestion: str | None, words: str):
    with pytest.raises(ZoneError) as caught:
        load_zone(name)
    error = caught.value
    assert (error.position, error.suggestion) == (0, suggestion)
    assert words in error.message
    assert isinstance(error, ValueError)
    assert suggestion is None or load_zone(suggestion)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.suggestion) == (str(error), suggestion)


def test_every_hint_is_a_zone():
    for name in [*zone_hint._ABBREVIATIONS.values(), *zone_hint._PLACES.values()]:
        assert load_zone(name).name == name
    for abbreviation in zone_hint._ABBREVIATIONS:
        assert abbreviation not in zone_names()


def test_places_of_odd_offsets_have_them_all_year():
    for offset, name in zone_hint._PLACES.items():
        zone = load_zone(name)
        seconds = (int(offset[1:3]) * 3600 + int(offset[4:]) * 60) * (-1 if offset[0] == "-" else 1)
        assert zone.offset_at(instant("2026-01-01")) == zone.offset_at(instant("2026-07-01")) == seconds


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        # Permanent summer time, as RFC 9636 writes it: one year's end of summer is the next one's begin.
        ("XXX3EDT4,0/0,J365/23", ("2026-01-01T03:00", -14_400)),
        ("AAA0BBB,J60/0,J300/0", ("2026-03-01T00:00", 3600)),  # Julian days never count 29 February
        ("AAA0BBB,J60/0,J300/0", ("2028-03-01T00:00", 3600)),
        ("AAA0BBB,59/0,300/0", ("2026-03-01T00:00", 3600)),  # these do
        ("AAA0BBB,59/0,300/0", ("2028-02-29T00:00", 3600)),
        ("IST-2IDT,M3.4.4/26,M10.5.0", ("2026-03-27T00:00", 10_800)),  # Thursday's 26 o'clock is Friday's 2
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", ("2026-03-29T01:00", -3600)),  # Saturday's 23 o'clock
        ("EST5EDT,M3.2.0,M11.1.0", ("2026-03-08T07:00", -14_400)),  # 2 o'clock where nothing is said
    ],
)
def test_footers(rule: str, first: tuple[str, int]):
    at, offset = instant(first[0]), first[1]
    assert dict(parse_rule(rule).changes(at - 1, at)) == {at: offset}


@pytest.mark.parametrize("rule", ["", "X", "EST", "EST5EDT", "EST5EDT,M3.2.0", "EST5EDT,M3.6.0,M11.1.0", "E5", "EST5x"])
def test_what_is_no_rule(rule: str):
    with pytest.raises(ValueError, match="not a rule"):
        parse_rule(rule)
