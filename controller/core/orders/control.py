"""What an operator's decision about one job writes: pure, as redeploy.py is for a module's.

Whatever changes a job's next tick while it runs makes its revision grow, so that the end of that run can't undo it. A
paused job keeps its books open: `paused_tick` is the first tick that its pause keeps from running, and all from there
on are skipped as `paused` when it is resumed.
"""

from typing import NamedTuple

from cronring.controller.core.orders.redeploy import (
    Added,
    Carried,
    Existing,
    closed,
    first_planned,
    reopened,
    rescheduled,
)
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.keys import slot_of
from cronring.schema.past import past_fault
from cronring.schema.policy import parse_policy
from cronring.schema.timetable import PlannedTick, timetable

SECOND_US = 1_000_000


class NeverRuns(Exception):
    """An operator asks for a schedule whose ticks are all past: nothing would ever come of it."""


class Start(NamedTuple):
    """The latest one by a job's schedule."""

    tick: int
    run_at: int
    claimed_at: int


class Resumed(NamedTuple):
    next_tick: int | None
    next_run_at: int | None
    skipped: tuple[Skipped, ...]


class Spec(NamedTuple):
    """What a new job does, and when. `anchor` None: now."""

    schedule: str
    policy: str
    anchor: int | None
    payload: str
    timeout_ms: int
    on_disconnect: str


class Wanted(NamedTuple):
    """A change of what a job does, and when; None: as it is."""

    schedule: str | None
    policy: str | None
    anchor: int | None
    payload: str | None
    timeout_ms: int | None
    on_disconnect: str | None


def plan_creation(key: str, verb: str, spec: Spec, now: int) -> Added:
    """A new job's row; its books open at `now`. Raises NeverRuns."""
    anchor = now if spec.anchor is None else spec.anchor
    _refuse_past(spec.schedule, spec.policy, anchor, now)
    tick, run_at = first_planned(timetable(spec.schedule, anchor, spec.policy), key, now) or (None, None)
    return Added(
        key, verb, slot_of(key), spec.schedule, anchor, spec.timeout_ms, spec.on_disconnect, tick, run_at, spec.policy,
        spec.payload,
    )  # fmt: skip


def plan_change(job: Existing, wanted: Wanted, now: int) -> Carried:
    """Another schedule, policy or anchor closes the books at `now` and opens new ones; the old never ticks again.

    Raises NeverRuns for a change to what is past; one that is past already may have its policies changed.
    """
    schedule = job.schedule if wanted.schedule is None else wanted.schedule
    policy = job.policy if wanted.policy is None else wanted.policy
    anchor = wanted.anchor
    if anchor is None:
        anchor = job.anchor if schedule == job.schedule else now
    kept = wanted.timeout_ms, wanted.on_disconnect, wanted.payload
    if (schedule, policy, anchor) == (job.schedule, job.policy, job.anchor):
        return Carried(
            job.job_id, job.key, *kept, False, schedule, anchor, job.next_tick, None, (), policy, job.paused_tick, None
        )  # fmt: skip
    if schedule != job.schedule or _past(job.schedule, job.policy, job.anchor, now) is None:
        _refuse_past(schedule, policy, anchor, now)
    carried = Carried(job.job_id, job.key, *kept, True, schedule, anchor, None, None, (), policy, None, None)
    return rescheduled(job, carried, now)


def finds_it_so(planned: Carried, payload: str, timeout_ms: int, on_disconnect: str) -> bool:
    """Whether a change wants of a job with these what it has already. Its labels aren't looked at."""
    wanted = planned.payload, planned.timeout_ms, planned.on_disconnect
    there = payload, timeout_ms, on_disconnect
    return not planned.rescheduled and all(new in {None, old} for new, old in zip(wanted, there, strict=True))


def _past(schedule: str, policy: str, anchor: int, now: int) -> str | None:
    return past_fault(schedule, parse_policy(policy), anchor, now)


def _refuse_past(schedule: str, policy: str, anchor: int, now: int) -> None:
    fault = _past(schedule, policy, anchor, now)
    if fault is not None:
        raise NeverRuns(f"{fault}, so it would never run; give a later time, or `manual` and trigger it")


def plan_pause(job: Existing) -> int | None:
    """The first tick that nobody has decided, which a pause now keeps from running; None if there is none."""
    if job.next_tick is None or not job.executing or job.last_tick is None or job.next_tick > job.last_tick:
        return job.next_tick
    following = timetable(job.schedule, job.anchor, job.policy).following(job.key, job.last_tick)
    return None if following is None else following.tick


def plan_resume(job: Existing, latest: Start | None, now: int) -> Resumed:
    """What passed since a paused job's `paused_tick` is skipped; it goes on with the first tick after `now`.

    That keeps its distance from the latest start: a pause and its end don't make two runs come closer. Where the pause
    kept nothing (a one-shot's tick had run, or was skipped ahead), nothing comes.
    """
    if job.paused_tick is None:
        return Resumed(None, None, ())
    planned, superseded = distant(job, reopened(job, timetable(job.schedule, job.anchor, job.policy), now), latest)
    tick, run_at = planned or (None, None)
    return Resumed(tick, run_at, (*closed(job, now), *superseded))


def distant(
    job: Existing, planned: PlannedTick | None, latest: Start | None
) -> tuple[PlannedTick | None, tuple[Skipped, ...]]:
    """`planned`, or what runs in its place, no sooner behind the latest start than if there had been no order.

    And the ticks that are passed over for that: orders don't make two runs come closer (cronring.schema.spacing).
    """
    if latest is None:
        return planned, ()
    table = timetable(job.schedule, job.anchor, job.policy)
    after = table.resumed(job.key, planned, PlannedTick(latest.tick, latest.run_at), latest.claimed_at)
    return after.next, tuple(Skipped(SkipReason(part.reason), *part[1:]) for part in after.skipped)


def manual_tick(now: int) -> int:
    """The tick of a manual run: its instant, and never on a whole second, where its schedule's ticks are."""
    return now + 1 if now % SECOND_US == 0 else now


def plan_backfill(job: Existing, from_at: int, until_at: int, now: int) -> tuple[int, int] | None:
    """The first tick of a backfill over [from_at, until_at], and an instant behind its last; None if there is no tick.

    It leaves alone what the schedule itself has yet to run: its next tick, and whatever is still to come.
    """
    until = min(until_at, now)
    upcoming = plan_pause(job)
    if upcoming is not None:
        until = min(until, upcoming - 1)
    first = timetable(job.schedule, job.anchor, job.policy).next_within(from_at - 1, until)
    return None if first is None else (first, until)
