"""What a change would do to ticks: those of two timings, or of two descriptions of a module, over some days.

A tick counts if it would run: inside its job's window; jitter is left out. The cost is bounded: up to COMPARED ticks of
a job are compared one by one. If there are more, as of a job that runs each second, they are only counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from cronring.schema.instant import parse_instant
from cronring.schema.module import Module, Verb
from cronring.schema.policy_model import Policy
from cronring.schema.schedule import Schedule, parse_schedule
from cronring.schema.walk import first_open, stretches
from cronring.schema.window import Window, parse_window

COMPARED: Final = 5_000
_SHOWN: Final = 5
# What moves ticks, or takes them out.
_TIMING: Final = ("timezone", "dst_gap", "dst_overlap", "start_at", "end_at", "window")


@dataclass(frozen=True, slots=True)
class JobForecast:
    """One job's ticks in the days ahead. Instants are microseconds since 1970.

    `gone` and `new` are how many ticks only the old or only the new description has, with the first few of each. They
    are None where there were too many to compare. `shift_us`: all of them move by so much (then `gone` equals `new`),
    else 0.
    """

    verb: str
    change: str  # added | removed | changed | same
    old_schedule: str
    new_schedule: str
    before: int
    after: int
    gone: int | None
    new: int | None
    first_gone: tuple[int, ...] = ()
    first_new: tuple[int, ...] = ()
    shift_us: int = 0


class Timing(NamedTuple):
    """What the ticks of a job follow from. `anchor`: microseconds since 1970."""

    schedule: str
    anchor: int
    policy: Policy


class _Ticks:
    """The ticks of one side in (after, until]; without a timing there are none."""

    def __init__(self, timing: Timing | None, after: int, until: int) -> None:
        self._after, self._until = after, until
        self._schedule: Schedule | None = None
        self._window: Window | None = None
        if timing is not None:
            schedule, anchor, policy = timing
            self._schedule = parse_schedule(schedule, anchor, policy)
            self._window = parse_window(policy.window, policy.timezone) if policy.window else None
        self.text = self._schedule.text if self._schedule is not None else ""
        self.count = 0 if self._schedule is None else self._counted(self._schedule)

    def first(self, count: int) -> tuple[int, ...]:
        return tuple(tick for tick, _ in zip(self, range(count), strict=False))

    def __iter__(self) -> Iterator[int]:
        if self._schedule is None:
            return
        tick = first_open(self._schedule, self._window, self._after, self._until)
        while tick is not None:
            yield tick
            tick = first_open(self._schedule, self._window, tick, self._until)

    def _counted(self, schedule: Schedule) -> int:
        found = stretches(schedule, self._window, self._after, self._until)
        return sum(stretch.ticks for stretch in found if stretch.is_open)


def forecast(
    old: Module | None, new: Module, now: int, until: int, anchors: Mapping[str, int] | None = None,
    most: int | None = None,
) -> list[JobForecast]:  # fmt: skip
    """Every job of either, the new module's first. `old` is None when nothing is deployed.

    `anchors`: where the intervals of deployed jobs count from, by verb. An interval that is new or changed counts from
    its deployment, taken to be `now`, unless it names its anchor. `most`: ticks that are compared one by one in all.
    """
    old_verbs = {verb.name: verb for verb in (old.verbs if old is not None else ()) if verb.schedule}
    new_verbs = {verb.name: verb for verb in new.verbs if verb.schedule}
    known = anchors or {}
    names = [*new_verbs, *(name for name in old_verbs if name not in new_verbs)]
    found: list[JobForecast] = []
    for name in names:
        compared = COMPARED if most is None else min(COMPARED, most)
        job = _job(name, old_verbs.get(name), new_verbs.get(name), now, until, known.get(name), compared)
        if most is not None and job.change == "changed":
            most = max(most - job.before - job.after, 0)
        found.append(job)
    return found


def _job(
    name: str, old: Verb | None, new: Verb | None, now: int, until: int, known: int | None, compared: int
) -> JobForecast:
    old_anchor = now if old is None else _anchor(old, now, known)
    stays = old is not None and new is not None and (old.schedule, old.anchor) == (new.schedule, new.anchor)
    new_anchor = old_anchor if stays or new is None else _anchor(new, now, None)
    before = None if old is None else Timing(old.schedule, old_anchor, old.policy)
    after = None if new is None else Timing(new.schedule, new_anchor, new.policy)
    return compare(name, before, after, now, until, compared)


def compare(
    name: str, old: Timing | None, new: Timing | None, now: int, until: int, compared: int = COMPARED
) -> JobForecast:
    """Of one job in (now, until]. None: it isn't there before, or after. `compared`: the most ticks to look at."""
    before, after = _Ticks(old, now, until), _Ticks(new, now, until)
    if old is not None and new is not None and _same(old, new):
        return JobForecast(name, "same", before.text, after.text, before.count, after.count, 0, 0)
    change = "added" if old is None else "removed" if new is None else "changed"
    if change != "changed":  # all of one side
        gone, fresh = (0, after.count) if old is None else (before.count, 0)
        return JobForecast(
            name, change, before.text, after.text, before.count, after.count, gone, fresh,
            before.first(_SHOWN), after.first(_SHOWN),
        )  # fmt: skip
    return _compared(name, before, after, compared)


def _compared(name: str, before: _Ticks, after: _Ticks, most: int) -> JobForecast:
    if max(before.count, after.count) > most:
        return JobForecast(
            name, "changed", before.text, after.text, before.count, after.count, None, None,
            before.first(_SHOWN), after.first(_SHOWN),
        )  # fmt: skip
    old_ticks, new_ticks = set(before), set(after)
    gone, fresh = sorted(old_ticks - new_ticks), sorted(new_ticks - old_ticks)
    shifts = {end - start for start, end in zip(gone, fresh, strict=False)} if len(gone) == len(fresh) else set()
    return JobForecast(
        verb=name,
        change="changed" if gone or fresh else "same",
        old_schedule=before.text,
        new_schedule=after.text,
        before=before.count,
        after=after.count,
        gone=len(gone),
        new=len(fresh),
        first_gone=tuple(gone[:_SHOWN]),
        first_new=tuple(fresh[:_SHOWN]),
        shift_us=shifts.pop() if len(shifts) == 1 else 0,
    )


def _anchor(verb: Verb, now: int, known: int | None) -> int:
    """Where its interval counts from."""
    if known is not None:
        return known
    return parse_instant(verb.anchor) if verb.anchor else now


def _same(old: Timing, new: Timing) -> bool:
    return old[:2] == new[:2] and all(getattr(old.policy, field) == getattr(new.policy, field) for field in _TIMING)
