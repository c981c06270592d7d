"""A child never outlives its runner."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import threading
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def die_with_parent(lifeline: int, parent: int) -> None:
    """Three nets, from the widest to the surest. `lifeline` is a pipe whose other end only the runner holds.

    The kernel kills the whole process group when the pipe closes (Linux: O_ASYNC with F_SETSIG), so what the verb
    started dies as well; the kernel kills this process when its parent dies, even inside C code; and a thread does the
    first by hand, where the kernel can't.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it died before prctl
            os._exit(1)
        if os.getpgrp() == os.getpid():
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid())
            fcntl.fcntl(lifeline, 10, int(signal.SIGKILL))  # F_SETSIG, which the fcntl module of 3.9 doesn't name
            fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_watch, args=(lifeline,), name="cronring-lifeline", daemon=True).start()


def _watch(lifeline: int) -> None:
    # Signals are for the main thread: one that lands here would not wake it from a system call.
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    try:
        os.read(lifeline, 1)
    finally:
        die()


def die() -> NoReturn:
    """At once, and with everything that the verbs started."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
