"""The loop around a pure machine, over virtual time: take what has come, or wake it at its deadline; step; perform."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Final, Protocol

from cronring.virtual.times import VirtualTime

STEPS_AT_ONCE_MAX: Final = 100_000


class Machine(Protocol):
    """A node, or a runner's core."""

    def step(self, event: Any, now_ns: int, /) -> list[Any]: ...
    def next_deadline(self) -> int | None: ...


class Process(ABC):
    """One virtual process. `woke` is the event that tells its machine of nothing but the time."""

    def __init__(self, time: VirtualTime, name: str, machine: Machine, woke: Any) -> None:
        self.name = name
        self.alive = True
        self.time = time
        self._machine = machine
        self._woke = woke
        self._inbox: deque[Any] = deque([woke])
        self._seen_ns = -1  # PostgreSQL's time when there was nothing left to do
        self.deadline_ns: int | None = None  # on the monotonic clock, as of then

    def put(self, event: Any) -> None:
        """Queue an event; the engine sees to it that the machine takes it at this very instant."""
        if self.alive:
            self._inbox.append(event)

    def work(self) -> bool:
        """Take what there is and what is due. False if there was nothing."""
        if not self._inbox and self._seen_ns == self.time.clock.now_ns:
            return False
        now_ns = self.time.now_ns
        steps = 0
        while self.alive:
            if self._inbox:
                event = self._inbox.popleft()
            else:
                self.deadline_ns = self._machine.next_deadline()
                if self.deadline_ns is None or self.deadline_ns > now_ns:
                    break
                event = self._woke
            steps += 1
            assert steps < STEPS_AT_ONCE_MAX, f"{self.name} spins: {event}"
            for effect in self._machine.step(event, now_ns):
                self.perform(effect)
        self._seen_ns = self.time.clock.now_ns
        return steps > 0

    def end(self) -> None:
        """It is gone, and nothing of it will happen any more."""
        self.alive = False
        self._inbox.clear()

    @abstractmethod
    def perform(self, effect: Any) -> None: ...
