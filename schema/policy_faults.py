"""Contradictions: between two fields of a policy, and between a policy and the schedule that it stands beside."""

from collections.abc import Collection
from functools import lru_cache
from typing import Final

from cronring.schema.duration import parse_duration
from cronring.schema.instant import parse_instant
from cronring.schema.jitter import parse_jitter
from cronring.schema.policy_model import CONSUMED, Policy
from cronring.schema.schedule import Schedule, parse_schedule
from cronring.schema.walk import first_open
from cronring.schema.window import parse_window

_EVERY: Final = "every "
_ONCE: Final = "at "
_MANUAL: Final = "manual"
_CACHED: Final = 4_096

# Whether a window ever holds a tick is tried from here on, as zones had other offsets once. (In the winter of 1970
# London was an hour ahead of UTC.)
_TRIED_FROM: Final = parse_instant("2026-01-01")

Fault = tuple[str, str]


def policy_faults(
    policy: Policy, schedule: str, unread: Collection[str] = (), *, of_queue: bool = False
) -> list[Fault]:
    """Every contradiction as (field, message with the remedy). `schedule` is a canonical text; "" for a plain verb.

    `unread`: fields that are missing because their values were wrong. Nothing is concluded from their absence.
    `of_queue`: of a job whose target is a queue, not a verb.
    """
    if of_queue:
        return [*_faults(policy, schedule, frozenset(unread)), *_of_queue(policy)]
    beside_verb = [("completes", "is of jobs whose target is a queue; leave it out")] if policy.completes else []
    return [*_faults(policy, schedule, frozenset(unread)), *beside_verb]


@lru_cache(maxsize=_CACHED)
def _faults(policy: Policy, schedule: str, unread: frozenset[str]) -> tuple[Fault, ...]:
    """Of thousands of jobs that are made at once, most have the same few policies and schedules."""
    faults = _between_fields(policy, unread)
    if policy.after and schedule != _MANUAL:
        faults.append(_beside_after(schedule))
    if schedule in {"", _MANUAL}:
        faults += _without_ticks(policy, "a job without ticks of its own" if schedule else "a verb without a schedule")
    elif schedule.startswith(_ONCE):
        faults += _with_one_tick(policy)
    elif schedule.startswith(_EVERY):
        faults += _with_interval(policy, schedule)
    else:
        faults += _with_pattern(policy)
    if not faults and not unread and schedule not in {"", _MANUAL} and not schedule.startswith(_EVERY):
        faults = _without_a_chance(policy, parse_schedule(schedule, 0, policy))
    return tuple(faults)


def _of_queue(policy: Policy) -> list[Fault]:
    """What a job whose target is a queue can't have, as (field, message with the remedy)."""
    faults = [
        (field, "is about a run's processes, and a message has none; leave it out")
        for field in ("memory_limit", "cpu_limit")
        if getattr(policy, field)
    ]
    if policy.completes != CONSUMED:
        about_runs = "is about runs, and this tick ends when its message is there"
        faults += [
            (field, f"{about_runs}; leave it out, or write completes=consumed")
            for field in ("overlap", "max_concurrent", "priority")
            if getattr(policy, field)
        ]
    return faults


def _between_fields(policy: Policy, unread: Collection[str]) -> list[Fault]:
    faults: list[Fault] = []
    if policy.start_at and policy.end_at and policy.end_at < policy.start_at:
        faults.append(("end_at", f"{policy.end_at} is before start_at, {policy.start_at}; swap them"))
    if policy.max_concurrent is not None and policy.overlap != "allow" and "overlap" not in unread:
        faults.append(("max_concurrent", "counts only with overlap=allow; write that too, or leave this out"))
    if policy.overlap == "buffer_all" and policy.on_missed == "run_last":
        faults.append(("on_missed", "run_last would drop what overlap=buffer_all keeps; write run_all, or buffer_one"))
    if policy.overlap == "cancel_running" and policy.on_missed == "run_all":
        message = (
            "run_all with overlap=cancel_running: the missed ticks would cancel each other; write run_last, or skip"
        )
        faults.append(("on_missed", message))
    if policy.catch_up_window and policy.on_missed == "skip":
        faults.append(
            ("catch_up_window", "on_missed=skip catches nothing up; leave it out, or write on_missed=run_last")
        )
    return faults


def _without_ticks(policy: Policy, what: str) -> list[Fault]:
    ticking = (
        "dst_gap", "dst_overlap", "start_at", "end_at", "window", "jitter", "on_missed", "catch_up_window",
        "late_after",
    )  # fmt: skip
    faults = [
        (field, f"says when ticks run, and {what} has none; leave it out")
        for field in ticking
        if getattr(policy, field)
    ]
    if policy.overlap in {"buffer_one", "buffer_all", "cancel_running"}:
        faults.append(
            ("overlap", f"{policy.overlap} is about ticks, and {what} has none; leave it out, or write allow")
        )
    return faults


def _beside_after(schedule: str) -> Fault:
    if not schedule:
        return "after", "says when a job runs, and a verb without a schedule is none; make it manual, or leave this out"
    return "after", f"it says when the job runs, and so does the schedule `{schedule}`; write one of the two"


def _with_one_tick(policy: Policy) -> list[Fault]:
    faults = [
        (field, "is about repeated ticks, and `at` has one; leave it out")
        for field in ("dst_gap", "dst_overlap", "pause_after_failures")
        if getattr(policy, field)
    ]
    if policy.jitter:
        rule = parse_jitter(policy.jitter)
        if rule.both_ways and rule.fixed_ms:
            faults.append(("jitter", _only_later(policy.jitter, "of `at`")))
        elif rule.share or rule.buckets:
            faults.append(
                ("jitter", "is measured by the gap to the next tick, and `at` has none; write a time, like 30s")
            )
    return faults


def _with_pattern(policy: Policy) -> list[Fault]:
    if policy.jitter and parse_jitter(policy.jitter).both_ways:
        return [("jitter", _only_later(policy.jitter, "of a pattern"))]
    return []


def _only_later(jitter: str, what: str) -> str:
    return f"{jitter} would run a tick {what} before its time, and those are only ever delayed; write {jitter[1:]}"


def _with_interval(policy: Policy, schedule: str) -> list[Fault]:
    faults = [
        (field, "is about times of the day, and an interval has none; leave it out, or write a pattern")
        for field in ("dst_gap", "dst_overlap")
        if getattr(policy, field)
    ]
    amount = schedule.split(" ")[1]
    interval = parse_duration(amount) * 1_000
    rule = parse_jitter(policy.jitter) if policy.jitter else None
    if rule is not None and rule.both_ways and rule.most_us(interval) * 2 > interval:
        half = "±50%"
        message = f"{policy.jitter} of an interval of {amount} would let runs overtake each other; write at most {half}"
        faults.append(("jitter", message))
    return faults


def _without_a_chance(policy: Policy, schedule: Schedule) -> list[Fault]:
    """No tick within the bounds, or none within the window. Of an interval that isn't known before its deployment."""
    if schedule.next_after(-1) is None:
        return [_no_tick(policy)]
    if policy.window:
        window = parse_window(policy.window, policy.timezone)
        is_over = schedule.next_after(_TRIED_FROM - 1) is None
        if not is_over and first_open(schedule, window, _TRIED_FROM - 1) is None:
            where = f"{policy.window} ({window.zone})"
            return [("window", f"no tick of the schedule lies in {where}; widen it, or move the schedule")]
    return []


def _no_tick(policy: Policy) -> Fault:
    """A pattern without ticks is refused by itself, so the policy's bounds are the reason."""
    bounds = [field for field in ("start_at", "end_at") if getattr(policy, field)]
    if bounds:
        message = f"{' and '.join(bounds)} leave no tick of the schedule; write them wider apart, or leave them out"
        return bounds[-1], message
    if policy.dst_gap == "skip":
        return "dst_gap", f"the clocks of {policy.timezone} skip the only ticks; write run_after, or leave it out"
    return "timezone", f"the clocks of {policy.timezone} never show what the schedule says; write another year, or zone"
