"""What processes spend."""

import contextlib
from collections.abc import Sequence

import psutil


def family(pids: Sequence[int]) -> list[psutil.Process]:
    """Those that live of these processes, and what they have started."""
    found: list[psutil.Process] = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            found += [process, *process.children(recursive=True)]
    return found


def cpu_s(pids: Sequence[int]) -> float:
    """CPU time of these processes and of what they have started."""
    spent = 0.0
    for process in family(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent += times.user + times.system
    return spent


def spent_s(pids: Sequence[int]) -> float:
    """CPU time of these processes and of all that they have started, those that have ended among them.

    What a process has spent goes over to its parent's account when that learns of its end. So a difference of two such
    sums misses nothing that PostgreSQL's backends or a runner's children did in between.
    """
    spent = 0.0
    for process in family(pids):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent += times.user + times.system + times.children_user + times.children_system
    return spent


def machine_s() -> float:
    """CPU time that all cores of this machine have been busy for, with whatever it was."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0))
