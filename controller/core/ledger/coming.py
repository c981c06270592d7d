"""What is coming: how many runs begin when, how many go on at once, and what jitter would make of herds."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from cronring.schema.jitter import parse_jitter
from cronring.schema.policy import parse_policy
from cronring.schema.policy_model import Policy
from cronring.schema.schedule import Schedule
from cronring.schema.spread import most_us
from cronring.schema.timetable import timetable

_SECOND_US: Final = 1_000_000
_TICKS_EACH: Final = 2  # a group with more ticks than this in a step, on average, isn't looked at tick by tick
_KEYS_SHOWN: Final = 3


class GroupPart(NamedTuple):
    """Jobs of a group that are of one deployment, with async verbs or sync ones. `running_us` as in Group."""

    deployment: str
    is_async: bool
    jobs: int
    running_us: int


# docs/decisions/0109: by groups, as ten thousand jobs have some hundred schedules
class Group(NamedTuple):
    """Jobs of one schedule and policy. `running_us`: the sum of what one run of each job takes, as measured.

    `unmeasured`: how many jobs have no run that ended. `keys`: of some jobs of the group. `parts`: its jobs that need a
    runner.
    """

    schedule: str
    anchor: int
    policy: str
    jobs: int
    unmeasured: int
    running_us: int
    keys: tuple[str, ...]
    parts: tuple[GroupPart, ...] = ()


class ComingSpan(NamedTuple):
    """The time that is looked at: `steps` steps of `step_us` each."""

    from_at: int
    step_us: int
    steps: int

    @property
    def until(self) -> int:
        return self.from_at + self.steps * self.step_us

    def begins(self, step: int) -> int:
        return self.from_at + step * self.step_us


class Ticking(NamedTuple):
    """When a group ticks. `counts`: ticks in each step. `every`: `ticks` has all of them; else only the first of each
    step.
    """

    group: Group
    counts: tuple[int, ...]
    ticks: tuple[int, ...]
    every: bool


class ComingStep(NamedTuple):
    """From `at` on. `starts`: ticks. `load`: runs that go on at once, on average.

    `herd`: the most that begin in one second, at `herd_at`; `spread`: the same, if all had jitter="auto".
    """

    at: int
    starts: int
    load: float
    herd: int
    herd_at: int
    herd_keys: tuple[str, ...]
    spread: int


class _Herds:
    """How many begin in each second, as it is and with jitter."""

    def __init__(self, steps: int) -> None:
        self.often = [(0, 0)] * steps  # of what ticks too often to be looked at: at every second, as far as we know
        self.plain: Counter[int] = Counter()
        self.spread: Counter[int] = Counter()
        self.keys: dict[int, tuple[str, ...]] = {}

    def add(self, tick: int, weights: tuple[int, int], keys: tuple[str, ...]) -> None:
        self.plain[tick] += weights[0]
        self.spread[tick] += weights[1]
        self.keys[tick] = (*self.keys.get(tick, ()), *keys)[:_KEYS_SHOWN]

    def add_often(self, step: int, weights: tuple[int, int]) -> None:
        plain, spread = self.often[step]
        self.often[step] = plain + weights[0], spread + weights[1]


def ticking(groups: Sequence[Group], span: ComingSpan) -> list[Ticking]:
    """When each of them ticks."""
    return [_ticking(group, span) for group in groups]


def _ticking(group: Group, span: ComingSpan) -> Ticking:
    schedule = timetable(group.schedule, group.anchor, group.policy).schedule
    counts = tuple(
        schedule.count_between(span.begins(step) - 1, span.begins(step + 1) - 1) for step in range(span.steps)
    )
    every = sum(counts) <= _TICKS_EACH * span.steps
    if every:
        ticks = _ticks(schedule, span)
    else:
        firsts = (schedule.next_after(span.begins(step) - 1) for step, count in enumerate(counts) if count)
        ticks = [first for first in firsts if first is not None]
    return Ticking(group, counts, tuple(ticks), every)


def _ticks(schedule: Schedule, span: ComingSpan) -> list[int]:
    found: list[int] = []
    tick = schedule.next_after(span.from_at - 1)
    while tick is not None and tick < span.until:
        found.append(tick)
        tick = schedule.next_after(tick)
    return found


def at_once_of(policy: Policy) -> int:
    """How many runs of one job may go on at once."""
    return max(1, policy.concurrency)


def busy(counts: Sequence[int], jobs: int, running_us: int, at_once: int, step_us: int) -> Counter[int]:
    """By step, the running time of all runs (µs). Long runs count in several steps; `at_once` bounds each."""
    over = max(1, -(-running_us // (jobs * step_us)))  # steps that a run goes on for
    found: Counter[int] = Counter()
    for step, count in enumerate(counts):
        if count:
            for later in range(step, min(step + over, len(counts))):
                found[later] += count * running_us // over
    return Counter({step: min(each_us, at_once * step_us) for step, each_us in found.items()})


def coming(found: Sequence[Ticking], span: ComingSpan) -> list[ComingStep]:
    """The load of each step. Ticks that a policy skips or delays count as starts. But the policy bounds how many run at
    once.
    """
    starts, busy_us, herds = [0] * span.steps, [0.0] * span.steps, _Herds(span.steps)
    for group, counts, group_ticks, every in found:
        weights = _weights(group)
        at_once = at_once_of(parse_policy(group.policy)) * group.jobs
        for step, each_us in busy(counts, group.jobs, group.running_us, at_once, span.step_us).items():
            busy_us[step] += each_us
        for step, count in enumerate(counts):
            starts[step] += count * group.jobs
            if count and not every:
                herds.add_often(step, weights)
        if every:
            for tick in group_ticks:
                herds.add(tick, weights, group.keys)
    ticks: list[list[int]] = [[] for _ in range(span.steps)]
    for tick in herds.plain:
        ticks[(tick - span.from_at) // span.step_us].append(tick)
    return [
        _step(span.begins(step), starts[step], busy_us[step] / span.step_us, ticks[step], herds.often[step], herds)
        for step in range(span.steps)
    ]


def _weights(group: Group) -> tuple[int, int]:
    """How many of a group begin in the same second: as it is, and with jitter="auto" where it has none."""
    stated = parse_policy(group.policy).jitter
    auto_us = most_us(group.schedule, parse_jitter("auto"))
    own_us = most_us(group.schedule, parse_jitter(stated)) if stated else 0
    return _in_a_second(group.jobs, own_us), _in_a_second(group.jobs, own_us or auto_us)


def _in_a_second(jobs: int, over_us: int) -> int:
    return jobs if over_us < _SECOND_US else -(-jobs * _SECOND_US // over_us)


def _step(at: int, starts: int, load: float, ticks: Sequence[int], often: tuple[int, int], herds: _Herds) -> ComingStep:
    """`ticks`: those of `herds` that are in it."""
    herd_at = max(ticks, key=lambda tick: (herds.plain[tick], -tick), default=at)
    spread = max((herds.spread[tick] for tick in ticks), default=0)
    return ComingStep(
        at, starts, load, herds.plain[herd_at] + often[0], herd_at, herds.keys.get(herd_at, ()), spread + often[1]
    )
