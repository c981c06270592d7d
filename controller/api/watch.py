"""WatchJobs: one poller for all watchers of a controller, which runs only while there are any.

A watcher that reads slowly finds its jobs' latest states merged, one for each job. One that falls further behind than
that is dropped, and told so (as is, by problems.py, one that doesn't read at all); nobody waits for it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from enum import Enum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from controller.api.problems import SlowReaderError
from controller.errors import StoreUnavailable

POLL_S: Final = 0.25
PENDING_MAX: Final = 10_000  # jobs whose change a watcher hasn't read yet
AWAY_S: Final = 10.0  # watchers are told of an absent database after this long, and spared a shorter one


class Kind(Enum):
    CHANGED = "changed"
    REMOVED = "removed"


class Keyed(Protocol):
    @property
    def key(self) -> str: ...


Row = TypeVar("Row", bound=Keyed)


class Change(NamedTuple, Generic[Row]):
    """A job as it is now; `removed` with its last state."""

    row: Row
    removed: bool


class Source(Protocol[Row]):
    """Where changes come from. Each method is one statement or two."""

    async def position(self) -> object:
        """Now: `changes` after it leaves nothing out."""
        ...

    async def changes(self, position: object) -> tuple[object, Sequence[Change[Row]]]:
        """What changed after `position` (more than once is no harm), and the position after it."""
        ...


class Watcher(Generic[Row]):
    """One stream's share: changes of the rows that match, merged by key."""

    def __init__(self, matches: Callable[[Row], bool]) -> None:
        self._matches = matches
        self._present: set[str] = set()
        self._pending: dict[str, tuple[Kind, Row]] = {}
        self._something = asyncio.Event()
        self._failure: Exception | None = None

    def present(self, row: Row) -> None:
        """The first listing told of this row."""
        self._present.add(row.key)

    def offer(self, change: Change[Row]) -> None:
        """Take note of a change. Never waits; a watcher that is too far behind is failed."""
        row, key = change.row, change.row.key
        if not change.removed and self._matches(row):
            self._present.add(key)
            self._pending[key] = (Kind.CHANGED, row)
        elif key in self._present:
            self._present.discard(key)
            self._pending[key] = (Kind.REMOVED, row)
        else:
            return
        self._something.set()
        if len(self._pending) > PENDING_MAX:
            self.fail(SlowReaderError("this watcher reads too slowly, and was dropped; open another stream"))

    def fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._pending.clear()
        self._something.set()

    async def changes(self) -> AsyncIterator[tuple[Kind, Row]]:
        """For ever. Raises what the watcher was failed with."""
        while True:
            await self._something.wait()
            if self._failure is not None:
                raise self._failure
            self._something.clear()
            pending, self._pending = self._pending, {}
            for kind, row in pending.values():
                yield kind, row
                if self._failure is not None:
                    raise self._failure


class JobHub(Generic[Row]):
    """All watchers of a controller, and the poller that feeds them."""

    def __init__(self, source: Source[Row], fail: Callable[[BaseException], None], poll_s: float = POLL_S) -> None:
        self._source = source
        self._fail = fail
        self._poll_s = poll_s
        self._watchers: list[Watcher[Row]] = []
        self._poller: asyncio.Task[None] | None = None
        self._position: object = None
        self._starting = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._watchers)

    async def watch(
        self, matches: Callable[[Row], bool], listing: Callable[[], AsyncIterator[Row]]
    ) -> AsyncIterator[tuple[Kind | None, Row | None]]:
        """(None, row) for each row of the listing, (None, None) at its end, then (kind, row) for each change.

        Changes that happen during the listing follow it. Raises SlowReaderError, StoreUnavailable, StoreError.
        """
        watcher = Watcher(matches)
        await self._add(watcher)
        try:
            async for row in listing():
                watcher.present(row)
                yield None, row
            yield None, None
            async for kind, row in watcher.changes():
                yield kind, row
        finally:
            self._remove(watcher)

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    async def _add(self, watcher: Watcher[Row]) -> None:
        """Nothing that changes from now on will be missed."""
        async with self._starting:
            if self._poller is None:
                self._position = await self._source.position()
                self._poller = asyncio.get_running_loop().create_task(self._poll())
                self._poller.add_done_callback(self._done)
            self._watchers.append(watcher)

    def _remove(self, watcher: Watcher[Row]) -> None:
        self._watchers.remove(watcher)
        if not self._watchers and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    def _done(self, poller: "asyncio.Task[None]") -> None:
        if not poller.cancelled() and (error := poller.exception()) is not None:
            self._fail(error)

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        away_since: float | None = None
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                self._position, changes = await self._source.changes(self._position)
                away_since = None
            except StoreUnavailable as error:
                away_since = away_since or loop.time()
                if loop.time() - away_since > AWAY_S:
                    self._fail_all(error)
                continue
            self._tell(changes)

    def _tell(self, changes: Iterable[Change[Row]]) -> None:
        for change in changes:
            for watcher in self._watchers:
                watcher.offer(change)

    def _fail_all(self, error: Exception) -> None:
        for watcher in self._watchers:
            watcher.fail(error)
