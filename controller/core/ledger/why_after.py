"""Why a follower ran for a tick, or not. The tick is that of the job that it follows."""

from collections.abc import Sequence

from cronring.controller.core.ledger.why_facts import Attempt, Facts, WaitingRun
from cronring.controller.core.ledger.why_words import decided, instant, told

_ABSENCES = {
    "cancel": "the job was cancelled then",
    "orphan": "the job was orphaned then, as no active version of its module had its verb",
}
_RETURNS = frozenset({"restore", "bring_back"})
_STILL_TO_COME = frozenset({"running", "waiting", "overdue"})


def follows(facts: Facts, upstream_words: Sequence[str]) -> list[str]:
    """Sentences. `upstream_words`: what became of the followed job's tick, or that there was none."""
    subject, upstream = facts.subject, facts.upstream
    sentences = [f"{subject.key} runs after {facts.followed}: once for each tick of it that has succeeded."]
    if upstream is None:
        return [*sentences, f"There is no job {facts.followed}, so nothing leads to a run until it is deployed."]
    if facts.attempts:
        return [*sentences, f"It ran for the tick {_tick(facts)}.", *_ran(facts.attempts)]
    if facts.tick is None:
        return [*sentences, *upstream_words]
    success = _success(upstream)
    if success is None:
        return [*sentences, f"The tick {_tick(facts)} of {facts.followed} has not succeeded.", *upstream_words]
    sentences.append(f"The tick {_tick(facts)} of {facts.followed} succeeded: {told(success, facts.now)}")
    return [*sentences, _not_run(facts, success)]


def verdict_after(facts: Facts, upstream_verdict: str) -> str:
    """In a word, as why.verdict. `not_followed`: the followed job's tick did not succeed."""
    if facts.attempts:
        return "executed" if any(run.outcome is not None for run in facts.attempts) else "running"
    if facts.upstream is None or facts.tick is None:
        return "not_due"
    if _waits(facts) is not None:
        if facts.subject.orphaned_at is not None:
            return "orphaned"
        return "paused" if facts.subject.paused(facts.now) else "waiting"
    success = _success(facts.upstream)
    if success is not None:
        return "unaccounted" if _is_owed(facts, success) else "not_due"
    if upstream_verdict in _STILL_TO_COME or _is_retried(facts.upstream):
        return "waiting"
    return upstream_verdict if upstream_verdict in {"future", "summarised"} else "not_followed"


def next_words(facts: Facts) -> list[str]:
    """What it is to follow next."""
    upstream = facts.upstream
    if upstream is None or upstream.subject.next_tick is None:
        return []
    zone = upstream.subject.zone
    return [f"The next tick of {facts.followed} is {instant(upstream.subject.next_tick, zone)}."]


def _tick(facts: Facts) -> str:
    assert facts.tick is not None, "a tick of the job that it follows"
    return instant(facts.tick, "" if facts.upstream is None else facts.upstream.subject.zone)


def _ran(attempts: Sequence[Attempt]) -> list[str]:
    sentences = [told(run, 0 if run.ended_at is None else run.ended_at) for run in attempts if run.outcome is not None]
    sentences += [f"Execution {run.execution_id} is running." for run in attempts if run.outcome is None]
    sentences.insert(1, decided(attempts[0]))
    return sentences


def _success(upstream: Facts) -> Attempt | None:
    return next((run for run in upstream.attempts if run.outcome == "completed"), None)


def _is_retried(upstream: Facts) -> bool:
    return any(each.trigger == "retry" and each.tick == upstream.tick for each in upstream.waiting)


def _waits(facts: Facts) -> WaitingRun | None:
    return next((each for each in facts.waiting if each.tick == facts.tick), None)


def _is_owed(facts: Facts, success: Attempt) -> bool:
    """Whether the success came after the job began to follow. Then there must be a run of it, or one that waits."""
    subject = facts.subject
    if subject.removed_at is not None or subject.cancelled_at is not None or facts.follows_since is None:
        return False
    return success.ended_at is not None and success.ended_at > facts.follows_since and _absence(facts) is None


def _absence(facts: Facts) -> str | None:
    """Why the job did not follow then: it was cancelled or orphaned. None: neither."""
    latest = next((each for each in facts.actions if each.order in _ABSENCES or each.action in _RETURNS), None)
    return None if latest is None else _ABSENCES.get(latest.order)


def _not_run(facts: Facts, success: Attempt) -> str:
    subject = facts.subject
    if _waits(facts) is not None:
        return _waiting(facts)
    if subject.cancelled_at is not None or subject.removed_at is not None:
        return "It was not followed: what waited was forgotten with the job."
    absence = _absence(facts)
    if absence is not None:
        return f"It was not followed: {absence}."
    if not _is_owed(facts, success):
        since = facts.follows_since
        return "It was not followed then" + ("." if since is None else f": it is followed since {instant(since)}.")
    return ("The books don't say why it was not followed: somebody may have taken the waiting run back "
            f"(cronring jobs actions {subject.key}).")  # fmt: skip


def _waiting(facts: Facts) -> str:
    subject = facts.subject
    if subject.orphaned_at is not None:
        return "The run after it waits until a version of the module has the job's verb again."
    if subject.paused(facts.now):
        return "The run after it waits until the job's pause is over."
    if subject.executing:
        return "The run after it waits for the run before it to end."
    if not subject.hosted:
        return f"The run after it waits for a runner: none that has {subject.deployment} is connected."
    if subject.full:
        return "The run after it waits for a place."
    return "The run after it is about to begin."
