"""One sync verb at a time, in the main thread of a process that the runner may kill to stop the verb."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Any, TextIO

from cronring.child.asking import SyncMailbox
from cronring.child.board import COMPLETED, CURRENT, FINISH, RAISED, RECALL, STARTED, STATE
from cronring.child.channel import Channel
from cronring.child.errors import describe_end, error_bases
from cronring.child.fence import watch_fence
from cronring.child.fork import leave, process
from cronring.child.quota import lift_ceilings, set_ceilings
from cronring.child.stopping import Stops
from cronring.child.usage import peak_bytes, reset_peak
from cronring.child.verbs import ChildRun, Verbs, runs_from
from cronring.jobs import WaitingAsker


def serve_sync(channel: Channel, board: memoryview, verbs: Verbs) -> None:
    """Serve until the runner closes the channel. What verbs print goes straight to the pipe behind fd 1 and 2."""
    stops = Stops(board)
    stops.listen()
    # A sync verb is not asked to end first: only the runner's signal could do that. It is killed at once.
    watch_fence(board, lambda: not board[FINISH + board[CURRENT]] if board[CURRENT] else False, lambda: None)
    streams = (sys.stdout, sys.stderr)
    mailbox = SyncMailbox(channel, board)
    verbs.asker = WaitingAsker(mailbox)
    channel.send({"ready": sys.version.split()[0]})
    while True:
        try:
            messages = mailbox.messages()
        except EOFError:
            return
        if not messages:
            channel.wait_readable()
        for message in messages:
            for run in runs_from(message["runs"]) if "runs" in message else ():
                _serve(run, message["offset_us"], mailbox, channel, board, verbs, stops)
                if not _can_print(streams):
                    os._exit(0)  # the next verb gets a child that can
                _tidy(streams, stops)


def _serve(
    run: ChildRun,
    offset_us: int,
    mailbox: SyncMailbox,
    channel: Channel,
    board: memoryview,
    verbs: Verbs,
    stops: Stops,
) -> None:
    board[STATE + run.slot] = STARTED  # before `recall` is read: see board
    if board[RECALL + run.slot]:
        channel.send({"back": [run.execution_id]})
        return
    stops.delivered = False
    reset_peak()
    started_us, cpu_ns = time.monotonic_ns() // 1000, time.process_time_ns()
    limited = run.memory_limit or run.cpu_limit_us
    ceilings = set_ceilings(run.memory_limit, run.cpu_limit_us) if limited else {}
    mailbox.begin(run.execution_id)
    error = _call(run, started_us + offset_us, board, verbs)
    if process.forked:
        leave(error)
    if ceilings:
        lift_ceilings(ceilings)
    board[CURRENT] = 0  # from here on no stop can hit
    mailbox.end()
    board[STATE + run.slot] = COMPLETED if error is None else RAISED
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the verb closed it, or put anything in its place
            stream.flush()
    cpu_us = (time.process_time_ns() - cpu_ns) // 1000
    result: list[Any] = [run.execution_id, started_us, time.monotonic_ns() // 1000, cpu_us]
    if stops.delivered or error is not None or verbs.moved or verbs.reported:
        result += describe_end(stops.delivered, error)
        result += verbs.told(run.execution_id)
        if error is not None:
            result.append(error_bases(error))
    channel.send({"done": [result], "peak": peak_bytes()})
    channel.flush_all()


def _can_print(streams: tuple[TextIO, TextIO]) -> bool:
    """Whether the streams, and the descriptors behind them, are still open."""
    try:
        os.fstat(1)
        os.fstat(2)
    except OSError:
        return False
    return not any(getattr(stream, "closed", False) for stream in streams)


def _tidy(streams: tuple[TextIO, TextIO], stops: Stops) -> None:
    """Undo what a verb did to this process: its streams, timer and handlers would disturb the next run."""
    sys.stdout, sys.stderr = streams
    signal.setitimer(signal.ITIMER_REAL, 0)
    stops.listen()


def _call(run: ChildRun, started_us: int, board: memoryview, verbs: Verbs) -> BaseException | None:
    try:
        board[CURRENT] = run.slot
        returned = verbs.call(run, started_us)
        if hasattr(returned, "cr_await"):
            returned.close()
            raise TypeError(f"{run.verb} returned a coroutine; declare it with `async def`")  # noqa: TRY301
    except BaseException as error:  # SystemExit and KeyboardInterrupt end the run, not the child
        return error
    return None
