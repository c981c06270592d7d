"""The clocks that a controller reads."""

from typing import Protocol


class Clock(Protocol):
    """Monotonic time for the core, and this host's wall clock, which is good for nothing but show."""

    def now_ns(self) -> int: ...
    def wall_us(self) -> int: ...
