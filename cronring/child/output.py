"""What a verb prints or logs in a shared child goes to its execution, whichever task or thread prints it."""

from __future__ import annotations

import contextvars
import io
import logging
import sys
from typing import Any, TextIO

from cronring.child.channel import Channel
from cronring.child.fork import process

CHUNK = 8 * 1024
KEEP = 64 * 1024


class Printer:
    """Text of one execution on its way to the runner: by whole lines, or by 8 KiB."""

    __slots__ = ("_channel", "_pending", "_size", "dropped", "execution_id", "slot")

    def __init__(self, execution_id: int, slot: int, channel: Channel) -> None:
        self.execution_id = execution_id
        self.slot = slot
        self._channel = channel
        self._pending: list[str] = []
        self._size = 0
        self.dropped = False

    def write(self, text: str) -> None:
        self._pending.append(text)
        self._size += len(text)
        if "\n" in text or self._size >= CHUNK:
            if self._channel.congested:
                self._channel.flush()  # while a verb prints without a pause, nothing else flushes
            if not self._channel.congested:
                self.flush()
            elif self._size > 2 * KEEP:  # the runner keeps the last 64 KiB anyway
                kept = "".join(self._pending)[-KEEP:]
                self._pending, self._size, self.dropped = [kept], len(kept), True

    def flush(self) -> None:
        if self._pending:
            pending, self._pending, self._size = self._pending, [], 0
            text = "".join(pending)
            if len(text) > KEEP:  # the runner keeps no more: a print of 100 MB must not become a line of 100 MB
                text, self.dropped = text[-KEEP:], True
            self._channel.send({"out": [self.execution_id, text, self.dropped]})


current_printer: contextvars.ContextVar[Printer | None] = contextvars.ContextVar("cronring_printer", default=None)


class OutputStream(io.TextIOBase):
    """Stands for sys.stdout or sys.stderr. Text that belongs to no execution goes to the real stream."""

    def __init__(self, real: TextIO) -> None:
        super().__init__()
        self._real = real

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has it as a plain attribute
        return "utf-8"

    @property
    def buffer(self) -> io.BufferedIOBase:
        """Bytes written here are text of the same execution."""
        return _OutputBytes(self)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._real.fileno()

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes text, not {type(text).__name__}")
        printer = current_printer.get()
        if printer is None or process.forked:
            return self._real.write(text)
        printer.write(text)
        return len(text)

    def flush(self) -> None:
        if current_printer.get() is None or process.forked:
            self._real.flush()

    def __getattr__(self, name: str) -> Any:  # `reconfigure`, `errors`, …: what a module does to a stream at import
        return getattr(self._real, name)


class _OutputBytes(io.BufferedIOBase):
    def __init__(self, stream: OutputStream) -> None:
        super().__init__()
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # any buffer, as the original takes
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class _CurrentStderr(logging.StreamHandler):  # type: ignore[type-arg]  # not subscriptable in 3.9
    """Whatever sys.stderr is when the line is logged."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _value: TextIO) -> None:
        """logging's constructor sets one; it is not used."""


def line_buffer() -> None:
    """Lines leave this process as they are printed, so that they survive its crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def capture_output() -> None:
    """From here on, printed text goes to the execution whose code prints it."""
    sys.stdout = OutputStream(sys.stdout)
    sys.stderr = OutputStream(sys.stderr)


_handler = _CurrentStderr()
_handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


def keep_logging_of_import() -> None:
    """Show what the author's file logs while it is loaded, from INFO up.

    It adds no handler to the root logger, as logging.basicConfig in the author's file would then do nothing.
    """
    logging.lastResort = _handler
    logging.getLogger().setLevel(logging.INFO)


def keep_logging() -> None:
    """Send the root logger's lines to the execution that logs them, unless the author's file has set up logging."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_handler)
