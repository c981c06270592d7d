"""Lint: what is allowed, and probably not meant. The rules' names and one line on each: `lint_finding.RULES`."""

from collections.abc import Iterator, Mapping
from typing import Final

from cronring.schema.duration import format_duration
from cronring.schema.explain import clock_change, zoned_pattern
from cronring.schema.instant import format_instant, parse_instant
from cronring.schema.keys import JobKey
from cronring.schema.lint_finding import NOTE, RULES, WARNING, Fault, LintFinding
from cronring.schema.lint_herd import HERD, herds
from cronring.schema.lint_rhythm import pattern_faults, shortest_gap
from cronring.schema.module import Module, Verb
from cronring.schema.past import past_fault
from cronring.schema.policy_model import Policy
from cronring.schema.retry import backoff_us
from cronring.schema.schedule import BoundedSchedule, CronSchedule, IntervalSchedule, Schedule, parse_schedule
from cronring.schema.walk import first_open
from cronring.schema.window import Window, parse_window

__all__ = [
    "HERD", "NOTE", "RULES", "WARNING", "Fault", "LintFinding", "follows_nobody", "lint_job", "lint_module",
    "never_again", "shortest_gap_ms",
]  # fmt: skip

_SECOND_US: Final = 1_000_000
_DAY_US: Final = 86_400 * _SECOND_US
_YEAR_US: Final = 366 * _DAY_US
_WINDOW_TURNS: Final = 60  # of windows' openings, as many as a week of fifty entries has days


def never_again(module: Module, now: int) -> list[LintFinding]:
    """Jobs whose ticks are all past: the one rule that `check` and a deployment tell too."""
    return [
        LintFinding(fault.rule, fault.level, verb.name, verb.line, fault.message, fault.remedy)
        for verb in module.verbs
        if verb.schedule
        for fault in _past(verb, now)
    ]


def follows_nobody(module: Module) -> list[LintFinding]:
    """Jobs that run after a job of their own module that isn't there. Of other modules only a cluster knows."""
    own = str(JobKey(module.namespace, module.name, ""))
    jobs = {f"{own}{verb.name}" for verb in module.verbs if verb.schedule}
    return [
        LintFinding(
            "follows-nobody", WARNING, verb.name, verb.line,
            f"it runs after {verb.policy.after}, and the module has no such job",
            "name a verb that has a schedule, or make that job: cronring jobs create",
        )
        for verb in module.verbs
        if verb.policy.after.startswith(own) and verb.policy.after not in jobs
    ]  # fmt: skip


def lint_module(
    module: Module, now: int, durations_ms: Mapping[str, float] | None = None, herd: int = HERD
) -> list[LintFinding]:
    """What is odd about a valid module's jobs, in the order of their lines.

    `now`: microseconds since 1970; a year from there is looked at. `durations_ms`: how long the runs of a verb have
    taken (their 95th percentile). `herd`: from so many verbs at one instant on, it is one.
    """
    findings = follows_nobody(module)
    jobs: list[tuple[Verb, Schedule]] = []
    for verb in module.verbs:
        if not verb.schedule:
            continue
        schedule = parse_schedule(verb.schedule, _anchor(verb, now), verb.policy)
        jobs.append((verb, schedule))
        findings += [
            LintFinding(fault.rule, fault.level, verb.name, verb.line, fault.message, fault.remedy)
            for fault in _faults(verb, schedule, now, (durations_ms or {}).get(verb.name))
        ]
    findings += herds(jobs, now, herd, str(JobKey(module.namespace, module.name, "")))
    return sorted(findings, key=lambda finding: finding.line)


def lint_job(verb: Verb, now: int, duration_ms: float | None = None, default_retries: int = 0) -> list[Fault]:
    """What is odd about one job, which `verb` describes. As lint_module, but its neighbours aren't looked at.

    `default_retries`: those of the cluster; 0 where it has none, or isn't known.
    """
    schedule = parse_schedule(verb.schedule, _anchor(verb, now), verb.policy)
    return list(_faults(verb, schedule, now, duration_ms, default_retries))


def shortest_gap_ms(schedule: Schedule) -> int | None:
    """Between a job's two closest ticks; None for a job without a second one."""
    inner = schedule.inner if isinstance(schedule, BoundedSchedule) else schedule
    match inner:
        case CronSchedule():
            return shortest_gap(inner.pattern.sets) * 1_000
        case IntervalSchedule():
            return inner.interval // 1_000
    return None


def _anchor(verb: Verb, now: int) -> int:
    """Where an interval would count from if it were deployed now."""
    return parse_instant(verb.anchor) if verb.anchor else now


def _faults(
    verb: Verb, schedule: Schedule, now: int, duration_ms: float | None, default_retries: int = 0
) -> Iterator[Fault]:
    inner = schedule.inner if isinstance(schedule, BoundedSchedule) else schedule
    past = list(_past(verb, now))
    if past:
        yield from past
        return
    if isinstance(inner, CronSchedule):
        yield from pattern_faults(inner.pattern)
    yield from _clock_changes(schedule, verb.policy, now)
    yield from _outside(verb, schedule, now)
    yield from _unsaid_retries(verb.policy, default_retries)
    gap_ms = shortest_gap_ms(schedule)
    if gap_ms is not None:
        yield from _long_runs(verb, gap_ms, duration_ms)
        yield from _late_retries(verb.policy, gap_ms, default_retries)


def _past(verb: Verb, now: int) -> Iterator[Fault]:
    past = past_fault(verb.schedule, verb.policy, _anchor(verb, now), now)
    if past is not None:
        yield Fault("never-again", f"{past}, so it never runs (again)", "write a later time, or remove it")


def _clock_changes(schedule: Schedule, policy: Policy, now: int) -> Iterator[Fault]:
    """A fixed time that is skipped or repeated in the coming year, where nobody has said what is to happen then."""
    pattern = zoned_pattern(schedule)
    if pattern is None or not pattern.fixed_time:
        return
    for change in pattern.zone.changes_between(now // _SECOND_US, (now + _YEAR_US) // _SECOND_US):
        forward = change.after > change.before
        if policy.dst_gap if forward else policy.dst_overlap:
            continue
        found = clock_change(pattern, change)
        if found.times:
            choices = 'dst_gap="run_after" or "skip"' if forward else 'dst_overlap="first", "second" or "both"'
            yield Fault(
                "clock-change", found.happens, f"write another time of the day, or say that it is meant: {choices}"
            )


def _outside(verb: Verb, schedule: Schedule, now: int) -> Iterator[Fault]:
    policy = verb.policy
    if not policy.window:
        return
    window = parse_window(policy.window, policy.timezone)
    inner = schedule.inner if isinstance(schedule, BoundedSchedule) else schedule
    if isinstance(inner, IntervalSchedule) and not verb.anchor:
        open_us = _longest_opening(window, now)
        if open_us is not None and inner.interval > open_us:
            amount, opening = format_duration(inner.interval // 1000), format_duration(open_us // 1000)
            yield Fault(
                "window",
                f"an interval of {amount} is longer than the window is ever open ({opening}): where its ticks fall "
                "depends on when it is deployed, and they may all be outside",
                "write a pattern, or an anchor in the window",
            )
    elif first_open(schedule, window, now, now + _YEAR_US) is None:
        tick, runs = schedule.next_after(now), first_open(schedule, window, now)
        when = "" if tick is None else f" (the next one, {format_instant(tick)}, is not)"
        so = "so it never runs" if runs is None else f"so it first runs at {format_instant(runs)}"
        yield Fault("window", f"no tick of the coming year is in its window{when}, {so}", "widen the window")


def _longest_opening(window: Window, now: int) -> int | None:
    """Microseconds, looked for in the coming week; None for one that never closes."""
    longest, instant = 0, now
    for _ in range(_WINDOW_TURNS):
        opens = window.next_open_after(instant)
        closes = None if opens is None else window.next_close_after(opens)
        if opens is None or closes is None:
            return None
        longest = max(longest, closes - opens)
        if opens > now + 8 * _DAY_US:
            break
        instant = closes
    return longest


def _long_runs(verb: Verb, gap_ms: int, duration_ms: float | None) -> Iterator[Fault]:
    overlap = verb.policy.overlap or "skip"
    happens = {
        "skip": "ticks that come while a run lasts are skipped",
        "buffer_one": "ticks come while a run lasts, and all but the latest of them are skipped",
        "buffer_all": "ticks pile up, and start later and later",
        "cancel_running": "ticks cancel the runs before them",
    }.get(overlap)
    if happens is None:  # side by side
        return
    gap = f"its ticks are as close as {format_duration(gap_ms)}"
    if duration_ms is not None and duration_ms > gap_ms:
        yield Fault(
            "slow",
            f"5 % of its runs took {format_duration(round(duration_ms))} or more, but {gap}: {happens}",
            "write a longer gap, or make its runs shorter",
        )
    elif verb.timeout_ms is not None and verb.timeout_ms > gap_ms and overlap == "skip":
        yield Fault(
            "timeout",
            f"a run may take {format_duration(verb.timeout_ms)} (timeout), but {gap}: {happens}",
            f'write timeout="{format_duration(gap_ms)}" at most, or overlap="buffer_one", if a skipped tick matters',
            NOTE,  # it may; whether it does, only durations tell
        )


# docs/decisions/0117: it is no contradiction, as the cluster may have a default for retries
def _unsaid_retries(policy: Policy, default: int) -> Iterator[Fault]:
    if policy.retries is None and not default and (policy.backoff or policy.retry_on):
        message = "it says how a run is retried, but not how often: so it is by a default of the cluster only"
        yield Fault("retries", message, "write retries=3, for example", NOTE)


def _late_retries(policy: Policy, gap_ms: int, default: int) -> Iterator[Fault]:
    """The next tick supersedes a waiting retry, but for a job that its first failure pauses."""
    retries = policy.retries_by(default)
    if not retries or policy.pause_after_failures == 1:
        return
    whose = " (by the cluster's default)" if policy.retries is None else ""
    none = "retries=0" if default else "leave out retries"
    waits = [backoff_us(policy, attempt) // 1_000 for attempt in range(1, retries + 1)]
    first, gap = format_duration(waits[0]), format_duration(gap_ms)
    if waits[0] >= gap_ms:
        message = (
            f"the first retry{whose} comes {first} after a failure, but the next tick as soon as {gap}: it never comes"
        )
        yield Fault("retries", message, f"write a shorter backoff, or {none}")
    elif sum(waits) >= gap_ms:
        useful = sum(1 for count in range(1, len(waits) + 1) if sum(waits[:count]) < gap_ms)
        message = f"of {retries} retries{whose} only {useful} fit between ticks that are as close as {gap}"
        yield Fault("retries", message, f"write retries={useful}, or a shorter backoff", NOTE)
