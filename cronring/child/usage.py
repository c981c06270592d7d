"""What a run uses: CPU time of its own, and the most memory that its process has held.

CPU of a sync run is that of its process, as nothing else runs there: all threads, but no process that the verb started.
CPU of an async run is what its steps took on the event loop's thread, with those of tasks that it made. Work in other
threads is not counted. The peak is that of the process. For a sync run it counts since the run began, where the kernel
can reset it (Linux). For an async run it counts since the process began, whatever ran there.
"""

from __future__ import annotations

import os
import sys

from cronring.child.board import SLOTS

spent_ns = [0] * (SLOTS + 1)  # by slot: on the event loop's thread
_KIB = 1024


def reset_peak() -> None:
    """Count the peak from here on, if the system can; see proc(5) on clear_refs."""
    try:
        fd = os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(fd, b"5")
    except OSError:
        pass  # a kernel without it: the peak is of the process's whole life
    finally:
        os.close(fd)


def peak_bytes() -> int:
    """The most memory that this process has held; 0 where nobody says."""
    try:
        with open("/proc/self/status", "rb") as file:
            _, found, rest = file.read().partition(b"VmHWM:")
        if found:
            return int(rest.split(None, 1)[0]) * _KIB
    except (OSError, ValueError):
        pass
    try:
        import resource  # noqa: PLC0415  # absent on some systems
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KIB
