"""A consumer without `await`: the async one, in the client's thread. It holds its messages while a handler blocks."""

from collections.abc import Iterator
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from cronring.client.client import AsyncClient
from cronring.client.consuming import Consuming, Received
from cronring.client.queues import Taken
from cronring.client.wire import Wire


class SyncMessage(Received):
    """A message, and a context in which it is worked on. Once that is left, it is done.

    An exception that leaves it is a failure: it is logged, kept in `error`, and goes no further. The message comes
    again later, after a delay that grows. Nobody can cancel a thread: when its execution is cancelled, or its lease is
    lost, `lost` becomes True, and what the work comes to is not told. Work that takes long may look at it.
    """

    def __init__(self, taken: Taken, leased: Any, wire: Wire) -> None:
        super().__init__(taken, leased)
        self._wire = wire

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self._wire.run(lambda _: self.over(error))


class SyncConsumer:
    """`for` gives one message after the other, for ever. Work on each within `with message:`. As Consumer, besides."""

    def __init__(
        self, wire: Wire, queue: str, consumer: str, namespace: str, *, most: int, hold: timedelta, until_empty: bool
    ) -> None:
        self._wire = wire
        self._where = queue, consumer, namespace
        self._how: dict[str, Any] = {"most": most, "hold": hold, "until_empty": until_empty}
        self._stopped = False
        self._running: Consuming[SyncMessage] | None = None

    def stop(self) -> None:
        """May be called by a handler of a signal, and in any thread."""
        self._stopped = True
        if self._running is not None:
            self._wire.soon(self._running.stop)

    def __iter__(self) -> Iterator[SyncMessage]:
        return self._wire.each(lambda client: self._consuming(client).messages())

    def _consuming(self, client: AsyncClient) -> Consuming[SyncMessage]:
        running = self._running = Consuming(
            client.queues, *self._where, make=lambda taken, leased: SyncMessage(taken, leased, self._wire), **self._how
        )
        if self._stopped:
            running.stop()
        return running
