"""The minimum interval: how far apart, and counted from what. What becomes of the ticks stands in test_timetable."""

import pytest

from cronring.schema.policy import Policy
from cronring.schema.schedule import parse_schedule
from cronring.schema.spacing import earliest_start, least_distance

S = 1_000_000
MINUTE = 60 * S
NOON = 1_795_262_400 * S


@pytest.mark.parametrize(
    ("schedule", "policy", "distance"),
    [
        ("* * * * *", Policy(), MINUTE),
        ("0 9 * * 1", Policy(), MINUTE),
        ("0 9 * * 1 2026", Policy(), MINUTE),
        ("25m", Policy(), MINUTE),
        ("Mon", Policy(), MINUTE),
        ("0 * * * * *", Policy(), MINUTE),
        ("5s", Policy(), S),
        ("*/30 * * * * *", Policy(), S),
        ("30 * * * * *", Policy(), S),
        ("0 9 * * 1", Policy(timezone="Europe/Berlin", start_at="2026-01-01T00:00:00Z"), MINUTE),
        ("0 9 * * 1", Policy(overlap="buffer_one"), MINUTE),
        ("0 9 * * 1", Policy(overlap="cancel_running", on_missed="skip"), MINUTE),
        ("0 9 * * 1", Policy(overlap="buffer_all"), 0),
        ("0 9 * * 1", Policy(overlap="allow"), 0),
        ("0 9 * * 1", Policy(on_missed="run_all"), 0),
        ("every 1s", Policy(), 0),
        ("at 2026-03-01T08:00:00Z", Policy(), 0),
        ("manual", Policy(), 0),
    ],
)
def test_distances(schedule: str, policy: Policy, distance: int):
    assert least_distance(parse_schedule(schedule, 0, policy), policy) == distance


@pytest.mark.parametrize(
    ("run_at", "claimed_at", "earliest"),
    [
        (NOON, NOON, NOON + MINUTE),
        (NOON, NOON + S, NOON + MINUTE),  # on time, by a clock that is a little ahead or behind
        (NOON, NOON - 5_000, NOON + MINUTE),
        (NOON, NOON + S + 1, NOON + S + 1 + MINUTE),
        (NOON, NOON + 5 * MINUTE, NOON + 6 * MINUTE),
        (NOON + 30 * S, NOON + 30 * S, NOON + MINUTE),  # jittered, or buffered: it started when it was meant to
        (NOON + 30 * S, NOON + 32 * S, NOON + 32 * S + MINUTE),
    ],
)
def test_the_earliest_next_start(run_at: int, claimed_at: int, earliest: int):
    assert earliest_start(NOON, run_at, claimed_at, MINUTE) == earliest
