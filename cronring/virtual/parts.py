"""What the engine shares with the project's simulator: the clock, the store in memory, and how effects reach it."""

from cronring.virtual.clock import MS, SECOND, Action, Timer, VirtualClock
from tests.support.memory_store import ExecutionRow, JobRow, MemoryStore, SkipRow
from cronring.virtual.performing import run_now, store_answer, store_call

__all__ = [
    "MS",
    "SECOND",
    "Action",
    "ExecutionRow",
    "JobRow",
    "MemoryStore",
    "SkipRow",
    "Timer",
    "VirtualClock",
    "run_now",
    "store_answer",
    "store_call",
]
