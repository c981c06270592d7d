"""What is still to be told: a bounded queue of rumours that ride on other packets (SWIM, section 4.1)."""

import math
from dataclasses import dataclass
from typing import Final

from cronring.controller.core.swim.messages import Status, Update

RETRANSMIT_MULTIPLIER: Final = 4  # SWIM's lambda, as memberlist has it
CAPACITY: Final = 1024  # members
PACKET_UPDATES: Final = 60


def retransmit_limit(members: int) -> int:
    """How often one node tells a rumour: 4 x ceil(log10(members + 1)); 4 for up to 9 members, 8 for up to 99."""
    return RETRANSMIT_MULTIPLIER * math.ceil(math.log10(members + 1))


@dataclass(slots=True)
class _Waiting:
    update: Update
    serial: int
    told: int = 0

    def order(self) -> tuple[int, int]:
        return (self.told, -self.serial)


class Rumors:
    """The newest rumour about each member. Of a suspicion it keeps one for each accuser, as accusers are counted.

    Those told least often go first, newer before older.
    """

    __slots__ = ("_capacity", "_serial", "_waiting")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._serial = 0
        self._waiting: dict[str, dict[str, _Waiting]] = {}  # member_id -> accuser_id -> rumour

    def __len__(self) -> int:
        """Members of whom there is something to tell."""
        return len(self._waiting)

    def add(self, update: Update) -> None:
        """Tell this from now on, in place of earlier rumours about the member. A full queue drops the most told one."""
        self._serial += 1
        waiting = _Waiting(update, self._serial)
        said = self._waiting.pop(update.member_id, {})
        if any(_is_another_matter(earlier.update, update) for earlier in said.values()):
            said = {}
        said[update.accuser_id] = waiting
        self._waiting[update.member_id] = said
        if len(self._waiting) > self._capacity:
            del self._waiting[self._most_told()]

    def take(self, members: int, at_most: int = PACKET_UPDATES, counts: bool = True) -> tuple[Update, ...]:
        """Rumours for one packet. If `counts`, they count as told once more, and are dropped at their limit."""
        if not self._waiting:
            return ()
        limit = retransmit_limit(members)
        everything = [waiting for said in self._waiting.values() for waiting in said.values()]
        chosen = sorted(everything, key=_Waiting.order)[:at_most]
        for waiting in chosen:
            waiting.told += counts
            if waiting.told >= limit:
                self._drop(waiting.update)
        return tuple(waiting.update for waiting in chosen)

    def clear(self) -> None:
        self._waiting.clear()

    def _drop(self, update: Update) -> None:
        said = self._waiting[update.member_id]
        del said[update.accuser_id]
        if not said:
            del self._waiting[update.member_id]

    def _most_told(self) -> str:
        return max(self._waiting, key=lambda member_id: min(map(_Waiting.order, self._waiting[member_id].values())))


def _is_another_matter(earlier: Update, later: Update) -> bool:
    """Only accusations of the same incarnation stand side by side."""
    if earlier.status is not Status.SUSPECT or later.status is not Status.SUSPECT:
        return True
    return earlier.incarnation != later.incarnation
