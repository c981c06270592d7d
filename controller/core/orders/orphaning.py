"""Jobs made by hand whose verb is in no active version of their module: they are kept, and don't run.

An orphaned job's next tick stands in `orphaned_tick`, where nobody claims it. Ticks from that one on don't run, and
nothing is written while the job waits. When the verb is back, or the books close, the ticks are skipped as `no_verb` in
one range. Orders work as for any job, but put the next tick into `orphaned_tick`. A pause without an end keeps its own
ticks, orphaned or not.
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

KEYS_TOLD: Final = 100  # of each kind, in the action or the log line of a change of versions


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
    """A job's payload doesn't fit its verb, so its runs would fail. `faults`: why, in words."""

    key: str
    faults: tuple[str, ...]


def plan_orphans(jobs: Iterable[Existing]) -> list[Orphan]:
    """Ticks that were decided ahead, and ticks that a pause keeps, stay as they are."""
    return [Orphan(job.job_id, job.key, plan_pause(job)) for job in jobs]


def plan_return(jobs: Iterable[Existing], latest: Mapping[int, Start], now: int) -> list[Return]:
    """`latest`: the latest starts, by job id: a return must not bring two runs closer together than allowed."""
    return [_returned(job, latest.get(job.job_id), now) for job in jobs]


def _returned(job: Existing, latest: Start | None, now: int) -> Return:
    planned, skipped = upcoming(job, now)
    planned, superseded = distant(job, planned, latest)
    tick, run_at = planned or (None, None)
    return Return(job.job_id, job.key, tick, run_at, (*skipped, *superseded))


def upcoming(job: Existing, now: int) -> tuple[PlannedTick | None, tuple[Skipped, ...]]:
    """The tick with which an orphaned job would go on, and the skips of its ticks that have passed without the verb."""
    if job.orphaned_tick is None:
        return None, ()
    table = timetable(job.schedule, job.anchor, job.policy)
    skipped = owed(table, job.orphaned_tick, now, SkipReason.NO_VERB)
    planned = not_before(table.following(job.key, max(job.orphaned_tick - 1, now)), now)
    if planned is None or not job.paused or job.paused_until is None:
        return planned, skipped
    return planned._replace(run_at=max(planned.run_at, job.paused_until)), skipped


def misfits(module: Module, jobs: Iterable[Job]) -> list[Misfit]:
    """Jobs made by hand whose payload doesn't fit their verb any more. Jobs without a verb are left out: they wait for
    one.

    Declared jobs have payloads of their own, which are checked with the module.
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
