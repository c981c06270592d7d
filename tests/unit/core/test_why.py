"""Why: facts in, sentences out. Each line of the table is something that somebody asks one day."""

import pytest

from cronring.controller.core.ledger.books import Closed, Span, TickTimeline
from cronring.controller.core.ledger.why import explain, verdict
from cronring.controller.core.ledger.why_facts import (
    ActionFact,
    Attempt,
    Facts,
    Focus,
    SkipFact,
    WaitingRun,
    WhyJob,
    focus,
    subject_at,
)
from cronring.schema.policy import Policy

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
T9 = 1_795_251_600 * SECOND  # 2026-11-21T09:00:00Z; the job's ticks are each ten minutes
KEY = "billing.sync"
JOB = WhyJob(
    1, KEY, "*/10 * * * *", "", "billing@1", "annotation", T9 - 48 * HOUR, None, False, None, 0, T9 + 10 * MINUTE,
    T9 + 10 * MINUTE, T9, None, None, None, None, None, None, None, None, None, None, True, T9,
)  # fmt: skip
RUN = Attempt(
    12, T9, 1, "schedule", T9, T9 + 3_000, T9 + 100_000, T9 + 3_100_000, "completed", "", "", "c1", "r1", None
)
DUE = "A tick of billing.sync was due at 2026-11-21 09:00:00Z."
CLAIMED = "Controller c1 claimed it at 2026-11-21 09:00:00.003Z; it ran on runner r1."
NEXT = "Its next tick is 2026-11-21 09:10:00Z, in 5m."
BERLIN = Policy(timezone="Europe/Berlin").text


def job(**changes: object) -> WhyJob:
    return JOB._replace(**changes)  # type: ignore[arg-type]  # fields by name


def run(**changes: object) -> Attempt:
    return RUN._replace(**changes)  # type: ignore[arg-type]  # fields by name


def facts(**changes: object) -> Facts:
    """At 09:05, about the tick of 09:00."""
    made = Facts(JOB, T9 + 5 * MINUTE, T9, T9, T9 - 10 * MINUTE, T9 + 10 * MINUTE)
    return made._replace(**changes)  # type: ignore[arg-type]  # fields by name


def skip(reason: str, ticks: int = 1, controller: str = "c2") -> SkipFact:
    return SkipFact(reason, T9, T9 + (ticks - 1) * 10 * MINUTE, ticks, controller, T9 + 2 * SECOND)


def paused(**changes: object) -> WhyJob:
    stands = job(next_tick=None, next_run_at=None, paused_at=T9 - 5 * MINUTE, paused_tick=T9, paused_by="ada",
                 paused_note="disk full", last_tick=T9 - 10 * MINUTE)  # fmt: skip
    return stands._replace(**changes)  # type: ignore[arg-type]  # fields by name


PAUSED = (
    "It has been paused since 2026-11-21 08:55:00Z by ada (“disk full”), until somebody resumes it: "
    "cronring jobs resume billing.sync"
)
BUSY = job(executing=True, execution_id=11, next_tick=T9 - 10 * MINUTE, next_run_at=T9 - 10 * MINUTE,
           last_tick=T9 - 10 * MINUTE)  # fmt: skip
EARLIER = run(execution_id=11, tick=T9 - 10 * MINUTE, run_at=T9 - 10 * MINUTE, claimed_at=T9 - 10 * MINUTE,
              started_at=T9 - 10 * MINUTE, ended_at=T9 + 90 * SECOND)  # fmt: skip
LATER = run(execution_id=13, tick=T9 + 30 * MINUTE)

TABLE: dict[str, tuple[Facts, str, list[str]]] = {
    "it ran": (
        facts(attempts=(RUN,)), "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and completed.", CLAIMED, NEXT],
    ),
    "it failed": (
        facts(attempts=(run(outcome="failed", error_type="ValueError", error_message="no\nno such account"),)),
        "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and failed with ValueError: no such account.",
         CLAIMED, NEXT],
    ),
    "with jitter, in a zone": (
        facts(subject=job(policy=BERLIN), attempts=(run(run_at=T9 + 4 * SECOND, claimed_at=T9 + 4 * SECOND,
              started_at=T9 + 5 * SECOND, ended_at=T9 + 5 * SECOND),)),
        "executed",
        ["A tick of billing.sync was due at 2026-11-21 09:00:00Z (2026-11-21 10:00:00 Europe/Berlin).",
         "Execution 12 started 1s after its run_at, 2026-11-21 09:00:04Z, took 0ms and completed.",
         "Controller c1 claimed it at 2026-11-21 09:00:04Z; it ran on runner r1.",
         "Its next tick is 2026-11-21 09:10:00Z (2026-11-21 10:10:00 Europe/Berlin), in 5m."],
    ),
    "it runs, its runner has said nothing yet": (
        facts(subject=job(executing=True, execution_id=12), attempts=(run(started_at=None, ended_at=None,
              outcome=None),), now=T9 + 2 * SECOND),
        "running",
        [DUE, "Execution 12 was claimed 3ms after its run_at, and has been running for 2s.", CLAIMED,
         "Its next tick is 2026-11-21 09:10:00Z, in 9m58s."],
    ),
    "lost, and tried again": (
        facts(attempts=(run(outcome="lost", error_message="the runner was not seen for 9 s", retry_at=T9 + MINUTE),
                        run(execution_id=14, attempt=2, trigger="retry", run_at=T9 + MINUTE,
                            claimed_at=T9 + MINUTE, started_at=T9 + MINUTE, ended_at=T9 + MINUTE + SECOND))),
        "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and was lost: its runner was heard of no more "
         "(the runner was not seen for 9 s).", CLAIMED,
         "Attempt 2, execution 14, started at 2026-11-21 09:01:00Z, took 1s and completed.", NEXT],
    ),
    "its retry waits": (
        facts(attempts=(run(outcome="failed", retry_at=T9 + 6 * MINUTE),),
              waiting=(WaitingRun(3, "retry", T9, None, 2, T9 + 6 * MINUTE, ""),)),
        "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and failed.", CLAIMED,
         "Attempt 2 is to follow at 2026-11-21 09:06:00Z.",
         "Attempt 2 at the tick 2026-11-21 09:00:00Z waits: not before 2026-11-21 09:06:00Z.", NEXT],
    ),
    "it went over a limit": (
        facts(attempts=(run(outcome="out_of_memory", error_type="MemoryLimit", error_message="it held 301 MiB"),)),
        "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and went over its memory_limit "
         "(it held 301 MiB).", CLAIMED, NEXT],
    ),
    "its retry was superseded": (
        facts(attempts=(run(outcome="timed_out", retry_at=T9 + 40 * MINUTE),), after=LATER),
        "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and ran out of its time.", CLAIMED,
         "Attempt 2 was to follow at 2026-11-21 09:40:00Z; the tick 2026-11-21 09:30:00Z came first, and superseded "
         "it.", NEXT],
    ),
    "caught up": (
        facts(attempts=(run(trigger="catch_up", claimed_at=T9 + HOUR, started_at=T9 + HOUR,
                            ended_at=T9 + HOUR + SECOND),), now=T9 + 2 * HOUR,
              subject=job(next_tick=T9 + 2 * HOUR + MINUTE, next_run_at=T9 + 2 * HOUR + MINUTE)),
        "executed",
        [DUE, "It was caught up: execution 12 started 1h after it was due, took 1s and completed.",
         "Controller c1 claimed it at 2026-11-21 10:00:00Z; it ran on runner r1.",
         "Its next tick is 2026-11-21 11:01:00Z, in 1m."],
    ),
    "skipped, and backfilled": (
        facts(skip=skip("superseded", 3), after=LATER,
              attempts=(run(trigger="backfill", started_at=T9 + HOUR, ended_at=T9 + HOUR),)),
        "executed",
        [DUE, "It was skipped (superseded): by the time it could run, 2026-11-21 09:30:00Z was due as well, and ran in "
         "its place (execution 13).",
         "So were 3 ticks in all, from 2026-11-21 09:00:00Z to 2026-11-21 09:20:00Z.",
         "Controller c2 decided that at 2026-11-21 09:00:02Z.",
         "A backfill made up for it: execution 12 started at 2026-11-21 10:00:00Z, took 0ms and completed.", CLAIMED,
         NEXT],
    ),
    "overlap": (
        facts(skip=skip("overlap"), before=EARLIER), "skipped",
        [DUE, "It was skipped (overlap): execution 11, of the tick 2026-11-21 08:50:00Z, was running until "
         "2026-11-21 09:01:30Z.", "Controller c2 decided that at 2026-11-21 09:00:02Z.", NEXT],
    ),
    "overlap with a run by hand that still goes on": (
        facts(skip=skip("overlap"), before=run(execution_id=11, trigger="manual", tick=T9 - 61, ended_at=None,
                                               outcome=None)),
        "skipped",
        [DUE, "It was skipped (overlap): execution 11, triggered by hand, is still running.",
         "Controller c2 decided that at 2026-11-21 09:00:02Z.", NEXT],
    ),
    "no runner": (
        facts(skip=skip("no_runner", 2), subject=job(hosted=False)), "skipped",
        [DUE, "It was skipped (no_runner): no runner that had the job's deployment was connected.",
         "So were 2 ticks in all, from 2026-11-21 09:00:00Z to 2026-11-21 09:10:00Z.",
         "Controller c2 decided that at 2026-11-21 09:00:02Z.", NEXT,
         "No runner that has billing@1 is connected now: start one, or it can't run then."],
    ),
    "outside its window": (
        facts(skip=skip("outside_window"), subject=job(policy=Policy(window="10:00-18:00").text)), "skipped",
        [DUE, "It was skipped (outside_window): it lies outside the job's window `10:00-18:00`.",
         "Controller c2 decided that at 2026-11-21 09:00:02Z.", "Its next tick is 2026-11-21 10:00:00Z, in 55m."],
    ),
    "outside the window that it had then": (
        facts(skip=skip("outside_window"), then=Span(JOB.schedule, 0, 0, T9, Policy(window="10:00-18:00").text)),
        "skipped",
        [DUE, "It was skipped (outside_window): it lies outside the job's window `10:00-18:00`.",
         "Controller c2 decided that at 2026-11-21 09:00:02Z.", NEXT],
    ),
    "too late by its policy of then": (
        facts(skip=skip("missed_policy"), then=Span(JOB.schedule, 0, 0, T9, Policy(on_missed="skip").text)), "skipped",
        [DUE, "It was skipped (missed_policy): when it could run, its policy let it run no more (on_missed=skip).",
         "Controller c2 decided that at 2026-11-21 09:00:02Z.", NEXT],
    ),
    "no tick by its schedule of then": (
        facts(tick=None, at=T9 + 1 * MINUTE, then=Span("0 * * * *", 0, 0, T9 + HOUR)), "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:01:00Z, by its schedule `0 * * * *`.",
         "The tick before it is 2026-11-21 08:50:00Z, the next one 2026-11-21 09:10:00Z.", NEXT],
    ),
    "too late by its policy": (
        facts(skip=skip("missed_policy"), subject=job(policy=Policy(on_missed="skip").text)), "skipped",
        [DUE, "It was skipped (missed_policy): when it could run, its policy let it run no more (on_missed=skip).",
         "Controller c2 decided that at 2026-11-21 09:00:02Z.", NEXT],
    ),
    "rescheduled": (
        facts(skip=skip("superseded", controller="")), "skipped",
        [DUE, "It was skipped (superseded): the job was given another schedule before it could run.",
         "That was decided at 2026-11-21 09:00:02Z by a deployment.", NEXT],
    ),
    "its deployment was removed": (
        facts(skip=skip("deployment_removed", controller=""),
              subject=job(removed_at=T9 + 2 * SECOND, next_tick=None, next_run_at=None),
              actions=(ActionFact(T9 + 2 * SECOND + 5, "undeploy", "ada", "sold"),)),
        "skipped",
        [DUE, "It was skipped (deployment_removed): its deployment was removed before it could run.",
         "That was decided at 2026-11-21 09:00:02Z by ada (“sold”) (undeploy).",
         "It was removed at 2026-11-21 09:00:02Z: nothing of it will run any more."],
    ),
    "it is deployed again": (
        facts(skip=skip("deployment_removed", controller=""), successor=job(job_id=2, created_at=T9 + 3 * MINUTE),
              subject=job(removed_at=T9 + 2 * SECOND, next_tick=None, next_run_at=None),
              actions=(ActionFact(T9 + 2 * SECOND + 5, "undeploy", "ada", "sold"),)),
        "skipped",
        [DUE, "It was skipped (deployment_removed): its deployment was removed before it could run.",
         "That was decided at 2026-11-21 09:00:02Z by ada (“sold”) (undeploy).",
         "It was removed at 2026-11-21 09:00:02Z, and made anew at 2026-11-21 09:03:00Z.", NEXT],
    ),
    "skip-next": (
        facts(skip=skip("cancelled", controller=""), actions=(ActionFact(T9 + 2 * SECOND, "skip_next", "bob", ""),)),
        "skipped",
        [DUE, "It was skipped (cancelled): somebody decided that it doesn't run.",
         "That was decided at 2026-11-21 09:00:02Z by bob (skip_next).", NEXT],
    ),
    "skip-next, of a tick to come": (
        facts(tick=T9 + 10 * MINUTE, at=T9 + 10 * MINUTE, subject=job(next_tick=T9 + 20 * MINUTE,
                                                                      next_run_at=T9 + 20 * MINUTE),
              skip=SkipFact("cancelled", T9 + 10 * MINUTE, T9 + 10 * MINUTE, 1, "", T9 + 4 * MINUTE)),
        "skipped",
        ["A tick of billing.sync is due at 2026-11-21 09:10:00Z.",
         "It is not to run (cancelled): somebody decided that it doesn't run.",
         "That was decided at 2026-11-21 09:04:00Z by an operator.", "Its next tick is 2026-11-21 09:20:00Z, in 15m."],
    ),
    "it had been paused": (
        facts(skip=skip("paused", controller=""), now=T9 + 5 * MINUTE,
              actions=(ActionFact(T9 + 2 * SECOND, "resume", "bob", ""),
                       ActionFact(T9 - HOUR, "pause", "ada", "disk full"))),
        "skipped",
        [DUE, "It was skipped (paused): the job was paused since 2026-11-21 08:00:00Z by ada (“disk full”).",
         "That was decided at 2026-11-21 09:00:02Z by bob (resume).", NEXT],
    ),
    "it is paused": (
        facts(subject=paused()), "paused",
        [DUE, "It does not run (paused): the job is paused since 2026-11-21 08:55:00Z by ada (“disk full”).", PAUSED],
    ),
    "it is paused until later": (
        facts(subject=paused(paused_until=T9 + HOUR, next_tick=T9 + HOUR, next_run_at=T9 + HOUR),
              skip=SkipFact("paused", T9, T9 + 50 * MINUTE, 6, "", T9 - 5 * MINUTE),
              actions=(ActionFact(T9 - 5 * MINUTE, "pause", "ada", "disk full"),)),
        "skipped",
        [DUE, "It was skipped (paused): the job was paused since 2026-11-21 08:55:00Z by ada (“disk full”).",
         "So were 6 ticks in all, from 2026-11-21 09:00:00Z to 2026-11-21 09:50:00Z.",
         "That was decided at 2026-11-21 08:55:00Z by ada (“disk full”) (pause).",
         "It has been paused since 2026-11-21 08:55:00Z by ada (“disk full”), until 2026-11-21 10:00:00Z.",
         "Its next tick is 2026-11-21 10:00:00Z, in 55m."],
    ),
    "it waits for what runs": (
        facts(subject=BUSY, before=EARLIER._replace(ended_at=None, outcome=None)), "waiting",
        [DUE, "It waits for execution 11 to end, and is skipped (overlap) then.", "Execution 11 is running now.",
         "Which tick is next is decided when that ends."],
    ),
    "it is buffered": (
        facts(subject=BUSY._replace(policy=Policy(overlap="buffer_one").text)), "waiting",
        [DUE, "It waits for execution 11 to end, and is run if it is the latest (overlap=buffer_one) then.",
         "Execution 11 is running now.",
         "Which tick is next is decided when that ends."],
    ),
    "it waits for a runner": (
        facts(subject=job(next_tick=T9, next_run_at=T9, last_tick=None, hosted=False, runner_seen_at=T9 - MINUTE)),
        "waiting",
        [DUE, "It waits for a runner: none that has billing@1 is connected since 2026-11-21 08:59:00Z. "
         "Start one: cronring runner FILE"],
    ),
    "it waits for a place": (
        facts(subject=job(next_tick=T9, next_run_at=T9, last_tick=None, full="module billing runs 5 of 5")), "waiting",
        [DUE, "It waits: module billing runs 5 of 5, and goes on when one of them ends and it is its turn. "
         "See what runs: cronring limits list"],
    ),
    "no controller looks after it": (
        facts(subject=job(next_tick=T9, next_run_at=T9, last_tick=None)), "overdue",
        [DUE, "It has been due for 5m, and no controller has taken it up yet. Is one up? cronring cluster members"],
    ),
    "its jitter is to come": (
        facts(subject=job(next_tick=T9, next_run_at=T9 + 6 * MINUTE, last_tick=None)), "waiting",
        [DUE, "It has not begun yet: its run_at is 2026-11-21 09:06:00Z, 1m from now."],
    ),
    "nowhere": (
        facts(subject=job(last_tick=T9)), "unaccounted",
        [DUE, "The books don't say what became of it: it was neither executed nor skipped. That must not be; see what "
         "else is missing: cronring audit --job billing.sync", NEXT],
    ),
    "retention has removed it": (
        facts(closed=Closed(1, T9 + MINUTE, 9, 9, 0, 0, {}, {})), "summarised",
        [DUE, "Retention has removed what was known of it: of ticks up to 2026-11-21 09:01:00Z only counts are kept.",
         NEXT],
    ),
    "to come": (
        facts(tick=T9 + HOUR, at=T9 + HOUR), "future",
        ["A tick of billing.sync is due at 2026-11-21 10:00:00Z.", NEXT],
    ),
    "between ticks, while one ran": (
        facts(tick=None, at=T9 + SECOND, before=RUN), "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:00:01Z, by its schedule `*/10 * * * *`.",
         "The tick before it is 2026-11-21 08:50:00Z, the next one 2026-11-21 09:10:00Z.",
         "Execution 12 of the tick 2026-11-21 09:00:00Z was running at that time.",
         "Execution 12 started 100ms after it was due, took 3s and completed.", NEXT],
    ),
    "between ticks": (
        facts(tick=None, at=T9 + 7 * SECOND, before=RUN, previous_tick=T9), "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:00:07Z, by its schedule `*/10 * * * *`.",
         "The tick before it is 2026-11-21 09:00:00Z, the next one 2026-11-21 09:10:00Z.",
         "The run before that: Execution 12 started 100ms after it was due, took 3s and completed.", NEXT],
    ),
    "between ticks, of which the one before was skipped": (
        facts(tick=None, at=T9 + 7 * SECOND, before=EARLIER._replace(ended_at=T9 - 9 * MINUTE), previous_tick=T9,
              previous_skip=skip("cancelled", controller=""),
              actions=(ActionFact(T9 + 2 * SECOND, "skip_next", "bo", ""),)),
        "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:00:07Z, by its schedule `*/10 * * * *`.",
         "The tick before it is 2026-11-21 09:00:00Z, the next one 2026-11-21 09:10:00Z.",
         "The tick 2026-11-21 09:00:00Z was skipped (cancelled): somebody decided that it doesn't run.",
         "That was decided at 2026-11-21 09:00:02Z by bo (skip_next).",
         "The run before that, of the tick 2026-11-21 08:50:00Z: Execution 11 started 0ms after it was due, took "
         "1m and completed.", NEXT],
    ),
    "while it was cancelled": (
        facts(tick=None, at=T9, actions=(ActionFact(T9 - MINUTE, "cancel", "ada", "wrong data"),)), "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:00:00Z: it was cancelled then, since 2026-11-21 08:59:00Z "
         "by ada (“wrong data”).",
         "The tick before it is 2026-11-21 08:50:00Z, the next one 2026-11-21 09:10:00Z.", NEXT],
    ),
    "after it had been restored": (
        facts(tick=None, at=T9 + SECOND,
              actions=(ActionFact(T9, "restore", "bob", ""), ActionFact(T9 - MINUTE, "cancel", "ada", ""))), "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:00:01Z, by its schedule `*/10 * * * *`.",
         "The tick before it is 2026-11-21 08:50:00Z, the next one 2026-11-21 09:10:00Z.", NEXT],
    ),
    "it never ran": (
        facts(tick=None, at=T9 + 5 * MINUTE, subject=job(last_tick=None), previous_tick=None), "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:05:00Z, by its schedule `*/10 * * * *`.",
         "Its first tick is 2026-11-21 09:10:00Z.", "It had not run before that.", NEXT],
    ),
    "before it was there": (
        facts(tick=None, at=T9 - 72 * HOUR), "not_due",
        ["billing.sync did not exist at 2026-11-18 09:00:00Z: it was created at 2026-11-19 09:00:00Z.", NEXT],
    ),
    "after it was removed": (
        facts(tick=None, subject=job(removed_at=T9 - HOUR, next_tick=None, next_run_at=None)), "not_due",
        ["Nothing was due at 2026-11-21 09:00:00Z: billing.sync was removed at 2026-11-21 08:00:00Z.",
         "It was removed at 2026-11-21 08:00:00Z: nothing of it will run any more."],
    ),
    "cancelled": (
        facts(tick=None, subject=job(cancelled_at=T9 - HOUR, cancelled_by="ada", cancelled_note="", next_tick=None,
                                     next_run_at=None)),
        "not_due",
        ["No tick of billing.sync was due at 2026-11-21 09:00:00Z: it is cancelled.",
         "It has been cancelled since 2026-11-21 08:00:00Z by ada: nothing runs until somebody restores it: "
         "cronring jobs restore billing.sync"],
    ),
    "by hand only": (
        facts(tick=None, subject=job(schedule="manual", next_tick=None, next_run_at=None, last_tick=None),
              previous_tick=None, following_tick=None, before=run(
                  trigger="manual", tick=T9 - 1, claimed_at=T9 - 1, started_at=T9, ended_at=T9 + SECOND),
              waiting=(WaitingRun(8, "manual", T9 + MINUTE, None, 1, T9 + MINUTE, "bob"),)),
        "not_due",
        ["billing.sync has no schedule: it runs when somebody triggers it.",
         "Execution 12 was running at that time.",
         "Execution 12, triggered by hand, started at 2026-11-21 09:00:00Z, took 1s and completed.",
         "A run triggered by bob at 2026-11-21 09:01:00Z waits: as soon as it may run."],
    ),
    "its schedule is over, and a backfill waits": (
        facts(attempts=(RUN,), subject=job(next_tick=None, next_run_at=None),
              waiting=(WaitingRun(8, "backfill", T9 - HOUR, T9, 1, T9, "bob"),)),
        "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and completed.", CLAIMED,
         "A backfill asked for by bob waits with the ticks from 2026-11-21 08:00:00Z to 2026-11-21 09:00:00Z.",
         "Its schedule has no further tick."],
    ),
    "cancelled, and killed for it": (
        facts(attempts=(run(outcome="cancelled", error_message="cancelled by ada: wrong data\nkilled: did not stop"),)),
        "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and was cancelled "
         "(cancelled by ada: wrong data; killed: did not stop).", CLAIMED, NEXT],
    ),
    "cancelled while it ran": (
        facts(attempts=(run(outcome="cancelled", error_message="cancelled by ada: wrong data"),)), "executed",
        [DUE, "Execution 12 started 100ms after it was due, took 3s and was cancelled "
         "(cancelled by ada: wrong data).", CLAIMED, NEXT],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_each_case_has_its_sentences(name: str) -> None:
    given, word, sentences = TABLE[name]
    assert (verdict(given), explain(given)) == (word, sentences)


def test_the_latest_tick_is_meant_unless_an_instant_is_named() -> None:
    timeline = TickTimeline([Span("*/10 * * * *", 0, T9 - HOUR, None)])
    assert focus(timeline, None, T9 + MINUTE) == Focus(T9, T9 - 10 * MINUTE, T9 + 10 * MINUTE)
    assert focus(timeline, T9 + 400_000, T9 + MINUTE).tick == T9
    assert focus(timeline, T9 + SECOND, T9 + MINUTE) == Focus(None, T9, T9 + 10 * MINUTE)
    assert focus(TickTimeline([Span("manual", 0, T9, None)]), None, T9 + HOUR) == Focus(None, None, None)
    assert focus(TickTimeline([Span("0 10 * * *", 0, T9, None)]), None, T9 + MINUTE) == Focus(None, None, T9 + HOUR)


def test_of_several_jobs_of_a_key_the_one_of_that_time_is_meant() -> None:
    old, new = job(job_id=1, removed_at=T9), job(job_id=2, created_at=T9 + HOUR)
    assert subject_at([new, old], T9 - HOUR) is old
    assert subject_at([new, old], T9 + 2 * HOUR) is new
    assert subject_at([new, old], T9 + MINUTE) is new, "between the two: of the newest it is said when it began"
