"""Virtual time: one queue of things to come, in an order that depends on nothing but who asked first."""

import heapq
from collections.abc import Callable
from typing import Final

MS: Final = 1_000_000
SECOND: Final = 1_000_000_000

Action = Callable[[], None]


class Timer:
    """A call to come. Cancelled ones stay in the queue until their time, and do nothing then."""

    __slots__ = ("_action", "at_ns")

    def __init__(self, at_ns: int, action: Action) -> None:
        self.at_ns = at_ns
        self._action: Action | None = action

    @property
    def done(self) -> bool:
        """Fired or cancelled."""
        return self._action is None

    def cancel(self) -> None:
        self._action = None

    def fire(self) -> None:
        action, self._action = self._action, None
        if action is not None:
            action()


class VirtualClock:
    """Time in ns that moves only when run_until() or step() moves it. Ties go to whoever asked first."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns
        self._serial = 0
        self._queue: list[tuple[int, int, Timer]] = []

    def call_at(self, at_ns: int, action: Action) -> Timer:
        """Call `action` at `at_ns`; an instant that has passed means now, after all that is due now already."""
        timer = Timer(max(at_ns, self.now_ns), action)
        self._serial += 1
        heapq.heappush(self._queue, (timer.at_ns, self._serial, timer))
        return timer

    def call_after(self, delay_ns: int, action: Action) -> Timer:
        return self.call_at(self.now_ns + delay_ns, action)

    def next_at(self) -> int | None:
        """When the next call is due; None: nothing is to come."""
        return self._queue[0][0] if self._queue else None

    def step(self) -> bool:
        """Move to the next call and make it. False: nothing is to come."""
        if not self._queue:
            return False
        at_ns, _, timer = heapq.heappop(self._queue)
        self.now_ns = at_ns
        timer.fire()
        return True

    def run_until(self, until_ns: int) -> None:
        """Make every call due up to and at `until_ns`, and end there."""
        while self._queue and self._queue[0][0] <= until_ns:
            self.step()
        self.now_ns = max(self.now_ns, until_ns)

    def run_for(self, duration_ns: int) -> None:
        self.run_until(self.now_ns + duration_ns)
