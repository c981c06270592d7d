"""Which ids come due when, in PostgreSQL's time.

Ticks stand on whole seconds, so many jobs share an instant. The heap has each instant once, with a bucket of ids. So a
herd of ten thousand costs one heap operation. Disarming is lazy: only `_armed` counts, and buckets may have old ids.
"""

import sys
from heapq import heappop, heappush
from typing import Final

ALL: Final = sys.maxsize


class Timers:
    """Each id is armed for at most one instant (us)."""

    __slots__ = ("_armed", "_buckets", "_instants")

    def __init__(self) -> None:
        self._armed: dict[int, int] = {}
        self._buckets: dict[int, list[int]] = {}
        self._instants: list[int] = []

    def __len__(self) -> int:
        return len(self._armed)

    def arm(self, member: int, due_us: int) -> None:
        """Arm `member` for `due_us`, instead of whatever it was armed for."""
        if self._armed.get(member) == due_us:
            return
        self._armed[member] = due_us
        bucket = self._buckets.get(due_us)
        if bucket is None:
            self._buckets[due_us] = [member]
            heappush(self._instants, due_us)
        else:
            bucket.append(member)

    def disarm(self, member: int) -> None:
        self._armed.pop(member, None)

    def next_us(self) -> int | None:
        """The earliest instant for which anything is still armed."""
        armed = self._armed
        while self._instants:
            instant = self._instants[0]
            bucket = self._buckets[instant]
            while bucket and armed.get(bucket[-1]) != instant:
                bucket.pop()
            if bucket:
                return instant
            del self._buckets[heappop(self._instants)]
        return None

    def pop_due(self, now_us: int, at_most: int = ALL) -> list[int]:
        """Disarm and return what is due at `now_us`: earliest first, and of one instant the lowest ids."""
        due: list[int] = []
        armed = self._armed
        while self._instants and self._instants[0] <= now_us and len(due) < at_most:
            instant = self._instants[0]
            bucket = self._buckets[instant]
            bucket.sort(reverse=True)
            while bucket and len(due) < at_most:
                member = bucket.pop()
                if armed.get(member) == instant:
                    del armed[member]
                    due.append(member)
            if not bucket:
                del self._buckets[heappop(self._instants)]
        return due
