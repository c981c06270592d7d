"""Where the core asks `schema` about ticks: what a job's schedule and policy say.

A herd shares its texts and its instants, so what a batch asks is asked thousands of times over. Jobs without a policy
(nearly all) get their answers from a cache by schedule and second: ticks stand on whole seconds, so within one second
the answers don't change.
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
    """Whether an execution of it ends by what becomes of its message."""
    return bool(job.policy) and _table(job).policy.completes == CONSUMED


def enqueues(job: Job) -> bool:
    """Whether a tick of it is completed once its message is in the queue."""
    return puts_messages(job.deployment) and not awaits_consumer(job)


def buffers(job: Job) -> bool:
    """Whether a tick that comes due while a run of before goes on waits for its end."""
    return bool(job.policy) and _table(job).policy.overlap in ("buffer_one", "buffer_all")


def cuts(job: Job) -> bool:
    """Whether the next tick cancels what runs."""
    return (
        bool(job.policy) and _table(job).policy.overlap == "cancel_running" and not unread_of(job.schedule, job.policy)
    )


def has_quota(job: Job) -> bool:
    """Whether its runs have a limit of memory or CPU, and so a child process for each."""
    policy = _table(job).policy
    return bool(policy.memory_limit or policy.cpu_limit)


def priority(job: Job, trigger: str = Trigger.SCHEDULE) -> int:
    """By how many seconds a run comes before what came due with it, where places are short."""
    own = _table(job).policy.priority if job.policy else 0
    return own - BACKFILL_BENEATH if trigger == Trigger.BACKFILL else own


def following(job: Job, instant_us: int) -> PlannedTick | None:
    """The first tick after `instant_us` and its run_at; None if there is none."""
    if job.policy:
        return _table(job).following(job.key, instant_us)
    return _next_after(job.schedule, job.anchor, instant_us // SECOND_US)


def upcoming(key: str, timing: tuple[str, int, str], tick: int | None, run_at: int | None) -> PlannedTick | None:
    """What people are told is next: the row's next tick, or, if its window forbids that, the first one within.

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
    """What comes after a tick that is completed by its claim: as after a run that begins and ends now."""
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
    """How many of these the next run stands for, beside its own: none that a pause or a window kept from running."""
    return sum(part.ticks for part in skipped if part.reason in _MISSED)


def passed(job: Job, planned: PlannedTick, now_us: int, reason: SkipReason) -> After:
    """`planned` and all that have come due since are not to run."""
    return _table(job).passed(job.key, planned, now_us, reason)


def ended(execution: Execution, report: Report, now_us: int) -> int:
    """When it ended, as far as anybody can say: of a lost run only that it has by now."""
    return now_us if report.outcome is Outcome.LOST else min(max(report.ended_at, execution.claimed_at), now_us)


# docs/decisions/0016: a row that was changed while it ran has decided its next tick
def after_run(execution: Execution, report: Report, now_us: int) -> After:
    """The tick after a run, and those that passed while it ran.

    What passed after its end, while the end couldn't be committed, didn't overlap with it: the missed policy decides
    about that at the next claim. Of a lost run nobody knows when it ended; only that it has by now.

    If the job was removed or paused while it ran, it has no next tick. A next tick beyond the one that ran is the first
    that nobody has decided: the job was rescheduled meanwhile (see redeploy), or the run was none of its schedule's.
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

    `undecided`: what comes next otherwise. Jitter lets an interval's ticks run, and be skipped, before their instants:
    the moved one comes after all that have been decided. Beyond the schedule's end there is none. The books change
    hands there too: what the old anchor had beyond is nobody's, and the new one has nothing before its own next tick.
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
    """When to try again; None: not, or the next tick comes before that.

    `next_run_at`: of the tick that the job goes on to, if this end says so. A run beside others (overlap "allow") has a
    next tick of its own, which came or comes whatever it does. A manual run and a backfill have none.
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
    """When the tick after `tick` runs, by the job's row, whether that is of before the claim of `tick` or of since.

    Of the schedule's instants alone, some may be of before it was in force. What is claimed that the row doesn't know
    yet, EndAnyRun knows: it plans no retry of a tick before that.
    """
    if job.next_tick is not None and job.next_tick > tick:
        return job.next_run_at
    planned = following(job, tick)
    return None if planned is None else planned.run_at


# docs/decisions/0081: the tick that came before the retry would never run, either
def retries_first(job: Job) -> bool:
    """Whether the job's next tick waits for a retry, in place of superseding it: the job's first failure pauses it."""
    policy = _table(job).policy if job.policy else None
    return policy is not None and policy.pause_after_failures == 1 and policy.overlap != "allow"


def behind_retry(job: Job, planned: PlannedTick, retry_at_us: int) -> PlannedTick:
    """When a tick runs that waits for a retry. Should the retry be kept from running, it doesn't wait for ever.

    Where it is due later than its schedule says, for the distance from a late start, it is that much later here, too.
    """
    due = _by_schedule(job, planned).run_at
    put_off = max(due, retry_at_us + RETRY_PATIENCE_US) + _distance(job, planned.run_at - due)
    return planned._replace(run_at=max(planned.run_at, put_off))


def _earliest_behind(job: Job, planned: PlannedTick, put_off: PlannedTick, retry_at_us: int) -> int:
    """When what `behind_retry` put off was due."""
    later = put_off.run_at - max(planned.run_at, retry_at_us + RETRY_PATIENCE_US)
    return planned.run_at + _distance(job, later)


def _distance(job: Job, later_us: int) -> int:
    """What of a delay may be the distance from a late start. It may be a run that was waited for, or a changed row."""
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
    # The end of a pause may keep that tick from running before.
    return planned.run_at if own or planned.tick != job.next_tick else max(planned.run_at, job.next_run_at)


# docs/decisions/0027: ticks before the claim were missed, not overlapped
def _undecided(job: Job, planned: PlannedTick, claimed_at: int, ended_at: int) -> After:
    """`planned` is next, unless it came due during the run.

    What had been due before that was missed, and is for the next claim to decide: a run by hand that comes first after
    an outage must not take the place of the ticks that are to be caught up.
    """
    if not claimed_at < planned.run_at <= ended_at:
        return After(planned, ())
    return _table(job).overlapped(job.key, planned, ended_at)


def _after_retries(job: Job, put_off: PlannedTick, retry_at: int, ended_at: int) -> After:
    """All attempts at a tick are as one run that lasts until now: what came due meanwhile overlapped.

    `put_off`: the next tick, as it waits for the attempt that was to run at `retry_at`.
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
