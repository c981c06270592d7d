"""What a part finds out that other parts have to act on.

A part returns its follow-ups, and keeps none: nobody collects or clears anything. Which phase of a step acts on which
kind stands in phases.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RingChanged:
    """Slots have other owners."""


@dataclass(frozen=True, slots=True)
class Buried:
    """Somebody held this controller dead, and may adopt from it."""


@dataclass(frozen=True, slots=True)
class Gone:
    """These controllers are dead or have left, and this one is to adopt from them."""

    controller_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrillOver:
    """This controller claims again. What has become of what is due, its rows say."""


@dataclass(frozen=True, slots=True)
class WindowAsked:
    """A refetch went out."""


@dataclass(frozen=True, slots=True)
class ClaimInDoubt:
    """A claim failed, and may have been committed."""


@dataclass(frozen=True, slots=True)
class RowNewer:
    """A row is newer than what the window knows."""


@dataclass(frozen=True, slots=True)
class RunnerAwaited:
    """A job waits for a runner of its deployment, which may be another one by now."""


@dataclass(frozen=True, slots=True)
class TickOverlooked:
    """In this slot an end left a tick that is due, and its owners may not know."""

    slot: int


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """This execution is to be cancelled, and no runner has it: its message is taken back."""

    execution_id: int
    reason: str


FollowUp = (
    RingChanged
    | Buried
    | Gone
    | DrillOver
    | WindowAsked
    | ClaimInDoubt
    | RowNewer
    | RunnerAwaited
    | TickOverlooked
    | Withdrawn
)
FollowUps = Sequence[FollowUp]
NONE: Final[FollowUps] = ()
