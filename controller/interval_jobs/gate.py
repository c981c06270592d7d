"""How many of the contract's requests are at work at once: claims and ends always find a connection to PostgreSQL."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from cronring.controller.interval_jobs.problems import busy

AT_ONCE: Final = 4  # of ten connections
WAITING_MAX: Final = 64
WAITING_S: Final = 2.0


class Gate:
    """First come, first served."""

    def __init__(self, at_once: int = AT_ONCE, waiting_max: int = WAITING_MAX, waiting_s: float = WAITING_S) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._waiting_max = waiting_max
        self._waiting_s = waiting_s
        self._waiting = 0

    @contextlib.asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Raises IntervalRefused where too many wait already, or for too long: then nothing was done."""
        await self._acquire()
        try:
            yield
        finally:
            self._places.release()

    async def _acquire(self) -> None:
        if self._places.locked() and self._waiting >= self._waiting_max:
            raise busy(self._waiting)
        self._waiting += 1
        try:
            async with asyncio.timeout(self._waiting_s):
                await self._places.acquire()
        except TimeoutError:
            raise busy(self._waiting) from None
        finally:
            self._waiting -= 1
