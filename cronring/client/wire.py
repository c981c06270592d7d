"""The sync client's way to the async one: an event loop in a thread of its own, which is there while it is needed.

docs/decisions/0096: why a thread, and what holds when a process forks.
"""

import asyncio
import atexit
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, Final, TypeVar

from cronring.client.channel import keyless
from cronring.client.client import AsyncClient
from cronring.client.errors import ClientError
from cronring.client.forks import CHANNELS

Answer = TypeVar("Answer")

_CLOSE_S: Final = 5.0
_LAST_WORDS_S: Final = 3.0  # of streams that end: a consumer gives back what it has, if its controller answers
_UNDER_WAY: Final = (
    "this process forks while a call of a cronring client is under way. The new process can have no client, and gRPC "
    "may hang in it: end watches before, or make clients in the workers"
)
_CLOSED: Final = "the client was closed before the answer was there"


class _Loop:
    """A loop, its thread, and the client that lives there."""

    def __init__(self, make: Callable[[], AsyncClient]) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._awaited: set[Future[Any]] = set()
        self.is_closed = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="cronring client", daemon=True)
        self._thread.start()
        try:
            self.client = self.wait(_made(make))
        except BaseException:
            self._stop()
            raise

    @property
    def is_here(self) -> bool:
        """This is its own thread, which can't wait for itself."""
        return threading.current_thread() is self._thread

    def wait(self, answering: Coroutine[Any, Any, Answer], timeout_s: float | None = None) -> Answer:
        """What it answers. Whatever ends the waiting, Ctrl-C for one, ends the call.

        Raises ClientError once this is closed.
        """
        with self._lock:
            if self.is_closed:
                answering.close()
                raise ClientError(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(answering, self._loop)
            self._awaited.add(future)
        try:
            return future.result(timeout_s)
        except CancelledError:
            raise ClientError(_CLOSED) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            self._awaited.discard(future)

    def let_go(self, answering: Coroutine[Any, Any, None]) -> None:
        """As `wait`, in its own thread: nobody waits."""
        task = self._loop.create_task(answering)
        task.add_done_callback(lambda ended: None if ended.cancelled() else ended.exception())

    def soon(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # it is closed
            self._loop.call_soon_threadsafe(call)

    def close(self) -> None:
        """Raises nothing: whoever leaves a client by an error is to see that one."""
        try:
            with contextlib.suppress(TimeoutError):
                self.wait(self._ended(), _CLOSE_S)
        finally:
            self._stop()

    async def _ended(self) -> None:
        """Whoever waits for an answer in another thread is told. Streams end first: their end may ask something."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_S):
                    await asyncio.gather(*others, return_exceptions=True)
                    await self._loop.shutdown_asyncgens()
        finally:
            await self.client.close()

    def _stop(self) -> None:
        with self._lock:
            self.is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_S)
        for future in list(self._awaited):  # of whoever came while it was closing
            future.cancel()
        if not self._thread.is_alive():
            self._loop.close()


async def _next(stream: AsyncIterator[Answer]) -> Answer:
    """Begun in its loop, which then knows it, and ends it when it is closed itself."""
    return await anext(stream)


async def _made(make: Callable[[], AsyncClient]) -> AsyncClient:
    return make()


class Wire:
    """Any number of threads may use it at once. A forked process begins anew with it, if nothing was under way."""

    def __init__(self, make: Callable[[], AsyncClient]) -> None:
        self._make = make
        self._lock = threading.RLock()
        self._calls = 0
        self._loop: _Loop | None = None
        _WIRES.add(self)

    def run(self, call: Callable[[AsyncClient], Coroutine[Any, Any, Answer]]) -> Answer:
        """What the call answers. Raises RuntimeError in the client's own thread."""
        loop = self._begin()
        try:
            return loop.wait(call(loop.client))
        finally:
            self._end()

    def each(self, call: Callable[[AsyncClient], AsyncIterator[Answer]]) -> Iterator[Answer]:
        """What the stream has, until it ends or nobody wants more. Raises as `run`."""
        loop = self._begin()
        stream: Any = call(loop.client)
        try:
            while True:
                try:
                    item = loop.wait(_next(stream))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not loop.is_closed:
                (loop.let_go if loop.is_here else loop.wait)(stream.aclose())
            self._end()

    def takes_no_key(self, call: str, instead: str) -> None:
        """Raises Invalid where there is one."""

    def soon(self, call: Callable[[], None]) -> None:
        """In the client's thread, if that is there. It waits for nobody, so a handler of a signal may do it."""
        if (loop := self._loop) is not None:
            loop.soon(call)

    def close(self) -> None:
        """Ends all connections. The next call makes them anew."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    def _begin(self) -> _Loop:
        with self._lock:
            if self._loop is None:
                self._loop = _Loop(self._make)
            if self._loop.is_here:
                raise RuntimeError("the client's own thread, in which `waiting` is called, can't wait for its answers")
            self._calls += 1
            return self._loop

    def _end(self) -> None:
        with self._lock:
            self._calls -= 1

    def before_fork(self) -> None:
        """What is idle is closed, so that both processes can have gRPC. From here on no call begins."""
        self._lock.acquire()
        if self._calls:
            warnings.warn(_UNDER_WAY, RuntimeWarning, stacklevel=4)
        else:
            self.close()

    def in_parent(self) -> None:
        self._lock.release()

    def in_child(self) -> None:
        """The thread of a loop that was in use is not here, and gRPC hangs where its channels are collected."""
        if self._loop is not None:
            _LEFT.append(self._loop)
        self._lock = threading.RLock()
        self._calls, self._loop = 0, None


class KeyedWire(Wire):
    """Another one's, for calls that have an idempotency key. It has no thread of its own, so none is set up."""

    def __init__(self, wire: Wire, key: str) -> None:
        self._wire = wire
        self._with = key

    def takes_no_key(self, call: str, instead: str) -> None:
        raise keyless(call, instead)

    def run(self, call: Callable[[AsyncClient], Coroutine[Any, Any, Answer]]) -> Answer:
        return self._wire.run(lambda client: call(client.with_key(self._with)))

    def each(self, call: Callable[[AsyncClient], AsyncIterator[Answer]]) -> Iterator[Answer]:
        return self._wire.each(lambda client: call(client.with_key(self._with)))

    def soon(self, call: Callable[[], None]) -> None:
        self._wire.soon(call)

    def close(self) -> None:
        self._wire.close()


_WIRES: Final["weakref.WeakSet[Wire]"] = weakref.WeakSet()
_LEFT: Final[list[_Loop]] = []  # of the parent
_FORKING: Final[list[Wire]] = []  # held, so that none is collected between


def _before_fork() -> None:
    _FORKING.extend(_WIRES)
    for wire in _FORKING:
        wire.before_fork()
    CHANNELS.wait_for_threads()


def _in_parent() -> None:
    for wire in _FORKING:
        wire.in_parent()
    _FORKING.clear()


def _in_child() -> None:
    for wire in _FORKING:
        wire.in_child()
    _FORKING.clear()


def _at_exit() -> None:
    for wire in list(_WIRES):
        wire.close()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
atexit.register(_at_exit)
