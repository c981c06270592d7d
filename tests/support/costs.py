"""What pure computing costs. A bound is at least five times what a quiet machine shows: that of a test is busy."""

from collections.abc import Callable
from time import thread_time


def cpu_s(measured: Callable[[], object], best_of: int = 5) -> float:
    """Seconds of CPU time that this thread spends in `measured`, at best: neighbours slow a core's caches too."""
    best = float("inf")
    for _ in range(best_of):
        began = thread_time()
        measured()
        best = min(best, thread_time() - began)
    return best
