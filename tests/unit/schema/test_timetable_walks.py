"""Random schedules, policies and outages: along any history each tick is accounted for once, and never early."""

import datetime
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.policy import Policy, parse_policy, policy_faults, read_policy
from cronring.schema.schedule import Schedule, check_schedule, parse_schedule
from cronring.schema.spacing import earliest_start, least_distance
from cronring.schema.timetable import PlannedTick, Timetable
from cronring.schema.window import parse_window
from tests.drawing import examples
from tests.unit.schema.strategies import PATTERNS

S = 1_000_000
MINUTE = 60 * S
DAY = 86_400 * S
START = int(datetime.datetime(2026, 3, 27, 22, 59, tzinfo=datetime.UTC).timestamp()) * S
STEPS = 12

ZONES = st.sampled_from(
    ["", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Dublin"]
)
ORDINARY = st.sampled_from(
    [
        "* * * * *",
        "*/5 * * * *",
        "30 2 * * *",
        "0 9 * * 1-5",
        "0 * * * *",
        "*/7 * * * * *",
        "59,0 23,0 * * *",
        "15 2,3 * * *",
    ]
)
TEXTS = (
    ORDINARY
    | PATTERNS.map(check_schedule)
    | st.integers(1, 200_000).map(lambda seconds: check_schedule(f"every {seconds}s"))
    | st.integers(0, 30 * 86_400).map(lambda second: check_schedule(f"at {_text(START + second * S)}"))
)
WINDOWS = st.sampled_from(
    [
        "", "", "Mon-Fri 08:00-18:00", "22:00-06:00", "Sat-Sun 00:00-24:00", "01:30-02:30 Europe/Berlin",
        "08:00-08:01, 12:00-12:01", "Sun 23:00-01:00, Mon 01:00-02:00 America/New_York", "00:00-24:00",
    ]
)  # fmt: skip
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "timezone": ZONES,
    "dst_gap": st.sampled_from(["", "run_after", "skip"]),
    "dst_overlap": st.sampled_from(["", "first", "both", "second"]),
    "start_at": st.sampled_from(["", "", "2026-03-28T12:34:56"]),
    "end_at": st.sampled_from(["", "", "2026-04-09"]),
    "window": WINDOWS,
    "jitter": st.sampled_from(["", "off", "auto", "10%", "±50%", "100%", "30s", "±30s", "5m:3s 1h:10s 1d:30s 7d:1m"]),
    "on_missed": st.sampled_from(["", "run_last", "skip", "run_all"]),
    "catch_up_window": st.sampled_from(["", "", "10s", "10m", "6h"]),
    "overlap": st.sampled_from(["skip", "buffer_one", "buffer_all", "cancel_running", "allow"]),
}
LENGTHS = st.one_of(
    st.integers(0, S),
    st.integers(0, 90 * S),
    st.integers(0, 7 * DAY),
    st.sampled_from([0, 10 * S, 10 * S + 1, MINUTE, DAY]),
)


def _text(instant: int) -> str:
    return f"{datetime.datetime.fromtimestamp(instant // S, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, Policy]:
    """A schedule's text, and a policy that doesn't contradict it: what does is left out."""
    text = draw(TEXTS)
    raw = {name: value for name, values in FIELDS.items() if (value := draw(values))}
    while True:
        policy = read_policy(raw)
        faults = policy_faults(policy, text)
        if not faults:
            return text, policy
        for field, _ in faults:
            raw.pop(field, None)  # one field may be at fault for two reasons


class Books:
    """Every tick after `start`, in order: nothing may be left out, and nothing come twice."""

    def __init__(self, schedule: Schedule, policy: Policy, start: int) -> None:
        self.schedule = schedule
        self.window = parse_window(policy.window, policy.timezone) if policy.window else None
        self.decided = start

    def expect(self, planned: PlannedTick | None) -> None:
        assert (None if planned is None else planned.tick) == self.schedule.next_after(self.decided)

    def write(self, ranges: tuple[Skipped, ...], said: str = "") -> None:
        for reason, first, last, ticks in ranges:
            assert first == self.schedule.next_after(self.decided)
            assert last == self.schedule.last_at_or_before(last)
            assert ticks == self.schedule.count_between(self.decided, last) > 0
            if reason != said and self.window is not None:
                for tick in self._some_ticks(first, last):
                    assert self.window.contains(tick) is (reason != "outside_window")
            self.decided = last
        for one, other in pairwise(ranges):
            assert one.reason != other.reason

    def _some_ticks(self, first: int, last: int) -> list[int]:
        ticks = [first, last]
        while len(ticks) < 100 and ticks[-2] < last:
            following = self.schedule.next_after(ticks[-2])
            assert following is not None
            ticks.insert(-1, following)
        return ticks

    def run(self, tick: int) -> None:
        assert tick == self.schedule.next_after(self.decided)
        assert self.window is None or self.window.contains(tick)
        self.decided = tick


def walk(text: str, policy: Policy, key: str, lengths: list[tuple[int, int, bool]]) -> list[object]:
    """A history of outages and runs: waits, durations, and whether there was no runner. Answers with every decision."""
    table = Timetable(parse_schedule(text, START, policy), policy)
    books = Books(table.schedule, policy, START)
    distance = least_distance(table.schedule, policy)
    planned, earliest = table.following(key, START), 0
    seen: list[object] = [planned]
    for wait, duration, no_runner in lengths:
        books.expect(planned)
        if planned is None:
            break
        now = planned.run_at + wait
        if no_runner:
            passed = table.passed(key, planned, now, SkipReason.NO_RUNNER)
            seen.append(passed)
            books.write(passed.skipped, SkipReason.NO_RUNNER)
            planned = passed.next
            continue
        due = table.due(key, planned, now)
        seen.append(due)
        books.write(due.skipped)
        if due.run is None:
            planned = due.next
            continue
        books.run(due.run.tick)
        assert due.run.run_at <= now
        assert now >= earliest
        following = table.schedule.next_after(due.run.tick)
        natural = table.following(key, due.run.tick - 1)
        assert natural is not None
        assert natural.tick == due.run.tick
        assert following is None or natural.run_at < following
        claimed_at = now + 1_000
        earliest = earliest_start(due.run.tick, due.run.run_at, claimed_at, distance) if distance else 0
        after = table.after_run(key, due.run, claimed_at, claimed_at + duration)
        seen.append(after)
        books.write(after.skipped)
        planned = after.next
        if policy.overlap == "allow":
            assert after == (table.after_claim(key, due.run), ())
    return seen


@settings(max_examples=examples(400))
@given(
    tables(),
    st.lists(st.tuples(LENGTHS, LENGTHS, st.sampled_from([False, False, False, True])), min_size=3, max_size=STEPS),
)
def test_every_tick_is_accounted_for_once(table: tuple[str, Policy], lengths: list[tuple[int, int, bool]]):
    text, policy = table
    seen = walk(text, policy, "billing.close", lengths)
    assert parse_policy(policy.text) == policy
    assert walk(text, parse_policy(policy.text), "billing.close", lengths) == seen


@settings(max_examples=examples(300))
@given(tables(), st.text("ab.c", max_size=9), st.integers(0, 40 * DAY))
def test_jitter_keeps_the_order_of_ticks(table: tuple[str, Policy], key: str, after: int):
    text, policy = table
    timetable = Timetable(parse_schedule(text, START, policy), policy)
    planned = timetable.following(key, START + after)
    for _ in range(20):
        if planned is None:
            return
        following = timetable.following(key, planned.tick)
        assert "±" in policy.jitter or planned.run_at >= planned.tick
        assert planned.run_at % 1_000 == 0
        if following is not None:
            assert planned.run_at < following.tick
            assert planned.run_at < following.run_at
            assert planned.tick < following.run_at
        planned = following
