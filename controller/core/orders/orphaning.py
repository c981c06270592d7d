"""Jobs that somebody made by hand, whose verb no active version of their module has: they are kept, and don't run.

An orphaned job is what it was but for its next tick, which stands in `orphaned_tick`: nobody claims it. From that one
on its ticks don't run. They are skipped as `no_verb` in one range once its verb is back, or whatever else closes its
books: nothing is written while it waits. Orders do to it what they do to any job, and what would be its next tick by
them is kept in the same place. A pause without an end keeps its own ticks, orphaned or not.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from cronring.controller.core.model import Job
from cronring.controller.core.orders.control import Start, distant, plan_pause
from cronring.controller.core.orders.redeploy import Added, Existing, Removed, not_before, owed
from cronring.schema.execution import Skipped, SkipReason
from cronring.schema.module import Module
from cronring.schema.policy import parse_policy
from cronring.schema.timetable import PlannedTick, timetable
from cronring.schema.validate import misfit_faults

KEYS_TOLD: Final = 100  # of each kind, where a change of versions is kept, or logged


class Orphan(NamedTuple):
    """A job loses its verb. `tick`: the first that nobody has decided; None: there is none, or a pause keeps it."""

    job_id: int
    key: str
    tick: int | None


class Return(NamedTuple):
    """A job's verb is back: it goes on with `next_tick`, and what passed meanwhile is skipped."""

    job_id: int
    key: str
    next_tick: int | None
    next_run_at: int | None
    skipped: tuple[Skipped, ...]


class Misfit(NamedTuple):
    """A job's payload is none that its verb takes: its runs fail. `faults`: why, in words."""

    key: str
    faults: tuple[str, ...]


def plan_orphans(jobs: Iterable[Existing]) -> list[Orphan]:
    """What was decided ahead, and what pauses keep, stays as it is."""
    return [Orphan(job.job_id, job.key, plan_pause(job)) for job in jobs]


def plan_return(jobs: Iterable[Existing], latest: Mapping[int, Start], now: int) -> list[Return]:
    """`latest`: the latest starts, by job: coming back doesn't make two runs come closer than they may."""
    return [_returned(job, latest.get(job.job_id), now) for job in jobs]


def _returned(job: Existing, latest: Start | None, now: int) -> Return:
    planned, skipped = upcoming(job, now)
    planned, superseded = distant(job, planned, latest)
    tick, run_at = planned or (None, None)
    return Return(job.job_id, job.key, tick, run_at, (*skipped, *superseded))


def upcoming(job: Existing, now: int) -> tuple[PlannedTick | None, tuple[Skipped, ...]]:
    """What an orphaned job goes on with, were its verb back; and what of its ticks has passed for want of it."""
    if job.orphaned_tick is None:
        return None, ()
    table = timetable(job.schedule, job.anchor, job.policy)
    skipped = owed(table, job.orphaned_tick, now, SkipReason.NO_VERB)
    planned = not_before(table.following(job.key, max(job.orphaned_tick - 1, now)), now)
    if planned is None or not job.paused or job.paused_until is None:
        return planned, skipped
    return planned._replace(run_at=max(planned.run_at, job.paused_until)), skipped


def misfits(module: Module, jobs: Iterable[Job]) -> list[Misfit]:
    """Jobs that somebody made, whose payload their verb would no longer take. Those without a verb wait for one.

    What the module declares has a payload of its own, which was judged with it.
    """
    verbs = {verb.name: verb for verb in module.verbs}
    found = [
        Misfit(
            job.key, tuple(misfit_faults(module, verbs[job.verb], job.schedule, parse_policy(job.policy), job.payload))
        )
        for job in jobs
        if job.verb in verbs
    ]
    return [each for each in found if each.faults]


def keys_of(planned: Iterable[Added | Removed | Orphan | Return]) -> tuple[str, ...]:
    """Sorted."""
    return tuple(sorted(each.key for each in planned))


def key_details(**keys: tuple[str, ...]) -> dict[str, object]:
    """What a change of versions did to jobs, in short: how many, and the first of their keys."""
    return {name: len(found) for name, found in keys.items() if found} | {
        f"{name}_keys": list(found[:KEYS_TOLD]) for name, found in keys.items() if found
    }
