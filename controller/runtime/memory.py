"""How this process allocates memory, and when it looks for garbage: set once, before anything is served."""

import ctypes
import gc
from typing import Final

COLLECTED_AFTER: Final = (50_000, 20, 20)  # objects, and the rounds of each generation; CPython's own begins at 700
_ARENA_MAX: Final = -8  # M_ARENA_MAX of glibc's malloc.h


def spare_memory() -> None:
    """Call it before there are threads."""
    spare_the_collector()
    keep_one_arena()


def spare_the_collector() -> None:
    """What is loaded stays, and what a burst allocates is let go of without it: a tenth of the CPU was its looking."""
    # docs/decisions/0005: the collector cost a tenth of a burst
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


def keep_one_arena() -> None:
    """Of glibc's malloc. Another libc has no arenas, and is left alone.

    Each of gRPC's threads has an arena of its own, and what large requests leave free in one serves no other. By
    refused requests of 7 and 32 MiB a stranger made a controller grow from 100 to 366 MiB, and on; now to 156.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
