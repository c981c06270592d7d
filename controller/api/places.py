"""Places for work that goes on at once. Waiting for a place is bounded in number, bytes and time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cronring.controller.errors import Busy


class CallPlaces:
    """First come, first served. `waiting_bytes`: of the requests of all that wait together; None: not counted."""

    def __init__(self, at_once: int, waiting_max: int, waiting_bytes: int | None = None) -> None:
        self._at_once = at_once
        self._free = asyncio.Semaphore(at_once)
        self._waiting_max = waiting_max
        self._bytes_max = waiting_bytes
        self.waiting = self._bytes = 0

    @property
    def full(self) -> bool:
        """A caller that comes now has to wait."""
        return self._free.locked()

    async def take(self, waiting_s: float, size: int = 0) -> None:
        """Take a place until `give_back`. Raises Busy if too many wait already, or after `waiting_s` seconds."""
        if not self.full:
            await self._free.acquire()  # doesn't wait
            return
        if self.waiting >= self._waiting_max or (self._bytes_max is not None and self._bytes + size > self._bytes_max):
            raise self._busy()
        self.waiting += 1
        self._bytes += size
        try:
            async with asyncio.timeout(waiting_s):
                await self._free.acquire()
        except TimeoutError:
            raise self._busy() from None
        finally:
            self.waiting -= 1
            self._bytes -= size

    def give_back(self) -> None:
        self._free.release()

    @asynccontextmanager
    async def place(self, waiting_s: float) -> AsyncIterator[None]:
        """As `take`, and given back. Raises Busy."""
        await self.take(waiting_s)
        try:
            yield
        finally:
            self.give_back()

    def _busy(self) -> Busy:
        return Busy(f"this controller has {self._at_once} calls in hand, and {self.waiting} that wait; come again")
