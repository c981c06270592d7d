"""Who goes first where places are short. Shares take turns; in its turn a share sends its most urgent item.

A share is all that waits of one workspace (the label `workspace`), or all that has none. In each round every share that
waits has one turn; within a round, and within a share, the lowest rank goes first. So a share with thousands of items
delays another share's first item by one turn. A new share joins the present round: it gets no credit for rounds in
which nothing of it waited.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Ranked = tuple[int, int, Item]  # rank, serial (unique), item
Alive = Callable[[Item, int], bool]  # whether the item with that serial still waits

_KEPT: Final = 128  # shares that are remembered before those of past rounds are dropped


class Turns:
    """Which round each share is in."""

    __slots__ = ("_kept", "_next", "now")

    def __init__(self) -> None:
        self._kept = _KEPT
        self.now = 0  # the round of the latest turn
        self._next: dict[str, int] = {}

    def of(self, share: str) -> int:
        """The round of its next turn."""
        return max(self._next.get(share, 0), self.now)

    def take(self, share: str) -> int:
        """Take the share's turn. Returns its round."""
        turn = self.now = self.of(share)
        self._next[share] = turn + 1
        if len(self._next) > self._kept:
            self._next = {each: following for each, following in self._next.items() if following > self.now}
            self._kept = _KEPT + 2 * len(self._next)
        return turn

    def give_back(self, share: str) -> None:
        """Its latest turn came to nothing."""
        turn = self._next.get(share, 0) - 1
        if turn >= 0:
            self._next[share] = turn
            self.now = min(self.now, turn)


# docs/decisions/0093: strict turns, and within them the rank
class FairQueue(Generic[Item]):
    """One heap for each share, and one heap of their heads. Both may hold items that no longer wait: `alive` tells."""

    __slots__ = ("_count", "_heads", "_heaps", "turns")

    def __init__(self) -> None:
        self.turns = Turns()
        self._heaps: dict[str, list[Ranked[Item]]] = {}
        self._heads: list[tuple[int, int, int, str]] = []  # round, rank, serial, share
        self._count = 0

    def __len__(self) -> int:
        """An upper bound: it counts items that no longer wait, until `sift` or a look at the head drops them."""
        return self._count

    def __iter__(self) -> Iterator[tuple[str, Ranked[Item]]]:
        return ((share, each) for share, heap in self._heaps.items() for each in heap)

    def push(self, share: str, ranked: Ranked[Item]) -> None:
        heap = self._heaps.setdefault(share, [])
        heappush(heap, ranked)
        self._count += 1
        if heap[0][1] == ranked[1]:
            self._offer(share, heap)

    def head(self, alive: Alive[Item]) -> Ranked[Item] | None:
        """What is next."""
        while self._heads:
            turn, _, serial, share = self._heads[0]
            heap = self._heaps.get(share)
            if heap is None or heap[0][1] != serial or self.turns.of(share) != turn:
                heappop(self._heads)
                if heap is not None and heap[0][1] == serial:
                    self._offer(share, heap)
            elif alive(heap[0][2], serial):
                return heap[0]
            else:
                self._drop(share, heap)
        return None

    def pop(self, alive: Alive[Item]) -> Ranked[Item] | None:
        """Remove and return what is next. This takes the turn of its share."""
        found = self.head(alive)
        if found is not None:
            share = self._heads[0][3]
            self.turns.take(share)
            self._drop(share, self._heaps[share])
        return found

    def give_back(self, share: str) -> None:
        """The last item that was taken of this share got no place: the share gets its turn back."""
        self.turns.give_back(share)
        heap = self._heaps.get(share)
        if heap is not None:
            self._offer(share, heap)

    def oldest(self, alive: Alive[Item]) -> Ranked[Item] | None:
        """The waiting item with the lowest rank, regardless of turns. It looks at the head of each share."""
        for share, heap in list(self._heaps.items()):
            while heap and not alive(heap[0][2], heap[0][1]):
                self._drop(share, heap)
        return min((heap[0] for heap in self._heaps.values()), key=_ranking, default=None)

    def sift(self, alive: Alive[Item]) -> None:
        """Drop what no longer waits."""
        self.refill([(share, each) for share, each in self if alive(each[2], each[1])])

    def refill(self, waiting: Iterable[tuple[str, Ranked[Item]]]) -> None:
        """Replace all that waits. Turns that were taken stay taken."""
        self._heaps = {}
        for share, each in waiting:
            self._heaps.setdefault(share, []).append(each)
        self._count = sum(map(len, self._heaps.values()))
        self._heads = []
        for share, heap in self._heaps.items():
            heapify(heap)
            self._offer(share, heap)

    def _drop(self, share: str, heap: list[Ranked[Item]]) -> None:
        heappop(heap)
        self._count -= 1
        if heap:
            self._offer(share, heap)
        else:
            del self._heaps[share]

    def _offer(self, share: str, heap: list[Ranked[Item]]) -> None:
        rank, serial, _ = heap[0]
        heappush(self._heads, (self.turns.of(share), rank, serial, share))


def _ranking(ranked: Ranked[Item]) -> tuple[int, int]:
    return ranked[0], ranked[1]
