"""One call of a verb in this very process: how it ended, how long it took in virtual time, and what it printed."""

import asyncio
import bdb
import contextlib
import io
import logging
import sys
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from cronring.child import errors as child_errors
from cronring.child.errors import describe_error
from cronring.context import VerbStopped
from cronring.runner.tail import Tail
from cronring.virtual.loop import VirtualLoop

_OURS = (str(Path(__file__).parent), str(Path(child_errors.__file__).parent))
_FORMAT = "%(levelname)s %(name)s: %(message)s"


class VerbEnded(NamedTuple):
    """`error`: what the verb raised; None if it returned. `timed_out`: it was cancelled at its deadline."""

    error: BaseException | None
    took_us: int
    timed_out: bool
    output: str

    @property
    def told(self) -> tuple[str, str, str]:
        """(type, message, traceback) of the error, as an execution keeps them."""
        return ("", "", "") if self.error is None else describe_error(_from_author(self.error))


def _from_author(error: BaseException) -> BaseException:
    """Its traceback begins where the author's code does."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    return error.with_traceback(trace)


class Caller:
    """Calls verbs: sync ones plainly, async ones on an event loop of its own, whose sleeps take no real time."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def close(self) -> None:
        """Cancel what verbs have left behind on the loop."""
        runner, self._runner = self._runner, None
        if runner is not None:
            _away_from_loops(runner.close)

    def call(self, verb: Any, limit_us: int) -> VerbEnded:
        """`verb()` to its end. A coroutine is cancelled when it has lasted `limit_us`; sync code can't be."""
        tail = Tail()
        took_us, timed_out = 0, False
        error: BaseException | None = None
        with _captured(tail):
            try:
                result = verb()
                if hasattr(result, "__await__"):
                    error, took_us, timed_out = self._wait(result, limit_us)
            except bdb.BdbQuit:  # the author has left the debugger
                raise
            except (Exception, SystemExit, VerbStopped) as raised:
                error = raised
        return VerbEnded(error, took_us, timed_out, tail.text())

    def _wait(self, coroutine: Any, limit_us: int) -> tuple[BaseException | None, int, bool]:
        if self._runner is None:
            self._runner = asyncio.Runner(loop_factory=VirtualLoop)
        runner, waiting = self._runner, _limited(coroutine, limit_us)
        ended: list[tuple[BaseException | None, int, bool]] = []
        _away_from_loops(lambda: ended.append(runner.run(waiting)))
        return ended[0]


async def _limited(coroutine: Coroutine[Any, Any, Any], limit_us: int) -> tuple[BaseException | None, int, bool]:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    task = asyncio.ensure_future(coroutine)
    timed_out: list[bool] = []

    def end() -> None:
        timed_out.append(True)
        task.cancel()

    timer = loop.call_at(began_s + limit_us / 1e6, end)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:  # Ctrl-C
        task.cancel()
        raise
    finally:
        timer.cancel()
    took_us = round((loop.time() - began_s) * 1e6)
    if task.cancelled():
        return asyncio.CancelledError(), took_us, bool(timed_out)
    error = task.exception()
    if error is not None and not isinstance(error, Exception | SystemExit | VerbStopped):
        raise error
    return error, took_us, bool(timed_out)


def _away_from_loops(action: Any) -> None:
    """Do it here; or, where an event loop runs already (an async test), in a thread without one, and wait for it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        action()
        return
    raised: list[BaseException] = []

    def work() -> None:
        try:
            action()
        except BaseException as error:  # handed on to whoever waits
            raised.append(error)

    thread = threading.Thread(target=work, name="cronring-virtual-loop")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class _Tee(io.TextIOBase):
    """Text goes where it went, and into the execution's output."""

    def __init__(self, real: TextIO, tail: Tail) -> None:
        super().__init__()
        self._real = real
        self._tail = tail

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._tail.write(text)
        return self._real.write(text)

    def flush(self) -> None:
        self._real.flush()

    def fileno(self) -> int:
        return self._real.fileno()

    def __getattr__(self, name: str) -> Any:  # `encoding`, `buffer`, `reconfigure`: what else one does to a stream
        return getattr(self._real, name)


class _TailHandler(logging.Handler):
    def __init__(self, tail: Tail) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT))
        self._tail = tail

    def emit(self, record: logging.LogRecord) -> None:
        self._tail.write(self.format(record) + "\n")


@contextlib.contextmanager
def _captured(tail: Tail) -> Iterator[None]:
    """What is printed and logged (from INFO up, as in a child) meanwhile is kept, and still goes its way."""
    root = logging.getLogger()
    level, handler = root.level, _TailHandler(tail)
    root.addHandler(handler)
    root.setLevel(min(level, logging.INFO))
    try:
        with contextlib.redirect_stdout(_Tee(sys.stdout, tail)), contextlib.redirect_stderr(_Tee(sys.stderr, tail)):
            yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
