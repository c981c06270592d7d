"""Is a child's event loop blocked, or does it wait for its turn on a busy machine? Does somebody hold it still?"""

from pathlib import Path

BLOCKED_NS = 500_000_000
STILL_NS = 3_000_000_000  # before a runner that stood still too would be taken for lost, and long after a mere Ctrl-Z
STILL_LOOK_NS = 500_000_000
_OBSERVATIONS = 6  # a runner that was away itself has not watched
_TICK_NS = 10_000_000  # /proc counts CPU time in hundredths of a second


class ChildProgress:
    """What was seen of a child's progress lately."""

    __slots__ = ("_cpu_ticks", "_observations", "_seen", "_since_ns", "told")

    def __init__(self) -> None:
        self._seen = (0, 0, 0)
        self._since_ns = 0
        self._observations = 0
        self._cpu_ticks = 0
        self.told = False  # that it is blocked stands in the log

    def observe(self, progress: tuple[int, int, int], pid: int, now_ns: int) -> bool:
        """`progress` (slot on the CPU, steps, lines unread), now. True: blocked for half a second.

        A child that got no CPU in that time is not blocked: it has either slept inside a step, or burnt CPU in one.
        """
        slot, _, unread = progress
        busy = slot != 0 or unread > 0
        if not busy or progress[:2] != self._seen[:2]:
            self._seen = progress
            self._observations = 0
            return False
        self._observations += 1
        if self._observations == 1:
            self._since_ns = now_ns
            self._cpu_ticks = _cpu(pid)[1]
        if self._observations < _OBSERVATIONS or now_ns - self._since_ns < BLOCKED_NS:
            return False
        state, ticks = _cpu(pid)
        if state != "R" or (ticks - self._cpu_ticks) * _TICK_NS >= BLOCKED_NS // 3:
            return True
        self._observations = 0
        return False


class Standstill:
    """Whether somebody stopped a child (SIGSTOP), and doesn't let it go on.

    Nothing else would tell before its runs' deadlines. A debugger's stops are no such thing ("t", not "T" in /proc).
    """

    __slots__ = ("_observations", "_observed_ns", "_since_ns")

    def __init__(self) -> None:
        self._since_ns = 0
        self._observed_ns = 0
        self._observations = 0

    def observe(self, pid: int, now_ns: int) -> bool:
        """To be called often; it looks twice a second. True: the child has stood still for three seconds."""
        if now_ns - self._observed_ns < STILL_LOOK_NS:
            return False
        self._observed_ns = now_ns
        if _cpu(pid)[0] != "T":
            self._observations = 0
            return False
        self._observations += 1
        if self._observations == 1:
            self._since_ns = now_ns
        return self._observations >= _OBSERVATIONS and now_ns - self._since_ns >= STILL_NS


def _cpu(pid: int) -> tuple[str, int]:
    """(state, CPU time in hundredths of a second). Where there is no /proc: always asleep."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return "S", 0
    return fields[0], int(fields[11]) + int(fields[12])
