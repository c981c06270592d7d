"""How a controller or a runner allocates memory, and when it looks for garbage: set once, before it serves."""

import ctypes
import gc
from typing import Final

_COLLECTED_AFTER: Final = (50_000, 20, 20)  # objects, and the rounds of each generation; CPython's own begins at 700
_ARENA_MAX: Final = -8  # M_ARENA_MAX of glibc's malloc.h


def spare_memory() -> None:
    """Call it before there are threads that allocate much.

    What is loaded stays, and what a burst allocates is let go of without the collector: a tenth of the CPU was its
    looking. And malloc keeps one arena. Each of gRPC's threads has one of its own, and what large messages leave free
    in one serves no other: by refused requests of 7 and 32 MiB a stranger made a controller grow from 100 to 366 MiB,
    and on; now to 156. Another libc than glibc has no arenas, and is left alone.
    """
    # docs/decisions/0005: the collector cost a tenth of a burst
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
