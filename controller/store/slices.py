"""Work on many rows, cut so that none of it holds the event loop, which ticks wait for."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, ParamSpec, TypeVar

from cronring.controller.ports.many import WRITTEN_AT_ONCE

BESIDE_FROM: Final = 50  # rows; of fewer, a thread costs more than it spares

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def sliced(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """So many as one statement writes."""
    return (items[at : at + WRITTEN_AT_ONCE] for at in range(0, len(items), WRITTEN_AT_ONCE))


async def beside(rows: int, compute: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What it computes; of many rows, in a thread."""
    if rows < BESIDE_FROM:
        return compute(*args, **kwargs)
    return await asyncio.to_thread(compute, *args, **kwargs)
