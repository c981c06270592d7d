"""Deadlines of thousands of runs. Few deadlines are ever reached, so adding and removing costs a dict operation."""

import heapq

_BUCKET_NS = 10_000_000


class Deadlines:
    """Execution ids by deadline, in buckets of 10 ms. A deadline fires at its bucket's end, never early."""

    def __init__(self) -> None:
        self._buckets: dict[int, dict[int, None]] = {}
        self._order: list[int] = []
        self._bucket_of: dict[int, int] = {}

    def add(self, execution_id: int, deadline_ns: int) -> None:
        bucket = -(-deadline_ns // _BUCKET_NS)
        members = self._buckets.get(bucket)
        if members is None:
            members = self._buckets[bucket] = {}
            heapq.heappush(self._order, bucket)
        members[execution_id] = None
        self._bucket_of[execution_id] = bucket

    def discard(self, execution_id: int) -> None:
        bucket = self._bucket_of.pop(execution_id, None)
        if bucket is not None:
            del self._buckets[bucket][execution_id]

    def due(self, now_ns: int) -> list[int]:
        """Remove and return the ids whose deadline has passed."""
        passed: list[int] = []
        while self._order and self._order[0] * _BUCKET_NS <= now_ns:
            members = self._buckets.pop(heapq.heappop(self._order))
            for execution_id in members:
                del self._bucket_of[execution_id]
                passed.append(execution_id)
        return passed
