"""Schedules whose ticks are all past: what is made with one never runs."""

from cronring.schema.instant import format_instant
from cronring.schema.policy_model import Policy
from cronring.schema.schedule import MANUAL, stored_schedule


def past_fault(schedule: str, policy: Policy, anchor: int, now: int) -> str | None:
    """Why a job of this schedule has no tick after `now`; None: it has one, or is to have none (`manual`).

    `schedule` is a canonical text; instants are microseconds since 1970.
    """
    parsed = stored_schedule(schedule, anchor, policy)
    if schedule == MANUAL or parsed.next_after(now) is not None:
        return None
    last = parsed.last_at_or_before(now)
    return "it has no tick at all" if last is None else f"its last tick was {format_instant(last)}"
