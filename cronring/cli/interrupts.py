"""What Ctrl-C does, from the first module that is read to the last that is thrown away."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import asyncio

Answer = TypeVar("Answer")

EXIT_INTERRUPTED: Final = 128 + signal.SIGINT  # as shells count it
_IMPORTING: Final = "<frozen importlib._bootstrap>"


def leave(*_: object) -> None:
    """At once, as a handler: while nothing has begun, or all is over."""
    os._exit(EXIT_INTERRUPTED)


def leave_flushed() -> None:
    """Without Python's own end, which waits for threads, and shows what is left of interrupted tasks."""
    signal.signal(signal.SIGINT, leave)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # whoever read it has gone
            stream.flush()
    leave()


def hear(_number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt; but a module that is being read would swallow it, or show it: there it ends at once."""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            leave()
        frame = frame.f_back
    raise KeyboardInterrupt


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Here Ctrl-C is a KeyboardInterrupt. Nothing changes where the process is somebody else's (a test's)."""
    if signal.getsignal(signal.SIGINT) is not leave:
        yield
        return
    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, leave)


def run_loop(
    main: Coroutine[Any, Any, Answer], loop_factory: "Callable[[], asyncio.AbstractEventLoop] | None" = None
) -> Answer:
    """As asyncio.run, which cancels `main` at Ctrl-C; but only where it finds Python's own handler."""
    import asyncio

    heard_here = signal.getsignal(signal.SIGINT) is hear
    if heard_here:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(main)
    finally:
        if heard_here:
            signal.signal(signal.SIGINT, hear)
