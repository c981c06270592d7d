"""A child stops runs that may not go on unseen, even if its runner can't tell it to.

A runner without contact to the cluster stops its runs before they are declared lost. A runner that stands still
(SIGSTOP, a debugger, a host that swaps) can't do that. Its children would run on beside their successors elsewhere. So
every child watches the end of its runner's contact, FENCE on the board. It steps in a moment after the runner should
have done so.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

from cronring.child.board import FENCE, FENCED
from cronring.child.guard import die

_GLANCE_NS = 1_000_000_000  # FENCE moves each second, and lies seconds ahead
_AFTER_RUNNER_NS = 50_000_000  # the runner, if it lives, tells better why it stops a run
_GRACE_NS = 300_000_000  # until what still runs is killed; equal to the runner's


# docs/decisions/0058: a runner that stands still can't do it
def watch_fence(board: memoryview, unseen: Callable[[], bool], ask: Callable[[], None]) -> None:
    """Start watching. `unseen`: does anything run that may not run on unseen? `ask`: ask those runs to end.

    Both are called in a thread of their own.
    """
    threading.Thread(target=_watch, args=(board, unseen, ask), name="cronring-fence", daemon=True).start()


def _watch(board: memoryview, unseen: Callable[[], bool], ask: Callable[[], None]) -> None:
    # Signals are for the main thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    while True:
        fence_ns = board[FENCE]
        left_ns = fence_ns + _AFTER_RUNNER_NS - time.monotonic_ns() if fence_ns else _GLANCE_NS
        if left_ns > 0:
            # There was contact after all: the next fence is told anew.
            board[FENCED] = 0
            time.sleep(min(left_ns, _GLANCE_NS) / 1e9)
        elif not board[FENCED]:
            board[FENCED] = 1
            # docs/decisions/0058: asked first, as the runner would do: a run that obeys can still tidy up
            if unseen():
                ask()
            time.sleep(_GRACE_NS / 1e9)
        elif unseen():
            # A run that goes on in spite of that may have a successor elsewhere by now.
            die()
        else:
            time.sleep(_GRACE_NS / 1e9)
