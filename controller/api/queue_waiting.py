"""Consumers that wait for messages: one statement looks for all of them, and none while nobody waits."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from cronring.controller.errors import Busy, StoreUnavailable
from cronring.controller.ports.queues import Consuming, QueueName

LOOK_S: Final = 0.1
AWAY_S: Final = 1.0  # while PostgreSQL can't be asked
WAITING_MAX: Final = 1_000


class QueueWaiting:
    """`fail` is told of an unexpected error."""

    def __init__(self, queues: Consuming, fail: Callable[[BaseException], None]) -> None:
        self._queues = queues
        self._fail = fail
        self._waiting: dict[QueueName, set[asyncio.Event]] = {}
        self._looking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def until_ready(self, name: QueueName, at_most_s: float) -> None:
        """Until there may be something to take, or the time is over. Raises Busy."""
        if len(self) >= WAITING_MAX:
            raise Busy(f"{WAITING_MAX} consumers wait at this controller; ask another, or come again")
        told = asyncio.Event()
        self._waiting.setdefault(name, set()).add(told)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())
            self._looking.add_done_callback(self._ended)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(at_most_s):
                    await told.wait()
        finally:
            self._forget(name, told)

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _forget(self, name: QueueName, told: asyncio.Event) -> None:
        events = self._waiting.get(name, set())
        events.discard(told)
        if not events:
            self._waiting.pop(name, None)

    async def _look(self) -> None:
        """Look while somebody waits. Each ready queue wakes one of its waiting consumers; the others the next time."""
        while self._waiting:
            pause_s = LOOK_S
            try:
                for name in await self._queues.ready(list(self._waiting)):
                    for told in list(self._waiting.get(name, ()))[:1]:
                        told.set()
                        self._forget(name, told)
            except StoreUnavailable:
                pause_s = AWAY_S
            await asyncio.sleep(pause_s)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._looking = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)
