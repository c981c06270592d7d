"""Coming runs that runners have too few places for: of which module, from when on, and how late they will be."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from cronring.controller.core.ledger.coming import ComingSpan, Group, Ticking, at_once_of, busy
from cronring.schema.duration import measured
from cronring.schema.jitter import parse_jitter
from cronring.schema.lanes import LaneKey, LaneKind
from cronring.schema.policy import parse_policy
from cronring.schema.spread import most_us

_SHOWN: Final = 10
_LATE_US: Final = 1_000_000  # less lateness doesn't matter
NO_RUNNER: Final = "no_runner"
LOAD: Final = "load"
HERD: Final = "herd"
_RUNS: Final = {
    LaneKind.SYNC: "sync runs", LaneKind.ASYNC: "async runs",
    LaneKind.QUOTA: "async runs with a limit of memory or CPU",
}  # fmt: skip


class HostedPlaces(NamedTuple):
    """How many runs of a deployment its runners hold at once. 0: not told. `at_most`: the limits' bound; None: no
    limit.
    """

    sync_places: int
    async_places: int
    at_most: int | None = None

    def of(self, kind: LaneKind) -> int:
        places = self.async_places if kind is LaneKind.ASYNC else self.sync_places
        return places if self.at_most is None else min(places, self.at_most)


class Overload(NamedTuple):
    """`late_us`: of the last run. `text` says it in words, without `at`: people have clocks of their own."""

    module: str
    lane: str  # "": no runner hosts it
    reason: str
    at: int
    runs: int
    places: int
    late_us: int
    text: str


class _Due(NamedTuple):
    """Jobs that tick together, and begin within `jitter_us`. `at_once`: the places that they take at most."""

    jitter_us: int
    jobs: int
    running_us: int
    at_once: int


class _Lane:
    """What comes for one lane: runs that begin in each step, how long they take places there, and what ticks when."""

    def __init__(self, steps: int) -> None:
        self.starts = [0] * steps
        self.busy_us = [0] * steps
        self.due: defaultdict[int, list[_Due]] = defaultdict(list)

    def add(self, found: Ticking, due: _Due, step_us: int) -> None:
        for step, count in enumerate(found.counts):
            self.starts[step] += count * due.jobs
        for step, each_us in busy(found.counts, due.jobs, due.running_us, due.at_once, step_us).items():
            self.busy_us[step] += each_us
        for tick in found.ticks:
            self.due[tick].append(due)


def overloads(found: Sequence[Ticking], places: Mapping[str, HostedPlaces], span: ComingSpan) -> list[Overload]:
    """The worst first. `places`: by deployment; one that is missing has no runner."""
    lanes: dict[LaneKey, _Lane] = {}
    for each in found:
        quota, jitter_us, at_once = _by_policy(each.group)
        for part in each.group.parts:
            kind = LaneKind.SYNC if not part.is_async else LaneKind.QUOTA if quota else LaneKind.ASYNC
            lane = lanes.setdefault((part.deployment, kind), _Lane(span.steps))
            lane.add(each, _Due(jitter_us, part.jobs, part.running_us, at_once * part.jobs), span.step_us)
    judged = [*_unhosted(lanes, places), *_full(lanes, places, span)]
    return sorted(judged, key=lambda each: (each.reason != NO_RUNNER, -each.late_us, each.module, each.at))[:_SHOWN]


def _by_policy(group: Group) -> tuple[bool, int, int]:
    """Whether async runs have a child for each, how far jitter spreads them, and how many of a job may run at once."""
    policy = parse_policy(group.policy)
    jitter_us = most_us(group.schedule, parse_jitter(policy.jitter)) if policy.jitter else 0
    return bool(policy.memory_limit or policy.cpu_limit), jitter_us, at_once_of(policy)


def _unhosted(lanes: Mapping[LaneKey, _Lane], places: Mapping[str, HostedPlaces]) -> Iterator[Overload]:
    alone: defaultdict[str, list[_Lane]] = defaultdict(list)
    for (deployment, _), lane in lanes.items():
        if deployment not in places and lane.due:
            alone[deployment].append(lane)
    for deployment, some in alone.items():
        runs = sum(sum(lane.starts) for lane in some)
        are = "1 run of {} is" if runs == 1 else f"{runs:,} runs of {{}} are"
        module = _module(deployment)
        text = f"{are.format(module)} due, and no runner hosts it."
        yield Overload(module, "", NO_RUNNER, min(min(lane.due) for lane in some), runs, 0, 0, text)


def _full(lanes: Mapping[LaneKey, _Lane], places: Mapping[str, HostedPlaces], span: ComingSpan) -> Iterator[Overload]:
    for (deployment, kind), lane in lanes.items():
        there = places.get(deployment)
        if there is None or not there.of(kind):
            continue
        for found in _load(lane, there.of(kind), span), _herd(lane, there.of(kind)):
            if found is not None and found.late_us >= _LATE_US:
                module, late = _module(deployment), measured(found.late_us / 1_000)
                text = (
                    f"{found.runs:,} {_RUNS[kind]} of {module} {found.does}, and {_has(there, kind)}: "
                    f"the last begins about {late} late."
                )
                yield Overload(
                    module, kind.name.lower(), found.reason, found.at, found.runs, there.of(kind), found.late_us, text
                )


class _Found(NamedTuple):
    reason: str
    at: int
    runs: int
    late_us: int
    does: str


def _load(lane: _Lane, places: int, span: ComingSpan) -> _Found | None:
    """Steps that have more to run than there is room for. What one step can't run is added to the next."""
    room_us = places * span.step_us
    over = [step for step, busy_us in enumerate(lane.busy_us) if busy_us > room_us]
    if not over:
        return None
    left_us = most_left_us = 0
    for busy_us in lane.busy_us:
        left_us = max(0, left_us + busy_us - room_us)
        most_left_us = max(most_left_us, left_us)
    needed = max(lane.busy_us) / span.step_us
    runs = sum(lane.starts[step] for step in over)
    return _Found(LOAD, span.begins(over[0]), runs, most_left_us // places, f"need {needed:,.1f} places on average")


def _herd(lane: _Lane, places: int) -> _Found | None:
    """The ticks of the one instant whose last run begins the latest."""
    late_us = {tick: _late_us(due, places) for tick, due in lane.due.items()}
    if not late_us:
        return None
    at = max(late_us, key=lambda tick: (late_us[tick], -tick))
    runs, within_us = sum(each.jobs for each in lane.due[at]), max(each.jitter_us for each in lane.due[at])
    begin = "begin at once" if within_us < _LATE_US else f"begin within {measured(within_us / 1_000)}"
    return _Found(HERD, at, runs, late_us[at], begin)


def _late_us(due: Sequence[_Due], places: int) -> int:
    """How late the last run begins. Runs fill all places round by round; jitter spreads their arrival."""
    runs = sum(each.jobs for each in due)
    if runs <= places:
        return 0
    mean_us = sum(each.running_us for each in due) // runs
    return max(
        (-(-_come(due, after_us) // places) - 1) * mean_us - after_us
        for after_us in {0, *(each.jitter_us for each in due)}
    )


def _come(due: Iterable[_Due], after_us: int) -> int:
    """How many runs have their run_at within `after_us` of their tick."""
    return sum(each.jobs if each.jitter_us <= after_us else each.jobs * after_us // each.jitter_us for each in due)


def _module(deployment: str) -> str:
    return deployment.partition("@")[0]


def _has(places: HostedPlaces, kind: LaneKind) -> str:
    if places.at_most is not None and places.of(kind) == places.at_most:
        return f"a limit lets {places.at_most:,} run at once"
    some = places.of(kind)
    return f"its runners have {some:,} place{'s' * (some != 1)} for them"
