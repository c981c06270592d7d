"""Herds: many jobs that start at one instant, and so wait for each other's children, connections and disks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cronring.schema.duration import format_duration
from cronring.schema.fields import MINUTE
from cronring.schema.instant import format_instant
from cronring.schema.jitter import parse_jitter
from cronring.schema.lint_finding import WARNING, LintFinding
from cronring.schema.module import Verb
from cronring.schema.schedule import BoundedSchedule, CronSchedule, IntervalSchedule, Schedule
from cronring.schema.spread import most_us
from cronring.schema.timetable import Timetable

HERD: Final = 5  # verbs at one instant
_TICKS: Final = 24  # of each job, among which the instants are looked for
_INSTANTS: Final = 20  # looked at closely
_HERDS_SHOWN: Final = 3
_MOVES_SHOWN: Final = 3
_NAMES_SHOWN: Final = 6
_MS_US: Final = 1_000

Job = tuple[Verb, Schedule]


def herds(jobs: Sequence[Job], now: int, least: int, own: str) -> list[LintFinding]:
    """The largest herds from `least` verbs on, at the first verb of each. `own`: what keys of the module begin with.

    Only of what starts on its ticks. Intervals without an anchor are left out: they count from their deployment.
    """
    plain = [(verb, pattern) for verb, pattern in map(_plain, jobs) if pattern is not None]
    if len(plain) < least:
        return []
    counts: Counter[int] = Counter()
    for _, schedule in plain:
        tick: int | None = now
        for _ in range(_TICKS):
            tick = None if tick is None else schedule.next_after(tick)
            if tick is None:
                break
            counts[tick] += 1
    found: list[LintFinding] = []
    told: list[frozenset[str]] = []
    largest = [(instant, _members(plain, instant)) for instant, _ in counts.most_common(_INSTANTS)]
    for instant, members in sorted(largest, key=lambda pair: (-len(pair[1]), pair[0])):
        names = frozenset(verb.name for verb, _ in members)
        if len(members) < least or len(told) == _HERDS_SHOWN or any(names <= each for each in told):
            continue
        told.append(names)
        found.append(_finding(instant, members, plain, own))
    return found


def _plain(job: Job) -> tuple[Verb, Schedule | None]:
    verb, schedule = job
    inner = schedule.inner if isinstance(schedule, BoundedSchedule) else schedule
    known = isinstance(inner, CronSchedule) or (isinstance(inner, IntervalSchedule) and bool(verb.anchor))
    spread = bool(verb.policy.jitter) and most_us(verb.schedule, parse_jitter(verb.policy.jitter)) > 0
    return verb, schedule if known and not spread else None


def _members(plain: Sequence[Job], instant: int) -> list[Job]:
    return [(verb, schedule) for verb, schedule in plain if schedule.last_at_or_before(instant) == instant]


def _finding(instant: int, members: list[Job], plain: Sequence[Job], own: str) -> LintFinding:
    names = [verb.name for verb, _ in members]
    listed = ", ".join(names[:_NAMES_SHOWN])
    if len(names) > _NAMES_SHOWN:
        listed += f" and {len(names) - _NAMES_SHOWN} more"
    moves = _moves(members, plain)
    remedy = _auto(instant, members, own) + (f"; or spread them: {', '.join(moves)}, and so on" if moves else "")
    first = members[0][0]
    message = f"{len(names)} verbs of the module start at {format_instant(instant)}, in the same second: {listed}"
    return LintFinding("herd", WARNING, first.name, first.line, message, remedy)


def _auto(instant: int, members: list[Job], own: str) -> str:
    """What `jitter="auto"` would make of it: as exactly as a cluster does it, by the jobs' keys."""
    delays = []
    for verb, schedule in members:
        key = verb.name if "." in verb.name else f"{own}{verb.name}"  # a job made through the API has its whole key
        spread = Timetable(schedule, replace(verb.policy, jitter="auto")).following(key, instant - 1)
        delays.append(0 if spread is None else (spread.run_at - instant) // _MS_US)
    if not any(delays):
        return 'write a jitter, like jitter="50%" (jitter="auto" leaves what runs more often than each 5 minutes)'
    seconds = Counter(delay // 1_000 for delay in delays)
    most, last = max(seconds.values()), format_duration((max(delays) + 999) // 1_000 * 1_000)
    return f'write jitter="auto": they would start over {last}, at most {most} of {len(members)} in one second'


def _moves(members: list[Job], plain: Sequence[Job]) -> list[str]:
    """Another minute for the next of the members after the first, where the fewest of the module's jobs tick."""
    used = Counter(dict.fromkeys(range(60), 0))
    for _, schedule in plain:
        minutes = _sets_minutes(schedule)
        if minutes != MINUTE.full:
            used.update(minute for minute in range(60) if minutes >> minute & 1)
    moves: list[str] = []
    for verb, schedule in members[1:]:
        if len(moves) == _MOVES_SHOWN:
            break
        words = schedule.text.split()
        if len(words) != 5 or not words[0].isdecimal():
            continue
        near = int(words[0])
        minute = min(used, key=lambda each: (used[each], _attraction(each, near)))
        used[minute] += 1
        moves.append(f'"{minute} {" ".join(words[1:])}" for {verb.name}')
    return moves


def _attraction(minute: int, near: int) -> tuple[bool, int]:
    """Minutes that nobody chooses of himself first, then close ones."""
    return minute % 5 == 0, (minute - near) % 60


def _sets_minutes(schedule: Schedule) -> int:
    inner = schedule.inner if isinstance(schedule, BoundedSchedule) else schedule
    return inner.pattern.sets.minutes if isinstance(inner, CronSchedule) else 0
