"""The minimum interval: two starts of a cron job are at least 60 s apart, or 1 s where its pattern has seconds.

It counts from the tick, or from the actual start if that was late, and never from the end (docs/schedules.md, "Minimum
interval"). So a tick that was caught up at 23:59:30 isn't followed by another run at 00:00:00.
"""

from typing import Final

from cronring.schema.policy_model import Policy
from cronring.schema.schedule import BoundedSchedule, CronSchedule, Schedule

LATE_US: Final = 1_000_000
"""A claim within this is on time. It is what claims in batches, and clocks that differ a little, may take."""
_MINUTE_US: Final = 60_000_000
_SECOND_US: Final = 1_000_000


def least_distance(schedule: Schedule, policy: Policy) -> int:
    """Microseconds between two starts; 0 where nothing is asked for.

    Intervals keep their rhythm by themselves. Where every tick is to run (run_all, buffer_all), or runs may overlap,
    starts follow each other as they come.
    """
    inner = schedule.inner if isinstance(schedule, BoundedSchedule) else schedule
    if (
        not isinstance(inner, CronSchedule)
        or policy.overlap in {"allow", "buffer_all"}
        or policy.on_missed == "run_all"
    ):
        return 0
    return _MINUTE_US if inner.pattern.fields[0] == "0" else _SECOND_US


def earliest_start(tick: int, run_at: int, claimed_at: int, distance: int) -> int:
    """When the next run may start after one of `tick` that was to start at `run_at` and was claimed at `claimed_at`.

    If it started at its run_at, its tick counts, even if run_at was late because it waited for the run before it.
    """
    return (claimed_at if claimed_at - run_at > LATE_US else tick) + distance
