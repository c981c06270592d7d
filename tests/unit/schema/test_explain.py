from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.schema.explain import Explanation, explain, next_ticks
from cronring.schema.instant import parse_instant
from cronring.schema.policy_model import Policy
from cronring.schema.schedule import parse_schedule
from cronring.schema.zone import load_zone
from tests.drawing import examples
from tests.unit.schema.strategies import SCHEDULES

NOW = parse_instant("2026-11-21T12:00:00Z")


def explained(text: str, **policy: str) -> Explanation:
    policies = Policy(**policy)  # type: ignore[arg-type]  # texts only
    return explain(parse_schedule(text, NOW, policies), policies, NOW)


CHANGES = [
    (
        "30 2 * * *",
        {"timezone": "Europe/Berlin"},
        "2027-03-28, 1 hour forward (02:00 -> 03:00): 02:30 does not exist; it runs at 03:00, the first instant after",
        "2027-10-31, 1 hour back (03:00 -> 02:00): 02:30 comes twice and runs once, the first time",
    ),
    (
        "0,30 2 * * *",
        {"timezone": "Europe/Berlin", "dst_gap": "skip", "dst_overlap": "both"},
        "2027-03-28, 1 hour forward (02:00 -> 03:00): 02:00 and 02:30 do not exist and are skipped (dst_gap=skip)",
        "2027-10-31, 1 hour back (03:00 -> 02:00): 02:00 and 02:30 come twice and run twice",
    ),
    (
        "30 2 * * *",
        {"timezone": "Europe/Berlin", "dst_overlap": "second"},
        "2027-03-28, 1 hour forward (02:00 -> 03:00): 02:30 does not exist; it runs at 03:00, the first instant after",
        "2027-10-31, 1 hour back (03:00 -> 02:00): 02:30 comes twice and runs once, the second time",
    ),
    (
        "*/10 * * * *",
        {"timezone": "Europe/Berlin"},
        "2027-03-28, 1 hour forward (02:00 -> 03:00): 02:00, 02:10, 02:20 and 3 more do not exist; "
        "the rhythm goes on with the clock, nothing is made up for",
        "2027-10-31, 1 hour back (03:00 -> 02:00): 02:00, 02:10, 02:20 and 3 more come twice and run twice",
    ),
    (
        "0 9 * * *",
        {"timezone": "Europe/Berlin"},
        "2027-03-28, 1 hour forward (02:00 -> 03:00): no tick is skipped",
        "2027-10-31, 1 hour back (03:00 -> 02:00): no tick is repeated",
    ),
    (
        "45 1 * * *",
        {"timezone": "Australia/Lord_Howe"},  # by half an hour, and summer comes first
        "2027-04-04, 30 minutes back (02:00 -> 01:30): 01:45 comes twice and runs once, the first time",
        "2027-10-03, 30 minutes forward (02:00 -> 02:30): no tick is skipped",
    ),
]


@pytest.mark.parametrize(("text", "policy", "first", "second"), CHANGES)
def test_what_changes_of_the_clocks_do(text: str, policy: dict[str, str], first: str, second: str):
    assert [change.happens for change in explained(text, **policy).clock_changes] == [first, second]


def test_utc_and_intervals_know_no_change():
    assert explained("30 2 * * *").clock_changes == ()
    assert explained("every 6h", timezone="Europe/Berlin").clock_changes == ()


def test_notes_at_changes():
    policy = Policy(timezone="Europe/Berlin", dst_overlap="both")
    zone = load_zone("Europe/Berlin")
    schedule = parse_schedule("30 2 * * *", NOW, policy)
    spring = list(next_ticks(schedule, zone, parse_instant("2027-03-27T12:00Z"), 2))
    assert [(tick.wall, tick.note) for tick in spring] == [
        ("2027-03-28T03:00:00+02:00", "makes up for 02:30, which the clocks skip"),
        ("2027-03-29T02:30:00+02:00", ""),
    ]
    autumn = list(next_ticks(schedule, zone, parse_instant("2027-10-30T12:00Z"), 3))
    assert [(tick.wall, tick.note) for tick in autumn] == [
        ("2027-10-31T02:30:00+02:00", "the first 02:30 of 2 on this day"),
        ("2027-10-31T02:30:00+01:00", "the second 02:30 of 2 on this day"),
        ("2027-11-01T02:30:00+01:00", ""),
    ]


KINDS = [
    ("0 0-23 * * *", "fixed-time", (23, 24)),  # 02:00 runs once in autumn, and with 03:00 in spring
    ("0 * * * *", "interval-like", (23, 25)),
    ("0 9 * * 1-5", "fixed-time", (0, 1)),
    ("every 8h", "interval", (3, 3)),
    ("at 2026-12-24T18:00:00Z", "once", (0, 1)),
    ("manual", "manual", (0, 0)),
]


@pytest.mark.parametrize(("text", "kind", "per_day"), KINDS)
def test_kinds_and_ticks_a_day(text: str, kind: str, per_day: tuple[int, int]):
    found = explained(text, timezone="Europe/Berlin")
    assert (found.kind, found.per_day.least, found.per_day.most, found.per_day.days) == (kind, *per_day, 365)


def test_bounds_hold():
    found = explained("0 12 * * *", end_at="2026-11-24T00:00:00Z")
    assert [tick.wall[:10] for tick in found.ticks] == ["2026-11-22", "2026-11-23"]


def test_the_last_days_of_the_calendar():
    now = parse_instant("2099-12-31T12:00:00Z")
    found = explain(parse_schedule("0 0 * * *", now), Policy(), now)
    assert (found.ticks, found.per_day.days) == ((), 0)


ZONES = st.sampled_from(
    ["", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata"]
)
INSTANTS = st.integers(631_152_000, 3_900_000_000).map(lambda second: second * 1_000_000)


@settings(max_examples=examples(120))
@given(SCHEDULES, ZONES, INSTANTS)
def test_walls_and_sums_are_right(text: str, zone: str, now: int):
    policy = Policy(timezone=zone)
    schedule = parse_schedule(text, now, policy)
    found = explain(schedule, policy, now, 5)
    for tick in found.ticks:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick.instant)
        assert datetime.fromisoformat(tick.wall) == moment
        assert tick.wall == moment.astimezone(ZoneInfo(zone or "UTC")).isoformat()
    assert [tick.instant for tick in found.ticks] == sorted({tick.instant for tick in found.ticks})
    assert found.per_day.least <= found.per_day.average <= found.per_day.most
    affected = [change for change in found.clock_changes if change.times]
    assert all("no tick" not in change.happens for change in affected)
