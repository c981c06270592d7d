"""A run's memory_limit and cpu_limit, held against what its processes use.

A run with a limit has a child to itself, so that what the child and its descendants use is the run's. The host looks
20 times a second; what goes over a limit is killed, with everything that it started. In between there are ceilings that
the kernel holds, see cronring.child.quota.
"""

import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from cronring.child.quota import HEADROOM
from cronring.runner.processes import TICK_US, Tree, Usage, proportional_bytes, usage_of
from cronring.schema.duration import format_duration
from cronring.schema.execution import Outcome, Run
from cronring.schema.size import format_size, rounded_size

MEMORY_ERROR: Final = "MemoryLimit"
CPU_ERROR: Final = "CpuLimit"
_EXACT_SHARE: Final = 20  # of the time, at most one in so many is spent on exact looks


class Excess(NamedTuple):
    """How a run that went over a limit ends."""

    outcome: Outcome
    error_type: str
    message: str


class Unfit(NamedTuple):
    """A run can't begin in this child. `excess`: nor in any other, as a fresh one holds too much already."""

    excess: Excess | None


class Meter:
    """One run in one child. CPU time counts from here on, memory is all that its processes hold."""

    __slots__ = ("_cpu_before", "_exact_after_ns", "_run", "_tree", "cpu_us", "peak_bytes")

    def __init__(self, run: Run, tree: Tree, first: list[Usage]) -> None:
        self._run = run
        self._tree = tree
        self._cpu_before = _cpu_ticks(first)
        self._exact_after_ns = 0
        self.cpu_us = 0
        self.peak_bytes = 0

    def look(self) -> Excess | None:
        """What it uses now; the limit that it is over, if it is."""
        found = self._tree.look()
        if not found:
            return None  # it has just ended
        self.cpu_us = max(self.cpu_us, (_cpu_ticks(found) - self._cpu_before) * TICK_US)
        return self._over_memory(found) or self._over_cpu()

    def _over_memory(self, found: list[Usage]) -> Excess | None:
        limit = self._run.memory_limit
        held = sum(usage.resident_bytes for usage in found)
        if limit and held > limit:
            exact = self._exact(found)
            if exact is None:
                return None
            held = exact
        self.peak_bytes = max(self.peak_bytes, held)
        return memory_excess(self._run, held, len(found)) if limit and held > limit else None

    def _exact(self, found: list[Usage]) -> int | None:
        """Pages that processes share count once. None: that was asked a moment ago."""
        began_ns = time.monotonic_ns()
        if began_ns < self._exact_after_ns:
            return None
        held = sum(_exact_bytes(usage.pid) for usage in found)
        ended_ns = time.monotonic_ns()
        self._exact_after_ns = ended_ns + (ended_ns - began_ns) * _EXACT_SHARE
        return held

    def _over_cpu(self) -> Excess | None:
        limit_us = self._run.cpu_limit_us
        return cpu_excess(self._run) if limit_us and self.cpu_us > limit_us else None


def meter_for(run: Run, pid: int, bare_bytes: int) -> Meter | Unfit:
    """Begin to measure a run in this child. `bare_bytes`: what it held before its first run; 0: it had none yet.

    A child that has run others serves if they left no process behind. And of the memory between what a fresh child
    holds and the limit they may hold a quarter at most. Where there is no /proc, nothing is measured.
    """
    tree = Tree(pid)
    found = tree.look()
    held = sum(usage.resident_bytes for usage in found)
    limit = run.memory_limit
    if bare_bytes and (len(found) > 1 or (limit and 4 * (limit - held) < 3 * (limit - bare_bytes))):
        return Unfit(None)
    if limit and held > limit:
        size = format_size(limit)
        message = (
            f"its module alone, once imported, holds {rounded_size(held)}, so memory_limit={size} leaves nothing "
            "for the run: raise it, or import less"
        )
        return Unfit(Excess(Outcome.OUT_OF_MEMORY, MEMORY_ERROR, message))
    return Meter(run, tree, found)


def resident_bytes(pid: int) -> int:
    """What a process holds; 0 where nobody says."""
    usage = usage_of(pid)
    return 0 if usage is None else usage.resident_bytes


def memory_excess(run: Run, held: int, processes: int) -> Excess:
    of = "" if processes <= 1 else f" in {processes} processes"
    message = (
        f"it held {rounded_size(held)}{of}, more than its memory_limit={format_size(run.memory_limit)}: "
        "raise that, or take the work in smaller pieces"
    )
    return Excess(Outcome.OUT_OF_MEMORY, MEMORY_ERROR, message)


def refused_memory(run: Run, said: str) -> Excess:
    """A MemoryError: the kernel gave it no more than its ceiling."""
    message = (
        f"it asked for more memory than its memory_limit={format_size(run.memory_limit)} "
        f"and the {rounded_size(HEADROOM)} above it that may be asked for: raise it, or take the work in smaller pieces"
    )
    return Excess(Outcome.OUT_OF_MEMORY, MEMORY_ERROR, f"{message}\nMemoryError: {said}".removesuffix(": "))


def cpu_excess(run: Run) -> Excess:
    limit = format_duration(run.cpu_limit_us // 1000)
    message = f"it took more than its cpu_limit={limit} of CPU time: raise that, or do less in one run"
    return Excess(Outcome.OUT_OF_CPU, CPU_ERROR, message)


def _exact_bytes(pid: int) -> int:
    """A process that has ended since it was looked at holds nothing, and what it shared is the others' alone by now."""
    exact = proportional_bytes(pid)
    return resident_bytes(pid) if exact is None else exact


def _cpu_ticks(found: Iterable[Usage]) -> int:
    return sum(usage.cpu_ticks for usage in found)
