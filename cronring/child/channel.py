"""JSON lines to the runner: never blocking the event loop, never growing without end."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from collections import deque
from typing import Any, Callable

BACKLOG_LIMIT = 256 * 1024


class Channel:
    """The child's end of the socket. `send` may be called from any thread.

    Results are always accepted (there are as many as runs). Output is only accepted while the backlog is small; see
    `congested`.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lock = threading.RLock()
        self._backlog: deque[memoryview] = deque()
        self._backlog_bytes = 0
        self._partial = b""
        self.on_congestion: Callable[[], None] = lambda: None  # something waits: call `flush` when writable
        sock.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def congested(self) -> bool:
        return self._backlog_bytes > BACKLOG_LIMIT

    def send(self, message: dict[str, Any]) -> None:
        """Queue one line, and write what the socket takes."""
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            self._backlog.append(memoryview(data))
            self._backlog_bytes += len(data)
            if len(self._backlog) == 1 and self.flush():
                return
        self.on_congestion()

    def flush(self) -> bool:
        """Write what the socket takes now; whether all of it is out."""
        with self._lock:
            while self._backlog:
                head = self._backlog[0]
                try:
                    sent = self._socket.send(head)
                except (BlockingIOError, InterruptedError):
                    return False
                except OSError:  # the runner is gone; the lifeline ends this process
                    os._exit(1)
                self._backlog_bytes -= sent
                if sent == len(head):
                    self._backlog.popleft()
                else:
                    self._backlog[0] = head[sent:]
            return True

    def flush_all(self) -> None:
        """Write everything, waiting for the runner to read it."""
        while not self.flush():
            select.select([], [self._socket], [])

    def wait_readable(self) -> None:
        select.select([self._socket], [], [])

    def receive(self) -> list[dict[str, Any]]:
        """The lines that have arrived. Raises EOFError when the runner has closed its end."""
        try:
            data = self._socket.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return []
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        *lines, self._partial = (self._partial + data).split(b"\n")
        return [json.loads(line) for line in lines]
