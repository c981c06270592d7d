"""Starts a controller whose event loop is watched, and reads what was seen, for bench.registering and bench.bulk.

    python bench/loop_watch.py FILE PYTHON -m MODULE ARGUMENT...

A timer wakes the loop every few milliseconds. How much later it woke is how long something held the loop. FILE gets a
line for each hold worth one: the wall clock's instant, the hold in ms, and what of it this thread had the CPU, in ms.
What follows FILE is the command as it would be.
"""

import asyncio
import os
import runpy
import sys
import time
from pathlib import Path
from typing import IO, Final

import uvloop

PERIOD_S: Final = 0.005
LEAST_MS: Final = 5.0


class Watch:
    """From the loop's first turn to its last."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lines: IO[str]) -> None:
        self._loop = loop
        self._lines = lines
        self._wake_at = self._cpu_s = 0.0
        loop.call_soon(self._rest)

    def _rest(self) -> None:
        self._wake_at = time.monotonic() + PERIOD_S
        self._cpu_s = time.thread_time()
        self._loop.call_later(PERIOD_S, self._woke)

    def _woke(self) -> None:
        held_ms = 1_000 * (time.monotonic() - self._wake_at)
        if held_ms >= LEAST_MS:
            self._lines.write(f"{time.time():.4f} {held_ms:.1f} {1_000 * (time.thread_time() - self._cpu_s):.1f}\n")
        self._rest()


def watched_loops(file: Path) -> None:
    """From now on each new loop has a Watch."""
    new_loop = uvloop.new_event_loop
    lines = file.with_name(f"{file.name}-{os.getpid()}").open("w", buffering=1)

    def watched() -> uvloop.Loop:
        loop = new_loop()
        Watch(loop, lines)
        return loop

    uvloop.new_event_loop = watched


def longest(file: Path, pid: int, began: float, ended: float) -> tuple[float, float]:
    """Of the holds of a process within that time: the longest, and the most CPU in one, in ms."""
    lines = file.with_name(f"{file.name}-{pid}").read_text().splitlines()
    holds = [tuple(map(float, line.split())) for line in lines]
    within = [(held, cpu) for at, held, cpu in holds if began <= at <= ended]
    return max((held for held, _ in within), default=0.0), max((cpu for _, cpu in within), default=0.0)


if __name__ == "__main__":
    watched_loops(Path(sys.argv[1]))
    del sys.path[0]  # this folder, whose names are not the controller's
    module = sys.argv[4]
    sys.argv = [module, *sys.argv[5:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
