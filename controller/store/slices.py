"""Work on many rows, done so that it doesn't hold the event loop, which ticks wait for."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

BESIDE_FROM: Final = 50  # rows; of fewer, a thread costs more than it spares

P = ParamSpec("P")
R = TypeVar("R")


async def beside(rows: int, compute: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What it computes; of many rows, in a thread."""
    if rows < BESIDE_FROM:
        return compute(*args, **kwargs)
    return await asyncio.to_thread(compute, *args, **kwargs)
