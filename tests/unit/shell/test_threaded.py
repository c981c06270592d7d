import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from tests.support.threaded import in_thread

_CALL: ContextVar[str] = ContextVar("call", default="")


@contextlib.contextmanager
def _in_hand() -> Iterator[None]:
    token = _CALL.set("this")
    try:
        yield
    finally:
        _CALL.reset(token)


def test_a_call_that_is_still_answered_ends_in_its_own_context() -> None:
    answering: set[asyncio.Task[None]] = set()

    async def answer() -> None:
        with _in_hand():
            await asyncio.Event().wait()

    async def serve(started: threading.Event, stop: asyncio.Event) -> None:
        answering.add(asyncio.create_task(answer()))
        await asyncio.sleep(0)  # the loop's next round: only then it is in the middle of its call
        started.set()
        await stop.wait()

    with in_thread(serve):
        assert not any(task.done() for task in answering)
    assert all(task.cancelled() for task in answering)
