"""How far this host's clock is off PostgreSQL's. Ticks go by PostgreSQL's; this one judges certificates and tokens."""

import asyncio
from collections.abc import Callable
from typing import Final

from cronring.controller.ports.clock import Clock
from cronring.controller.runtime.log import Log
from cronring.schema.duration import measured

INTERVAL_S: Final = 5.0
# Far below the five minutes by which certificates begin before they are made, far above what NTP leaves.
OFF_US: Final = 30_000_000
AGAIN_NS: Final = 3_600_000_000_000  # how often a clock that stays wrong is logged again
REMEDY: Final = (
    "set this host's clock (NTP, chrony), or PostgreSQL's host's if that is the wrong one. Ticks go by PostgreSQL's "
    "alone. But certificates are judged by this one: some minutes off, other members and runners refuse it, and it them"
)


class HostClock:
    """`database_us`: PostgreSQL's time at a monotonic instant in ns, as far as it is known; 0 before its first answer.

    Both clocks are read within microseconds, so the difference is as good as what is known of PostgreSQL's.
    """

    def __init__(self, clock: Clock, database_us: Callable[[int], int]) -> None:
        self._clock = clock
        self._database_us = database_us
        self._told_ns: int | None = None

    def offset_us(self) -> int | None:
        """Above 0: this clock is ahead. None: PostgreSQL's time isn't known yet."""
        database_us = self._database_us(self._clock.now_ns())
        return self._clock.wall_us() - database_us if database_us else None

    def gauges(self) -> dict[str, float]:
        """For Metrics.add_gauges."""
        offset_us = self.offset_us()
        return {} if offset_us is None else {"host_clock_offset_seconds": offset_us / 1e6}

    async def watch(self, log: Log) -> None:
        """For ever."""
        while True:
            self.look(log)
            await asyncio.sleep(INTERVAL_S)

    def look(self, log: Log) -> None:
        """Log a clock that is wrong, now and then, and once more when it is right again."""
        offset_us, now_ns = self.offset_us(), self._clock.now_ns()
        if offset_us is None:
            return
        if abs(offset_us) > OFF_US:
            if self._told_ns is None or now_ns - self._told_ns >= AGAIN_NS:
                self._told_ns = now_ns
                way = "ahead of" if offset_us > 0 else "behind"
                off = f"{measured(abs(offset_us) / 1_000)} {way} PostgreSQL's"
                log.warning("host_clock_off", off=off, remedy=REMEDY)
        elif self._told_ns is not None:
            self._told_ns = None
            log.info("host_clock_right_again")
