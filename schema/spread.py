"""The cluster's jitter, as it becomes a job's own when the job is made: a length of time, by how often the job runs."""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from schema.duration import format_duration
from schema.jitter import parse_jitter
from schema.policy import parse_policy
from schema.schedule import CronSchedule, IntervalSchedule, Schedule, parse_schedule

# Looked at from a fixed instant, so that one schedule has one answer whenever it is deployed: 1 January 2024.
_FROM: Final = 1_704_067_200_000_000
_TICKS: Final = 100  # more than a pattern has between its longest gaps, of those that tick rarely enough to be spread


@lru_cache(maxsize=20_000)
def stored_policy(schedule: str, policy: str, default_jitter: str) -> str:
    """A job's policy as its row has it: the texts in canonical form, `default_jitter` as of `parse_jitter` or "".

    A job that states a jitter keeps it. One that runs once, or only by hand, has none: nobody else's start coincides.
    """
    parsed = parse_policy(policy)
    if parsed.jitter or not default_jitter:
        return policy
    gap = _shortest_gap(parse_schedule(schedule, 0))  # in UTC: a day of 23 hours makes nothing run more often
    most = 0 if gap is None else parse_jitter(default_jitter).most_us(gap)
    return replace(parsed, jitter=format_duration(most // 1_000)).text if most >= 1_000 else policy


def has_default_jitter(schedule: str, policy: str, default_jitter: str) -> bool:
    """Whether a stored policy's jitter is what the cluster gives; nobody can tell it from one that was stated so."""
    parsed = parse_policy(policy)
    return bool(parsed.jitter) and stored_policy(schedule, replace(parsed, jitter="").text, default_jitter) == policy


def _shortest_gap(schedule: Schedule) -> int | None:
    """Microseconds; None where there are no two ticks."""
    if isinstance(schedule, IntervalSchedule):
        return schedule.interval
    if not isinstance(schedule, CronSchedule):
        return None
    shortest: int | None = None
    tick = schedule.next_after(_FROM)
    for _ in range(_TICKS):
        following = None if tick is None else schedule.next_after(tick)
        if tick is None or following is None:
            break
        shortest = following - tick if shortest is None else min(shortest, following - tick)
        tick = following
    return shortest
