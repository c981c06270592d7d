"""Coroutines that say on the board when they are on the CPU.

A task drives its coroutine by `send` and `throw`. A step stands between the two, which costs a fraction of a
microsecond. So the runner knows whose code it was when a child froze or died.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Coroutine, Generator
from types import CodeType, FrameType
from typing import Any, Protocol

from cronring.child.board import COMPLETED, CURRENT, RAISED, RECALL, STARTED, STATE, STEPS
from cronring.child.fork import AwaitInFork, leave, process
from cronring.child.output import Printer, current_printer
from cronring.child.usage import spent_ns
from cronring.child.verbs import ChildRun, Verbs


class Ends(Protocol):
    """Who is told how a run went."""

    def handed_back(self, step: RunStep) -> None: ...
    def ended(self, step: RunStep, error: BaseException | None) -> None: ...


class SubStep(Coroutine[Any, Any, Any]):
    """A coroutine that a verb made a task of: on the CPU in the verb's name."""

    __slots__ = ("_board", "_coroutine", "_slot")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], slot: int, board: memoryview) -> None:
        self._coroutine = coroutine
        self._slot = slot
        self._board = board

    def send(self, value: Any) -> Any:
        board = self._board
        board[CURRENT] = self._slot
        board[STEPS] += 1
        began_ns = time.thread_time_ns()
        try:
            return self._coroutine.send(value)
        finally:
            spent_ns[self._slot] += time.thread_time_ns() - began_ns
            if process.forked:
                leave(sys.exc_info()[1] or AwaitInFork())
            board[CURRENT] = 0

    def throw(self, *error: Any) -> Any:
        board = self._board
        board[CURRENT] = self._slot
        board[STEPS] += 1
        began_ns = time.thread_time_ns()
        try:
            return self._coroutine.throw(*error)
        finally:
            spent_ns[self._slot] += time.thread_time_ns() - began_ns
            if process.forked:
                leave(sys.exc_info()[1] or AwaitInFork())
            board[CURRENT] = 0

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    # What libraries ask of a task's coroutine (anyio: its state; asyncio: its name and frame for repr).
    def __getattr__(self, name: str) -> Any:
        return getattr(self._coroutine, name)


class RunStep(Coroutine[Any, Any, None]):
    """One run as a coroutine that never raises. It tells `ends` how it ended."""

    __slots__ = (
        "_began_ns", "_board", "_coroutine", "_ends", "_offset_us", "_verbs", "printer", "run", "started_us", "stopped",
    )  # fmt: skip

    def __init__(
        self, run: ChildRun, verbs: Verbs, board: memoryview, ends: Ends, printer: Printer, offset_us: int
    ) -> None:
        self.run = run
        self.printer = printer
        self.started_us = 0  # monotonic; 0 until it begins
        self.stopped = False  # it has been asked to stop
        self._verbs = verbs
        self._board = board
        self._ends = ends
        self._offset_us = offset_us
        self._began_ns = 0  # of the present step, in CPU time of this thread
        self._coroutine: Coroutine[Any, Any, Any] | None = None

    def send(self, value: Any) -> Any:
        board = self._board
        slot = self.run.slot
        self._began_ns = time.thread_time_ns()
        try:
            coroutine = self._coroutine
            if coroutine is None:
                board[STATE + slot] = STARTED  # before `recall` is read: see board
                if board[RECALL + slot]:
                    self._ends.handed_back(self)
                    raise StopIteration  # noqa: TRY301  # every way out goes through `_end`, as below
                self.started_us = time.monotonic_ns() // 1000
                board[CURRENT] = slot
                board[STEPS] += 1
                coroutine = self._verbs.call(self.run, self.started_us + self._offset_us)
                if not hasattr(coroutine, "send"):
                    if not hasattr(coroutine, "__await__"):
                        raise _Returned  # noqa: TRY301
                    coroutine = _wait_for(coroutine)  # a future, from a wrapper of the author's
                self._coroutine = coroutine
            else:
                board[CURRENT] = slot
                board[STEPS] += 1
            awaited = coroutine.send(value)
            spent_ns[slot] += time.thread_time_ns() - self._began_ns
            return awaited  # noqa: TRY300  # what follows may not raise here
        except BaseException as error:
            self._end(error)
            raise StopIteration from None
        finally:
            if process.forked:
                leave(sys.exc_info()[1] or AwaitInFork())
            board[CURRENT] = 0

    def throw(self, *error: Any) -> Any:
        board = self._board
        self._began_ns = time.thread_time_ns()
        try:
            if self._coroutine is None:  # cancelled before its first step
                self.started_us = time.monotonic_ns() // 1000
                raise asyncio.CancelledError  # noqa: TRY301
            board[CURRENT] = self.run.slot
            board[STEPS] += 1
            awaited = self._coroutine.throw(*error)
            spent_ns[self.run.slot] += time.thread_time_ns() - self._began_ns
            return awaited  # noqa: TRY300  # as above
        except BaseException as raised:
            self._end(raised)
            raise StopIteration from None
        finally:
            if process.forked:
                leave(sys.exc_info()[1] or AwaitInFork())
            board[CURRENT] = 0

    def _end(self, error: BaseException) -> None:
        spent_ns[self.run.slot] += time.thread_time_ns() - self._began_ns
        if process.forked:
            leave(None if isinstance(error, _Returned) else error)
        if isinstance(error, (StopIteration, _Returned)):
            if self.started_us:  # else it was handed back
                self._board[STATE + self.run.slot] = COMPLETED
                self._ends.ended(self, None)
        else:
            self._board[STATE + self.run.slot] = RAISED
            self._ends.ended(self, error)

    def close(self) -> None:
        if self._coroutine is not None:
            self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise TypeError("a run is a task of its own")

    @property
    def cr_frame(self) -> FrameType | None:
        return getattr(self._coroutine, "cr_frame", None)

    @property
    def cr_code(self) -> CodeType:
        return getattr(self._coroutine, "cr_code", _end_code)

    def __getattr__(self, name: str) -> Any:
        if self._coroutine is None:
            raise AttributeError(name)
        return getattr(self._coroutine, name)


async def _wait_for(awaitable: Awaitable[Any]) -> None:
    await awaitable


class _Returned(Exception):  # not an error: the callable returned something that is no coroutine
    pass


_end_code: CodeType = RunStep.close.__code__


def step_factory(board: memoryview) -> Any:
    """A task factory under which tasks that a verb makes run in its name."""

    def make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        context = options.get("context")
        printer = current_printer.get() if context is None else context.get(current_printer)
        if printer is not None and asyncio.iscoroutine(coroutine) and not isinstance(coroutine, RunStep):
            coroutine = SubStep(coroutine, printer.slot, board)
        return asyncio.Task(coroutine, loop=loop, **options)

    return make_task
