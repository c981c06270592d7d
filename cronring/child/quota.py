"""Ceilings that the kernel holds while a run with a limit lasts.

The runner looks at what a run uses, and kills a run that is over its limit. Between two looks a run can allocate much,
and a runner may stand still. So no process of the run gets more than 256 MiB above its memory_limit. This process gets
no more than a second or two above its cpu_limit.

RLIMIT_DATA counts private memory that can be written to, touched or not: heap, anonymous mappings, stacks of threads.
RLIMIT_AS would not do: it counts address space, of which interpreters, allocators and libraries reserve gigabytes.
"""

from __future__ import annotations

import contextlib
import math
import os
import time

HEADROOM = 256 << 20  # what a thread can touch between two looks, roughly, and mapped memory that is never touched


def set_ceilings(memory_limit: int, cpu_limit_us: int) -> dict[int, tuple[int, int]]:
    """Limits in bytes and microseconds; 0: none. Returns the former limits, for `lift_ceilings`."""
    import resource  # noqa: PLC0415  # absent on some systems, and few runs need it

    before: dict[int, tuple[int, int]] = {}
    wanted = {}
    if memory_limit:
        data, resident = _statm()
        if data:
            wanted[resource.RLIMIT_DATA] = data + max(memory_limit - resident, 0) + HEADROOM
    if cpu_limit_us:
        wanted[resource.RLIMIT_CPU] = math.ceil(time.process_time() + cpu_limit_us / 1e6) + 1
    for kind, ceiling in wanted.items():
        soft, hard = resource.getrlimit(kind)
        known = [limit for limit in (ceiling, soft, hard) if limit != resource.RLIM_INFINITY]
        with contextlib.suppress(ValueError, OSError):  # without a ceiling, the runner's looks must suffice
            resource.setrlimit(kind, (min(known), hard))
            before[kind] = (soft, hard)
    return before


def lift_ceilings(before: dict[int, tuple[int, int]]) -> None:
    import resource  # noqa: PLC0415  # as above

    for kind, limits in before.items():
        with contextlib.suppress(ValueError, OSError):  # the verb has lowered the hard one
            resource.setrlimit(kind, limits)


def _statm() -> tuple[int, int]:
    """(private memory that can be written to, resident memory), in bytes; (0, 0) where nobody says. See proc(5)."""
    try:
        with open("/proc/self/statm", "rb") as file:
            fields = file.read().split()
    except OSError:
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return int(fields[5]) * page, int(fields[1]) * page
