"""Why did it run, or not? The answer in sentences, from the books alone: what was due, what happened, who decided, and
what comes next.
"""

from cronring.controller.core.ledger.why_after import follows, next_words, verdict_after
from cronring.controller.core.ledger.why_facts import (
    TRANSACTION_US,
    ActionFact,
    Attempt,
    Facts,
    SkipFact,
    WaitingRun,
    WhyJob,
)
from cronring.controller.core.ledger.why_words import decided, instant, length, ticks, told
from cronring.schema.execution import OF_A_TICK
from cronring.schema.policy import parse_policy
from cronring.schema.policy_model import Policy

_OVERDUE_US = 2_000_000  # a claim, and a failover, fit into it
_DECIDED_BY = {
    "paused": ("pause", "resume", "cancel", "delete", "keep_paused"),
    "cancelled": ("skip_next", "cancel", "delete", "keep_cancelled"),
    "deployment_removed": ("undeploy",),
    "no_verb": ("bring_back", "delete", "cancel", "pause", "resume", "restore", "update"),
}
_PAUSES = frozenset({"pause", "resume"})
_LACKS = frozenset({"orphan", "bring_back"})
_CANCELLATIONS = frozenset({"cancel", "restore"})
_PLAIN = {  # of reasons whose sentence needs no facts
    "deployment_removed": "its deployment was removed before it could run",
    "cancelled": "somebody decided that it doesn't run",
    "no_runner": "no runner that had the job's deployment was connected",
}


def explain(facts: Facts) -> list[str]:
    """Sentences to be read one after the other."""
    if facts.followed:
        return [*follows(facts, _upstream(facts.upstream)), *_to_come(facts)]
    return [*_due(facts), *_happened(facts), *_to_come(facts)]


def _upstream(facts: Facts | None) -> list[str]:
    """What to say about the job that the asked one follows."""
    if facts is None:
        return []
    if facts.followed:
        return follows(facts, _upstream(facts.upstream))
    return _happened(facts) if facts.tick is not None and facts.tick <= facts.now else _due(facts)


def verdict(facts: Facts) -> str:
    """In a word: executed, running, skipped, paused, orphaned, waiting, overdue, future, not_due, not_followed,
    summarised or unaccounted.
    """
    if facts.followed:
        return verdict_after(facts, "" if facts.upstream is None else verdict(facts.upstream))
    tick = facts.tick
    if tick is None:
        return "not_due"
    if facts.attempts:
        return "executed" if any(run.outcome is not None for run in facts.attempts) else "running"
    if facts.skip is not None:
        return "skipped"
    return "future" if tick > facts.now else _verdict_open(facts, tick)


def _verdict_open(facts: Facts, tick: int) -> str:
    """The verdict about a due tick that has neither a run nor a skip in the books."""
    subject = facts.subject
    if facts.closed is not None and tick <= facts.closed.until_at:
        return "summarised"
    if subject.orphaned_tick is not None and tick >= subject.orphaned_tick:
        return "orphaned"
    if _is_kept_by_pause(facts, tick):
        return "paused"
    if not _is_undecided(subject, tick):
        return "unaccounted"
    due_at = subject.next_run_at if subject.next_run_at is not None else tick
    late = due_at < facts.now - _OVERDUE_US and not subject.executing
    return "overdue" if late and subject.hosted and not subject.full else "waiting"


# What was due


def _due(facts: Facts) -> list[str]:
    subject, zone = facts.subject, facts.subject.zone
    is_of_no_schedule = facts.tick is None or facts.previous_tick is None  # such a one may have been backfilled
    if facts.at < subject.created_at and is_of_no_schedule:
        return [f"{subject.key} did not exist at {instant(facts.at, zone)}: it was created at "
                f"{instant(subject.created_at, zone)}."]  # fmt: skip
    if facts.tick is not None:
        is_was = "is" if facts.tick > facts.now else "was"
        return [f"A tick of {subject.key} {is_was} due at {instant(facts.tick, zone)}."]
    if subject.removed_at is not None and facts.at > subject.removed_at:
        return [f"Nothing was due at {instant(facts.at, zone)}: {subject.key} was removed at "
                f"{instant(subject.removed_at, zone)}."]  # fmt: skip
    if facts.schedule_then == "manual":
        return [f"{subject.key} has no schedule: it runs when somebody triggers it."]
    if subject.cancelled_at is not None and facts.at > subject.cancelled_at:
        return [f"No tick of {subject.key} was due at {instant(facts.at, zone)}: it is cancelled."]
    cancelled = _cancelled_then(facts)
    if cancelled is not None:
        who = _by(cancelled.actor, cancelled.note)
        return [f"No tick of {subject.key} was due at {instant(facts.at, zone)}: it was cancelled then, since "
                f"{instant(cancelled.at, zone)}{who}.", *_neighbours(facts)]  # fmt: skip
    is_was = "is" if facts.at > facts.now else "was"
    return [f"No tick of {subject.key} {is_was} due at {instant(facts.at, zone)}, by its schedule "
            f"`{facts.schedule_then}`.", *_neighbours(facts)]  # fmt: skip


def _cancelled_then(facts: Facts) -> ActionFact | None:
    """The cancellation that was in force then. The job has been restored since."""
    latest = next((each for each in facts.actions if each.order in _CANCELLATIONS and each.at <= facts.at), None)
    return latest.origin if latest is not None and latest.order == "cancel" else None


def _neighbours(facts: Facts) -> list[str]:
    zone, previous, following = facts.subject.zone, facts.previous_tick, facts.following_tick
    if previous is None:
        return [] if following is None else [f"Its first tick is {instant(following, zone)}."]
    if following is None:
        return [f"The tick before it is {instant(previous, zone)}, and there is none after it."]
    return [f"The tick before it is {instant(previous, zone)}, the next one {instant(following, zone)}."]


# What happened, and who decided


def _happened(facts: Facts) -> list[str]:
    if facts.tick is None:
        return [*_previous_skipped(facts), *_meanwhile(facts)]
    skipped = [] if facts.skip is None else _skipped(facts, facts.skip, facts.tick)
    if facts.attempts:
        return [*skipped, *_ran(facts)]
    return skipped or _open(facts, facts.tick)


def _previous_skipped(facts: Facts) -> list[str]:
    """Why the tick before the asked instant was skipped: who asks about an instant without a tick may mean that one."""
    if facts.previous_skip is None or facts.previous_tick is None:
        return []
    what = f"The tick {instant(facts.previous_tick, facts.subject.zone)}"
    return _skipped(facts, facts.previous_skip, facts.previous_tick, what)


def _meanwhile(facts: Facts) -> list[str]:
    """What ran at an instant at which nothing was due."""
    run = facts.before
    if run is None:
        never = facts.subject.last_tick is None and facts.at >= facts.subject.created_at
        return ["It had not run before that."] if never else []
    if run.claimed_at > facts.at:
        return []
    if run.ended_at is None or run.ended_at >= facts.at:
        of = "" if run.trigger == "manual" else f" of the tick {instant(run.tick)}"
        return [f"Execution {run.execution_id}{of} was running at that time.", told(run, facts.now)]
    is_earlier = run.trigger in OF_A_TICK and run.tick != facts.previous_tick
    of = f", of the tick {instant(run.tick)}" if is_earlier else ""
    return [f"The run before that{of}: {told(run, facts.now)}"]


def _ran(facts: Facts) -> list[str]:
    sentences = [told(run, facts.now) for run in facts.attempts]
    first, last = facts.attempts[0], facts.attempts[-1]
    sentences.insert(1, decided(first))
    if last.retry_at is not None:
        sentences.append(_retried(facts, last, last.retry_at))
    return sentences


def _retried(facts: Facts, last: Attempt, retry_at: int) -> str:
    if any(each.trigger == "retry" and each.tick == last.tick for each in facts.waiting):
        return f"Attempt {last.attempt + 1} is to follow at {instant(retry_at)}."
    if facts.after is not None:
        return (f"Attempt {last.attempt + 1} was to follow at {instant(retry_at)}; the tick "
                f"{instant(facts.after.tick)} came first, and superseded it.")  # fmt: skip
    return f"Attempt {last.attempt + 1} was to follow at {instant(retry_at)}, and somebody took it back."


def _skipped(facts: Facts, skip: SkipFact, tick: int, what: str = "It") -> list[str]:
    is_ahead = tick > facts.now
    kept = f"{what} is not to run" if is_ahead else f"{what} was skipped"
    sentences = [f"{kept} ({skip.reason}): {_reason(facts, skip, tick)}."]
    if skip.ticks > 1:
        so = "So are" if is_ahead else "So were"
        span = f"from {instant(skip.first_tick)} to {instant(skip.last_tick)}"
        sentences.append(f"{so} {ticks(skip.ticks)} in all, {span}.")
    return [*sentences, _skipped_by(facts, skip)]


def _reason(facts: Facts, skip: SkipFact, tick: int) -> str:
    match skip.reason:
        case "overlap":
            return _overlap(facts, tick)
        case "paused":
            return f"the job was paused{_pause_then(facts)}"
        case "no_verb":
            return f"no active version of its module had its verb, so the job was orphaned{_orphaned_then(facts)}"
        case "outside_window":
            return f"it lies outside the job's window `{facts.policy_then.window}`"
        case "superseded":
            return _superseded(facts, skip)
        case "missed_policy":
            return f"when it could run, its policy let it run no more{_missed_policy(facts.policy_then)}"
        case _:
            return _PLAIN[skip.reason]


def _superseded(facts: Facts, skip: SkipFact) -> str:
    if not skip.controller_id:
        return "the job was given another schedule before it could run"
    if facts.after is None:
        return "by the time it could run, a later one was due as well, and was to run in its place"
    later = f"{instant(facts.after.tick)} was due as well, and ran in its place (execution {facts.after.execution_id})"
    return f"by the time it could run, {later}"


def _overlap(facts: Facts, tick: int) -> str:
    run = facts.before
    if run is None or (run.ended_at is not None and run.ended_at < tick):
        return "a run of the job was still going on"
    of = "triggered by hand" if run.trigger == "manual" else f"of the tick {instant(run.tick)}"
    until = "is still running" if run.ended_at is None else f"was running until {instant(run.ended_at)}"
    return f"execution {run.execution_id}, {of}, {until}"


def _pause_then(facts: Facts) -> str:
    """Since when, by whom and why it was paused at the tick."""
    subject, tick = facts.subject, facts.tick
    latest = next((each for each in facts.actions if each.order in _PAUSES and each.at <= (tick or facts.at)), None)
    if latest is not None and latest.order == "pause":
        since, _, by, note, _ = latest.origin
        return f" since {instant(since)}{_by(by, note)}"
    if subject.paused_at is not None and tick is not None and subject.paused_at <= max(tick, facts.now):
        return f" since {instant(subject.paused_at)}{_by(subject.paused_by, subject.paused_note)}"
    return ""


def _orphaned_then(facts: Facts) -> str:
    """Since when, and by whose deployment it had no verb at the tick."""
    when = facts.at if facts.tick is None else facts.tick
    orphaned = next((each for each in facts.actions if each.action in _LACKS and each.at <= when), None)
    if orphaned is None or orphaned.action != "orphan":
        return ""
    return f" since {instant(orphaned.at)}{_by(orphaned.actor, orphaned.note)}"


def _missed_policy(policy: Policy) -> str:
    stated = [
        f"{name}={value}"
        for name, value in (("on_missed", policy.on_missed), ("catch_up_window", policy.catch_up_window))
        if value
    ]
    return f" ({', '.join(stated)})" if stated else ""


def _skipped_by(facts: Facts, skip: SkipFact) -> str:
    at = instant(skip.decided_at)
    if skip.controller_id:
        return f"Controller {skip.controller_id} decided that at {at}."
    latest = _nearest_action(facts.actions, skip)
    if latest is not None:
        return f"That was decided at {at}{_by(latest.actor, latest.note)} ({latest.action})."
    if skip.reason in {"deployment_removed", "superseded", "no_verb"}:
        return f"That was decided at {at} by a deployment."
    return f"That was decided at {at} by an operator."


def _nearest_action(actions: tuple[ActionFact, ...], skip: SkipFact) -> ActionFact | None:
    """The action that decided the skip. Both are of one transaction, whose instants differ a little."""
    at, kinds = skip.decided_at, _DECIDED_BY.get(skip.reason)
    near = [
        action for action in actions
        if abs(action.at - at) <= TRANSACTION_US and (kinds is None or action.action in kinds)
    ]  # fmt: skip
    return min(near, key=lambda action: abs(action.at - at), default=None)


# A tick without a run or a skip


def _open(facts: Facts, tick: int) -> list[str]:
    subject = facts.subject
    match verdict(facts):
        case "future":
            return []
        case "summarised":
            assert facts.closed is not None, "its books are closed"
            return [f"Retention has removed what was known of it: of ticks up to {instant(facts.closed.until_at)} "
                    "only counts are kept."]  # fmt: skip
        case "paused":
            since = "" if subject.paused_at is None else f" since {instant(subject.paused_at)}"
            return [f"It does not run (paused): the job is paused{since}"
                    f"{_by(subject.paused_by, subject.paused_note)}."]  # fmt: skip
        case "orphaned":
            return ["It does not run (no_verb): no active version of its module has its verb."]
        case "unaccounted":
            return ["The books don't say what became of it: it was neither executed nor skipped. That must not be; "
                    f"see what else is missing: cronring audit --job {subject.key}"]  # fmt: skip
        case _:
            return _waits(facts, tick)


def _waits(facts: Facts, tick: int) -> list[str]:
    subject, now = facts.subject, facts.now
    if subject.executing or (subject.running and facts.before is not None and facts.before.outcome is None):
        run = "another run" if subject.execution_id is None else f"execution {subject.execution_id}"
        return [f"It waits for {run} to end, and is {_after_overlap(subject)} then."]
    run_at = subject.next_run_at
    if run_at is not None and tick == subject.next_tick and run_at > now:
        return [
            f"It has not begun yet: its run_at is {instant(run_at, subject.zone)}, {length(run_at - now)} from now."
        ]
    if not subject.hosted:
        seen = "" if subject.runner_seen_at is None else f" since {instant(subject.runner_seen_at)}"
        return [f"It waits for a runner: none that has {subject.deployment} is connected{seen}. "
                "Start one: cronring runner FILE"]  # fmt: skip
    if subject.full:
        return [f"It waits: {subject.full}, and goes on when one of them ends and it is its turn. "
                "See what runs: cronring limits list"]  # fmt: skip
    return [f"It has been due for {length(now - tick)}, and no controller has taken it up yet. "
            "Is one up? cronring cluster members"]  # fmt: skip


def _after_overlap(subject: WhyJob) -> str:
    match parse_policy(subject.policy).overlap:
        case "buffer_one":
            return "run if it is the latest (overlap=buffer_one)"
        case "buffer_all":
            return "run in its turn (overlap=buffer_all)"
        case "cancel_running":
            return "run (overlap=cancel_running, which is cutting that short)"
        case "allow":
            return "run as soon as fewer run at once than may (overlap=allow)"
        case _:
            return "skipped (overlap)"


def _is_kept_by_pause(facts: Facts, tick: int) -> bool:
    subject = facts.subject
    return (
        subject.paused(facts.now) and subject.next_tick is None
        and subject.paused_tick is not None and tick >= subject.paused_tick
    )  # fmt: skip


def _is_undecided(subject: WhyJob, tick: int) -> bool:
    """Whether the tick is still to be decided: it is the next tick or a later one, or comes after what runs."""
    if subject.next_tick is not None and tick >= subject.next_tick:
        return subject.last_tick is None or tick > subject.last_tick
    return subject.executing and subject.last_tick is not None and tick > subject.last_tick


# What comes next


def _to_come(facts: Facts) -> list[str]:
    subject, zone = facts.subject, facts.subject.zone
    if subject.removed_at is not None:
        ending = _running(facts)
        gone = f"It was removed at {instant(subject.removed_at, zone)}"
        anew = facts.successor
        if anew is None:
            return [*ending, f"{gone}: nothing of it will run any more."]
        made = f"{gone}, and made anew at {instant(anew.created_at, zone)}."
        return [*ending, made, *_to_come(Facts(anew, facts.now, facts.now, None, None, None))]
    sentences = _running(facts)
    if subject.cancelled_at is not None:
        who = _by(subject.cancelled_by, subject.cancelled_note)
        sentences.append(f"It has been cancelled since {instant(subject.cancelled_at, zone)}{who}: nothing runs "
                         f"until somebody restores it: cronring jobs restore {subject.key}")  # fmt: skip
        return [*sentences, *_taken_over(facts, _CANCELLATIONS)]
    if subject.orphaned_at is not None:
        sentences.append(f"It has been orphaned since {instant(subject.orphaned_at, zone)}{_by_whom(facts)}: no active "
                         "version of its module has its verb. It goes on by itself with one that has it "
                         f"(cronring deploy, cronring rollback); else: cronring jobs delete {subject.key}")  # fmt: skip
    if subject.paused(facts.now):
        sentences += [_paused(subject), *_taken_over(facts, _PAUSES)]
    sentences += [_waiting(each, facts.now) for each in facts.waiting]
    sentences += _no_place(facts)
    return [*sentences, *(next_words(facts) if facts.followed else _next(facts))]


def _by_whom(facts: Facts) -> str:
    latest = next((each for each in facts.actions if each.action == "orphan"), None)
    return "" if latest is None else _by(latest.actor, latest.note)


def _running(facts: Facts) -> list[str]:
    subject = facts.subject
    if subject.execution_id is not None and all(run.execution_id != subject.execution_id for run in facts.attempts):
        return [f"Execution {subject.execution_id} is running now."]
    return []


def _paused(subject: WhyJob) -> str:
    assert subject.paused_at is not None, "it is paused"
    who = _by(subject.paused_by, subject.paused_note)
    until = f"somebody resumes it: cronring jobs resume {subject.key}"
    if subject.paused_until is not None:
        until = f"{instant(subject.paused_until, subject.zone)}."
    return f"It has been paused since {instant(subject.paused_at, subject.zone)}{who}, until {until}"


def _taken_over(facts: Facts, orders: frozenset[str]) -> list[str]:
    """Tells that a deployment brought the job back, and kept the pause or cancellation of the removed job."""
    latest = next((each for each in facts.actions if each.order in orders), None)
    if latest is None or latest.action == latest.order:
        return []
    return [f"That was taken over from the job of that name before, as a deployment{_by(latest.actor, latest.note)} "
            f"brought it back at {instant(latest.at, facts.subject.zone)}."]  # fmt: skip


def _waiting(each: WaitingRun, now: int) -> str:
    by = _by(each.requested_by, "")
    when = f"not before {instant(each.run_at)}" if each.run_at > now else "as soon as it may run"
    if each.trigger == "retry":
        return f"Attempt {each.attempt} at the tick {instant(each.tick)} waits{by}: {when}."
    if each.trigger == "manual":
        return f"A run triggered{by} at {instant(each.tick)} waits: {when}."
    if each.trigger == "after":
        return f"The run after the tick {instant(each.tick)} waits: {when}."
    until = "" if each.until_tick is None else f" to {instant(each.until_tick)}"
    return f"A backfill asked for{by} waits with the ticks from {instant(each.tick)}{until}."


def _no_place(facts: Facts) -> list[str]:
    """That a limit keeps a run beside the schedule waiting. (`_waits` tells so of a tick.)"""
    subject = facts.subject
    if not subject.full or subject.executing or all(each.run_at > facts.now for each in facts.waiting):
        return []
    return [f"There is no place for it now: {subject.full}. See what runs: cronring limits list"]


def _next(facts: Facts) -> list[str]:
    subject, zone, now = facts.subject, facts.subject.zone, facts.now
    tick, run_at = subject.next_tick, subject.next_run_at
    if tick is None or run_at is None:
        waits = subject.orphaned_at is not None or subject.paused(now)
        if waits or subject.executing or subject.schedule == "manual":
            return []
        return ["Its schedule has no further tick."]
    if subject.executing and subject.last_tick is not None and tick <= subject.last_tick:
        return ["Which tick is next is decided when that ends."]
    if tick == facts.tick and tick <= now:
        return []  # `_waits` has told what it waits for
    if run_at <= now:
        return [f"Its next tick, {instant(tick, zone)}, has been due for {length(now - run_at)}."]
    within = subject.upcoming
    if within is None:
        return ["No further tick of its schedule lies in its window."]
    tick, run_at = within
    jitter = "" if run_at == tick else f", to run at {instant(run_at)}"
    sentences = [f"Its next tick is {instant(tick, zone)}, in {length(run_at - now)}{jitter}."]
    if not subject.hosted:
        sentences.append(f"No runner that has {subject.deployment} is connected now: start one, or it can't run then.")
    return sentences


def _by(actor: str | None, note: str | None) -> str:
    by = f" by {actor}" if actor else ""
    return f"{by} (“{note}”)" if note else by
