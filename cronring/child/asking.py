"""A verb's calls to its runner, and the answers: by the same socket as everything else."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Callable, TypeVar

from cronring.child.board import LINES
from cronring.child.channel import Channel
from cronring.child.fork import process
from cronring.jobs import ToldAnswer

Result = TypeVar("Result")


class Numbers:
    """The numbers of calls, from 1 in each run that goes on."""

    def __init__(self) -> None:
        self._made: dict[int, int] = {}

    def next(self, execution_id: int) -> int:
        number = self._made[execution_id] = self._made.get(execution_id, 0) + 1
        return number

    def __bool__(self) -> bool:
        """Some run has made a call."""
        return bool(self._made)

    def forget(self, execution_id: int) -> None:
        self._made.pop(execution_id, None)


def check_asking(runs: bool) -> None:
    """Raises RuntimeError where no answer could arrive. `runs`: the run that asks goes on here."""
    if process.forked:
        raise RuntimeError("ctx.jobs: a process that a verb has forked has no runner; ask in the verb itself")
    if not runs:
        raise RuntimeError("ctx.jobs: this run is over; what outlives it can't change jobs in its name")


def read_answer(line: list[Any]) -> tuple[tuple[int, int], ToldAnswer]:
    """((execution, number) of the call, its answer)."""
    execution_id, number, value, reason, problem = line
    return (execution_id, number), ToldAnswer(value, reason, problem)


class SyncMailbox:
    """All that comes from the runner. It is read by the thread that waits: the child's loop, or a thread of its verb.

    VerbStopped is never raised in code of this file (cronring/child/stopping.py). So no message that was read is lost.
    """

    def __init__(self, channel: Channel, board: memoryview) -> None:
        self._channel = channel
        self._board = board
        self._lock = threading.Lock()
        self._numbers = Numbers()
        self._run = 0  # the execution that goes on
        self._awaited: dict[int, ToldAnswer | None] = {}  # by number
        self._messages: list[dict[str, Any]] = []  # for the child itself

    def fileno(self) -> int:
        return self._channel.fileno()

    def begin(self, execution_id: int) -> None:
        """From here on its verb may ask."""
        with self._lock:
            self._run = execution_id

    def end(self) -> None:
        """Before its result is sent: from here on only the child itself reads."""
        with self._lock:
            self._numbers.forget(self._run)
            self._awaited.clear()
            self._run = 0

    def messages(self) -> list[dict[str, Any]]:
        """What has come for the child itself. Raises EOFError."""
        with self._lock:
            self._receive()
            messages, self._messages = self._messages, []
        return messages

    def send(self, execution_id: int, method: str, request: dict[str, Any], within_ms: int) -> int:
        with self._lock:
            check_asking(self._run == execution_id)
            number = self._numbers.next(execution_id)
            self._awaited[number] = None
            self._channel.send({"call": [execution_id, number, method, request, within_ms]})
        return number

    def taken(self, execution_id: int, number: int) -> ToldAnswer | None:
        with self._lock:
            check_asking(self._run == execution_id)
            if self._awaited[number] is None:
                try:
                    self._receive()
                except EOFError:  # the runner is gone
                    os._exit(1)
                self._channel.flush()
            answer = self._awaited[number]
            if answer is not None:
                del self._awaited[number]
            return answer

    def _receive(self) -> None:
        for message in self._channel.receive():
            self._board[LINES] += 1
            if "answer" not in message:
                self._messages.append(message)
                continue
            (execution_id, number), answer = read_answer(message["answer"])
            if execution_id == self._run and number in self._awaited:
                self._awaited[number] = answer


class AsyncAsker:
    """cronring.jobs.JobsAsker, for async verbs. `runs`: whether an execution goes on here."""

    def __init__(self, channel: Channel, loop: asyncio.AbstractEventLoop, runs: Callable[[int], bool]) -> None:
        self._channel = channel
        self._loop = loop
        self._runs = runs
        self.numbers = Numbers()
        self._awaited: dict[tuple[int, int], asyncio.Future[ToldAnswer]] = {}

    async def ask(
        self, execution_id: int, method: str, request: dict[str, Any], within_ms: int, convert: Callable[[Any], Result]
    ) -> Result:
        """Raises cronring.jobs.JobsError."""
        check_asking(self._runs(execution_id))
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("ctx.jobs: await its calls in the verb, not on an event loop of its own")
        call = execution_id, self.numbers.next(execution_id)
        future = self._awaited[call] = self._loop.create_future()
        self._channel.send({"call": [*call, method, request, within_ms]})
        try:
            return convert((await future).result())
        finally:
            self._awaited.pop(call, None)

    def answered(self, line: list[Any]) -> None:
        """The runner has answered. An answer for which no task waits is dropped."""
        call, answer = read_answer(line)
        future = self._awaited.get(call)
        if future is not None and not future.done():
            future.set_result(answer)

    def ended(self, execution_id: int) -> None:
        """The run is over: tasks that outlive it are cancelled where they wait for an answer."""
        self.numbers.forget(execution_id)
        for (waiting_id, _), future in list(self._awaited.items()):
            if waiting_id == execution_id and not future.done():
                future.cancel()
