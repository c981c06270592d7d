"""One event loop that runs many async verbs at once."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

from cronring.child.asking import AsyncAsker
from cronring.child.board import FINISH, LINES, UNSENT
from cronring.child.channel import Channel
from cronring.child.errors import describe_end, error_bases
from cronring.child.fence import watch_fence
from cronring.child.output import Printer, current_printer
from cronring.child.quota import lift_ceilings, set_ceilings
from cronring.child.steps import RunStep, step_factory
from cronring.child.stopping import Stops
from cronring.child.usage import peak_bytes, reset_peak, spent_ns
from cronring.child.verbs import ChildRun, Verbs, runs_from

RESULTS_PER_LINE = 1000


class AsyncServer:
    """Runs what the runner sends, and returns results once per iteration of the loop."""

    def __init__(self, channel: Channel, board: memoryview, verbs: Verbs, loop: asyncio.AbstractEventLoop) -> None:
        self._channel = channel
        self._board = board
        self._verbs = verbs
        self._loop = loop
        self._running: dict[int, tuple[RunStep, asyncio.Task[Any]]] = {}
        self._results: list[list[Any]] = []
        self._back: list[int] = []
        self._asker = AsyncAsker(channel, loop, self._running.__contains__)
        verbs.asker = self._asker
        self._ceilings: dict[int, tuple[int, int]] = {}  # while a run with limits is alone here

    def attach(self) -> None:
        """Start listening to the runner."""
        self._channel.on_congestion = self._watch_writable
        self._loop.add_reader(self._channel.fileno(), self._receive)
        self._loop.set_task_factory(step_factory(self._board))
        watch_fence(self._board, lambda: bool(self._unseen()), self._ask_unseen)

    def _receive(self) -> None:
        try:
            messages = self._channel.receive()
        except EOFError:
            os._exit(0)
        for message in messages:
            self._board[LINES] += 1
            if "runs" in message:
                for run in runs_from(message["runs"]):
                    self._begin(run, message["offset_us"])
            if "answer" in message:
                self._asker.answered(message["answer"])
            for execution_id in message.get("stop", ()):
                self._stop(execution_id)

    def _begin(self, run: ChildRun, offset_us: int) -> None:
        printer = Printer(run.execution_id, run.slot, self._channel)
        spent_ns[run.slot] = 0
        if run.memory_limit or run.cpu_limit_us:
            reset_peak()
            self._ceilings = set_ceilings(run.memory_limit, run.cpu_limit_us)
        step = RunStep(run, self._verbs, self._board, self, printer, offset_us)
        token = current_printer.set(printer)  # the task copies the context
        try:
            self._running[run.execution_id] = (step, asyncio.Task(step, loop=self._loop))
        finally:
            current_printer.reset(token)

    def _stop(self, execution_id: int) -> None:
        running = self._running.get(execution_id)
        if running is not None:
            step, task = running
            step.stopped = True
            task.cancel()

    def _unseen(self) -> list[int]:
        """Runs that may not go on without contact. Any thread may call it."""
        running = self._running.copy()
        return [step.run.execution_id for step, _ in running.values() if not self._board[FINISH + step.run.slot]]

    def _ask_unseen(self) -> None:
        self._loop.call_soon_threadsafe(self._stop_unseen)

    def _stop_unseen(self) -> None:
        for execution_id in self._unseen():
            if not self._running[execution_id][0].stopped:  # a stopped run is cleaning up: it is not stopped twice
                self._stop(execution_id)

    def handed_back(self, step: RunStep) -> None:
        del self._running[step.run.execution_id]
        self._flush_soon()
        self._back.append(step.run.execution_id)

    def ended(self, step: RunStep, error: BaseException | None) -> None:
        if self._ceilings:
            lift_ceilings(self._ceilings)
            self._ceilings = {}
        del self._running[step.run.execution_id]
        if self._asker.numbers:
            self._asker.ended(step.run.execution_id)
        step.printer.flush()
        self._board[UNSENT] = not self._channel.flush()
        cpu_us = spent_ns[step.run.slot] // 1000
        result: list[Any] = [step.run.execution_id, step.started_us, time.monotonic_ns() // 1000, cpu_us]
        if step.stopped or error is not None or self._verbs.moved or self._verbs.reported:
            result += describe_end(step.stopped, error)
            result += self._verbs.told(step.run.execution_id)
            if error is not None:
                result.append(error_bases(error))
        self._flush_soon()
        self._results.append(result)

    def _flush_soon(self) -> None:
        if not self._results and not self._back:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        results, self._results = self._results, []
        back, self._back = self._back, []
        for start in range(0, len(results), RESULTS_PER_LINE):
            self._channel.send({"done": results[start : start + RESULTS_PER_LINE], "peak": peak_bytes()})
        if back:
            self._channel.send({"back": back})

    def _watch_writable(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.add_writer, self._channel.fileno(), self._write)

    def _write(self) -> None:
        if self._channel.flush():
            self._board[UNSENT] = 0
            self._loop.remove_writer(self._channel.fileno())


def serve_async(channel: Channel, board: memoryview, verbs: Verbs, loop: asyncio.AbstractEventLoop) -> None:
    """Serve until the runner closes the channel."""
    Stops(board).listen()
    server = AsyncServer(channel, board, verbs, loop)
    server.attach()
    channel.send({"ready": sys.version.split()[0]})
    while True:  # a verb that calls `loop.stop()` must not stop the other runs
        _run(loop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    except (SystemExit, KeyboardInterrupt) as error:  # out of a task or callback that a verb has made
        sys.stderr.write(f"{type(error).__name__} in a task or callback: it ends no more than that\n")
