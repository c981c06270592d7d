"""A server in a thread of its own, with an event loop of its own."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator

from tests.support.waiting import TIMEOUT_S

Serve = Callable[[threading.Event, asyncio.Event], Awaitable[None]]


@contextlib.contextmanager
def in_thread(serve: Serve) -> Iterator[None]:
    """Runs `serve(started, stop)`, which sets the one and ends by the other, until the end of the `with`.

    Calls that are still being answered then are cancelled in their own loop. Left to the collector of garbage they end
    in another context, where their context variables can't be set back: that failed a test that had no part in it.
    """
    started, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def run() -> None:
        loops.append(asyncio.get_running_loop())
        await serve(started, stop)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert started.wait(TIMEOUT_S), "the server did not start"
        yield
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive(), "the server did not end"
