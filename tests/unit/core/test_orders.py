"""What orders to a job write, beyond what the conformance suite holds: their distance from the latest run."""

import pytest

from cronring.controller.core.orders.control import Start
from cronring.controller.core.orders.orders import (
    JobOrder,
    OrderColumns,
    Ordered,
    OrderTarget,
    Pause,
    Restore,
    Resume,
    SkipNext,
    carry_out,
)
from cronring.controller.core.orders.redeploy import Existing
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.policy import Policy

SECOND = 1_000_000
MINUTE = 60 * SECOND
T0 = 1_790_000_040 * SECOND  # a whole minute
NOW = T0 + 40 * SECOND


def at(seconds: float) -> int:
    return T0 + int(seconds * SECOND)


JOB = Existing(1, "billing.a", "* * * * *", 0, False, at(60), at(0), opened_at=at(-600))
LATE = Start(at(0), at(0), at(30))  # so the next may start at 90 s
ON_TIME = Start(at(0), at(0), at(0.1))
SUPERSEDED = Skipped(SkipReason.SUPERSEDED, at(60), at(60), 1)


def standing(latest: Start | None, **changes: object) -> OrderTarget:
    job = JOB._replace(**changes)  # type: ignore[arg-type]  # fields by name
    row = OrderColumns(job.next_tick, job.next_tick, paused_tick=job.paused_tick, paused_until=job.paused_until)
    return OrderTarget(job, row, job.executing, "completed", latest)


def ordered(found: OrderTarget, order: JobOrder, now: int = NOW) -> Ordered:
    plan = carry_out(found, order, "me", now)
    assert isinstance(plan, Ordered)
    assert plan.row is not None
    return plan


PAUSED = {"paused": True, "next_tick": None, "paused_tick": at(60)}
PAUSED_UNTIL = {"paused": True, "next_tick": at(120), "paused_tick": at(60), "paused_until": at(100)}
CANCELLED = {"cancelled": True, "next_tick": None, "opened_at": at(35)}


@pytest.mark.parametrize(
    ("changes", "order"),
    [
        (PAUSED, Resume()),
        (PAUSED_UNTIL | {"ahead_from": at(60), "ahead_until": at(60)}, Resume()),
        (CANCELLED, Restore()),
        ({}, Pause(until=at(50))),
    ],
)
@pytest.mark.parametrize(("latest", "next_tick"), [(LATE, at(120)), (ON_TIME, at(60)), (None, at(60))])
def test_no_order_brings_two_runs_closer(
    changes: dict[str, object], order: JobOrder, latest: Start | None, next_tick: int
) -> None:
    """The one at 60 s would come 30 s behind the latest, and 90 s is too close to the one after it."""
    plan = ordered(standing(latest, **changes), order)
    assert plan.row is not None
    assert (plan.row.next_tick, plan.row.next_run_at) == (next_tick, next_tick)
    assert plan.skipped == ((SUPERSEDED,) if next_tick == at(120) else ())


def test_a_tick_before_a_pause_ends_is_paused_and_not_superseded() -> None:
    plan = ordered(standing(LATE), Pause(until=at(70)))
    assert plan.row is not None
    assert (plan.row.next_tick, plan.row.paused_tick, plan.row.ahead_until) == (at(120), at(60), at(60))
    assert plan.skipped == (Skipped(SkipReason.PAUSED, at(60), at(60), 1),)


def test_what_comes_after_a_skipped_tick_keeps_its_distance() -> None:
    """A run that was caught up holds the job: the tick of 60 s, which waits behind it, is given up; 120 s follows."""
    late = Start(at(0), at(0), at(90))
    waits = standing(late, executing=True, next_tick=at(0), policy=Policy(overlap="buffer_one").text)
    plan = ordered(waits, SkipNext(), at(100))
    assert plan.row is not None
    assert (plan.row.next_tick, plan.row.next_run_at) == (at(180), at(180))
    assert plan.skipped == (
        Skipped(SkipReason.CANCELLED, at(60), at(60), 1),
        Skipped(SkipReason.SUPERSEDED, at(120), at(120), 1),
    )


def test_a_resumed_intervals_run_is_not_late_by_its_jitter() -> None:
    now, run_ats = at(7_100), []
    policy = Policy(jitter="±45%").text
    for number in range(20):
        job = {"key": f"billing.j{number}", "schedule": "every 1h", "anchor": at(0), "policy": policy}
        paused = {"paused": True, "paused_tick": at(3_600), "next_tick": at(10_800), "paused_until": at(10_000)}
        ahead = {"ahead_from": at(3_600), "ahead_until": at(7_200)}
        plan = ordered(standing(ON_TIME, **job, **paused, **ahead), Resume(), now)
        assert plan.row is not None
        assert plan.row.next_tick == at(7_200)
        run_ats.append(plan.row.next_run_at or 0)
    assert min(run_ats) == now
    assert max(run_ats) > at(7_200)


def test_a_one_shot_that_was_skipped_ahead_does_not_come_back_when_a_pause_ends() -> None:
    shot = {"schedule": "at 2026-09-21T14:19:00Z", "next_tick": None, "ahead_from": at(300), "ahead_until": at(300)}
    paused = ordered(standing(None, **shot)._replace(last_outcome=None), Pause())
    assert paused.row is not None
    assert paused.row.paused_tick is None
    resumed = ordered(standing(None, **shot, paused=True), Resume(), at(50))
    assert resumed.row is not None
    assert (resumed.row.next_tick, resumed.row.next_run_at, resumed.skipped) == (None, None, ())


RUNS = {"executing": True, "schedule": "*/10 * * * * *", "next_tick": at(0), "last_tick": at(0)}
BY_HAND = RUNS | {"next_tick": at(10)}


@pytest.mark.parametrize("changes", [RUNS, BY_HAND])
@pytest.mark.parametrize("order", [Pause(), Pause(until=at(75)), SkipNext()])
def test_what_passed_during_a_run_overlapped_whatever_is_ordered_then(
    changes: dict[str, object], order: JobOrder
) -> None:
    """A pause has been in force from when it was ordered, and not before."""
    plan = ordered(standing(None, **changes), order, at(42))
    assert plan.skipped[0] == Skipped(SkipReason.OVERLAP, at(10), at(40), 4)
    assert [part.first_tick for part in plan.skipped[1:]] == ([] if order == Pause() else [at(50)])
    assert plan.row is not None
    assert plan.row.paused_tick == (None if isinstance(order, SkipNext) else at(50))


def test_a_tick_that_waits_for_the_end_of_a_run_is_paused() -> None:
    kept = RUNS | {"policy": Policy(overlap="buffer_one").text}
    plan = ordered(standing(None, **kept), Pause(), at(42))
    assert plan.skipped == ()
    assert plan.row is not None
    assert plan.row.paused_tick == at(10)
