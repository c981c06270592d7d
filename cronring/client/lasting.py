"""A stream that goes on although the controller that serves it goes."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Final, TypeVar

from grpc.aio import Channel

from cronring.client.channel import Failover
from cronring.client.errors import Unavailable, Unreachable

Message = TypeVar("Message")

AWAY_MAX_S: Final = 60.0  # controllers and runners that come back within this long don't end a stream
FIRST_MAX_S: Final = 2.0  # before the first message
AWAY_PAUSE_S: Final = 0.3


async def lasting(
    failover: Failover, call: Callable[[Channel], AsyncIterable[Message]]
) -> AsyncGenerator[Message | None, None]:
    """One stream of many, each made by `call`; None marks that another one begins.

    Once it has begun, it lasts as long as somebody comes back within AWAY_MAX_S. Raises Unreachable, Unavailable.
    """
    loop = asyncio.get_running_loop()
    patience_s, heard_at = FIRST_MAX_S, loop.time()
    while True:
        try:
            async for message in failover.stream(call):
                if message is not None:
                    patience_s, heard_at = AWAY_MAX_S, loop.time()
                yield message
        except (Unreachable, Unavailable):
            if loop.time() - heard_at > patience_s:
                raise
        await asyncio.sleep(AWAY_PAUSE_S)
