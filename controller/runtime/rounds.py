"""What is done in rounds for as long as the process runs: one round, a pause, the next."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from cronring.controller.errors import StoreError, StoreUnavailable


async def go_round(
    once: Callable[[], Awaitable[float]], failed: Callable[[Exception], None], *, pause_s: float, failed_s: float
) -> NoReturn:
    """For ever, beginning with a pause of `pause_s` seconds. `once` returns the pause after it, in seconds.

    If PostgreSQL refuses or is away, `failed` gets the error, and the next round begins `failed_s` seconds later.
    """
    wait_s = pause_s
    while True:
        await asyncio.sleep(wait_s)
        try:
            wait_s = await once()
        except (StoreError, StoreUnavailable) as error:
            failed(error)
            wait_s = failed_s
