"""One child process: its socket, its output, its board, and the runs that are in it."""

import asyncio
import codecs
import json
import os
import signal
import threading
import time
from collections import deque
from typing import Any, Protocol

from cronring.child.board import (
    COMPLETED,
    CURRENT,
    DELIVERED,
    DUMP_SIGNAL,
    FENCE,
    FENCED,
    FINISH,
    LINES,
    RAISED,
    RECALL,
    SLOT_BITS,
    SLOTS,
    STATE,
    STEPS,
    STOP_SIGNAL,
    TARGET,
    WAITING,
)
from cronring.runner.core.model import CallAnswer, CallId
from cronring.runner.held import Held
from cronring.runner.lines import Asked, Done, Failed, GarbageError, HandedBack, Printed, Ready, Row, read_line
from cronring.runner.quota import Meter, resident_bytes
from cronring.runner.spawn import Program, kill_group, reap, spawn
from cronring.runner.suspicion import ChildProgress, Standstill
from cronring.runner.tail import Tail
from cronring.schema.zone import ZoneError, load_zone

_READ = 1 << 18
_PIPE_READS = 4  # a pipe holds 64 KiB, and at most 1 MiB (Linux: pipe-max-size) if a verb has asked for more
_LINE_LIMIT = 64 << 20  # a child that sends more without a newline is broken
_LAST_WORDS = 4096
_UNREAD_MAX = 2_000  # lines that a child has not read; one that waits for its answers has fewer


class ChildListener(Protocol):
    """Who is told what a child does. All calls come from the event loop."""

    def child_ready(self, child: "Child") -> None: ...
    def child_failed(self, child: "Child", error_type: str, message: str) -> None: ...
    def child_done(self, child: "Child", rows: list[Row], peak_bytes: int) -> None: ...
    def child_handed_back(self, child: "Child", execution_ids: list[int]) -> None: ...
    def child_asked(self, child: "Child", asked: Asked) -> None: ...
    def child_printed(self, child: "Child", text: str) -> None: ...
    def child_exited(self, child: "Child", code: int) -> None: ...


class Child:
    """A process that runs verbs. `mode`: "async" or "sync". `alone`: one run at a time, as always in a sync one."""

    def __init__(self, program: Program, mode: str, listener: ChildListener, *, alone: bool) -> None:
        self.mode = mode
        self._alone = alone
        self.used = False  # it has had a run
        self.bare_bytes = 0  # what it held before that
        self.meter: Meter | None = None  # of the run with limits that is in it
        self.ready = False
        self.held: dict[int, Held] = {}
        self.given_up: dict[int, int] = {}  # runs that another child has taken: execution id -> slot here
        self.kill_reason = ""
        self.culprit: Held | None = None  # for whose sake it is killed
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        spawned = spawn(program, mode)
        self.pid = spawned.process.pid
        self.board = spawned.words
        self.lines_sent = 0
        self._process = spawned.process
        self._socket = spawned.socket
        self._output = spawned.output
        self._lifeline = spawned.lifeline
        # First in, first out, so that a slot rests before it is used again.
        self._free = deque(range(1, SLOTS + 1 if mode == "async" else 3))
        self._unsent: deque[bytes] = deque()
        self._partial = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._last_words = Tail()
        self._stops = 0
        self.suspicion = ChildProgress()
        self.standstill = Standstill()
        self.stood_still = False  # that is why it is killed: no run of its own is to blame
        self._open = True
        self.exited = asyncio.Event()
        self._loop.add_reader(self._socket.fileno(), self._readable)
        self._loop.add_reader(self._output, self._printed)
        threading.Thread(target=self._wait, name=f"cronring-child-{self.pid}", daemon=True).start()

    # Runs

    @property
    def room(self) -> int:
        return int(not self.held and not self.kill_reason) if self._alone else len(self._free)

    def start(self, batch: list[Held], offset_us: int) -> None:
        """Send runs; at most `room`."""
        rows = []
        self.used = True
        board = self.board
        now_us = monotonic_us()
        if self.mode == "sync":
            self._last_words = Tail()
        for held in batch:
            held.child = self
            held.sent_us = now_us
            slot = held.slot = self._free.popleft()
            board[STATE + slot] = WAITING
            board[RECALL + slot] = 0
            board[FINISH + slot] = held.run.finish
            run = held.run
            self.held[run.execution_id] = held
            # In the order of cronring.child.verbs.ChildRun.
            rows.append((
                slot,
                run.execution_id,
                run.verb,
                run.job,
                run.tick_us,
                run.run_at_us,
                run.deadline_us,
                run.attempt,
                run.trigger,
                run.missed,
                run.previous_tick_us,
                run.previous_success_us,
                run.payload_json,
                run.timezone,
                utc_offset_s(run.timezone, run.tick_us) if run.timezone else 0,
                run.interval,
                0 if self.meter is None else run.memory_limit,
                0 if self.meter is None else run.cpu_limit_us,
            ))  # fmt: skip
        columns = [column[:1] if column.count(column[0]) == len(rows) else column for column in zip(*rows, strict=True)]
        self._send({"runs": columns, "offset_us": offset_us})

    def release(self, execution_id: int) -> Held | None:
        """The run is over in this child; its slot is free again. None: it is not (or no longer) here."""
        held = self.held.pop(execution_id, None)
        if held is not None:
            self._free.append(held.slot)
            held.child = None
            held.slot = 0
            return held
        slot = self.given_up.pop(execution_id, None)
        if slot is not None:
            self._free.append(slot)
        return None

    def give_up(self, held: Held) -> None:
        """Another child takes this run; the slot stays taken until this one says that it won't begin it."""
        del self.held[held.run.execution_id]
        self.given_up[held.run.execution_id] = held.slot
        held.child = None
        held.slot = 0

    def recall_waiting(self) -> None:
        """Ask for every run back that has not begun. See cronring.child.board for why this needs no lock."""
        for held in self.held.values():
            if self.board[STATE + held.slot] == WAITING:
                self.board[RECALL + held.slot] = 1

    def recalled(self) -> list[Held]:
        """Runs that were recalled and have not begun: many milliseconds after `recall_waiting`, they never will."""
        board = self.board
        return [h for h in self.held.values() if board[RECALL + h.slot] and board[STATE + h.slot] == WAITING]

    def move_fence(self, fence_ns: int) -> None:
        """From then on the child itself stops what may not run unseen."""
        self.board[FENCE] = fence_ns

    @property
    def fenced(self) -> bool:
        """It has stopped, or is stopping, runs by itself, as this runner had no contact and didn't do it in time."""
        return bool(self.board[FENCED])

    def is_current(self, held: Held) -> bool:
        return self.board[CURRENT] == held.slot != 0

    def has_ended(self, held: Held) -> bool:
        """Its code is done; the result is on its way, or stuck behind a blocked loop."""
        return held.slot != 0 and self.board[STATE + held.slot] in {COMPLETED, RAISED}

    def completed(self) -> list[Held]:
        """Runs that ended well, but whose result has not come yet."""
        return [held for held in self.held.values() if self.board[STATE + held.slot] == COMPLETED]

    def current(self) -> Held | None:
        """Whose code is on the CPU, or was when the child died."""
        slot = self.board[CURRENT]
        return next((held for held in self.held.values() if held.slot == slot), None) if slot else None

    def progress(self) -> tuple[int, int, int]:
        """(slot on the CPU, steps, lines not read yet)."""
        board = self.board
        return board[CURRENT], board[STEPS], self.lines_sent - board[LINES]

    def answer(self, call: CallId, answer: CallAnswer) -> None:
        """What became of a call of a verb here. In the order of cronring.jobs.ToldAnswer."""
        if len(self._unsent) >= _UNREAD_MAX:
            self.kill("it asked again and again (ctx.jobs), and read no answers", self.held.get(call.execution_id))
            return
        self._send({"answer": [*call, answer.value, answer.reason, answer.problem]})

    # Stops and signals

    def ask_to_stop(self, held: Held) -> None:
        self._send({"stop": [held.run.execution_id]})

    def interrupt(self, held: Held) -> None:
        """Raise VerbStopped in the verb. To be repeated: the signal may hit our own code, which ignores it."""
        assert held.stop is not None
        if not held.stop.target:
            self._stops += 1
            held.stop.target = self._stops << SLOT_BITS | held.slot
        if self.board[DELIVERED] != held.stop.target:
            self.board[TARGET] = held.stop.target
            self._signal(STOP_SIGNAL)

    def dump_stack(self) -> None:
        """Have every thread's stack written to its output."""
        self._signal(DUMP_SIGNAL)

    def kill(self, reason: str, culprit: Held | None) -> None:
        """SIGKILL to its group. The first reason given is the one that is told."""
        if not self.kill_reason:
            self.kill_reason = reason
            self.culprit = culprit
        kill_group(self.pid)

    def _signal(self, signum: signal.Signals) -> None:
        if not self.exited.is_set():
            try:
                os.kill(self.pid, signum)
            except ProcessLookupError:  # it ended this instant; `_wait` tells
                return

    def last_words(self) -> str:
        """The end of what it wrote to fd 1 and 2."""
        return self._last_words.text()[-_LAST_WORDS:]

    # Its socket

    def _send(self, message: dict[str, Any]) -> None:
        self.lines_sent += 1
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self._unsent.append(data)
        if len(self._unsent) == 1:
            self._write()

    def _write(self) -> None:
        while self._unsent:
            data = self._unsent[0]
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:  # it is dead or dying
                self._unsent.clear()
                break
            if sent < len(data):
                self._unsent[0] = data[sent:]
                self._loop.add_writer(self._socket.fileno(), self._write)
                return
            self._unsent.popleft()
        if self._open:
            self._loop.remove_writer(self._socket.fileno())

    def _readable(self) -> None:
        self._receive()

    def _receive(self) -> bool:
        """Take what has arrived once; False when there is nothing (any more)."""
        try:
            data = self._socket.recv(_READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._socket.fileno())  # its death is told by `_wait`
            return False
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _LINE_LIMIT:
            self.kill("it sent a line without an end", None)
        for line in lines:
            self._understand(line)
        return True

    def _understand(self, line: bytes) -> None:
        try:
            said = read_line(line)
        except GarbageError as error:  # a verb wrote to our descriptor
            self.kill(f"it sent garbage on its socket ({error})", None)
            return
        match said:
            case Done(rows, peak_bytes):
                if self.mode == "sync":
                    self._take_all_output()  # printed before the result was sent
                self._listener.child_done(self, rows, peak_bytes)
            case Printed(execution_id, text, cut):
                held = self.held.get(execution_id)
                if held is not None:
                    held.write(text, cut)
                else:  # a task or thread that outlived its run
                    self._listener.child_printed(self, text)
            case Ready():
                self.ready = True
                self.bare_bytes = resident_bytes(self.pid)
                self._listener.child_ready(self)
            case None:  # something newer than this runner
                pass
            case _:
                self._pass_on(said)

    def _pass_on(self, said: Asked | HandedBack | Failed) -> None:
        match said:
            case Asked():
                self._listener.child_asked(self, said)
            case HandedBack(execution_ids):
                self._listener.child_handed_back(self, execution_ids)
            case Failed(error_type, message):
                self._listener.child_failed(self, error_type, message)

    # Its output

    def _printed(self) -> None:
        self._take_output()

    def _take_all_output(self) -> None:
        """What is in the pipe now. No more: a process that a verb left behind may write faster than this reads."""
        for _ in range(_PIPE_READS):
            if not self._take_output():
                return

    def _take_output(self) -> bool:
        try:
            data = os.read(self._output, _READ)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._output)
            return False
        text = self._decoder.decode(data)
        self._last_words.write(text)
        if self.mode == "sync" and self.held:
            for held in self.held.values():
                held.write(text)
        else:
            self._listener.child_printed(self, text)
        return True

    # Its end

    def _wait(self) -> None:
        code = reap(self._process)
        self._loop.call_soon_threadsafe(self._ended, code)

    def _ended(self, code: int) -> None:
        self._take_all_output()
        while self._receive():  # results that it sent before it died count
            pass
        self._close()
        self.exited.set()
        self._listener.child_exited(self, code)

    def retire(self) -> None:
        """Let it end by itself: it does when its socket closes."""
        if self._open:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.shutdown(2)

    def _close(self) -> None:
        self._open = False
        for descriptor in (self._socket.fileno(), self._output):
            self._loop.remove_reader(descriptor)
            self._loop.remove_writer(descriptor)
        self._socket.close()
        os.close(self._output)
        os.close(self._lifeline)


def utc_offset_s(timezone: str, instant_us: int) -> int | None:
    """Seconds east of UTC, for a child without zone data; None for a zone that is newer than this runner."""
    try:
        return load_zone(timezone).offset_at(instant_us // 1_000_000)
    except ZoneError:
        return None


def monotonic_us() -> int:
    return time.monotonic_ns() // 1000
