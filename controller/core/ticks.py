"""Where the core asks `schema` about ticks.

A herd shares its texts and its instants, so what a batch asks is asked thousands of times over: the policies are cached
by schedule and second. (Ticks stand on whole seconds: within one second the answers don't change.)
"""

from functools import lru_cache
from typing import Final

from controller.core.model import Execution, Job, Outcome, Report, Skipped, SkipReason
from schema import missed
from schema.schedule import Schedule, parse_schedule

SHORTEST_GAP_US: Final = 1_000_000
_ANSWERS_CACHED: Final = 8_192

TickAndRunAt = tuple[int, int]


def _schedule(job: Job) -> Schedule:
    return parse_schedule(job.schedule, job.anchor)


def following(job: Job, instant_us: int) -> TickAndRunAt | None:
    """The first tick after `instant_us` and its run_at; None if there is none."""
    tick = _next_after(job.schedule, job.anchor, instant_us // SHORTEST_GAP_US)
    return None if tick is None else (tick, tick)


def latest_due(job: Job, tick: int, run_at: int, now_us: int) -> tuple[int, int, Skipped | None]:
    """What to run when `tick` is due: itself, or the latest one that has come due since (policy run_last).

    Answers with tick, run_at, and the ticks passed over.
    """
    due = missed.latest_due(_schedule(job), tick, now_us)
    if not due.count:
        return tick, run_at, None
    return due.run_tick, due.run_tick, Skipped(SkipReason.SUPERSEDED, due.first_skipped, due.last_skipped, due.count)


def after_run(execution: Execution, report: Report, now_us: int) -> tuple[TickAndRunAt | None, Skipped | None]:
    """The tick after a run, and those that passed while it ran.

    What passed after its end, while the end couldn't be committed, didn't overlap with it: the missed policy decides
    about that at the next claim. Of a lost run nobody knows when it ended; only that it has by now.

    If the job was removed while it ran, it has no next tick. If it was rescheduled, its present schedule counts from
    its anchor, where the books of the one before were closed (see redeploy).
    """
    ended_at = now_us if report.outcome is Outcome.LOST else min(max(report.ended_at, execution.claimed_at), now_us)
    job = execution.job
    if job.next_tick is None:
        return None, None
    since = max(execution.tick, job.anchor)
    answer = _after_run(job.schedule, job.anchor, since, ended_at // SHORTEST_GAP_US)
    skipped = None
    if answer.count:
        skipped = Skipped(SkipReason.OVERLAP, answer.first_skipped, answer.last_skipped, answer.count)
    return (None if answer.next_tick is None else (answer.next_tick, answer.next_tick)), skipped


def passed(job: Job, tick: int, now_us: int, reason: SkipReason) -> tuple[Skipped, TickAndRunAt | None]:
    """`tick` and all that have come due since are not to run: the range, and the first one after it."""
    schedule = _schedule(job)
    latest = schedule.last_at_or_before(now_us)
    if latest is None or latest <= tick:
        skipped = Skipped(reason, tick, tick, 1)
    else:
        skipped = Skipped(reason, tick, latest, 1 + schedule.count_between(tick, now_us))
    return skipped, following(job, max(now_us, tick))


@lru_cache(maxsize=_ANSWERS_CACHED)
def _next_after(schedule: str, anchor: int, second: int) -> int | None:
    return parse_schedule(schedule, anchor).next_after(second * SHORTEST_GAP_US)


@lru_cache(maxsize=_ANSWERS_CACHED)
def _after_run(schedule: str, anchor: int, tick: int, second: int) -> missed.NextTick:
    return missed.after_run(parse_schedule(schedule, anchor), tick, second * SHORTEST_GAP_US)
