"""What is still to be told: a bounded queue of rumours that ride on other packets (SWIM, section 4.1)."""

import math
from typing import Final

from controller.core.swim.messages import Update

RETRANSMIT_MULTIPLIER: Final = 4  # SWIM's lambda, as memberlist has it
CAPACITY: Final = 1024
PACKET_UPDATES: Final = 60


def retransmit_limit(members: int) -> int:
    """How often one node tells a rumour: 4 x ceil(log10(members + 1)); 4 for up to 9 members, 8 for up to 99."""
    return RETRANSMIT_MULTIPLIER * math.ceil(math.log10(members + 1))


class Rumors:
    """At most one rumour for each member: the newest. Those told least often go first, newer before older."""

    __slots__ = ("_capacity", "_serial", "_waiting")

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._serial = 0
        self._waiting: dict[str, tuple[int, int, Update]] = {}  # member_id -> (times told, -serial, rumour)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, update: Update) -> None:
        """Tell this from now on, instead of what was told of that member. A full queue forgets what was told most."""
        self._serial += 1
        self._waiting[update.member_id] = (0, -self._serial, update)
        if len(self._waiting) > self._capacity:
            most_told = max(self._waiting, key=lambda member_id: self._waiting[member_id][:2])
            del self._waiting[most_told]

    def take(self, members: int, at_most: int = PACKET_UPDATES) -> tuple[Update, ...]:
        """Rumours for one packet; they count as told, and are dropped when told often enough for `members`."""
        if not self._waiting:
            return ()
        limit = retransmit_limit(members)
        chosen = sorted(self._waiting.values(), key=lambda waiting: waiting[:2])[:at_most]
        for told, serial, update in chosen:
            if told + 1 < limit:
                self._waiting[update.member_id] = (told + 1, serial, update)
            else:
                del self._waiting[update.member_id]
        return tuple(update for _, _, update in chosen)

    def clear(self) -> None:
        self._waiting.clear()
