"""The states of a job, and what leads from one to another: the one table of it.

`ORDERS` says what operators may do to a job in each state, and which states may follow. An order that is absent is
refused. `HAPPENINGS` says the same of what the cluster does by itself. docs/control.md draws both; the view
cron_job_details derives the state of every row as `state_of` does for one.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """What people see of a job."""

    PENDING = "pending"  # it waits to be triggered, or for another job; or its ticks were over before it ever ran
    SCHEDULED = "scheduled"  # it has a tick to come
    RUNNING = "running"
    PAUSED = "paused"  # it may still run what had begun
    ORPHANED = "orphaned"  # made by hand, and no active version of its module has its verb; that may still run, too
    COMPLETED = "completed"  # its schedule has no tick to come, and its last run completed
    FAILED = "failed"  # its schedule has no tick to come, and its last run ended otherwise
    CANCELLED = "cancelled"  # by an operator, until it is restored; or removed for good


class Order(StrEnum):
    """What operators do."""

    PAUSE = "pause"
    RESUME = "resume"
    SKIP_NEXT = "skip_next"
    TRIGGER = "trigger"
    BACKFILL = "backfill"
    UPDATE = "update"
    CANCEL = "cancel"
    RESTORE = "restore"
    DELETE = "delete"


class Happening(StrEnum):
    """What the cluster does by itself, and what runs by hand."""

    CLAIM = "tick is claimed"
    RUN_BY_HAND = "run beside the schedule begins"
    END = "run ends"
    FAILURES = "pause_after_failures"
    PAUSE_OVER = "pause's end comes"
    TICK_SKIPPED = "tick is skipped"
    REDEPLOYED = "module is deployed anew"
    REMOVED = "module no longer declares it"
    VERB_GONE = "module no longer has its verb"  # of a job that somebody made by hand
    VERB_BACK = "module has its verb again"


Table = Mapping[State, tuple[State, ...]]

_ALL: Final = tuple(State)
_AT_REST: Final = (State.SCHEDULED, State.PENDING, State.COMPLETED, State.FAILED)
_ALIVE: Final = (*_AT_REST, State.RUNNING)


def _staying(*states: State) -> dict[State, tuple[State, ...]]:
    return {state: (state,) for state in states}


def _to(target: State, *states: State) -> dict[State, tuple[State, ...]]:
    return dict.fromkeys(states, (target,))


# Another schedule may give a job its first tick to come, or leave it without one; or it runs by hand from then on.
_RESCHEDULED: Final = {
    State.PENDING: _AT_REST,
    State.SCHEDULED: _AT_REST,
    State.COMPLETED: (State.COMPLETED, State.SCHEDULED, State.PENDING),
    State.FAILED: (State.FAILED, State.SCHEDULED, State.PENDING),
}

ORDERS: Final[Mapping[Order, Table]] = MappingProxyType({
    # A pause is allowed without a tick to come, too: it keeps retries, backfills and runs after other jobs' ticks. An
    # orphaned job takes orders that set its later state, but none that asks for a run.
    Order.PAUSE: _to(State.PAUSED, *_ALIVE, State.PAUSED) | _staying(State.ORPHANED),
    Order.RESUME: {State.PAUSED: _ALIVE} | _staying(*_ALIVE, State.ORPHANED),
    Order.SKIP_NEXT: {State.SCHEDULED: _AT_REST, State.RUNNING: (State.RUNNING,)},
    Order.TRIGGER: _staying(*_ALIVE, State.PAUSED),
    Order.BACKFILL: _staying(*_ALIVE, State.PAUSED),
    Order.UPDATE: _RESCHEDULED | _staying(State.RUNNING, State.PAUSED, State.ORPHANED),
    Order.CANCEL: _to(State.CANCELLED, *_ALL),
    Order.RESTORE: {State.CANCELLED: (*_ALIVE, State.ORPHANED)} | _staying(*_ALIVE, State.PAUSED, State.ORPHANED),
    Order.DELETE: _to(State.CANCELLED, *_ALL),
})  # fmt: skip

HAPPENINGS: Final[Mapping[Happening, Table]] = MappingProxyType({
    Happening.CLAIM: {State.SCHEDULED: (State.RUNNING,)},
    Happening.RUN_BY_HAND: dict.fromkeys(_AT_REST, (State.RUNNING,)) | _staying(State.RUNNING, State.PAUSED),
    Happening.END: {State.RUNNING: _ALIVE} | _staying(State.PAUSED, State.CANCELLED, State.ORPHANED),
    Happening.FAILURES: {State.RUNNING: (State.PAUSED,)},
    Happening.PAUSE_OVER: {State.PAUSED: _ALIVE},
    Happening.TICK_SKIPPED: {State.SCHEDULED: _AT_REST},
    Happening.REDEPLOYED: _RESCHEDULED | _staying(State.RUNNING, State.PAUSED, State.CANCELLED),
    Happening.REMOVED: _to(State.CANCELLED, *(state for state in _ALL if state is not State.ORPHANED)),
    Happening.VERB_GONE: _to(State.ORPHANED, *_ALIVE, State.PAUSED) | _staying(State.CANCELLED),
    Happening.VERB_BACK: {State.ORPHANED: (*_ALIVE, State.PAUSED)} | _staying(State.CANCELLED),
})  # fmt: skip

# The state that an order aims at, for the text of a refusal.
TARGETS: Final[Mapping[Order, State]] = MappingProxyType({
    Order.PAUSE: State.PAUSED,
    Order.RESUME: State.SCHEDULED,
    Order.SKIP_NEXT: State.SCHEDULED,
    Order.TRIGGER: State.RUNNING,
    Order.BACKFILL: State.RUNNING,
    Order.UPDATE: State.SCHEDULED,
    Order.CANCEL: State.CANCELLED,
    Order.RESTORE: State.SCHEDULED,
    Order.DELETE: State.CANCELLED,
})  # fmt: skip


def state_of(
    *,
    cancelled: bool,
    paused: bool,
    running: bool,
    has_next_tick: bool,
    last_outcome: str | None,
    orphaned: bool = False,
    by_hand: bool = False,
) -> State:
    """`paused`: its pause is in force. `running`: any execution that holds the job, or is counted by it. `by_hand`: it
    has no schedule of its own, so it is never done.
    """
    if cancelled:
        return State.CANCELLED
    if orphaned:
        return State.ORPHANED
    if paused:
        return State.PAUSED
    if running:
        return State.RUNNING
    if has_next_tick:
        return State.SCHEDULED
    if last_outcome is None or by_hand:
        return State.PENDING
    return State.COMPLETED if last_outcome == "completed" else State.FAILED


def allowed(state: State, order: Order) -> bool:
    return state in ORDERS[order]


def refusal(key: str, state: State, order: Order) -> str:
    """Why a job in this state takes no such order, and what to do instead; both states are named."""
    target = TARGETS[order]
    verb = order.value.replace("_", "-")
    return (
        f"can't {verb} {key!r}: it is {state.value}, and {verb} can't take a job from {state.value} to {target.value}; "
        f"{remedy_of(state)}"
    )


def remedy_of(state: State) -> str:
    """What to do first about a job in this state that takes no such order."""
    match state:
        case State.CANCELLED:
            return "`cronring jobs restore` brings it back"
        case State.ORPHANED:
            return (
                "no active version of its module has its verb: deploy one that has it, or `cronring rollback`; "
                "`cronring jobs delete` gives it up"
            )
        case State.PAUSED:
            return "`cronring jobs resume` first, or move the end of its pause: `cronring jobs pause --until`"
        case _:
            return "it has no tick to come; `cronring jobs trigger` runs it by hand"
