"""An operating system process around a pure machine: the driver's ten lines, over virtual time."""

from collections import deque
from typing import Any, Final, Protocol

from cronring.virtual.clock import Timer, VirtualClock

STEPS_AT_ONCE_MAX: Final = 5_000


class Machine(Protocol):
    def step(self, event: Any, now_ns: int, /) -> list[Any]: ...
    def next_deadline(self) -> int | None: ...


class Process:
    """Has a monotonic clock of its own (from another zero, drifting), and may be stopped, continued and killed."""

    def __init__(self, clock: VirtualClock, name: str, drift_ppm: int, woke: Any) -> None:
        self.clock = clock
        self.name = name
        self.alive = True
        self.stopped = False
        self.machine: Machine | None = None
        self._woke = woke
        self._born_ns = clock.now_ns
        self._parts = 1_000_000 + drift_ppm
        self._inbox: deque[Any] = deque()
        self._timer: Timer | None = None
        self._working = False

    def local_ns(self) -> int:
        return 7_000_000_000 + (self.clock.now_ns - self._born_ns) * self._parts // 1_000_000

    def virtual_ns(self, local_ns: int) -> int:
        return self._born_ns + -(-(local_ns - 7_000_000_000) * 1_000_000 // self._parts)

    def put(self, event: Any) -> None:
        if self.alive:
            self._inbox.append(event)
            self.work()

    def stop(self) -> None:
        """SIGSTOP."""
        self.stopped = True

    def resume(self) -> None:
        """SIGCONT."""
        self.stopped = False
        self.work()

    def kill(self) -> None:
        """SIGKILL."""
        self.alive = False
        self._inbox.clear()
        if self._timer is not None:
            self._timer.cancel()

    def work(self) -> None:
        """Take what is there, and what is due."""
        if self._working or self.machine is None:
            return
        self._working = True
        deadline_ns: int | None = None
        steps = 0
        while self.alive and not self.stopped:
            now_ns = self.local_ns()
            if self._inbox:
                event = self._inbox.popleft()
            else:
                deadline_ns = self.machine.next_deadline()
                if deadline_ns is None or deadline_ns > now_ns:
                    break
                event = self._woke
            steps += 1
            assert steps < STEPS_AT_ONCE_MAX, f"{self.name} spins: {event}"
            for effect in self.machine.step(event, now_ns):
                self.perform(effect)
        self._working = False
        self._arm(deadline_ns)

    def _arm(self, deadline_ns: int | None) -> None:
        """Wake at the deadline that the machine had when nothing was left to do."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline_ns is not None and self.alive and not self.stopped:
            self._timer = self.clock.call_at(self.virtual_ns(deadline_ns), self.work)

    def perform(self, effect: Any) -> None:
        raise NotImplementedError
