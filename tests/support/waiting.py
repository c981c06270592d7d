"""Waiting for what can't tell: a poll with a deadline and a message. Whatever can tell should be awaited instead."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

POLL_S: Final = 0.02
TIMEOUT_S: Final = 60.0  # only who fails waits for so long; a busy machine may take some of it


async def wait_until(
    condition: Callable[[], bool | Awaitable[bool]],
    message: str | Callable[[], str],
    timeout_s: float = TIMEOUT_S,
    poll_s: float = POLL_S,
) -> None:
    """Until `condition()` holds. Raises AssertionError with `message` (made then, if callable) after `timeout_s`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        held = condition()
        if held if isinstance(held, bool) else await held:
            return
        if loop.time() >= deadline:
            raise AssertionError(f"after {timeout_s:g} s: {message if isinstance(message, str) else message()}")
        await asyncio.sleep(poll_s)
