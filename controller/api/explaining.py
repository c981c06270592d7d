"""What a schedule comes to, as the API says it: its next ticks, a year of days, and what lint remarks."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from cronring.controller.errors import Conflict
from cronring.controller.ports.reads import JobRow
from cronring.protos.cronring.v1 import schedules_pb2
from cronring.protos.instants import timestamp
from cronring.schema.explain import YEAR_DAYS, clock_note, explain, wall_text, zoned_pattern
from cronring.schema.instant import format_instant
from cronring.schema.job import JobSpec
from cronring.schema.lint import Fault, lint_job
from cronring.schema.module import Verb
from cronring.schema.newer import newer_job, unread_of
from cronring.schema.policy import parse_policy
from cronring.schema.policy_model import Policy
from cronring.schema.schedule import is_interval, parse_schedule
from cronring.schema.timetable import PlannedTick, timetable
from cronring.schema.window import parse_window
from cronring.schema.year import day_changes, year_of
from cronring.schema.zone import load_zone

_DAY_US: Final = 86_400_000_000
_OUTSIDE: Final = "outside its window: it doesn't run"


class Question(NamedTuple):
    """What to explain. `after`: microseconds since 1970. `year` None: leave it out. `key`: decides the jitter."""

    after: int
    ticks: int
    year: int | None = None
    key: str = ""
    slow_ms: float | None = None  # what the 95th percentile of its runs took
    default_timeout_ms: int | None = None  # of the cluster's defaults, as the next
    default_retries: int = 0


def check_read(row: JobRow) -> None:
    """Raises Conflict for a job whose schedule or policy a newer release wrote."""
    if unread_of(row.spec.schedule, row.spec.policy):
        raise Conflict(f"what {row.key!r} comes to can't be said: {newer_job(row.spec.schedule, row.spec.policy)}")


def explained(spec: JobSpec, asked: Question) -> schedules_pb2.Explanation:
    """Takes some milliseconds, with a year. An interval without an anchor counts from `asked.after`."""
    anchor = asked.after if spec.anchor is None else spec.anchor
    policy = parse_policy(spec.policy)
    schedule, zone = parse_schedule(spec.schedule, anchor, policy), load_zone(policy.timezone or "UTC")
    found = explain(schedule, policy, asked.after, 0)
    answer = schedules_pb2.Explanation(
        schedule=found.schedule,
        words=found.words,
        timezone=found.timezone,
        kind=found.kind,
        ticks=list(islice(_ticks(spec, anchor, policy, asked), asked.ticks)),
        per_day=schedules_pb2.TicksPerDay(**found.per_day._asdict()),
        zone_data=found.zone_data,
        auto_jitter_ms=found.auto_jitter_ms,
        remarks=[schedules_pb2.Remark(**fault._asdict()) for fault in _remarks(spec, anchor, policy, asked)],
    )
    changes = day_changes(schedule, zone, asked.after, asked.after + YEAR_DAYS * _DAY_US)
    if asked.year is not None:
        window = parse_window(policy.window, policy.timezone) if policy.window else None
        year = year_of(schedule, window, zone, asked.year)
        changes, answer.year = year.clock_changes, asked.year
        answer.days.extend(year.days)
    answer.clock_changes.extend(
        schedules_pb2.ClockChange(
            day=day, at=timestamp(change.instant), moved_ms=change.moved_ms, times=change.times, happens=change.happens
        )
        for day, change in changes
    )
    return answer


def _ticks(spec: JobSpec, anchor: int, policy: Policy, asked: Question) -> Iterator[schedules_pb2.ExplainedTick]:
    table, zone = timetable(spec.schedule, anchor, spec.policy), load_zone(policy.timezone or "UTC")
    pattern = zoned_pattern(table.schedule)
    planned: PlannedTick | None = table.following(asked.key, asked.after)
    while planned is not None:
        tick = planned.tick
        notes = [clock_note(pattern, tick // 1_000_000) if pattern is not None else ""]
        if table.next_within(tick - 1, tick) is None:
            notes.append(_OUTSIDE)
        yield schedules_pb2.ExplainedTick(
            tick=timestamp(tick),
            local=wall_text(zone, tick),
            note="; ".join(filter(None, notes)),
            run_at=timestamp(planned.run_at if asked.key else tick),
        )
        planned = table.following(asked.key, tick)


def _remarks(spec: JobSpec, anchor: int, policy: Policy, asked: Question) -> list[Fault]:
    verb = Verb(
        name="job",
        schedule=spec.schedule,
        policy=policy,
        timeout_ms=spec.timeout_by(asked.default_timeout_ms) or None,
        anchor=format_instant(anchor) if is_interval(spec.schedule) else "",
    )
    return lint_job(verb, asked.after, asked.slow_ms, asked.default_retries)
