"""Where the core asks `schema` about ticks: what a job's schedule and policy say.

The jobs of a herd share schedules and instants, so a batch asks the same question thousands of times. Jobs without a
policy (nearly all) get their answers from a cache by schedule and second. Ticks stand on whole seconds, so answers
don't change within one.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from cronring.controller.core.model import Execution, Job
from cronring.schema.execution import OF_A_TICK, Outcome, Report, Skipped, SkipReason, Trigger
from cronring.schema.newer import unread_of
from cronring.schema.policy_model import CONSUMED, Policy
from cronring.schema.queues import puts_messages
from cronring.schema.retry import retry_at
from cronring.schema.spacing import LATE_US
from cronring.schema.timetable import After, Due, PlannedTick, Timetable, timetable

SECOND_US: Final = 1_000_000
MS_US: Final = 1_000
_MISSED: Final = (SkipReason.SUPERSEDED, SkipReason.MISSED_POLICY, SkipReason.NO_RUNNER)
RETRY_PATIENCE_US: Final = 5_000_000
BACKFILL_BENEATH: Final = 10  # levels of priority
_ANSWERS_CACHED: Final = 8_192
_NO_POLICY: Final = Policy()


def _table(job: Job) -> Timetable:
    return timetable(job.schedule, job.anchor, job.policy)


def allows(job: Job) -> bool:
    """Whether several of its executions may run at once."""
    return bool(job.policy) and _table(job).policy.overlap == "allow"


def puts_message(job: Job) -> bool:
    """Whether its target is a queue."""
    return puts_messages(job.deployment)


def awaits_consumer(job: Job) -> bool:
    """Whether an execution of the job ends only when its message's consumer says so."""
    return bool(job.policy) and _table(job).policy.completes == CONSUMED


def enqueues(job: Job) -> bool:
    """Whether a tick of the job is completed once its message is in the queue."""
    return puts_messages(job.deployment) and not awaits_consumer(job)


def buffers(job: Job) -> bool:
    """Whether a tick that comes due during a run waits for the end of that run."""
    return bool(job.policy) and _table(job).policy.overlap in ("buffer_one", "buffer_all")


def cuts(job: Job) -> bool:
    """Whether the next tick cancels what runs."""
    return (
        bool(job.policy) and _table(job).policy.overlap == "cancel_running" and not unread_of(job.schedule, job.policy)
    )


def has_quota(job: Job) -> bool:
    """Whether its runs have a quota of memory or CPU time. Then each run has a child process of its own."""
    policy = _table(job).policy
    return bool(policy.memory_limit or policy.cpu_limit)


def priority(job: Job, trigger: str = Trigger.SCHEDULE) -> int:
    """How many seconds a run is ahead of runs that came due with it, if places are short. Backfills come last."""
    own = _table(job).policy.priority if job.policy else 0
    return own - BACKFILL_BENEATH if trigger == Trigger.BACKFILL else own


def following(job: Job, instant_us: int) -> PlannedTick | None:
    """The first tick after `instant_us` and its run_at; None if there is none."""
    if job.policy:
        return _table(job).following(job.key, instant_us)
    return _next_after(job.schedule, job.anchor, instant_us // SECOND_US)


def upcoming(key: str, timing: tuple[str, int, str], tick: int | None, run_at: int | None) -> PlannedTick | None:
    """The next tick, as people are told it: the row's next tick or, if that lies outside the window, the first inside.

    `timing`: schedule, anchor and policy.
    """
    if tick is None or run_at is None:
        return None
    planned = PlannedTick(tick, run_at)
    return timetable(*timing).upcoming(key, planned) if timing[2] else planned


def next_within(job: Job, after_us: int, until_us: int) -> int | None:
    """The first tick in (after, until] that the job's window lets run."""
    return _table(job).next_within(after_us, until_us)


def after_claim(job: Job, ran: PlannedTick) -> PlannedTick | None:
    """Overlap "allow": what comes next is known at the claim."""
    return _table(job).after_claim(job.key, ran)


def after_enqueue(job: Job, ran: PlannedTick, now_us: int) -> After:
    """What comes after a tick that its claim completes: the same as after a run that begins and ends now."""
    now_us = max(now_us, ran.run_at)
    if not job.policy and now_us - ran.run_at <= LATE_US and ran.tick == ran.run_at:
        return _after_run(job.schedule, job.anchor, ran.tick, now_us // SECOND_US)
    return _table(job).after_run(job.key, ran, now_us, now_us)


def due(job: Job, planned: PlannedTick, now_us: int) -> Due:
    """What to do when `planned` is due."""
    if not job.policy and now_us - planned.tick < SECOND_US:
        return Due(planned, (), None, False)
    return _table(job).due(job.key, planned, now_us)


def missed(skipped: tuple[Skipped, ...]) -> int:
    """How many of these ticks count as missed. Ticks that a pause or a window kept from running don't."""
    return sum(part.ticks for part in skipped if part.reason in _MISSED)


def passed(job: Job, planned: PlannedTick, now_us: int, reason: SkipReason) -> After:
    """What comes next if `planned`, and all ticks that have come due since, don't run for this reason."""
    return _table(job).passed(job.key, planned, now_us, reason)


def ended(execution: Execution, report: Report, now_us: int) -> int:
    """When the run ended. Nobody knows when a lost run did, so that counts as ended now."""
    return now_us if report.outcome is Outcome.LOST else min(max(report.ended_at, execution.claimed_at), now_us)


# docs/decisions/0016: a row that was changed while it ran has decided its next tick
def after_run(execution: Execution, report: Report, now_us: int) -> After:
    """The tick after a run, and those that passed while it ran.

    Ticks that came due after its end, while the end couldn't be committed, didn't overlap with the run. The missed
    policy decides about them at the next claim. A lost run counts as ended now.

    If the job was removed or paused while it ran, it has no next tick. If the row's next tick lies beyond the one that
    ran, that next tick is the first undecided one. Then the job was rescheduled meanwhile (see redeploy), or the run
    was not by its schedule.
    """
    job = execution.job
    if job.next_tick is None or job.next_run_at is None or (not execution.holds_job and allows(job)):
        return After(None, ())
    ended_at = ended(execution, report, now_us)
    if job.next_tick > execution.tick or execution.trigger not in OF_A_TICK or not execution.holds_job:
        planned = PlannedTick(job.next_tick, job.next_run_at)
        if execution.attempt > 1 and execution.of_schedule and retries_first(job):
            return _after_retries(job, planned, execution.run_at, ended_at)
        return _undecided(job, planned, execution.claimed_at, ended_at)
    ran = PlannedTick(execution.tick, execution.run_at)
    if not job.policy and execution.claimed_at - execution.run_at <= LATE_US and ran.tick == ran.run_at:
        return _after_run(job.schedule, job.anchor, execution.tick, ended_at // SECOND_US)
    return _table(job).after_run(job.key, ran, execution.claimed_at, ended_at)


class Moved(NamedTuple):
    """`closes_at`: where the old anchor's books end, and the new one's begin."""

    anchor: int
    next: PlannedTick | None
    closes_at: int


# docs/decisions/0029: never before what is decided, never past end_at
def moved(execution: Execution, report: Report, undecided: PlannedTick) -> Moved | None:
    """What becomes of a job whose verb moved its next run (`ctx.next_in`).

    `undecided`: the next tick without the move. With jitter, an interval's ticks may run or be skipped before their
    instants. So the moved tick comes after all decided ticks. Beyond the schedule's end there is none. The old anchor's
    books close behind the decided ticks. Its later ticks are not due any more, and the new anchor has none before its
    own next tick.
    """
    job, table = execution.job, _table(execution.job)
    if not report.next_in_ms or report.outcome is not Outcome.COMPLETED or table.interval_us is None:
        return None
    own = execution.tick if execution.trigger in OF_A_TICK else 0
    decided = max(own, table.schedule.last_at_or_before(undecided.tick - 1) or 0)
    tick = -(-max(report.ended_at + report.next_in_ms * MS_US, decided + 1) // SECOND_US) * SECOND_US
    anchor = tick - table.interval_us
    planned = timetable(job.schedule, anchor, job.policy).following(job.key, tick - 1)
    return Moved(anchor, PlannedTick(tick, tick) if planned is not None and planned.tick == tick else planned, decided)


def retry(execution: Execution, report: Report, ended_at: int, next_run_at: int | None) -> int | None:
    """When to try again. None: no retry, or the next tick comes first.

    `next_run_at`: of the tick that the job goes on to by this end. For a run beside others (overlap "allow"), the tick
    after its own counts. A manual run and a backfill have no next tick.
    """
    job = execution.job
    policy = _table(job).policy if job.policy else _NO_POLICY
    if not policy.retries_by(job.default_retries):
        return None
    if not execution.of_schedule or retries_first(job):
        next_run_at = None
    elif not execution.holds_job:
        next_run_at = _own_next_run_at(job, execution.tick)
    return retry_at(
        policy, execution.attempt, report.outcome.value, report.error_type, ended_at, next_run_at, report.error_bases,
        job.default_retries,
    )  # fmt: skip


def _own_next_run_at(job: Job, tick: int) -> int | None:
    """When the tick after `tick` runs, by the job's row. The row may be older or newer than the claim of `tick`.

    The row comes first, as the schedule alone would name instants from before it was in force. A later tick may be
    claimed that this row doesn't know. EndAnyRun knows it, and makes no retry of an earlier tick.
    """
    if job.next_tick is not None and job.next_tick > tick:
        return job.next_run_at
    planned = following(job, tick)
    return None if planned is None else planned.run_at


# docs/decisions/0081: after that failure the job is paused, so a tick that supersedes the retry would not run either
def retries_first(job: Job) -> bool:
    """Whether the job's next tick waits for a retry instead of superseding it, as the first failure pauses the job."""
    policy = _table(job).policy if job.policy else None
    return policy is not None and policy.pause_after_failures == 1 and policy.overlap != "allow"


def behind_retry(job: Job, planned: PlannedTick, retry_at_us: int) -> PlannedTick:
    """The run_at of a tick that waits for a retry. It waits RETRY_PATIENCE_US at most, in case the retry can't run.

    If the distance from a late start has delayed the tick already, that delay is added.
    """
    due = _by_schedule(job, planned).run_at
    put_off = max(due, retry_at_us + RETRY_PATIENCE_US) + _distance(job, planned.run_at - due)
    return planned._replace(run_at=max(planned.run_at, put_off))


def _earliest_behind(job: Job, planned: PlannedTick, put_off: PlannedTick, retry_at_us: int) -> int:
    """When the tick was due that `behind_retry` has put off."""
    later = put_off.run_at - max(planned.run_at, retry_at_us + RETRY_PATIENCE_US)
    return planned.run_at + _distance(job, later)


def _distance(job: Job, later_us: int) -> int:
    """The part of a delay that may be the distance from a late start. The rest is a wait for a run, or a new row."""
    return min(max(later_us, 0), _table(job).least_distance_us)


def _by_schedule(job: Job, planned: PlannedTick) -> PlannedTick:
    found = following(job, planned.tick - 1)
    return found if found is not None and found.tick == planned.tick else planned


def waits_for_runner(job: Job, grace_us: int) -> int | None:
    """How long a due tick waits for a runner (us); None: for ever, as the job says that missed ticks run later."""
    if not job.policy:
        return grace_us
    return _table(job).runner_patience(grace_us)


def cut_at(execution: Execution) -> int | None:
    """When the next tick that may run cancels this one, by the job's row as the execution knows it."""
    job = execution.job
    if job.next_tick is None or job.next_run_at is None:
        return None
    own = execution.trigger in OF_A_TICK and job.next_tick <= execution.tick
    planned = _table(job).following_open(job.key, execution.tick if own else job.next_tick - 1)
    if planned is None:
        return None
    # The end of a pause may have moved that tick's run_at.
    return planned.run_at if own or planned.tick != job.next_tick else max(planned.run_at, job.next_run_at)


# docs/decisions/0027: ticks before the claim were missed, not overlapped
def _undecided(job: Job, planned: PlannedTick, claimed_at: int, ended_at: int) -> After:
    """`planned` is next, unless it came due during the run.

    If it was due before the run's claim, it was missed, and the next claim decides it. So a manual run right after an
    outage doesn't swallow the ticks that are to be caught up.
    """
    if not claimed_at < planned.run_at <= ended_at:
        return After(planned, ())
    return _table(job).overlapped(job.key, planned, ended_at)


def _after_retries(job: Job, put_off: PlannedTick, retry_at: int, ended_at: int) -> After:
    """All attempts at a tick count as one run that lasts until now. So ticks that came due meanwhile overlapped.

    `put_off`: the next tick, as it waited for the attempt that was due at `retry_at`.
    """
    planned = _by_schedule(job, put_off)
    answer = _table(job).overlapped(job.key, planned, ended_at)
    following = answer.next
    if following is not None and following.tick == planned.tick:
        earliest = _earliest_behind(job, planned, put_off, retry_at)
        following = following._replace(run_at=max(following.run_at, earliest))
    return answer._replace(next=following)


@lru_cache(maxsize=_ANSWERS_CACHED)
def _next_after(schedule: str, anchor: int, second: int) -> PlannedTick | None:
    return timetable(schedule, anchor, "").following("", second * SECOND_US)


@lru_cache(maxsize=_ANSWERS_CACHED)
def _after_run(schedule: str, anchor: int, tick: int, ended_second: int) -> After:
    ended_at = max(ended_second * SECOND_US, tick)
    return timetable(schedule, anchor, "").after_run("", PlannedTick(tick, tick), tick, ended_at)
