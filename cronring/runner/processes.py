"""What processes use, as /proc tells: of one, and of all that it has started."""

import os
from typing import Final, NamedTuple

TICK_US: Final = 1_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_KIB: Final = 1024


class Usage(NamedTuple):
    """Of one process. `cpu_ticks`: its own and those of its children that have ended and been waited for.

    `resident_bytes` counts what it shares with others in full; Linux may say a little less than there is.
    """

    pid: int
    born_ticks: int  # since the system started: with the pid, this names a process for good
    threads: int
    cpu_ticks: int
    resident_bytes: int


def usage_of(pid: int) -> Usage | None:
    """None: there is no such process (any more), or no /proc."""
    stat = _read(f"/proc/{pid}/stat")
    fields = stat[stat.rfind(b")") + 2 :].split()
    if not fields:
        return None
    cpu_ticks = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
    return Usage(pid, int(fields[19]), int(fields[17]), cpu_ticks, int(fields[21]) * _PAGE)


def proportional_bytes(pid: int) -> int | None:
    """What it holds, exactly; of what several share its part. Linux walks its page tables: milliseconds for 1 GiB."""
    _, found, rest = _read(f"/proc/{pid}/smaps_rollup").partition(b"\nPss:")
    return int(rest.split(None, 1)[0]) * _KIB if found else None


class Tree:
    """A process, and those that it or they have started, as long as each was seen once while its parent lived."""

    __slots__ = ("_known", "_root")

    def __init__(self, pid: int) -> None:
        self._root = pid
        self._known: dict[int, int] = {}  # by pid: when it was born

    def look(self) -> list[Usage]:
        """The first is the root; empty when that is gone, or where there is no /proc."""
        root = usage_of(self._root)
        if root is None:
            return []
        found = [root]
        seen = {self._root}
        waiting = [*_children(root), *self._known]
        for pid in waiting:  # grows meanwhile
            if pid in seen:
                continue
            seen.add(pid)
            usage = usage_of(pid)
            if usage is None or self._known.setdefault(pid, usage.born_ticks) != usage.born_ticks:
                self._known.pop(pid, None)
                continue
            found.append(usage)
            waiting += _children(usage)
        return found


def _children(parent: Usage) -> list[int]:
    """Linux keeps children by the thread that forked them."""
    if parent.threads <= 1:
        return _children_of_thread(parent.pid, parent.pid)
    try:
        threads = os.listdir(f"/proc/{parent.pid}/task")
    except OSError:
        return []
    return [child for thread in threads for child in _children_of_thread(parent.pid, int(thread))]


def _children_of_thread(pid: int, thread: int) -> list[int]:
    return [int(child) for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _read(path: str) -> bytes:
    """The beginning of a file of /proc, which is all of it here; empty if there is none (any more)."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(fd, 1 << 16)
    except OSError:  # the process ended in between
        return b""
    finally:
        os.close(fd)
