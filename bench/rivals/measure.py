"""One burst: its starts read from the log that the no-ops write, its end from the contender's own tables."""

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import asyncpg

from bench.processes import cpu_s, spent_s
from bench.rivals.programs.starts import RECORD

POLL_S = 0.005
Start = tuple[float, int]  # seconds since 1970, and the job's number


class StartLog:
    """Reads what was appended since it was last asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new(self) -> list[Start]:
        """Whole records only: the last may be on its way."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        whole = len(data) - len(data) % RECORD.size
        self._read += whole
        return list(RECORD.iter_unpack(data[:whole]))


@dataclass(frozen=True)
class Burst:
    """Figures of one. `per_second`: jobs by the time from the tick to the last one's end, as the contender's books have
    it; the rest is lateness of starts. `executions` beyond the number of jobs ran twice. `others_percent`: of a core,
    what the other contenders took meanwhile. `own_us`, `postgres_us`: CPU time by execution, of the contender's
    processes and of the whole server. Of a queue from when its jobs had been added, so that what quick workers did
    before that was told is missing.
    """

    jobs: int
    executions: int
    drained_ms: float
    per_second: float
    first_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    others_percent: float = 0.0
    own_us: float = 0.0
    postgres_us: float = 0.0

    def row(self) -> dict[str, Any]:
        return asdict(self)


class NotDrainedError(Exception):
    """A contender that did not end in time."""


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of values in order, that which `share` of them do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Meter:
    """CPU time of a contender, of its PostgreSQL and of the other contenders, from when it was made."""

    def __init__(self, own: Sequence[int], postgres: int, others: Sequence[int]) -> None:
        self._pids = (own, postgres, others)
        self._begun, self._before = time.monotonic(), self._now()

    def _now(self) -> tuple[float, float, float]:
        own, postgres, others = self._pids
        return cpu_s(own), spent_s([postgres]), cpu_s(others)  # sessions that have ended count, too

    def by(self, executions: int) -> dict[str, float]:
        """Fields of a Burst."""
        own, postgres, others = (now - then for now, then in zip(self._now(), self._before, strict=True))
        percent = others / (time.monotonic() - self._begun) * 100
        each = {"own_us": own / executions * 1e6, "postgres_us": postgres / executions * 1e6}
        return {"others_percent": round(percent, 1), **{name: round(value, 1) for name, value in each.items()}}


def figures(starts: Sequence[Start], jobs: int, tick: float, drained: float, cpu: Mapping[str, float]) -> Burst:
    late = sorted((instant - tick) * 1000 for instant, _ in starts)
    marks = {"first_ms": late[0], "p50_ms": percentile(late, 0.5), "p99_ms": percentile(late, 0.99), "max_ms": late[-1]}
    return Burst(
        jobs, len(late), round((drained - tick) * 1000, 1), round(jobs / (drained - tick)),
        **{name: round(value, 1) for name, value in marks.items()}, **cpu,
    )  # fmt: skip


async def until_idle(connection: asyncpg.Connection, unfinished: str, deadline: float) -> float:
    """The instant when nothing was left. Raises NotDrainedError after the deadline."""
    while await connection.fetchval(unfinished):
        if time.time() > deadline:
            raise NotDrainedError("all have started, and some have not ended")
        await asyncio.sleep(POLL_S)
    return time.time()


async def watch(
    log: StartLog, connection: asyncpg.Connection, unfinished: str, jobs: int, deadline: float
) -> tuple[list[Start], float]:
    """Starts of each of the jobs, and the instant when nothing was left to end.

    Asks the tables only when all have started, so that asking costs the contender nothing before. Raises
    NotDrainedError after the deadline.
    """
    starts: list[Start] = []
    seen: set[int] = set()
    while len(seen) < jobs:
        new = log.new()
        starts += new
        seen |= {number for _, number in new}
        if time.time() > deadline:
            raise NotDrainedError(f"{len(seen)} of {jobs} had started")
        await asyncio.sleep(POLL_S)
    drained = await until_idle(connection, unfinished, deadline)
    return starts + log.new(), drained
