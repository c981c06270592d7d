"""An event loop for verbs in virtual time: `await asyncio.sleep(300)` takes no time, and lasts five minutes.

The loop's own clock jumps to its next timer whenever nothing else can happen: no socket is watched, and no thread works
for it. While one is, time passes as it does, so that real I/O is not timed out before it could answer.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

_OWN_SOCKETS = 1  # by which other threads wake the loop


class _Selector(selectors.BaseSelector):
    """Asks the real one, and moves the loop's clock instead of waiting."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now_s = 0.0
        self.threads = 0  # that work for the loop

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.get_key(fileobj)

    def close(self) -> None:
        self._real.close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.threads or len(self._real.get_map()) > _OWN_SOCKETS:
            began_s = time.monotonic()
            ready = self._real.select(timeout)
            self.now_s += time.monotonic() - began_s
            return ready
        self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` counts from 0 in virtual seconds."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Arguments]], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """While the thread works, time is real."""
        future = super().run_in_executor(executor, func, *args)
        self._virtual.threads += 1
        future.add_done_callback(self._thread_done)
        return future

    async def shutdown_default_executor(self, *limit: float | None) -> None:
        """A thread does it. `limit`: from Python 3.12 on, in seconds; in virtual time they would be over at once."""
        self._virtual.threads += 1
        try:
            await super().shutdown_default_executor(*limit)
        finally:
            self._virtual.threads -= 1

    def _thread_done(self, _: object) -> None:
        self._virtual.threads -= 1
