"""Starting and stopping: signals, waiting for PostgreSQL, and tasks beside the driver."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, TypeVar

from cronring.controller.core.node.events import DrainExpired, DrainRequested
from cronring.controller.errors import StoreUnavailable
from cronring.controller.runtime.log import Log

DATABASE_RETRY_S: Final = 0.5
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

T = TypeVar("T")


class Stopping:
    """SIGTERM or SIGINT: the first asks to drain; the drain's timeout, or a second one, to leave at once."""

    def __init__(self, drain_timeout_s: float, log: Log) -> None:
        self._drain_timeout_s = drain_timeout_s
        self._log = log
        self._asked = asyncio.Event()
        self._put: Callable[[DrainRequested | DrainExpired], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def watch_signals(self) -> None:
        """From now on; until close()."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.ask, signal.Signals(number).name)

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        if self._timer is not None:
            self._timer.cancel()

    def connect(self, put: Callable[[DrainRequested | DrainExpired], None]) -> None:
        """There is a node now. If a signal came before, it is asked to drain at once."""
        self._put = put
        if self._asked.is_set():
            self._drain()

    def ask(self, reason: str) -> None:
        if self._asked.is_set():
            self._log.info("leaving_at_once", reason=reason)
            self._expire()
            return
        self._asked.set()
        self._log.info("stopping", reason=reason, drain_timeout_s=self._drain_timeout_s)
        self._drain()

    async def unless_asked(self, waiting: Awaitable[T]) -> T | None:
        """The result, or None as soon as somebody asks to stop."""
        task = asyncio.ensure_future(waiting)
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for future in (task, asked):
                future.cancel()
            await asyncio.gather(task, asked, return_exceptions=True)

    def _drain(self) -> None:
        if self._put is not None:
            self._put(DrainRequested())
            self._timer = asyncio.get_running_loop().call_later(self._drain_timeout_s, self._expire)

    def _expire(self) -> None:
        if self._put is not None:
            self._put(DrainExpired())


async def until_available(open_it: Callable[[], Awaitable[T]], log: Log) -> T:
    """The result of `open_it`, which is tried until PostgreSQL is there."""
    while True:
        try:
            return await open_it()
        except StoreUnavailable as error:
            log.warning("waiting_for_database", reason=str(error))
            await asyncio.sleep(DATABASE_RETRY_S)


class Background:
    """Tasks that run as long as the process. One that fails fails the process: nothing dies in silence."""

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        task.add_done_callback(self._done)
        self._tasks.append(task)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)


async def within(timeout_s: float, step: Awaitable[object], log: Log, event: str) -> None:
    """Do a step of stopping within `timeout_s` seconds. A failure is only logged, so that the next step comes."""
    try:
        async with asyncio.timeout(timeout_s):
            await step
    except Exception as error:  # stopping goes on, whatever it is
        log.warning(event, reason=f"{type(error).__name__}: {error}")
