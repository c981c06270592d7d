"""Who is probed next, and the probe under way (SWIM, sections 3.1 and 4.3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cronring.controller.core.chance import Chance

URGENT_CAPACITY: Final = 16


@dataclass(slots=True)
class Probe:
    """One round: a ping; after the timeout ping-reqs through helpers; at the end of the interval a verdict."""

    sequence: int
    target_id: str
    ask_helpers_ns: int
    ends_ns: int
    answered: bool = False
    asked: bool = False  # the time for ping-reqs has come, even if there was no helper
    nacks: int = 0

    def next_ns(self) -> int:
        return self.ends_ns if self.asked or self.answered else self.ask_helpers_ns

    def delay(self, by_ns: int) -> None:
        """I slept, so answers may lie unread: the verdict waits as long again."""
        self.ask_helpers_ns += by_ns
        self.ends_ns += by_ns


class TargetOrder:
    """A round robin in random order, each half shuffled by itself after every traversal.

    So the time until a given member is probed again is at most 1.5 N intervals (SWIM's plain reshuffle: 2 N - 1), and
    for two targets it is always 2. New members come in at a random place.
    """

    __slots__ = ("_chance", "_next", "_order", "_urgent")

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._order: list[str] = []
        self._next = 0
        self._urgent: list[str] = []

    def add(self, member_id: str) -> None:
        if member_id in self._order:
            return
        at = int(self._chance.random() * (len(self._order) + 1))
        self._order.insert(at, member_id)
        if at < self._next:
            self._next += 1

    def remove(self, member_id: str) -> None:
        if member_id in self._urgent:
            self._urgent.remove(member_id)
        if member_id in self._order:
            at = self._order.index(member_id)
            del self._order[at]
            if at < self._next:
                self._next -= 1

    def prefer(self, member_ids: Iterable[str]) -> None:
        """Probe these first, out of turn: somebody accuses them, and my own word counts."""
        for member_id in member_ids:
            if member_id not in self._urgent and len(self._urgent) < URGENT_CAPACITY:
                self._urgent.append(member_id)

    def next(self) -> str | None:
        """The next target; None when there is nobody."""
        if self._urgent:
            return self._urgent.pop(0)
        if not self._order:
            return None
        if self._next >= len(self._order):
            self._reshuffle()
        target = self._order[self._next]
        self._next += 1
        return target

    def _reshuffle(self) -> None:
        middle = len(self._order) // 2
        first, second = self._order[:middle], self._order[middle:]
        self._chance.shuffle(first)
        self._chance.shuffle(second)
        self._order = first + second
        self._next = 0
