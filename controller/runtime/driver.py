"""The only loop around a node: take events from the inbox, or wake at its deadline; step; perform the effects."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from cronring.controller.core.node.effects import Effect, Leave
from cronring.controller.core.node.events import Event, Woke
from cronring.controller.ports.clock import Clock

# After this many events, or this long, sockets get their turn before the next ones.
TURN_EVENTS_MAX: Final = 256
TURN_NS_MAX: Final = 10_000_000
# While more events than this wait, senders that can wait do so: see room().
INBOX_EVENTS_MAX: Final = 20_000


class DrivenNode(Protocol):
    """A node, as the driver sees it. `now_ns` is monotonic."""

    def step(self, event: Event, now_ns: int) -> list[Effect]: ...
    def next_deadline(self) -> int | None: ...


class Driver:
    """One per process. Everything that happens to the node comes through `put`, from the event loop's own thread."""

    def __init__(self, node: DrivenNode, clock: Clock, perform: Callable[[Effect], None]) -> None:
        self._node = node
        self._clock = clock
        self._perform = perform
        self._inbox: deque[Event] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._failure: BaseException | None = None
        self._left = False
        self._room = asyncio.Event()
        self._room.set()

    @property
    def inbox_length(self) -> int:
        return len(self._inbox)

    def put(self, event: Event) -> None:
        """Queue an event for the node. Never blocks, never fails."""
        self._inbox.append(event)
        if len(self._inbox) > INBOX_EVENTS_MAX:
            self._room.clear()
        self._wake()

    async def room(self) -> None:
        """Wait until the inbox is short again. Streams that wait here slow down their other end, by TCP."""
        await self._room.wait()

    def fail(self, error: BaseException) -> None:
        """Make `run` raise this error: a part has failed that must not fail."""
        self._failure = self._failure or error
        self._wake()

    async def run(self) -> None:
        """Until the node leaves. Raises whatever the node, an effect, or `fail` raised."""
        while not self._left:
            if self._failure is not None:
                raise self._failure
            busy = self._turn()
            if len(self._inbox) <= INBOX_EVENTS_MAX:
                self._room.set()
            if busy:
                await asyncio.sleep(0)  # only yields: there is more to do
            elif not self._left:
                await self._wait()

    # docs/decisions/0007: send before going on, or the first of a herd waits for the rest
    def _turn(self) -> bool:
        """Step through the events that have come. True: some are left for the next turn.

        A turn ends with the first effects, so that their statements are under way before the node goes on.
        """
        began_ns = now_ns = self._clock.now_ns()
        for _ in range(TURN_EVENTS_MAX):
            if self._inbox:
                performed = self._step(self._inbox.popleft(), now_ns)
            elif self._is_due(now_ns):
                performed = self._step(Woke(), now_ns)
            else:
                return False
            if self._left:
                return False
            now_ns = self._clock.now_ns()
            if performed or now_ns - began_ns > TURN_NS_MAX:
                break
        return bool(self._inbox) or self._is_due(now_ns)

    def _is_due(self, now_ns: int) -> bool:
        deadline_ns = self._node.next_deadline()
        return deadline_ns is not None and deadline_ns <= now_ns

    def _step(self, event: Event, now_ns: int) -> bool:
        """Whether there was anything to perform."""
        effects = self._node.step(event, now_ns)
        for effect in effects:
            if isinstance(effect, Leave):
                self._left = True
            else:
                self._perform(effect)
        return bool(effects)

    async def _wait(self) -> None:
        """Until an event, a failure, or the node's deadline."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        deadline_ns = self._node.next_deadline()
        timer = None
        if deadline_ns is not None:
            # Rounded up to whole milliseconds, as event loops count in them: a wake-up too early would only spin.
            delay_ms = max(0, -(-(deadline_ns - self._clock.now_ns()) // 1_000_000))
            timer = loop.call_later(delay_ms / 1_000, self._wake)
        try:
            if not self._inbox and self._failure is None:
                await self._waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
