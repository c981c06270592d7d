"""A child never outlives its runner."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
from typing import NoReturn


# docs/decisions/0058: PR_SET_PDEATHSIG spares what a child started
def die_with_parent(lifeline: int, parent: int) -> None:
    """Two safety nets. `lifeline` is a pipe whose other end only the runner holds.

    First, the kernel kills the whole process group when the pipe closes (Linux: O_ASYNC with F_SETSIG), even inside C
    code. So processes that the verb started die as well. Second, where the kernel can't, a thread does the same. That
    thread sits in `read`, so the pipe stays open even if the verb closes every descriptor that it finds.

    PR_SET_PDEATHSIG is no help: the signal comes when the *thread* that started this process ends, before the runner's
    descriptors are closed. It kills this process only, and the pipe with it, so the group would survive.
    """
    if sys.platform == "linux":
        if os.getppid() != parent:  # it died before this process got here
            os._exit(1)
        if os.getpgrp() == os.getpid():
            kill_at_end(lifeline, os.getpid())
    threading.Thread(target=_watch, args=(lifeline,), name="cronring-lifeline", daemon=True).start()


def kill_at_end(lifeline: int, group: int) -> None:
    """On Linux: the kernel kills the process group once nobody holds the pipe's other end.

    This works as long as one process of the group holds this end of the pipe. Processes inherit it.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -group)
    fcntl.fcntl(lifeline, 10, int(signal.SIGKILL))  # F_SETSIG, which the fcntl module of 3.9 doesn't name
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _watch(lifeline: int) -> None:
    # Signals are for the main thread: one that lands here would not wake it from a system call.
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    try:
        os.read(lifeline, 1)
    finally:
        die()


def die() -> NoReturn:
    """End this process at once, with everything that the verbs started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
