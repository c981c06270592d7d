"""Work on many rows that doesn't block the event loop, as ticks wait for the loop."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

BESIDE_FROM: Final = 50  # rows; for fewer, a thread costs more than it saves

P = ParamSpec("P")
R = TypeVar("R")


async def beside(rows: int, compute: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of `compute`, which runs in a thread if there are many rows."""
    if rows < BESIDE_FROM:
        return compute(*args, **kwargs)
    return await asyncio.to_thread(compute, *args, **kwargs)
