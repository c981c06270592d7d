from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cronring.schema.forecast import COMPARED, JobForecast, forecast
from cronring.schema.instant import parse_instant
from cronring.schema.module import Module, Verb
from cronring.schema.policy import read_policy
from cronring.schema.schedule import parse_schedule
from tests.drawing import examples
from tests.unit.schema.strategies import SCHEDULES

NOW = parse_instant("2026-11-21T12:00:00Z")
HOUR = 3_600_000_000
DAY = 24 * HOUR


def verb(schedule: str, name: str = "job", anchor: str = "", **policy: Any) -> Verb:
    return Verb(name, schedule=schedule, anchor=anchor, policy=read_policy(policy))


def between(old: Verb | None, new: Verb | None, days: int = 7, anchor: int | None = None) -> JobForecast:
    before, after = (Module("m", () if each is None else (each,)) for each in (old, new))
    known = {} if anchor is None else {"job": anchor}
    (job,) = forecast(before, after, NOW, NOW + days * DAY, known)
    return job


def test_added_and_removed():
    added = between(None, verb("0 6 * * *"))
    assert (added.change, added.gone, added.new, added.before, added.after) == ("added", 0, 7, 0, 7)
    assert (added.first_new[0], len(added.first_new)) == (parse_instant("2026-11-22T06:00:00Z"), 5)
    removed = between(verb("0 6 * * *"), None)
    assert (removed.change, removed.gone, removed.new) == ("removed", 7, 0)
    assert forecast(None, Module("m", (verb("0 6 * * *"), Verb("plain"))), NOW, NOW + DAY)[0].change == "added"


def test_a_verb_that_loses_its_schedule_is_a_job_removed():
    assert between(verb("0 6 * * *"), Verb("job")).change == "removed"


def test_moved():
    job = between(verb("0 6 * * *"), verb("30 7 * * *"))
    assert (job.change, job.gone, job.new, job.shift_us) == ("changed", 7, 7, 3 * HOUR // 2)


def test_moved_by_a_zone():
    job = between(verb("0 6 * * *"), verb("0 6 * * *", timezone="Europe/Berlin"))
    assert (job.gone, job.new, job.shift_us) == (7, 7, -HOUR)
    across = between(verb("0 6 * * *"), verb("0 6 * * *", timezone="Europe/Berlin"), days=200)
    assert (across.gone, across.new, across.shift_us) == (200, 200, 0)  # an hour in winter, two in summer


def test_more_often():
    job = between(verb("0 * * * *"), verb("*/30 * * * *"), days=1)
    assert (job.before, job.after, job.gone, job.new) == (24, 48, 0, 24)


def test_another_text_of_the_same_ticks():
    job = between(verb("0 0 * * 1"), verb("Mon"))
    assert (job.change, job.old_schedule, job.new_schedule) == ("same", "0 0 * * 1", "Mon")


def test_windows_count():
    job = between(verb("0 * * * *"), verb("0 * * * *", window="Mon-Fri 08:00-18:00"))
    assert (job.before, job.after, job.gone, job.new) == (168, 50, 118, 0)


def test_what_does_not_move_ticks():
    job = between(verb("0 6 * * *"), verb("0 6 * * *", jitter="5m", retries=3))
    assert (job.change, job.gone, job.new) == ("same", 0, 0)


def test_intervals_stand_where_the_deployed_job_stands():
    anchor = NOW - 53 * 60_000_000
    same = between(verb("every 1h"), verb("every 1h", retries=1), anchor=anchor)
    assert (same.change, same.before) == ("same", 168)
    changed = between(verb("every 1h"), verb("every 30m"), days=1, anchor=anchor)
    assert (changed.first_gone[0], changed.first_new[0]) == (anchor + HOUR, NOW + HOUR // 2)
    named = between(verb("every 1h"), verb("every 1h", anchor="2026-01-01T00:07:00Z"), anchor=anchor)
    assert (named.change, named.gone) == ("same", 0)
    late = between(verb("every 1h"), verb("every 1h", window="Mon-Fri 08:00-18:00"), anchor=anchor)
    assert late.new == 0


def test_ticks_of_each_second_are_counted_only():
    job = between(verb("* * * * * *"), verb("*/2 * * * * *"), days=365)
    assert (job.before, job.after, job.gone, job.new) == (365 * 86_400, 365 * 43_200, None, None)
    assert len(job.first_gone) == len(job.first_new) == 5
    added = between(None, verb("* * * * * *"), days=365)
    assert added.new == 365 * 86_400


@settings(max_examples=examples(100))
@given(SCHEDULES, SCHEDULES, st.integers(1, 30))
def test_counts_add_up(one: str, other: str, days: int):
    job = between(verb(one), verb(other), days)
    until = NOW + days * DAY
    assert job.before == parse_schedule(one, NOW).count_between(NOW, until)
    assert job.after == parse_schedule(other, NOW).count_between(NOW, until)
    if job.gone is None or job.new is None:
        assert max(job.before, job.after) > COMPARED
    else:
        assert job.before - job.gone == job.after - job.new
        assert (job.change == "same") == (job.gone == job.new == 0)
