"""What won't fit the places of runners: what a table of jobs and places says."""

import pytest

from cronring.controller.core.ledger.coming import ComingSpan, Group, GroupPart, ticking
from cronring.controller.core.ledger.overloads import HostedPlaces, Overload, overloads

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 3_600 * SECOND
AT = 1_790_002_800 * SECOND  # 2026-09-21T15:00:00Z
BILLING = "billing@3fa9"
SPAN = ComingSpan(AT, 15 * MINUTE, 96)
DAILY = "0 2 * * *"
TWO = AT + 11 * HOUR
EIGHT = {BILLING: HostedPlaces(8, 4_096)}


def jobs(
    schedule: str, count: int, each_s: float, *, policy: str = "", is_async: bool = False, deployment: str = BILLING
) -> Group:
    running_us = round(count * each_s * SECOND)
    part = GroupPart(deployment, is_async, count, running_us)
    return Group(schedule, 0, policy, count, 0, running_us, ("m.v",), (part,))


def found(*groups: Group, places: dict[str, HostedPlaces] = EIGHT, span: ComingSpan = SPAN) -> list[Overload]:
    return overloads(ticking(groups, span), places, span)


def test_a_herd_that_fills_the_places_many_times_is_told_in_words() -> None:
    (over,) = found(jobs(DAILY, 400, 1))
    assert over[:-1] == ("billing", "sync", "herd", TWO, 400, 8, 49 * SECOND)
    assert over.text == (
        "400 sync runs of billing begin at once, and its runners have 8 places for them: "
        "the last begins about 49s late."
    )


@pytest.mark.parametrize(
    ("count", "each_s", "late_s"),
    [
        (8, 3_600, None),  # a place for each
        (9, 1, 1),
        (9, 0.9, None),  # less than a second doesn't matter
        (16, 60, 60),
        (17, 60, 120),
        (400, 0, None),  # no run has ended: nobody knows
    ],
)
def test_how_late_the_last_run_of_a_herd_begins(count: int, each_s: float, late_s: int | None) -> None:
    assert [over.late_us for over in found(jobs(DAILY, count, each_s))] == ([] if late_s is None else [late_s * SECOND])


def test_jobs_of_other_schedules_are_of_the_same_herd() -> None:
    (over,) = found(jobs("0 2 * * *", 8, 10), jobs("0 2 21,22 * *", 8, 10))
    assert (over.at, over.runs, over.late_us) == (TWO, 16, 10 * SECOND)


def test_lanes_have_places_of_their_own() -> None:
    limited = '{"memory_limit":"100MiB"}'
    (quota, plain) = found(jobs(DAILY, 80, 1, is_async=True, policy=limited), jobs(DAILY, 40, 1))
    assert (quota.lane, quota.late_us, plain.lane, plain.late_us) == ("quota", 9 * SECOND, "sync", 4 * SECOND)
    assert not found(jobs(DAILY, 80, 1, is_async=True)), "4,096 places"


def test_jitter_brings_a_herd_little_by_little() -> None:
    policy = '{"jitter":"30s"}'
    assert not found(jobs(DAILY, 200, 1, policy=policy)), "8 a second are done in 25 s"
    (over,) = found(jobs(DAILY, 400, 1, policy=policy))
    assert over.late_us == 19 * SECOND
    assert "begin within 30s" in over.text


def test_what_ticks_often_is_looked_at_in_each_step() -> None:
    (over,) = found(jobs("* * * * *", 40, 2))
    assert (over.at, over.late_us) == (AT, 8 * SECOND)


def test_more_load_than_places_is_told_with_all_that_it_leaves_behind() -> None:
    (load, herd) = found(jobs("0 * * * *", 12, 3_600))
    assert (load.reason, load.at, load.runs) == ("load", AT, 24 * 12)
    assert load.late_us == 24 * HOUR // 2, "a half of the places is missing for a day"
    assert "288 sync runs of billing need 12.0 places on average, and its runners have 8 places" in load.text
    assert (herd.reason, herd.late_us) == ("herd", HOUR)


def test_a_run_takes_one_place_however_long_it_is() -> None:
    assert not found(jobs(DAILY, 8, 5 * 3_600))
    assert not found(jobs("* * * * *", 8, 300)), "the ticks during its run are skipped"
    allowed = '{"max_concurrent":5,"overlap":"allow"}'
    assert [over.reason for over in found(jobs("* * * * *", 8, 300, policy=allowed))] == ["load"]


def test_who_has_no_runner_comes_first() -> None:
    alone = jobs(DAILY, 3, 0, deployment="hr/pay@1")
    other = jobs("30 1 * * *", 1, 0, deployment="hr/pay@1", is_async=True)
    (first, second) = found(jobs(DAILY, 400, 1), alone, other)
    assert first[:-1] == ("hr/pay", "", "no_runner", TWO - 30 * MINUTE, 4, 0, 0)
    assert first.text == "4 runs of hr/pay are due, and no runner hosts it."
    assert second.module == "billing"
    assert not found(jobs("0 2 1 1 *", 3, 0, deployment="hr/pay@1")), "nothing of it comes within a day"
    assert found(jobs(DAILY, 1, 0, deployment="x@1"))[0].text == "1 run of x is due, and no runner hosts it."


def test_limits_are_an_upper_bound_and_places_may_be_unknown() -> None:
    (over,) = found(jobs(DAILY, 8, 10), places={BILLING: HostedPlaces(8, 4_096, 2)})
    assert (over.places, over.late_us) == (2, 30 * SECOND)
    assert "a limit lets 2 run at once" in over.text
    assert not found(jobs(DAILY, 400, 1), places={BILLING: HostedPlaces(0, 0)}), "its runner doesn't tell"


def test_jobs_for_queues_need_no_runner() -> None:
    assert not found(Group(DAILY, 0, "", 400, 0, 0, ("m.v",)))


def test_ten_are_told_and_the_worst_first() -> None:
    names = [f"m{number}@1" for number in range(12)]
    over = found(*(jobs(DAILY, 9 + place, 8, deployment=name) for place, name in enumerate(names)),
                 places=dict.fromkeys(names, HostedPlaces(1, 1)))  # fmt: skip
    assert [each.module for each in over] == [f"m{number}" for number in range(11, 1, -1)]
