"""What an operator's decision about one job writes."""

from typing import Any

import pytest

from cronring.controller.core.orders.control import (
    NeverRuns,
    Start,
    manual_tick,
    plan_backfill,
    plan_change,
    plan_creation,
    plan_pause,
    plan_resume,
)
from cronring.controller.core.orders.redeploy import Carried, Existing
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.instant import format_instant
from cronring.schema.job import JobSpec
from cronring.schema.keys import slot_of

SECOND = 1_000_000
T0 = 1_790_000_000 * SECOND
NOW = T0 + 400_000


def at(seconds: int) -> int:
    return T0 + seconds * SECOND


def existing(**changes: object) -> Existing:
    """A job every 10 s, idle, whose next tick is still to come."""
    job = Existing(7, "billing.a:x", "every 10s", at(-100), False, at(10), at(0), source="api", verb="a")
    job = job._replace(**changes)  # type: ignore[arg-type]  # fields by name, as each test says
    return job._replace(next_run_at=job.next_tick)


def change(job: Existing, **wanted: Any) -> Carried:
    there = JobSpec(job.schedule, job.anchor, 5, "stop", job.policy, payload="1")
    return plan_change(job, there, JobSpec(**wanted), tuple(wanted), NOW)


def test_a_new_job_begins_with_the_first_tick_after_now() -> None:
    added = plan_creation("billing.a:x", "a", JobSpec("every 10s", None, 5, "stop", payload="1"), NOW)
    assert (added.spec.anchor, added.next_tick, added.next_run_at) == (NOW, at(10), at(10))
    assert (added.slot, added.spec.payload, added.spec.timeout_ms) == (slot_of("billing.a:x"), "1", 5)
    given = plan_creation("billing.a:x", "a", JobSpec("every 10s", at(-3), 5, "stop"), NOW)
    assert (given.spec.anchor, given.next_tick) == (at(-3), at(7))


def test_a_one_shot_that_has_passed_may_have_its_policies_changed() -> None:
    past = existing(schedule=f"at {format_instant(at(-50))}", next_tick=None, last_tick=at(-50))
    changed = change(past, policy='{"retries":3}')
    assert (changed.next_tick, changed.spec.policy) == (None, '{"retries":3}')
    with pytest.raises(NeverRuns, match="give a later time"):
        change(past, schedule=f"at {format_instant(at(-40))}")
    later = change(past, schedule=f"at {format_instant(at(40))}")
    assert later.next_tick == at(40)


@pytest.mark.parametrize(
    ("job", "first"),
    [
        (existing(), at(10)),
        (existing(next_tick=at(-50)), at(-50)),  # due, and not claimed yet
        (existing(next_tick=None), None),
        (existing(executing=True, next_tick=at(0)), at(10)),
        (existing(executing=True, next_tick=at(-50)), at(10)),  # a catch-up: what came before it is decided
        (existing(executing=True, next_tick=at(20)), at(20)),  # rescheduled, or a manual run
        (existing(executing=True, next_tick=at(10), last_tick=None), at(10)),  # a manual run of a job that never ran
    ],
)
def test_a_pause_keeps_the_first_undecided_tick_from_running(job: Existing, first: int | None) -> None:
    assert plan_pause(job) == first


@pytest.mark.parametrize(
    ("paused_tick", "skipped"),
    [
        (at(10), ()),
        (at(0), (Skipped(SkipReason.PAUSED, at(0), at(0), 1),)),
        (at(-50), (Skipped(SkipReason.PAUSED, at(-50), at(0), 6),)),
    ],
)
def test_a_resumed_job_skips_what_passed_and_goes_on_behind_it(paused_tick: int, skipped: tuple[Skipped, ...]) -> None:
    job = existing(next_tick=None, last_tick=at(-60), paused=True, paused_tick=paused_tick)
    resumed = plan_resume(job, None, NOW)
    assert (resumed.next_tick, resumed.next_run_at, resumed.skipped) == (at(10), at(10), skipped)


@pytest.mark.parametrize("latest", [None, Start(at(0), at(0), at(0))])
def test_what_jitter_would_have_had_run_during_the_pause_runs_on_time_after_it(latest: Start | None) -> None:
    now, run_ats = at(7_100), []
    for number in range(20):
        job = existing(schedule="every 1h", anchor=at(0), policy='{"jitter":"±45%"}', next_tick=None, last_tick=at(0))
        job = job._replace(key=f"billing.j{number}", paused=True, paused_tick=at(3_600))
        resumed = plan_resume(job, latest, now)
        assert resumed.next_tick == at(7_200)
        run_ats.append(resumed.next_run_at or 0)
    assert min(run_ats) == now
    assert max(run_ats) > at(7_200)


def test_toggled_at_the_tick_itself_the_tick_does_not_run() -> None:
    job = existing(next_tick=None, last_tick=at(-10), paused=True, paused_tick=at(0))
    resumed = plan_resume(job, None, at(0))
    assert (resumed.next_tick, resumed.skipped) == (at(10), (Skipped(SkipReason.PAUSED, at(0), at(0), 1),))


def test_a_change_of_nothing_keeps_the_books() -> None:
    job = existing(next_tick=at(-50))
    same = {"schedule": job.schedule, "policy": "", "anchor": job.anchor, "payload": "2"}
    for planned, payload in ((change(job), "1"), (change(job, **same), "2")):
        assert (planned.rescheduled, planned.next_tick, planned.skipped) == (False, at(-50), ())
        assert planned.spec.payload == payload


def test_a_new_schedule_closes_the_old_ones_books_and_counts_from_now() -> None:
    planned = change(existing(next_tick=at(-50)), schedule="every 7s")
    assert (planned.rescheduled, planned.spec.anchor, planned.next_tick) == (True, NOW, at(7))
    assert planned.skipped == (Skipped(SkipReason.SUPERSEDED, at(-50), at(0), 6),)


def test_a_new_policy_keeps_the_anchor() -> None:
    planned = change(existing(), policy='{"retries":3}')
    assert (planned.rescheduled, planned.spec.anchor, planned.next_tick) == (True, at(-100), at(10))


def test_a_paused_job_that_is_changed_stays_paused() -> None:
    job = existing(next_tick=None, paused=True, paused_tick=at(-50), last_tick=at(-60))
    planned = change(job, schedule="every 7s")
    assert (planned.next_tick, planned.next_run_at, planned.paused_tick) == (None, None, at(7))
    assert planned.skipped == (Skipped(SkipReason.PAUSED, at(-50), at(0), 6),)


def test_a_manual_run_never_has_the_instant_of_a_tick() -> None:
    assert manual_tick(NOW) == NOW
    assert manual_tick(at(0)) == at(0) + 1


@pytest.mark.parametrize(
    ("job", "from_at", "until_at", "planned"),
    [
        (existing(), at(-30), at(-10), (at(-30), at(-10))),
        (existing(), at(-35), at(-11), (at(-30), at(-11))),
        (existing(), at(-29), at(-21), None),
        (existing(), at(-30), at(500), (at(-30), NOW)),
        (existing(), at(20), at(500), None),  # still to come
        (existing(next_tick=at(-10)), at(-30), at(0), (at(-30), at(-10) - 1)),  # the schedule's own, though overdue
        (existing(executing=True, next_tick=at(0)), at(-30), at(0), (at(-30), at(0))),
        (existing(), at(-500), at(0), (at(-90), at(0))),  # an interval has no tick before its anchor
    ],
)
def test_a_backfill_stays_behind_the_schedule(
    job: Existing, from_at: int, until_at: int, planned: tuple[int, int] | None
) -> None:
    assert plan_backfill(job, from_at, until_at, NOW) == planned


@pytest.mark.parametrize(
    ("schedule", "late_us", "run_at", "superseded"),
    [
        ("*/2 * * * * *", 900_000, at(2), ()),  # on time: counted from the tick
        ("*/2 * * * * *", 1_376_000, at(2) + 376_000, ()),  # the next one waits
        ("* * * * * *", 1_376_000, at(3), (at(2),)),  # waiting, it would come too close to the one after it
    ],
)
def test_toggling_pause_brings_no_two_runs_closer(
    schedule: str, late_us: int, run_at: int, superseded: tuple[int, ...]
) -> None:
    job = existing(schedule=schedule, next_tick=None, last_tick=at(0), paused=True, paused_tick=at(2))
    resumed = plan_resume(job, Start(at(0), at(0), at(0) + late_us), at(1) + 749_058)
    assert (resumed.next_tick, resumed.next_run_at) == (run_at // SECOND * SECOND, run_at)
    assert resumed.skipped == tuple(Skipped(SkipReason.SUPERSEDED, tick, tick, 1) for tick in superseded)
