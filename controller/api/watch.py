"""WatchJobs: one poller for all watchers of a controller, which runs only while there are any.

A watcher that reads slowly finds its jobs' latest states merged, one for each job. One that falls further behind than
that is dropped, and told so (as is, by problems.py, one that doesn't read at all); nobody waits for it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from enum import Enum
from typing import Final, NamedTuple

from controller.api.problems import SlowReaderError
from controller.errors import StoreError, StoreUnavailable
from controller.reads import JobRow, Reads

POLL_S: Final = 0.25
PENDING_MAX: Final = 10_000  # jobs whose change a watcher hasn't read yet
AWAY_S: Final = 10.0  # watchers are told of an absent database after this long, and spared a shorter one


class Kind(Enum):
    PRESENT = "present"
    LISTED = "listed"
    CHANGED = "changed"
    REMOVED = "removed"


class WatchEvent(NamedTuple):
    """`row` is None only for LISTED."""

    kind: Kind
    row: JobRow | None


class Watcher:
    """One stream's share: changes of the rows that match, merged by key."""

    def __init__(self, matches: Callable[[JobRow], bool]) -> None:
        self._matches = matches
        self._present: set[str] = set()
        self._pending: dict[str, WatchEvent] = {}
        self._something = asyncio.Event()
        self._failure: Exception | None = None

    def present(self, row: JobRow) -> None:
        """The first listing told of this row."""
        self._present.add(row.key)

    def offer(self, row: JobRow) -> None:
        """Take note of a change. Never waits; a watcher that is too far behind is failed."""
        key = row.key
        if row.removed_at is None and self._matches(row):
            self._present.add(key)
            self._pending[key] = WatchEvent(Kind.CHANGED, row)
        elif key in self._present:
            self._present.discard(key)
            self._pending[key] = WatchEvent(Kind.REMOVED, row)
        else:
            return
        self._something.set()
        if len(self._pending) > PENDING_MAX:
            self.fail(SlowReaderError("this watcher reads too slowly, and was dropped; open another stream"))

    def fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._pending.clear()
        self._something.set()

    async def changes(self) -> AsyncIterator[WatchEvent]:
        """For ever. Raises what the watcher was failed with."""
        while True:
            await self._something.wait()
            if self._failure is not None:
                raise self._failure
            self._something.clear()
            pending, self._pending = self._pending, {}
            for event in pending.values():
                yield event
                if self._failure is not None:
                    raise self._failure


class JobHub:
    """All watchers of a controller, and the poller that feeds them."""

    def __init__(self, reads: Reads, fail: Callable[[BaseException], None], poll_s: float = POLL_S) -> None:
        self._reads = reads
        self._fail = fail
        self._poll_s = poll_s
        self._watchers: list[Watcher] = []
        self._poller: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._watchers)

    async def watch(
        self, matches: Callable[[JobRow], bool], listing: Callable[[], AsyncIterator[JobRow]]
    ) -> AsyncIterator[WatchEvent]:
        """PRESENT for each row of the listing, LISTED, then CHANGED and REMOVED, those during the listing among them.

        Raises SlowReaderError, StoreUnavailable, StoreError.
        """
        watcher = Watcher(matches)
        await self._add(watcher)
        try:
            async for row in listing():
                watcher.present(row)
                yield WatchEvent(Kind.PRESENT, row)
            yield WatchEvent(Kind.LISTED, None)
            async for event in watcher.changes():
                yield event
        finally:
            self._remove(watcher)

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    async def _add(self, watcher: Watcher) -> None:
        """Nothing that changes from now on will be missed."""
        async with self._starting:
            if self._poller is None:
                position = await self._reads.job_position()
                self._poller = asyncio.get_running_loop().create_task(self._poll(position))
                self._poller.add_done_callback(self._done)
            self._watchers.append(watcher)

    def _remove(self, watcher: Watcher) -> None:
        self._watchers.remove(watcher)
        if not self._watchers and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    def _done(self, poller: "asyncio.Task[None]") -> None:
        if not poller.cancelled() and (error := poller.exception()) is not None:
            self._fail(error)

    async def _poll(self, position: object) -> None:
        loop = asyncio.get_running_loop()
        away_since: float | None = None
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                position, rows = await self._reads.job_changes(position)
                away_since = None
            except StoreUnavailable as error:
                away_since = away_since or loop.time()
                if loop.time() - away_since > AWAY_S:
                    self._fail_all(error)
                continue
            except StoreError as error:
                self._fail_all(error)
                continue
            self._tell(rows)

    def _tell(self, rows: Iterable[JobRow]) -> None:
        for row in rows:
            for watcher in self._watchers:
                watcher.offer(row)

    def _fail_all(self, error: Exception) -> None:
        for watcher in self._watchers:
            watcher.fail(error)
