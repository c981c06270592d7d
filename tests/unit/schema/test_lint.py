from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from cronring.schema.instant import parse_instant
from cronring.schema.lint import HERD, LintFinding, lint_job, lint_module
from cronring.schema.lint_rhythm import shortest_gap
from cronring.schema.module import Module, Verb
from cronring.schema.pattern import CronPattern
from cronring.schema.policy import read_policy
from cronring.schema.timetable import timetable
from tests.drawing import examples
from tests.unit.schema.strategies import PATTERNS

NOW = parse_instant("2026-11-21T12:00:00Z")


def verb(schedule: str, name: str = "job", line: int = 1, timeout_ms: int = 0, anchor: str = "", **policy: Any) -> Verb:
    return Verb(name, schedule=schedule, line=line, timeout_ms=timeout_ms, anchor=anchor, policy=read_policy(policy))


def linted(*verbs: Verb, durations: dict[str, float] | None = None, herd: int = HERD) -> list[LintFinding]:
    return lint_module(Module("m", verbs), NOW, durations, herd)


RHYTHMS = [
    ("0 0 31 * *", "skips-months", "day 31 is missing in February, April, June, September and November", "day 28"),
    ("0 0 30,31 * *", "skips-months", "day 30 is missing in February", "day 28"),
    ("0 0 29 2 *", "skips-months", "leap years only", "day 1 of March"),
    ("0 0 29 * *", "skips-months", "skips February but in leap years", "day 28"),
    ("*/25 * * * *", "uneven-step", "*/25 in the minute field is 0, 25, 50: then 10 to the next", '@every("25m")'),
    ("*/7 * * * *", "uneven-step", "0, 7, 14 ... 56: then 4 to the next", "*/6 and */10"),
    ("7h", "uneven-step", "*/7 in the hour field is 0, 7, 14, 21: then 3", '@every("7h")'),
    ("*/13 * * * * *", "uneven-step", "*/13 in the second field", '@every("13s")'),
    ("0 0 */2 * *", "uneven-step", "starts again with each month", '@every("2d")'),
    ("0 0 1 */5 *", "uneven-step", "*/5 in the month field is 1, 6, 11: then 2", "*/4 and */6"),
    ("0 0 * * */2", "uneven-step", "*/2 in the day-of-week field is 0, 2, 4, 6: then 1", '@every("2d")'),
    ("0 0 13 * 5", "either-day", "not only where both do", '"0 0 13 * *" with window="Fri 00:00-24:00"'),
    ("0 0 1 * 0-6", "either-day", "which is every day", "leave one"),
    ("* 6 * * *", "every-minute", "60 times on its days, each minute from 06:00 to 06:59", "0 6 * * *"),
    ("* 0 6 * * *", "every-minute", "60 times on its days", "0 in the second field"),
]


@pytest.mark.parametrize(("pattern", "rule", "message", "remedy"), RHYTHMS)
def test_rhythms(pattern: str, rule: str, message: str, remedy: str):
    found = [finding for finding in linted(verb(pattern)) if finding.rule == rule]
    assert len(found) == 1
    assert message in found[0].message
    assert remedy in found[0].remedy
    assert found[0].level == "warning"


FINE = [
    "0 6 * * *", "*/15 * * * *", "*/5 9-17 * * 1-5", "2h", "Mon", "0 0 1 * *", "0 0 28 * *", "0 0 1,15,31 * *",
    "*/25 3 * * *", "*/7 30 4 * * *", "0 */7 1 * *", "* * * * *", "* * * * * *", "0 0 * * */1", "every 30m", "manual",
    "* 9-17 * * *", "0 0 31 1,3,12 *", "0 9 * * 1-5 2027/2",
]  # fmt: skip


@pytest.mark.parametrize("schedule", FINE)
def test_nothing_odd(schedule: str):
    assert linted(verb(schedule)) == []


def test_clock_changes():
    (gap, overlap) = linted(verb("30 2 * * *", timezone="Europe/Berlin"))
    assert (gap.rule, overlap.rule) == ("clock-change", "clock-change")
    assert "02:30 does not exist; it runs at 03:00" in gap.message
    assert 'dst_gap="run_after" or "skip"' in gap.remedy
    assert "comes twice" in overlap.message
    assert linted(verb("30 2 * * *", timezone="Europe/Berlin", dst_gap="skip", dst_overlap="first")) == []
    assert linted(verb("30 4 * * *", timezone="Europe/Berlin")) == []
    assert linted(verb("*/30 2 * * *", timezone="Europe/Berlin")) == []  # a rhythm goes on


def test_what_never_ticks_again():
    assert "its last tick was 2025-12-31T00:00:00Z" in linted(verb("0 0 * * * 2025"))[0].message
    assert [finding.rule for finding in linted(verb("at 2026-11-21T11:00:00Z"))] == ["never-again"]
    assert [finding.rule for finding in linted(verb("0 6 * * *", end_at="2026-11-01"))] == ["never-again"]


def test_windows():
    window = "Mon-Fri 08:00-18:00"
    (never,) = linted(verb("0 20 * * *", window=window))
    assert (never.rule, "never runs" in never.message) == ("window", True)
    assert linted(verb("0 9 * * *", window=window)) == []
    leap = linted(verb("0 0 29 2 *", window="Mon 00:00-24:00"))[-1]
    assert (leap.rule, leap.message.rpartition(", ")[2]) == ("window", "so it first runs at 2044-02-29T00:00:00Z")
    (long,) = linted(verb("every 12h", window=window))
    assert "longer than the window is ever open (10h)" in long.message
    assert linted(verb("every 12h", window=window, anchor="2026-01-01T09:00:00Z")) == []
    assert len(linted(verb("every 1d", window=window, anchor="2026-01-01T20:00:00Z"))) == 1
    assert linted(verb("every 2h", window=window)) == []


def test_long_runs():
    (timeout,) = linted(verb("*/5 * * * *", timeout_ms=600_000))
    assert (timeout.rule, timeout.level) == ("timeout", "note")
    assert "a run may take 10m (timeout), but its ticks are as close as 5m" in timeout.message
    assert linted(verb("*/5 * * * *", timeout_ms=600_000, overlap="allow")) == []
    assert linted(verb("*/5 * * * *", timeout_ms=300_000)) == []
    (slow,) = linted(verb("*/5 * * * *", timeout_ms=600_000), durations={"job": 301_000.4})
    assert (slow.rule, slow.level) == ("slow", "warning")
    assert "5 % of its runs took 5m1s or more" in slow.message
    assert linted(verb("every 5m"), durations={"job": 299_000.0, "other": 1e9}) == []


def test_retries():
    assert "never comes" in linted(verb("* * * * *", retries=2, backoff="1m"))[0].message
    (some,) = linted(verb("* * * * *", retries=5, backoff="10s"))
    assert (some.level, some.remedy) == ("note", "write retries=2, or a shorter backoff")  # 10 + 20 s
    assert linted(verb("0 * * * *", retries=5, backoff="10s")) == []
    assert linted(verb("* * * * *", retries=0, backoff="10s")) == []
    (unsaid,) = linted(verb("0 * * * *", backoff="10s"))
    assert (unsaid.rule, unsaid.level, unsaid.remedy) == ("retries", "note", "write retries=3, for example")


def test_retries_by_default():
    """Of a job that doesn't say them, those of the cluster are held against its ticks."""
    often = verb("* * * * *", backoff="1m")
    (never,) = lint_job(often, NOW, default_retries=2)
    assert "the first retry (by the cluster's default) comes 1m after a failure" in never.message
    assert (never.level, never.remedy) == ("warning", "write a shorter backoff, or retries=0")
    (some,) = lint_job(verb("* * * * *", backoff="10s"), NOW, default_retries=5)
    assert (some.level, some.remedy) == ("note", "write retries=2, or a shorter backoff")
    assert lint_job(verb("0 * * * *", backoff="10s"), NOW, default_retries=5) == [], "how often is said"
    (own,) = lint_job(verb("* * * * *", retries=2, backoff="1m"), NOW, default_retries=2)
    assert own.remedy == "write a shorter backoff, or retries=0", "left out, the default would apply"
    assert lint_job(verb("* * * * *", retries=0, backoff="1m"), NOW, default_retries=5) == []
    assert [each.remedy for each in lint_job(often, NOW)] == ["write retries=3, for example"], "the cluster has none"


def test_herds():
    verbs = [verb("0 0 * * *", f"night_{number}", number) for number in range(1, 5)]
    verbs += [verb("0 * * * *", "hourly", 5), verb("*/10 * * * *", "often", 6), verb("7 0 * * *", "alone", 7)]
    (herd,) = linted(*verbs)
    assert (herd.rule, herd.verb, herd.line) == ("herd", "night_1", 1)
    assert herd.message.startswith("6 verbs of the module start at 2026-11-22T00:00:00Z, in the same second: night_1")
    assert '"1 0 * * *" for night_2' in herd.remedy
    assert "7 0 * * *" not in herd.remedy  # there is one already
    assert linted(*verbs, herd=7) == []
    spread = [verb("0 0 * * *", f"night_{number}", jitter="5m") for number in range(10)]
    assert linted(*spread) == []
    assert linted(*[verb("0 0 * * *", f"night_{number}", jitter="auto") for number in range(10)]) == []
    assert linted(*[verb(f"{number} 0 * * *", f"night_{number}") for number in range(10)]) == []
    assert linted(*[verb("every 1h", f"each_{number}") for number in range(10)]) == []


def test_of_a_herd_is_said_what_auto_would_make_of_it():
    """By the jobs' own keys, so it is what the cluster will do."""
    (herd,) = linted(*[verb("0 6 * * *", f"six_{number}") for number in range(40)])
    tick = parse_instant("2026-11-22T06:00:00Z")
    table = timetable("0 6 * * *", 0, '{"jitter":"auto"}')
    starts = [table.following(f"m.six_{number}", tick - 1) for number in range(40)]
    seconds = Counter((start.run_at - tick) // 1_000_000 for start in starts if start is not None)
    assert 1 < max(seconds.values()) < 8
    assert herd.remedy.startswith(
        f'write jitter="auto": they would start over {max(seconds) + 1}s, at most {max(seconds.values())} of 40 in one'
    )


def test_a_herd_that_auto_leaves_alone_is_told_another_jitter():
    (herd,) = linted(*[verb("*/2 * * * *", f"often_{number}", jitter="auto") for number in range(5)])
    assert herd.remedy.startswith('write a jitter, like jitter="50%"')


def test_intervals_of_one_anchor_are_a_herd():
    (herd,) = linted(*[verb("every 1h", f"each_{number}", anchor="2026-01-01") for number in range(5)])
    assert "5 verbs of the module start at 2026-11-21T13:00:00Z" in herd.message
    assert 'write jitter="auto": they would start over' in herd.remedy
    assert "or spread them" not in herd.remedy


def test_a_herd_of_seldom_jobs_among_busy_ones():
    verbs = [verb("0 6 1 1 *", f"yearly_{number}") for number in range(5)]
    verbs += [verb("* * * * *", f"minutely_{number}") for number in range(3)]
    (herd,) = linted(*verbs)
    assert "8 verbs of the module start at 2027-01-01T06:00:00Z" in herd.message


@settings(max_examples=examples(300))
@given(PATTERNS)
def test_the_shortest_gap_is_that_of_the_closest_ticks(text: str):
    pattern = CronPattern.parse(text)
    least = shortest_gap(pattern.sets)
    seen: list[int] = []
    tick = pattern.next_second(-1)
    while tick is not None and len(seen) < 1_000:
        seen.append(tick)
        tick = pattern.next_second(tick)
    gaps = [after - before for before, after in pairwise(seen)]
    assert min(gaps, default=least) >= least
    if len(gaps) > 900 and gaps[0] < 3_600 and seen[-1] - seen[0] > 15 * 86_400:
        assert min(gaps) == least


@settings(max_examples=examples(200))
@given(PATTERNS)
def test_every_pattern_can_be_linted(text: str):
    for finding in linted(verb(CronPattern.parse(text).text, timezone="Europe/Berlin")):
        assert finding.message
        assert finding.remedy
