"""A machine (a node, a runner's core) whose steps are counted: calls of functions, and memory.

Both are the same on any machine for the same Python, and CPU time follows them.
"""

import sys
import tracemalloc
from collections import Counter, defaultdict
from cProfile import Profile
from typing import Any


def counted(profile: Profile) -> dict[str, int]:
    """How often each function was called, Python's and C's, under `file:line(name)`."""
    found: Counter[str] = Counter()
    for entry in profile.getstats():
        found[_name(entry.code)] += entry.callcount
    return {name: calls for name, calls in found.items() if "_lsprof.Profiler" not in name}


def _name(code: Any) -> str:
    if isinstance(code, str):
        return code
    return f"{'/'.join(code.co_filename.split('/')[-3:])}:{code.co_firstlineno}({code.co_qualname})"


class Metered:
    """Passes everything on to the machine. `what` is counted in each step, by the kind of its event.

    "calls" and "memory" disturb each other, so they are taken in runs of their own.
    """

    def __init__(self, machine: Any, what: str) -> None:
        self.machine = machine
        self.what = what
        self.steps: Counter[str] = Counter()
        self.profiles: dict[str, Profile] = defaultdict(Profile)
        self.peak_bytes: Counter[str] = Counter()
        self.kept_blocks: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)

    def forget(self) -> None:
        self.steps.clear()
        self.profiles.clear()
        self.peak_bytes.clear()
        self.kept_blocks.clear()

    def step(self, event: Any, now_ns: int) -> Any:
        kind = type(event).__name__
        self.steps[kind] += 1
        if self.what == "memory" and tracemalloc.is_tracing():
            return self._step_in_memory(kind, event, now_ns)
        if self.what != "calls":
            return self.machine.step(event, now_ns)
        profile = self.profiles[kind]
        profile.enable()
        try:
            return self.machine.step(event, now_ns)
        finally:
            profile.disable()

    def _step_in_memory(self, kind: str, event: Any, now_ns: int) -> Any:
        blocks = sys.getallocatedblocks()
        tracemalloc.reset_peak()
        held, _ = tracemalloc.get_traced_memory()
        effects = self.machine.step(event, now_ns)
        _, peak = tracemalloc.get_traced_memory()
        self.peak_bytes[kind] += peak - held
        self.kept_blocks[kind] += sys.getallocatedblocks() - blocks
        return effects
