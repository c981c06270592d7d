"""A consumer of a queue: takes messages, holds them while they are worked on, and says what became of each."""

import asyncio
import contextlib
import json
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from cronring.client.errors import OutcomeUnknown, Unavailable, Unreachable
from cronring.client.queues import Lease, QueueCalls, Taken

WAIT: Final = timedelta(seconds=20)  # of a take, for something to come in
EXTENSIONS: Final = 3  # within the time of a lease: two may fail
FIRST_PAUSE_S: Final = 0.2
LAST_PAUSE_S: Final = 5.0
ERROR_MAX: Final = 10_000
_AWAY: Final = (Unreachable, Unavailable, OutcomeUnknown)
_log: Final = logging.getLogger(__name__)


class Received:
    """What both faces have of a message, and its end. `output`: what the execution says that waits for it.

    `state`: of one that failed, what `QueueCalls.retry` said becomes of it; "" if nobody could be told.
    """

    def __init__(self, taken: Taken, leased: "_Leased[Any]") -> None:
        self.id = taken.id
        self.workspace = taken.workspace
        self.payload = taken.payload
        self.delivery = taken.delivery
        self.job = taken.job
        self.execution_id = taken.execution_id
        self.tick = taken.tick
        self.attempt = taken.attempt
        self.enqueued_at = taken.enqueued_at
        self.output = ""
        self.state = ""
        self.error: Exception | None = None
        self.lost = False
        self._leased = leased

    @property
    def lease(self) -> int:
        """The fence: what a lease's number has written, no older lease may write over."""
        return self._leased.lease.number

    def value(self) -> Any:
        """The payload, read as JSON. None where it is empty."""
        return json.loads(self.payload) if self.payload else None

    def lose(self) -> None:
        """It is somebody else's, or nobody's any more."""
        self.lost = True

    async def over(self, error: BaseException | None) -> bool:
        """Say what became of it. Whether that settles the error."""
        if self.lost:
            _log.warning("message %s is not ours any more: what its work came to is not told", self.id)
            return isinstance(error, Exception)
        if isinstance(error, Exception):
            self.error = error
            _log.warning("message %s failed at delivery %s", self.id, self.delivery, exc_info=error)
            await self._leased.failed(self, error)
            return True
        if error is None:
            await self._leased.done(self)
        return False


class Message(Received):
    """A message, and a context in which it is worked on. Once that is left, it is done.

    An exception that leaves it is a failure: it is logged, kept in `error`, and goes no further. The message comes
    again later, after a delay that grows. When its execution is cancelled, or its lease is lost, the work is cancelled.
    """

    _task: asyncio.Task[Any] | None = None

    def lose(self) -> None:
        """It is somebody else's, or nobody's any more: who works on it is cancelled."""
        super().lose()
        if self._task is not None:
            self._task.cancel()

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        settled = self.lost and isinstance(error, asyncio.CancelledError)
        if self.lost and task is not None and task.cancelling():
            task.uncancel()
        return await self.over(error) or settled


Item = TypeVar("Item", bound=Received)


class _Leased(Generic[Item]):
    """What one take gave: in order, and without what has ended or is lost."""

    def __init__(
        self, calls: QueueCalls, lease: Lease, hold: timedelta, make: "Callable[[Taken, _Leased[Any]], Item]"
    ) -> None:
        self._calls = calls
        self.lease = lease
        self._hold = hold
        self._until_s = time.monotonic() + hold.total_seconds()
        self.left = deque(make(taken, self) for taken in lease.messages)
        self._working: Item | None = None

    def next(self) -> Item | None:
        self._working = self.left.popleft() if self.left else None
        return self._working

    async def hold_on(self) -> None:
        """Extends the lease, for ever. What is no longer held is lost."""
        pause_s = self._hold.total_seconds() / EXTENSIONS
        while True:
            await asyncio.sleep(pause_s)
            with contextlib.suppress(*_AWAY):
                await self.look()
            if time.monotonic() > self._until_s:
                self._keep({})

    async def look(self) -> None:
        """Extends the lease, and forgets what it has no longer. Raises as QueueCalls.extend."""
        began_s = time.monotonic()
        states = await self._calls.extend(self.lease, self._hold)
        self._until_s = began_s + self._hold.total_seconds()
        self._keep(states)

    async def done(self, message: Received) -> None:
        self._working = None
        await self._told(message, lambda: self._calls.finish(self.lease, [message.id], message.output))

    async def failed(self, message: Received, error: Exception) -> None:
        """Where its lane is blocked now, what came with it has gone back."""
        self._working = None
        kind, words = type(error).__name__, str(error)[:ERROR_MAX]
        message.state = await self._told(message, lambda: self._calls.retry(self.lease, [message.id], words, kind))
        if self.left:
            with contextlib.suppress(*_AWAY):
                await self.look()

    async def give_back(self) -> None:
        with contextlib.suppress(*_AWAY):
            await self._calls.release(self.lease)

    async def _told(self, message: Received, tell: Callable[[], Awaitable[dict[int, str]]]) -> str:
        """Its state, once somebody has heard it; "" if the lease has run out before: then it comes again."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                state = (await tell())[message.id]
            except _AWAY as error:
                if time.monotonic() > self._until_s:
                    _log.warning("message %s has ended, and nobody could be told: %s", message.id, error)
                    return ""
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LAST_PAUSE_S)
                continue
            if state in {"gone", "refused"}:
                _log.warning("message %s has ended, and was %s: somebody else has it, or it was cancelled",
                             message.id, state)  # fmt: skip
            return state

    def _keep(self, states: dict[int, str]) -> None:
        self.left = deque(each for each in self.left if states.get(each.id) == "held")
        working = self._working
        if working is not None and not working.lost and states.get(working.id) != "held":
            working.lose()


class Consuming(Generic[Item]):
    """What both faces of a consumer are. `make`: a message of what was taken."""

    def __init__(
        self, calls: QueueCalls, queue: str, consumer: str, namespace: str, *, most: int, hold: timedelta,
        until_empty: bool, make: Callable[[Taken, _Leased[Any]], Item],
    ) -> None:  # fmt: skip
        self._calls = calls
        self._make = make
        self._queue = queue
        self._consumer = consumer
        self._namespace = namespace
        self._most = most
        self._hold = hold
        self._until_empty = until_empty
        self._reached = False
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """May be called by a handler of a signal."""
        self._stopping.set()

    async def messages(self) -> AsyncGenerator[Item, None]:
        while (lease := await self._unless_stopped()) is not None:
            leased = self._leased(lease)
            holding = asyncio.get_running_loop().create_task(leased.hold_on())
            try:
                while not self._stopping.is_set() and (message := leased.next()) is not None:
                    yield message
            finally:
                holding.cancel()
                await asyncio.gather(holding, return_exceptions=True)
                await leased.give_back()

    async def _unless_stopped(self) -> Lease | None:
        """What the next take that gives something gives. None: it is to end."""
        if self._stopping.is_set():
            return None
        stopped = asyncio.get_running_loop().create_task(self._stopping.wait())
        taking = asyncio.get_running_loop().create_task(self._take())
        try:
            await asyncio.wait({stopped, taking}, return_when=asyncio.FIRST_COMPLETED)
            if taking.done() and not self._stopping.is_set():
                return taking.result()
            return None
        finally:
            for task in (stopped, taking):
                task.cancel()
            await asyncio.gather(stopped, taking, return_exceptions=True)
            if self._stopping.is_set() and taking.done() and not taking.cancelled() and taking.exception() is None:
                lease = taking.result()
                if lease is not None:
                    await self._leased(lease).give_back()

    def _leased(self, lease: Lease) -> _Leased[Item]:
        return _Leased(self._calls, lease, self._hold, self._make)

    async def _take(self) -> Lease | None:
        """None: nothing is ready, and nothing is waited for."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                lease = await self._calls.take(
                    self._queue,
                    self._consumer,
                    self._namespace,
                    most=self._most,
                    hold=self._hold,
                    wait=timedelta() if self._until_empty else WAIT,
                )
            except _AWAY:
                if not self._reached:
                    raise
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LAST_PAUSE_S)
                continue
            self._reached = True
            if lease.number or self._until_empty:
                return lease if lease.number else None
            pause_s = FIRST_PAUSE_S


class Consumer(Consuming[Message]):
    """`async for` gives one message after the other, for ever. Work on each within `async with message:`.

    Its lease is extended meanwhile. `stop` ends the loop after the message that is worked on, and gives back what else
    was taken. `until_empty` ends it once nothing is ready. The first take raises Unreachable if no controller answers;
    later ones are tried again. All raise what controllers refuse, as PermissionDenied or Invalid.
    """

    def __init__(
        self, calls: QueueCalls, queue: str, consumer: str, namespace: str, *, most: int, hold: timedelta,
        until_empty: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(calls, queue, consumer, namespace, most=most, hold=hold, until_empty=until_empty, make=Message)

    def __aiter__(self) -> AsyncIterator[Message]:
        return self.messages()
