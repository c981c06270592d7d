"""A verb that forks: the copy must not speak for the original.

The copy shares the socket, the board and the event loop's descriptors with the process that the runner knows. So the
copy must become an ordinary process: it prints to fd 1 and 2, and it ends when the verb's code in it is over.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import traceback
from typing import NoReturn


class _Process:
    """`forked`: this is a copy, made by an author's code, of the process that the runner started."""

    __slots__ = ("forked",)

    def __init__(self) -> None:
        self.forked = False


process = _Process()


def watch_forks(sock: socket.socket) -> None:
    """From here on, a forked copy knows that it is a copy, and closes `sock`."""

    def after_in_child() -> None:
        process.forked = True
        sock.close()

    os.register_at_fork(after_in_child=after_in_child)


def leave(error: BaseException | None) -> NoReturn:
    """End this copy as a script would that returns (None) or raises."""
    code = 0
    if isinstance(error, SystemExit):
        if isinstance(error.code, int):
            code = error.code
        elif error.code is not None:
            sys.stderr.write(f"{error.code}\n")
            code = 1
    elif error is not None and not isinstance(error, StopIteration):
        traceback.print_exception(type(error), error, error.__traceback__)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # closed or replaced: nobody is left to tell
            stream.flush()
    os._exit(code & 0xFF)


class AwaitInFork(RuntimeError):
    """The event loop belongs to the process that was forked."""

    def __init__(self) -> None:
        super().__init__("a process forked in an async verb can't await: end it with os._exit, or use asyncio.run")
