"""The states of a job in the words of the interval scheduler's contract, and what leads from one to another.

docs/interval-jobs.md has the contract. The view cron_interval_job_details derives the state of every row as `status_of`
does for one.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from cronring.controller.core.orders.orders import Cancel, JobOrder, Pause, Resume


class IntervalStatus(StrEnum):
    """What callers see of such a job."""

    PENDING = "pending"  # it runs as soon as it can
    SCHEDULED = "scheduled"  # it has a tick to come, or a retry
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"  # it ran once, and is done
    FAILED = "failed"  # out of retries: it waits until somebody retries it
    CANCELLED = "cancelled"


class IntervalOrder(StrEnum):
    """What callers do to it."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"
    TRIGGER = "trigger"
    UPDATE = "update"


_S = IntervalStatus
ALLOWED: Final[Mapping[IntervalOrder, tuple[IntervalStatus, ...]]] = MappingProxyType({
    IntervalOrder.PAUSE: (_S.SCHEDULED,),
    IntervalOrder.RESUME: (_S.PAUSED,),
    IntervalOrder.CANCEL: (_S.SCHEDULED, _S.RUNNING, _S.PAUSED),
    IntervalOrder.RETRY: (_S.FAILED,),
    # A pending job is about to run, so nothing has to be done.
    IntervalOrder.TRIGGER: (_S.PENDING, _S.SCHEDULED, _S.PAUSED, _S.COMPLETED),
    IntervalOrder.UPDATE: tuple(status for status in _S if status is not _S.CANCELLED),
})  # fmt: skip
ORDERED: Final[Mapping[IntervalOrder, JobOrder]] = MappingProxyType({
    IntervalOrder.PAUSE: Pause(), IntervalOrder.RESUME: Resume(), IntervalOrder.CANCEL: Cancel()
})  # fmt: skip
"""The order that each of these becomes. The other three are no orders of the job: they run it, or change it."""


class IntervalStanding(NamedTuple):
    """What a job's state follows from. `stopped`: its own failure paused it. `waiting`: which activation waits:
    "manual", "retry" or "".
    """

    cancelled: bool
    running: bool
    orphaned: bool
    stopped: bool
    paused: bool
    waiting: str
    has_next_tick: bool
    last_outcome: str | None


def status_of(standing: IntervalStanding) -> IntervalStatus:
    if standing.cancelled:
        return IntervalStatus.CANCELLED
    if standing.running:
        return IntervalStatus.RUNNING
    if standing.orphaned or standing.stopped:
        return IntervalStatus.FAILED
    return IntervalStatus.PAUSED if standing.paused else _at_rest(standing)


def _at_rest(standing: IntervalStanding) -> IntervalStatus:
    # Only a failed job becomes pending by a manual run. Beside a schedule that goes on, such a run changes no state.
    again = standing.last_outcome not in {None, "completed", "cancelled"}
    if standing.waiting == "manual" and (again or not standing.has_next_tick):
        return IntervalStatus.PENDING
    if standing.waiting or standing.has_next_tick:
        return IntervalStatus.SCHEDULED
    if standing.last_outcome is None:
        return IntervalStatus.PENDING
    return IntervalStatus.COMPLETED if standing.last_outcome == "completed" else IntervalStatus.FAILED


def refusal(order: IntervalOrder, interval_id: str, status: IntervalStatus) -> str | None:
    """Why a job in this state takes no such order; None: it does."""
    allowed = ALLOWED[order]
    if status in allowed:
        return None
    return f"can't {order} job {interval_id!r}: it is {status}, and has to be {_or(allowed)}"


def _or(statuses: tuple[IntervalStatus, ...]) -> str:
    *others, last = statuses
    return f"{', '.join(others)} or {last}" if others else str(last)
