"""What runs and what is passed over, by example. Times are of Saturday, 21 November 2026, UTC; `22T12:00` is later."""

from typing import Any

import pytest

from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.instant import format_instant, parse_instant
from cronring.schema.policy import policy_faults, read_policy
from cronring.schema.timetable import MISSED_AFTER, PlannedTick, Timetable, timetable
from tests.support.costs import cpu_s

S = 1_000_000
MINUTE = 60 * S
DAY = 86_400 * S
MIDNIGHT = 1_795_219_200 * S  # 2026-11-21T00:00:00Z
ANCHOR = MIDNIGHT
EVERY_MINUTE = "* * * * *"


def at(text: str) -> int:
    """`12:00`, `12:00:05.250`, `23T00:00`: the 21st if no day is said."""
    day, _, time = text.rpartition("T")
    hour, minute, second = [*time.split(":"), "0"][:3]
    return (
        MIDNIGHT + (int(day or 21) - 21) * DAY + int(hour) * 3600 * S + int(minute) * MINUTE + round(float(second) * S)
    )


def clock(instant: int) -> str:
    day, rest = divmod(instant - MIDNIGHT, DAY)
    text = f"{rest // (60 * MINUTE):02}:{rest // MINUTE % 60:02}"
    if rest % MINUTE:
        text += f":{rest % MINUTE / S:06.3f}".removesuffix(".000")
    return text if day == 0 else f"{day + 21}T{text}"


def said(planned: PlannedTick | None) -> str:
    """`12:00`, or `12:00@12:00:30` where it is attempted at another instant."""
    if planned is None:
        return "never"
    return clock(planned.tick) if planned.run_at == planned.tick else f"{clock(planned.tick)}@{clock(planned.run_at)}"


def passed_over(ranges: tuple[Skipped, ...]) -> str:
    """`overlap 12:00-12:04 x5`; the first word alone of reasons with two."""
    return ", ".join(
        f"{part.reason.split('_')[0]} {clock(part.first_tick)}-{clock(part.last_tick)} x{part.ticks}" for part in ranges
    )


def planned_of(text: str) -> PlannedTick:
    tick, _, run_at = text.partition("@")
    return PlannedTick(at(tick), at(run_at or tick))


def table(schedule: str, **policy: Any) -> Timetable:
    return timetable(schedule, ANCHOR, read_policy({"jitter": "off", **policy}).text)


SKIP_MISSED = {"on_missed": "skip"}
RUN_ALL = {"on_missed": "run_all"}
OFFICE = {"window": "Sat 08:00-18:00"}


@pytest.mark.parametrize(
    ("schedule", "policy", "planned", "now", "run", "skipped", "caught_up"),
    [
        # as it ought to be
        (EVERY_MINUTE, {}, "12:00", "12:00:00.004", "12:00", "", False),
        # a controller's estimate is a little early, and the database will refuse it: no other tick, and no loop
        (EVERY_MINUTE, {}, "12:00", "11:59:59.990", "12:00", "", False),
        (EVERY_MINUTE, RUN_ALL, "12:00", "11:59:59.990", "12:00", "", False),
        (EVERY_MINUTE, SKIP_MISSED, "12:00", "11:59:59.990", "12:00", "", False),
        # late, but no other tick has come due
        (EVERY_MINUTE, {}, "12:00", "12:00:10", "12:00", "", False),
        (EVERY_MINUTE, {}, "12:00", "12:00:11", "12:00", "", True),
        ("0 12 * * *", {}, "12:00", "22T11:59", "12:00", "", True),
        # run_last: the latest one of those that were missed
        (EVERY_MINUTE, {}, "12:00", "12:01", "12:01", "superseded 12:00-12:00 x1", True),
        (EVERY_MINUTE, {}, "12:00", "12:05:30", "12:05", "superseded 12:00-12:04 x5", True),
        ("every 1m", {}, "12:00", "12:05:30", "12:05", "superseded 12:00-12:04 x5", True),
        (EVERY_MINUTE, {"on_missed": "run_last"}, "12:00", "22T12:00", "22T12:00",
            "superseded 12:00-22T11:59 x1440", True),
        ("0 * * * *", {"catch_up_window": "30m"}, "12:00", "13:29", "13:00", "superseded 12:00-12:00 x1", True),
        ("0 * * * *", {"catch_up_window": "30m"}, "12:00", "13:31", "none, 14:00", "missed 12:00-13:00 x2", False),
        ("0 12 * * *", {"catch_up_window": "6h"}, "12:00", "18:00:01", "none, 22T12:00",
            "missed 12:00-12:00 x1", False),
        # skip: nothing that is more than 10 s late
        (EVERY_MINUTE, SKIP_MISSED, "12:00", "12:00:10", "12:00", "", False),
        (EVERY_MINUTE, SKIP_MISSED, "12:00", "12:00:11", "none, 12:01", "missed 12:00-12:00 x1", False),
        (EVERY_MINUTE, SKIP_MISSED, "12:00", "12:05:05", "12:05", "missed 12:00-12:04 x5", True),
        (EVERY_MINUTE, SKIP_MISSED, "12:00", "12:05:30", "none, 12:06", "missed 12:00-12:05 x6", False),
        # ... of those that aren't, the latest
        ("every 5s", SKIP_MISSED, "12:00", "12:00:31", "12:00:30",
            "missed 12:00-12:00:20 x5, superseded 12:00:25-12:00:25 x1", True),
        # run_all: one after the other, the oldest first
        (EVERY_MINUTE, RUN_ALL, "12:00", "12:05:30", "12:00", "", True),
        (EVERY_MINUTE, {**RUN_ALL, "catch_up_window": "3m"}, "12:00", "12:05:30", "12:03",
            "missed 12:00-12:02 x3", True),
        (EVERY_MINUTE, {**RUN_ALL, "catch_up_window": "10s"}, "12:00", "12:05:30", "none, 12:06",
            "missed 12:00-12:05 x6", False),
        # ... with no bound said, those of a day, and the latest however late
        ("0 * * * *", RUN_ALL, "12:00", "22T14:30", "15:00", "missed 12:00-14:00 x3", True),
        ("0 12 * * 6", RUN_ALL, "12:00", "24T09:00", "12:00", "", True),
        # buffered ones count from when they were free to run
        (EVERY_MINUTE, {"overlap": "buffer_all"}, "12:00@12:30", "12:30:01", "12:00@12:30", "", False),
        (EVERY_MINUTE, {"overlap": "buffer_all", **SKIP_MISSED}, "12:00@12:30", "12:30:01", "12:00@12:30", "", False),
        (EVERY_MINUTE, {"overlap": "buffer_all", **SKIP_MISSED}, "12:00@12:30", "12:35:05", "12:35",
            "missed 12:00-12:34 x35", True),
        (EVERY_MINUTE, {"overlap": "buffer_one"}, "12:00@12:00:59", "12:00:59.5", "12:00@12:00:59", "", False),
        # outside the window
        ("0 * * * *", OFFICE, "18:00", "18:00:01", "none, 19:00", "outside 18:00-18:00 x1", False),
        ("0 * * * *", OFFICE, "17:00", "17:00:01", "17:00", "", False),
        ("0 * * * *", OFFICE, "18:00", "22T07:30", "none, 22T08:00", "outside 18:00-22T07:00 x14", False),
        # ... and an outage: what is later than the one that runs is decided after it
        ("0 * * * *", OFFICE, "17:00", "20:30", "17:00", "", True),
        ("0 * * * *", OFFICE, "16:00", "20:30", "17:00", "superseded 16:00-16:00 x1", True),
        ("0 * * * *", OFFICE, "07:00", "08:00:01", "08:00", "outside 07:00-07:00 x1", False),
        ("0 * * * *", {**OFFICE, **SKIP_MISSED}, "16:00", "20:30", "none, 21:00",
            "missed 16:00-17:00 x2, outside 18:00-20:00 x3", False),
        ("0 * * * *", {"window": "08:00-10:00", **RUN_ALL}, "09:00", "22T08:30", "09:00", "", True),
        ("0 * * * *", {"window": "08:00-10:00", **RUN_ALL}, "10:00", "22T09:30", "22T08:00",
            "outside 10:00-22T07:00 x22", True),
        ("0 * * * *", {"window": "08:00-10:00"}, "09:00", "22T09:30", "22T09:00",
            "superseded 09:00-09:00 x1, outside 10:00-22T07:00 x22, superseded 22T08:00-22T08:00 x1", True),
        # a tick that the schedule no longer has still counts
        ("0 * * * *", {}, "12:07", "12:59", "12:07", "", True),
        ("0 * * * *", {}, "12:07", "14:00", "14:00", "superseded 12:07-13:00 x2", True),
        ("at 2026-11-21T12:00:00Z", {}, "12:00", "15:00", "12:00", "", True),
        ("at 2026-11-21T12:00:00Z", SKIP_MISSED, "12:00", "15:00", "none, never", "missed 12:00-12:00 x1", False),
    ],
)  # fmt: skip
def test_due(schedule: str, policy: dict[str, Any], planned: str, now: str, run: str, skipped: str, caught_up: bool):
    due = table(schedule, **policy).due("job", planned_of(planned), at(now))
    shown = f"none, {said(due.next)}" if due.run is None else said(due.run)
    assert (shown, passed_over(due.skipped), due.caught_up) == (run, skipped, caught_up)


BUFFER_ONE = {"overlap": "buffer_one"}
BUFFER_ALL = {"overlap": "buffer_all"}
CANCEL = {"overlap": "cancel_running"}


@pytest.mark.parametrize(
    ("schedule", "policy", "ran", "claimed", "ended", "following", "skipped"),
    [
        (EVERY_MINUTE, {}, "12:00", "12:00:00.01", "12:00:02", "12:01", ""),
        # it ends in the second in which it was due
        ("* * * * * *", {}, "12:00", "12:00:00.01", "12:00:00.02", "12:00:01", ""),
        # a clock that says that it ended before its tick
        (EVERY_MINUTE, {}, "12:00", "12:00:00.01", "11:59:59.9", "12:01", ""),
        # it ends just before, as, or just after the next one is due
        (EVERY_MINUTE, {}, "12:00", "12:00:00.01", "12:00:59.999", "12:01", ""),
        (EVERY_MINUTE, {}, "12:00", "12:00:00.01", "12:01", "12:02", "overlap 12:01-12:01 x1"),
        (EVERY_MINUTE, {}, "12:00", "12:00:00.01", "12:01:00.5", "12:02", "overlap 12:01-12:01 x1"),
        # an overrun goes on at the next multiple
        ("every 1m", {}, "12:00", "12:00:00.01", "12:09:30", "12:10", "overlap 12:01-12:09 x9"),
        ("every 7s", {}, "12:00:04", "12:00:04.1", "12:00:30", "12:00:32", "overlap 12:00:11-12:00:25 x3"),
        (EVERY_MINUTE, BUFFER_ONE, "12:00", "12:00:00.01", "12:05:30", "12:05@12:05:30", "overlap 12:01-12:04 x4"),
        (EVERY_MINUTE, CANCEL, "12:00", "12:00:00.01", "12:01:00.4", "12:01@12:01:00.400", ""),
        (EVERY_MINUTE, BUFFER_ALL, "12:00", "12:00:00.01", "12:05:30", "12:01@12:05:30", ""),
        (EVERY_MINUTE, {**BUFFER_ALL, "catch_up_window": "2m"}, "12:00", "12:00", "12:05:30",
            "12:04@12:05:30", "missed 12:01-12:03 x3"),
        (EVERY_MINUTE, {"overlap": "allow"}, "12:00", "12:00", "12:05:30", "12:01", ""),
        # ticks that were missed wait for their turn; those of the last one's run overlap with it
        (EVERY_MINUTE, RUN_ALL, "12:00", "12:05:30", "12:05:31", "12:01", ""),
        (EVERY_MINUTE, RUN_ALL, "12:04", "12:05:30", "12:06:31", "12:05", ""),
        (EVERY_MINUTE, RUN_ALL, "12:05", "12:05:30", "12:06:31", "12:07", "overlap 12:06-12:06 x1"),
        # what passes while it runs, in and out of the window
        ("0 * * * *", OFFICE, "16:00", "16:00", "19:30", "20:00", "overlap 17:00-17:00 x1, outside 18:00-19:00 x2"),
        ("0 * * * *", {**OFFICE, **BUFFER_ONE}, "16:00", "16:00", "19:30", "17:00@19:30", ""),
        ("0 * * * *", {**OFFICE, **BUFFER_ONE}, "17:00", "17:00", "19:30", "20:00", "outside 18:00-19:00 x2"),
        ("0 * * * *", {**OFFICE, **BUFFER_ALL}, "06:00", "06:00", "08:30", "08:00@08:30", "outside 07:00-07:00 x1"),
        # the minimum interval: a catch-up run shortly before the next tick
        ("0 0 * * *", {}, "00:00", "23:59:30", "23:59:31", "22T00:00@22T00:00:30", ""),
        ("0 0 * * *", {}, "00:00", "22T00:05", "22T00:05:01", "23T00:00", "overlap 22T00:00-22T00:00 x1"),
        # ... 55 s late, and on time again at once: what is too near is passed over
        (EVERY_MINUTE, {}, "12:00", "12:00:55", "12:00:56", "12:02", "superseded 12:01-12:01 x1"),
        (EVERY_MINUTE, {}, "12:00", "12:00:55", "12:01:01", "12:02", "overlap 12:01-12:01 x1"),
        (EVERY_MINUTE, {}, "12:00", "12:00:00.9", "12:00:01", "12:01", ""),
        (EVERY_MINUTE, {}, "12:00", "12:00:01.1", "12:00:02", "12:02", "superseded 12:01-12:01 x1"),
        ("*/2 * * * *", {}, "12:00", "12:01:30", "12:01:31", "12:02@12:02:30", ""),
        ("* * * * * *", {}, "12:00", "12:00:00.95", "12:00:00.96", "12:00:01", ""),
        ("*/5 * * * * *", {}, "12:00", "12:00:04.5", "12:00:04.6", "12:00:05@12:00:05.500", ""),
        # a tick outside the window doesn't push one aside that is in it
        ("* * * * *", OFFICE, "17:58", "17:58:30", "17:58:31", "17:59@17:59:30", ""),
        # intervals keep their rhythm, and where everything is to run nothing is spaced
        ("every 1m", {}, "12:00", "12:00:55", "12:00:56", "12:01", ""),
        (EVERY_MINUTE, RUN_ALL, "12:00", "12:00:55", "12:00:56", "12:01", ""),
        (EVERY_MINUTE, BUFFER_ALL, "12:00", "12:00:55", "12:01:01", "12:01@12:01:01", ""),
        # a buffered one started when it was meant to, so the tick counts
        (EVERY_MINUTE, BUFFER_ONE, "12:00@12:00:50", "12:00:50.01", "12:00:51", "12:01", ""),
        (EVERY_MINUTE, BUFFER_ONE, "12:00", "12:00:40", "12:01:05", "12:02", "superseded 12:01-12:01 x1"),
        # bounds, and the end of all ticks
        (EVERY_MINUTE, {"end_at": "2026-11-21T12:01"}, "12:01", "12:01", "12:01:02", "never", ""),
        (EVERY_MINUTE, {"end_at": "2026-11-21T12:01"}, "12:00", "12:00", "12:05", "never", "overlap 12:01-12:01 x1"),
        ("at 2026-11-21T12:00:00Z", {}, "12:00", "12:00", "12:05", "never", ""),
    ],
)  # fmt: skip
def test_after_run(
    schedule: str, policy: dict[str, Any], ran: str, claimed: str, ended: str, following: str, skipped: str
):
    after = table(schedule, **policy).after_run("job", planned_of(ran), at(claimed), at(ended))
    assert (said(after.next), passed_over(after.skipped)) == (following, skipped)


@pytest.mark.parametrize(
    ("schedule", "policy", "planned", "now", "following", "skipped"),
    [
        # paused or without a runner as it was due
        (EVERY_MINUTE, {}, "12:00", "12:00", "12:01", "paused 12:00-12:00 x1"),
        (EVERY_MINUTE, {}, "12:00", "12:00:59.999", "12:01", "paused 12:00-12:00 x1"),
        # resumed at the very tick: that is the last one that was paused
        (EVERY_MINUTE, {}, "12:00", "12:05", "12:06", "paused 12:00-12:05 x6"),
        ("0 12 * * *", {}, "12:00", "22T11:59", "22T12:00", "paused 12:00-12:00 x1"),
        # the reason is that of all, in the window or not
        ("0 * * * *", OFFICE, "16:00", "20:30", "21:00", "paused 16:00-20:00 x5"),
        # a clock a little behind: the planned tick itself is passed all the same, or it would come again and again
        (EVERY_MINUTE, {}, "12:00", "11:59:59.9", "12:01", "paused 12:00-12:00 x1"),
        ("at 2026-11-21T12:00:00Z", {}, "12:00", "12:05", "never", "paused 12:00-12:00 x1"),
    ],
)
def test_passed(schedule: str, policy: dict[str, Any], planned: str, now: str, following: str, skipped: str):
    after = table(schedule, **policy).passed("job", planned_of(planned), at(now), SkipReason.PAUSED)
    assert (said(after.next), passed_over(after.skipped)) == (following, skipped)


@pytest.mark.parametrize(
    ("policy", "planned", "ended", "following", "skipped"),
    [
        ({}, "12:00", "11:59", "12:00", ""),
        ({}, "12:00", "12:00", "12:01", "overlap 12:00-12:00 x1"),
        ({}, "12:00", "12:02:30", "12:03", "overlap 12:00-12:02 x3"),
        (BUFFER_ONE, "12:00", "12:02:30", "12:02@12:02:30", "overlap 12:00-12:01 x2"),
        (BUFFER_ALL, "12:00", "12:02:30", "12:00@12:02:30", ""),
        (CANCEL, "12:00", "12:00:00.5", "12:00@12:00:00.500", ""),
        ({"overlap": "allow"}, "12:00", "12:02:30", "12:00", ""),
        ({}, "12:00:07", "12:02:30", "12:00:07", ""),  # none of the schedule's ticks: it stays due
    ],
)
def test_overlapped_by_a_run_of_no_tick(policy: dict[str, Any], planned: str, ended: str, following: str, skipped: str):
    after = table(EVERY_MINUTE, **policy).overlapped("job", planned_of(planned), at(ended))
    assert (said(after.next), passed_over(after.skipped)) == (following, skipped)


def test_ticks_in_the_window():
    office = table("0 * * * *", **OFFICE)
    assert said(office.following("job", at("17:00"))) == "18:00"
    assert said(office.following_open("job", at("17:00"))) == "28T08:00"
    assert office.next_within(at("17:00"), at("27T23:00")) is None
    assert office.next_within(at("16:59"), at("17:00")) == at("17:00")
    never = table("0 7 * * *", **OFFICE, end_at="2027-11-21")
    assert never.following_open("job", at("00:00")) is None


def test_a_window_of_many_openings_that_only_another_offset_meets():
    """Lord Howe is half an hour nearer to UTC from April on: after more than a thousand openings in vain."""
    halves = ", ".join(f"{hour:02}:30-{hour:02}:31" for hour in range(24)) + " Australia/Lord_Howe"
    policy = read_policy({"window": halves})
    assert policy_faults(policy, "0 * * * *") == []
    january = parse_instant("2026-01-01T00:00:00Z")
    found = timetable("0 * * * *", 0, policy.text).following_open("job", january)
    assert found is not None
    assert format_instant(found.tick) == "2026-04-04T15:00:00Z"


def test_books_are_closed_by_the_ticks_themselves():
    fast = timetable("every 10m", ANCHOR, '{"jitter":"±50%"}')
    assert passed_over(fast.owed(at("12:00"), at("12:29:59"), SkipReason.SUPERSEDED)) == "superseded 12:00-12:20 x3"
    assert passed_over(fast.owed(at("12:03"), at("12:10"), SkipReason.SUPERSEDED)) == "superseded 12:03-12:10 x2"


@pytest.mark.parametrize(
    ("policy", "patience"),
    [
        ({}, 10 * S),
        ({"on_missed": "skip"}, 10 * S),
        ({"on_missed": "run_last"}, None),
        ({"on_missed": "run_all"}, None),
        ({"catch_up_window": "1h"}, 3600 * S),
        ({"on_missed": "run_all", "catch_up_window": "10s"}, 10 * S),
    ],
)
def test_how_long_a_tick_waits_for_a_runner(policy: dict[str, Any], patience: int | None):
    assert table(EVERY_MINUTE, **policy).runner_patience(10 * S) == patience


@pytest.mark.parametrize(
    ("schedule", "policy", "after", "following"),
    [
        # Berlin's clocks go from 02:00 to 03:00 (01:00 UTC) on 29 March, and back at 03:00 (01:00 UTC) on 25 October
        ("30 2 * * *", {}, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("30 2 * * *", {"dst_gap": "skip"}, "2026-03-28T12:00", ["2026-03-30T00:30"]),
        ("30 2 * * *", {}, "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("30 2 * * *", {"dst_overlap": "both"}, "2026-10-24T12:00",
            ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-26T01:30"]),
        ("30 2 * * *", {"dst_overlap": "second"}, "2026-10-24T12:00", ["2026-10-25T01:30", "2026-10-26T01:30"]),
        ("*/30 * * * *", {}, "2026-03-29T00:45", ["2026-03-29T01:00", "2026-03-29T01:30"]),
        ("*/30 2 * * *", {"dst_overlap": "first"}, "2026-10-24T12:00",
            ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-26T01:00"]),
        ("at 2026-03-29T01:30:00Z", {}, "2026-03-28T12:00", ["2026-03-29T01:30"]),
    ],
)  # fmt: skip
def test_when_the_clocks_change(schedule: str, policy: dict[str, Any], after: str, following: list[str]):
    berlin = table(schedule, timezone="Europe/Berlin", **policy)
    instant = utc(after)
    for expected in following:
        planned = berlin.following("job", instant)
        assert planned == (utc(expected), utc(expected))
        instant = utc(expected)


def utc(text: str) -> int:
    return parse_instant(f"{text}Z")


def test_a_daily_job_is_caught_up_over_the_gap_once():
    """An outage from Saturday to Sunday noon, over the night in which 02:30 is skipped."""
    berlin = table("30 2 * * *", timezone="Europe/Berlin")
    due = berlin.due("job", PlannedTick(utc("2026-03-28T01:30"), utc("2026-03-28T01:30")), utc("2026-03-29T10:00"))
    assert due.run == (utc("2026-03-29T01:00"), utc("2026-03-29T01:00"))
    assert due.skipped == (Skipped(SkipReason.SUPERSEDED, utc("2026-03-28T01:30"), utc("2026-03-28T01:30"), 1),)


def test_an_hour_that_comes_twice_is_run_twice_and_never_less_than_a_minute_apart():
    berlin = table("* * * * *", timezone="Europe/Berlin")
    planned = berlin.following("job", utc("2026-10-25T00:58"))
    for minute in range(59, 59 + 120):
        assert planned is not None
        assert planned.tick == utc("2026-10-25T00:00") + minute * MINUTE
        planned = berlin.after_run("job", planned, planned.run_at + 5, planned.run_at + 30 * S).next


def test_intervals_do_not_drift_over_a_million_ticks():
    """Each run 3 s late, and each tenth one overruns: the ticks stay on their multiples."""
    fast = timetable("every 7s", ANCHOR, "")
    planned, passed = fast.following("job", ANCHOR), 0
    assert planned is not None
    for number in range(20_000):
        after = fast.after_run(
            "job", planned, planned.run_at + 3 * S, planned.run_at + (20 if number % 10 == 0 else 4) * S
        )
        passed += sum(part.ticks for part in after.skipped)
        assert after.next is not None
        planned = after.next
    assert planned.tick == ANCHOR + (1 + 20_000 + passed) * 7 * S
    assert passed == 2 * 2_000
    due = fast.due("job", planned, planned.tick + 7_000_000 * S)
    assert due.run == (planned.tick + 7_000_000 * S, planned.tick + 7_000_000 * S)
    assert due.skipped[0].ticks == 1_000_000


def test_a_day_is_24_hours_to_an_interval():
    daily = timetable("every 1d", utc("2026-03-27T09:00"), '{"timezone":"Europe/Berlin"}')
    ticks = [planned.tick for day in (28, 29) if (planned := daily.following("job", utc(f"2026-03-{day}T08:00")))]
    assert ticks == [utc("2026-03-28T09:00"), utc("2026-03-29T09:00")]


def offsets_of(jitter: str, schedule: str = "every 10m") -> list[int]:
    table = timetable(schedule, ANCHOR, f'{{"jitter":"{jitter}"}}')
    planned_ticks = [table.following(f"job{n}", ANCHOR) for n in range(300)]
    return [planned.run_at - planned.tick for planned in planned_ticks if planned is not None]


@pytest.mark.parametrize(
    ("jitter", "most"),
    [("auto", 3 * S), ("10%", MINUTE), ("100%", 10 * MINUTE), ("30s", 30 * S), ("1h", 10 * MINUTE), ("5m:7s", 7 * S)],
)
def test_nothing_starts_before_its_tick_that_has_not_asked_for_it(jitter: str, most: int):
    for schedule in ("every 10m", "*/10 * * * *"):
        offsets = offsets_of(jitter, schedule)
        assert min(offsets) >= 0
        assert 0.9 * most < max(offsets) <= most
        assert timetable(schedule, ANCHOR, f'{{"jitter":"{jitter}"}}').early_us == 0


def test_without_a_word_every_job_starts_on_its_tick():
    for schedule in ("every 30m", "0 6 * * *", "at 2026-11-21T12:00:00Z", "*/5 * * * * *"):
        planned = timetable(schedule, ANCHOR, "").following("job", ANCHOR)
        assert planned is not None
        assert planned.run_at == planned.tick


def test_auto_goes_by_the_shortest_gap():
    """That of Friday to Monday is three days; the job's is one."""
    daily = timetable("0 9 * * 1-5", ANCHOR, '{"timezone":"Europe/Berlin","jitter":"auto"}')
    friday = utc("2026-11-20T00:00")
    offsets = [planned.run_at - planned.tick for n in range(200) if (planned := daily.following(f"job{n}", friday))]
    assert 27 * S < max(offsets) <= 30 * S
    minutely = timetable("* * * * *", ANCHOR, '{"jitter":"auto"}').following("job", ANCHOR)
    assert minutely is not None
    assert minutely.run_at == minutely.tick


def test_an_interval_that_asks_for_it_is_jittered_both_ways():
    offsets = offsets_of("±10%")
    assert -MINUTE <= min(offsets) < -50 * S
    assert 50 * S < max(offsets) <= MINUTE
    assert abs(sum(offsets)) / len(offsets) < 10 * S


def test_a_run_that_starts_before_its_tick_is_followed_by_the_tick_after_it():
    early = timetable("every 10m", ANCHOR, '{"jitter":"±50%"}')
    planned_ticks = {key: early.following(key, ANCHOR) for key in map(str, range(99))}
    key, planned = next(
        (key, planned)
        for key, planned in planned_ticks.items()
        if planned is not None and planned.run_at < ANCHOR + 6 * MINUTE
    )
    assert early.due(key, planned, planned.run_at).run == planned
    after = early.after_run(key, planned, planned.run_at, planned.run_at + 5 * S)
    assert after == (early.following(key, planned.tick), ())


def test_an_interval_is_due_before_its_tick_by_its_jitter():
    """12:00 is owed, and 12:10 has come due at 12:08, say: before its own instant."""
    early = timetable("every 10m", ANCHOR, '{"jitter":"±50%"}')
    for key in map(str, range(50)):
        planned, following = early.following(key, at("11:55")), early.following(key, at("12:00"))
        assert planned is not None
        assert following is not None
        if following.run_at < following.tick:
            due = early.due(key, planned, following.run_at)
            assert (due.run, passed_over(due.skipped)) == (following, "superseded 12:00-12:00 x1")
            assert early.due(key, planned, following.run_at - 1).run == planned
            assert (
                passed_over(early.after_run(key, planned, planned.run_at, following.run_at).skipped)
                == "overlap 12:10-12:10 x1"
            )


def test_no_start_is_before_start_at():
    late = timetable("every 10m", ANCHOR, '{"start_at":"2026-11-21T12:00:00Z","jitter":"±50%"}')
    planned_ticks = [late.following(f"job{n}", ANCHOR) for n in range(50)]
    assert {planned.tick for planned in planned_ticks if planned is not None} == {at("12:00")}
    assert all(planned.run_at >= at("12:00") for planned in planned_ticks if planned is not None)
    assert any(planned.run_at > at("12:00") for planned in planned_ticks if planned is not None)


def test_a_jittered_tick_is_due_with_its_jitter():
    spread = timetable("0 * * * *", ANCHOR, '{"jitter":"100%"}')
    planned = spread.following("job", at("11:59"))
    following = spread.following("job", at("12:00"))
    assert planned is not None
    assert following is not None
    assert at("12:00") < planned.run_at < at("13:00") < following.run_at
    # at 13:00 the next tick has come, but not its run_at
    assert spread.due("job", planned, at("13:00")).run == planned
    due = spread.due("job", planned, following.run_at)
    assert due.run == following
    assert spread.after_run("job", planned, planned.run_at, following.run_at - 1) == (following, ())
    assert spread.after_run("job", planned, planned.run_at, following.run_at).skipped[0].reason == "overlap"


def test_timetables_are_cached_and_texts_shared():
    assert timetable("*/7 * * * *", 5, "") is timetable("*/7 * * * *", 5, "")
    assert MISSED_AFTER == 10 * S


def test_the_hot_path_is_fast():
    """Generous bounds for a busy machine; bench/ has the figures."""
    plain = timetable("0 * * * *", ANCHOR, "")
    planned = plain.following("job", at("12:00"))
    assert planned is not None

    def each_twice() -> None:
        for _ in range(1_000):
            plain.due("job", planned, planned.run_at + 5)
            plain.after_run("job", planned, planned.run_at + 5, planned.run_at + S)

    assert cpu_s(each_twice) < 1_000 * 2 * 25e-6
