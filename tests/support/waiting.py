"""Waiting for what can't tell: a poll with a deadline and a message. Whatever can tell should be awaited instead."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

POLL_S: Final = 0.02
BLOCKING_POLL_S: Final = 0.05  # files, databases and other programs are asked less often
TIMEOUT_S: Final = 60.0  # only who fails waits for so long; a busy machine may take some of it

T = TypeVar("T")


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


def until(what: str | Callable[[], str], found: Callable[[], T | None], timeout_s: float = TIMEOUT_S) -> T:
    """What `found()` finds at last, for who may block the thread. Raises AssertionError after `timeout_s`.

    `what` is waited for; a callable is asked only then.
    """
    deadline = time.monotonic() + timeout_s
    while not (answer := found()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what if isinstance(what, str) else what()}: not within {timeout_s:g} s")
        time.sleep(BLOCKING_POLL_S)
    return answer
