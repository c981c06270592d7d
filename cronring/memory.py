"""How a controller or a runner allocates memory, and when it looks for garbage: set once, before it serves."""

import ctypes
import gc
from typing import Final

_COLLECTED_AFTER: Final = (50_000, 20, 20)  # objects, and the rounds of each generation; CPython's own begins at 700
_ARENA_MAX: Final = -8  # M_ARENA_MAX of glibc's malloc.h


def spare_memory() -> None:
    """Call it before there are threads that allocate much.

    The collector took a tenth of the CPU: but what is loaded stays, and what a burst allocates is freed without it.

    malloc keeps one arena. Else each of gRPC's threads has its own, and memory that large messages leave free in one
    arena serves no other. By refused requests of 7 and 32 MiB a stranger made a controller grow from 100 to 366 MiB.
    Now it grows to 156 MiB. A libc other than glibc has no arenas, and is left alone.
    """
    # docs/decisions/0005: the collector cost a tenth of a burst
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
