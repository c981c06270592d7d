"""Limits of how often somebody may do something: token buckets. One instant is kept for each bucket.

A full bucket is not kept at all. So a caller that has paused for long enough costs no memory.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

_NS_PER_S = 1_000_000_000


class Rate(NamedTuple):
    """`burst` tokens at once, and `per_s` of them come back each second. Both are above 0."""

    per_s: int
    burst: int


class Buckets:
    """One bucket for each key, all with one rate. Beyond `most` buckets, the one used the longest ago is forgotten.

    Instants are monotonic, in nanoseconds.
    """

    def __init__(self, rate: Rate, most: int) -> None:
        self.rate = rate
        self._most = most
        self._gap_ns = _NS_PER_S // rate.per_s
        self._room_ns = self._gap_ns * (rate.burst - 1)
        self._full_at: OrderedDict[Hashable, int] = OrderedDict()  # the one asked for the longest ago comes first

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: Hashable, now_ns: int) -> int:
        """Take a token. Returns 0 if it was taken; else how long until there is one, in nanoseconds."""
        full_at = max(self._full_at.pop(key, now_ns), now_ns)
        wait_ns = max(full_at - self._room_ns - now_ns, 0)
        self._full_at[key] = full_at if wait_ns else full_at + self._gap_ns
        self._forget(now_ns)
        return wait_ns

    def give_back(self, key: Hashable) -> None:
        """Give back a token that was taken in vain."""
        if key in self._full_at:
            self._full_at[key] -= self._gap_ns

    def _forget(self, now_ns: int) -> None:
        while self._full_at:
            key, full_at = next(iter(self._full_at.items()))
            if full_at > now_ns and len(self._full_at) <= self._most:
                return
            del self._full_at[key]
