"""What an operator's decision about one job writes: pure, as redeploy.py is for a module's.

A change of a job's next tick while the job runs raises its revision, so that the end of that run can't undo the change.
A paused job keeps its books open: `paused_tick` is the first tick that its pause keeps from running, and when the job
is resumed, all ticks since then are skipped as `paused`.
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
    """An operator asks for a schedule whose ticks are all past: the job would never run."""


class Start(NamedTuple):
    """The latest start by a job's schedule."""

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
    """Another schedule, policy or anchor closes the books at `now`, and opens new ones.

    `there`: the job's spec. The fields in `names` get their values from `wanted`. Raises NeverRuns if the new schedule
    has no tick to come. But a job whose schedule is over already may get another policy.
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
    """The first tick that nobody has decided: a pause now keeps it from running. None: there is none."""
    if job.next_tick is None or not job.executing or job.last_tick is None or job.next_tick > job.last_tick:
        return job.next_tick
    following = timetable(job.schedule, job.anchor, job.policy).following(job.key, job.last_tick)
    return None if following is None else following.tick


def plan_resume(job: Existing, latest: Start | None, now: int) -> Resumed:
    """What passed since a paused job's `paused_tick` is skipped; it goes on with the first tick after `now`.

    That tick keeps its distance from the latest start, so a pause can't bring two runs closer together. If the pause
    kept no tick (a one-shot's had run, or was skipped ahead), no tick follows.
    """
    if job.paused_tick is None:
        return Resumed(None, None, ())
    planned, superseded = distant(job, reopened(job, timetable(job.schedule, job.anchor, job.policy), now), latest)
    tick, run_at = planned or (None, None)
    return Resumed(tick, run_at, (*closed(job, now), *superseded))


def distant(job: Existing, planned: PlannedTick | None, latest: Start | None) -> After:
    """`planned`, or a later tick in its place, as far behind the latest start as without the order.

    It also returns the ticks that are passed over for this. Orders must not bring two runs closer together
    (cronring.schema.spacing).
    """
    if latest is None:
        return After(planned, ())
    table = timetable(job.schedule, job.anchor, job.policy)
    return table.resumed(job.key, planned, PlannedTick(latest.tick, latest.run_at), latest.claimed_at)


def manual_tick(now: int) -> int:
    """The tick of a manual run: its own instant, but never a whole second, as those are the schedule's."""
    return now + 1 if now % SECOND_US == 0 else now


def plan_backfill(job: Existing, from_at: int, until_at: int, now: int) -> tuple[int, int] | None:
    """The first tick of a backfill over [from_at, until_at], and an instant at or behind its last tick. None: no tick.

    It leaves out the ticks that the schedule itself has yet to run.
    """
    until = min(until_at, now)
    upcoming = plan_pause(job)
    if upcoming is not None:
        until = min(until, upcoming - 1)
    first = timetable(job.schedule, job.anchor, job.policy).next_within(from_at - 1, until)
    return None if first is None else (first, until)
