"""The only reader of time in a controller."""

import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic time for the core, and this host's wall clock, which is good for nothing but show."""

    def now_ns(self) -> int: ...
    def wall_us(self) -> int: ...


class SystemClock:
    """The operating system's clocks. CLOCK_MONOTONIC is also the clock of asyncio's timers."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def wall_us(self) -> int:
        return time.time_ns() // 1_000  # never used to decide anything
