"""Watches the event loop: code that blocks the loop makes ticks late."""

import asyncio
from typing import Final

from cronring.controller.ports.clock import Clock
from cronring.controller.runtime.log import Log
from cronring.controller.runtime.metrics import Metrics

INTERVAL_S: Final = 0.1
WARN_US: Final = 250_000


async def watch_loop_lag(clock: Clock, metrics: Metrics, log: Log) -> None:
    """Measure how late a timer fires, for ever. A lag above WARN_US is worth a line."""
    interval_ns = int(INTERVAL_S * 1_000_000_000)
    while True:
        before_ns = clock.now_ns()
        await asyncio.sleep(INTERVAL_S)  # the very thing that is measured
        lag_us = max(0, clock.now_ns() - before_ns - interval_ns) // 1_000
        metrics.loop_lag.observe(lag_us)
        if lag_us > WARN_US:
            log.warning("event_loop_late", lateness_ms=lag_us // 1_000)
