"""What an operator's decision about one job writes: pure, as redeploy.py is for a module's.

Whatever changes a job's next tick while it runs makes its revision grow, so that the end of that run can't undo it. A
paused job keeps its books open: `paused_tick` is the first tick that its pause keeps from running, and all from there
on are skipped as `paused` when it is resumed.
"""

from collections.abc import Collection
from typing import NamedTuple

from cronring.controller.core.orders.redeploy import (
    Added,
    Carried,
    Existing,
    added,
    closed,
    kept,
    reopened,
    rescheduled,
)
from cronring.schema.execution import Skipped
from cronring.schema.job import JobSpec
from cronring.schema.past import past_fault
from cronring.schema.policy import parse_policy
from cronring.schema.timetable import After, PlannedTick, timetable

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


def plan_creation(key: str, verb: str, spec: JobSpec, now: int) -> Added:
    """A new job's row; its books open at `now`. Raises NeverRuns."""
    anchored = spec._replace(anchor=now) if spec.anchor is None else spec
    _refuse_past(anchored, now)
    return added(key, verb, anchored, now)


def plan_change(job: Existing, there: JobSpec, wanted: JobSpec, names: Collection[str], now: int) -> Carried:
    """Another schedule, policy or anchor closes the books at `now` and opens new ones; the old never ticks again.

    `there`: the job's spec, of which these `names` are to be as wanted. Raises NeverRuns for a change to what is past;
    one that is past already may have its policies changed.
    """
    spec = there.taking(wanted, names)
    if "anchor" not in names or wanted.anchor is None:
        spec = spec._replace(anchor=job.anchor if spec.schedule == job.schedule else now)
    if spec.timing == there.timing:
        return kept(job)._replace(spec=spec, keeps=False)
    if spec.schedule != job.schedule or _past(there, now) is None:
        _refuse_past(spec, now)
    return rescheduled(job, Carried(job.job_id, job.key, spec, rescheduled=True), now)


def _past(spec: JobSpec, now: int) -> str | None:
    schedule, anchor, policy = spec.timing
    return past_fault(schedule, parse_policy(policy), anchor, now)


def _refuse_past(spec: JobSpec, now: int) -> None:
    fault = _past(spec, now)
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


def distant(job: Existing, planned: PlannedTick | None, latest: Start | None) -> After:
    """`planned`, or what runs in its place, no sooner behind the latest start than if there had been no order.

    And the ticks that are passed over for that: orders don't make two runs come closer (cronring.schema.spacing).
    """
    if latest is None:
        return After(planned, ())
    table = timetable(job.schedule, job.anchor, job.policy)
    return table.resumed(job.key, planned, PlannedTick(latest.tick, latest.run_at), latest.claimed_at)


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
