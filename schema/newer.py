"""The parts of a stored job that only a newer release can read. Code that decides about ticks asks for them first.

docs/decisions/0086 and 0103: such a job is left alone.
"""

from functools import lru_cache
from typing import Final

from cronring.schema.policy import newer, unread_fields
from cronring.schema.schedule import reads_schedule

# Jobs share their texts: a controller meets few, many times over.
_TEXTS_CACHED: Final = 20_000


@lru_cache(maxsize=_TEXTS_CACHED)
def unread_of(schedule: str, policy: str) -> tuple[str, ...]:
    """Fields of the policy, and "schedule" for a form of schedule that there isn't here. Stored texts."""
    return (*unread_fields(policy), *(() if reads_schedule(schedule) else ("schedule",)))


def newer_job(schedule: str, policy: str) -> str:
    """What to say to who would change such a job, or give it an order."""
    if unread_fields(policy):
        return newer(policy)
    return (
        f"its schedule is {schedule!r:.120}, which this release doesn't read: ask a controller of a newer release, or "
        "set another schedule"
    )
