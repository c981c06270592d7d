"""Looks after history now and then. Every controller tries; PostgreSQL lets one at a time do it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.maintenance import Maintained
from cronring.controller.runtime.log import Log

INTERVAL_S: Final = 600.0
SOON_S: Final = 30.0  # after the start, or when something was in the way


async def look_after_history(round_of_it: Callable[[], Awaitable[Maintained]], log: Log) -> None:
    """For ever; a round that fails is tried again."""
    pause_s = SOON_S
    while True:
        await asyncio.sleep(pause_s)
        try:
            done = await round_of_it()
        except (StoreError, StoreUnavailable) as error:
            log.warning("history_not_looked_after", reason=str(error))
            pause_s = SOON_S
            continue
        pause_s = SOON_S if done.waiting else INTERVAL_S
        if done.partitions_made or done.jobs_closed:
            log.info("history_looked_after", partitions_made=done.partitions_made, jobs_closed=done.jobs_closed)
