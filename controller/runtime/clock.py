"""The only reader of time in a controller."""

import time


class SystemClock:
    """The operating system's clocks. CLOCK_MONOTONIC is also the clock of asyncio's timers."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def wall_us(self) -> int:
        return time.time_ns() // 1_000  # never used to decide anything
