"""What the engine shares with the project's simulator: the clock, the store in memory, and how effects reach it."""

from cronring.virtual.clock import MS, SECOND, Action, Timer, VirtualClock
from cronring.virtual.performing import run_now, store_answer, store_call
from tests.support.memory_rows import ExecutionRow, JobRow, SkipRow
from tests.support.memory_store import MemoryStore

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
