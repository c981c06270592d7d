"""Jitter by how often a job runs: what `auto` comes to, and the cluster's jitter, which becomes a job's own.

`auto` stays `auto` in a job's row, as it means the same everywhere. Another default of the cluster becomes a length of
time in the row. So all owners agree, even if they were started with different defaults.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from cronring.schema.duration import format_duration
from cronring.schema.jitter import JitterRule, parse_jitter
from cronring.schema.policy import parse_policy
from cronring.schema.schedule import CronSchedule, IntervalSchedule, Schedule, stored_schedule

# Looked at from a fixed instant, so that one schedule has one answer whenever it is deployed: 1 January 2024.
_FROM: Final = 1_704_067_200_000_000
_TICKS: Final = 100  # more than a pattern has between its longest gaps, of those that tick rarely enough to be spread


# docs/decisions/0049: resolved at deployment, so that owners never disagree
@lru_cache(maxsize=20_000)
def stored_policy(schedule: str, policy: str, default_jitter: str) -> str:
    """A job's policy as its row has it: the texts in canonical form, `default_jitter` as of `parse_jitter` or "".

    A job that states a jitter keeps it. A job that runs once, or only by hand, gets none, as it is in no herd.
    """
    parsed = parse_policy(policy)
    if parsed.jitter or not default_jitter:
        return policy
    rule = parse_jitter(default_jitter)
    most = most_us(schedule, rule)
    if most < 1_000:
        return policy
    return replace(parsed, jitter=rule.text if rule.is_auto else format_duration(most // 1_000)).text


@lru_cache(maxsize=20_000)
def most_us(schedule: str, rule: JitterRule) -> int:
    """How far a rule moves a job's starts at most, by its shortest gap, in microseconds. 0 without a second tick."""
    gap = _shortest_gap(stored_schedule(schedule, 0))  # in UTC: a day of 23 hours makes nothing run more often
    return 0 if gap is None else rule.most_us(gap)


def has_default_jitter(schedule: str, policy: str, default_jitter: str) -> bool:
    """Whether a stored policy's jitter is what the cluster gives; nobody can tell it from one that was stated so."""
    parsed = parse_policy(policy)
    return bool(parsed.jitter) and stored_policy(schedule, replace(parsed, jitter="").text, default_jitter) == policy


# docs/decisions/0028: in UTC, as a zone with DST has a day of 23 hours
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
