"""Greeting the peers of --join, until somebody answers. Those of the `controllers` table are the node's own affair."""

import asyncio
from collections.abc import Callable
from typing import Final

from cronring.controller.core.node.events import SeedsNamed

INTERVAL_S: Final = 5.0


async def greet_until_joined(
    addresses: tuple[str, ...], is_alone: Callable[[], bool], put: Callable[[SeedsNamed], None]
) -> None:
    """Returns when this controller is not alone any more."""
    while addresses and is_alone():
        put(SeedsNamed(addresses))
        await asyncio.sleep(INTERVAL_S)
