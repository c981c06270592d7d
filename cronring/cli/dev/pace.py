"""How far virtual time may have got by now."""

import time
from collections.abc import Callable


class TimeScale:
    """`speed` times as fast as real time; None: as fast as it goes. What runs held up is not made up for."""

    def __init__(self, speed: float | None, start_us: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._speed = speed
        self._now_s = now_s
        self._virtual_us = start_us
        self._real_s = now_s()

    def allowed_us(self) -> int:
        if self._speed is None:
            return 1 << 62
        return self._virtual_us + int((self._now_s() - self._real_s) * self._speed * 1e6)

    def hold(self, now_us: int) -> None:
        """It has only got so far, as work was in the way."""
        self._virtual_us = now_us
        self._real_s = self._now_s()
