import asyncio
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cronring.runner.core.model import CallAnswer, CallId, StopReason
from cronring.runner.describe import read_program
from cronring.runner.host import Host
from cronring.runner.lines import Asked
from cronring.runner.modules import load_module
from cronring.runner.run_as import RunAs
from cronring.schema.execution import Report, Run
from cronring.schema.log_line import Level
from tests.support.waiting import TIMEOUT_S


class Stage:
    """A host with one module, and the results that came out of it."""

    def __init__(self, sync_children: int) -> None:
        self.results: dict[int, Report] = {}
        self.lines: list[tuple[str, dict[str, str | int]]] = []
        self._changed = asyncio.Condition()
        self._next_id = 0
        self._news = asyncio.Event()
        self.host = Host(sync_children, self._ended, self._log, self._asked)
        self.asked: list[Asked] = []
        self.answer: Callable[[Asked], CallAnswer | None] = lambda _: None  # None: not yet

    async def open(self, file: Path, python: str, run_as: RunAs | None) -> None:
        loaded = load_module(read_program(file, python, "default", run_as))
        [hosted] = await self.host.open([(loaded.module, loaded.program)])
        self.host.name_deployment("d", hosted)

    def start(self, *verbs: str, timeout_s: float = 30.0, finish: bool = False, **told: Any) -> list[int]:
        """Start one run of each in one batch; their ids. `told`: further fields of Run."""
        now_us = time.time_ns() // 1000
        runs = []
        for verb in verbs:
            self._next_id += 1
            deadline_us = now_us + int(timeout_s * 1e6)
            runs.append(
                Run(
                    self._next_id,
                    1,
                    f"mod.{verb}",
                    "d",
                    verb,
                    now_us,
                    now_us,
                    now_us,
                    deadline_us,
                    1,
                    "schedule",
                    finish,
                    **told,
                )
            )
        self.host.start(runs, now_us - time.monotonic_ns() // 1000)
        return [run.execution_id for run in runs]

    async def ended(self, *ids: int, within_s: float = 20.0) -> list[Report]:
        async with asyncio.timeout(within_s):
            while not all(i in self.results for i in ids):
                await self._wait()
        return [self.results[i] for i in ids]

    async def logged(self, event: str) -> dict[str, str | int]:
        async with asyncio.timeout(TIMEOUT_S):
            while not any(name == event for name, _ in self.lines):
                await self._wait()
        return next(values for name, values in self.lines if name == event)

    async def run(self, verb: str, timeout_s: float = 30.0, **told: Any) -> Report:
        [result] = await self.ended(*self.start(verb, timeout_s=timeout_s, **told))
        return result

    def cancel(self, *ids: int) -> None:
        self.host.stop(ids, StopReason.CANCELLED, "asked to", 2_000)

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _ended(self, results: list[Report]) -> None:
        for result in results:
            assert result.execution_id not in self.results, "ended twice"
            self.results[result.execution_id] = result
        self._news.set()

    def _asked(self, _: Run, asked: Asked) -> None:
        self.asked.append(asked)
        answer = self.answer(asked)
        if answer is not None:
            self.host.answer(CallId(asked.execution_id, asked.number), answer)
        self._news.set()

    def _log(self, _level: Level, event: str, values: dict[str, str | int]) -> None:
        self.lines.append((event, values))
        self._news.set()


OpenStage = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def open_stage(tmp_path: Path) -> AsyncIterator[OpenStage]:
    """`await open_stage(source)`: a host whose module is that source, in a file mod.py."""
    stages: list[Stage] = []

    async def open_one(
        source: str, sync_children: int = 2, python: str = sys.executable, run_as: RunAs | None = None
    ) -> Stage:
        file = tmp_path / "mod.py"
        file.write_text(textwrap.dedent(source))
        stage = Stage(sync_children)
        stages.append(stage)
        await stage.open(file, python, run_as)
        return stage

    yield open_one
    for stage in stages:
        await stage.host.close()
