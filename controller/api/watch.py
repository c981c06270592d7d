"""WatchJobs: a listing, then one event for each job that changes; or, with a token, what has changed since.

A slow watcher gets only the latest state of each job. If it falls behind by more than that, it is dropped.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

from cronring.controller.api.hub import POLL_S, Hub, Token, too_much_since, too_slow
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.reads import JobRow, Reads, WatchPosition

_KIND: Final = "watch jobs"
PENDING_MAX: Final = 10_000  # jobs whose change a watcher hasn't read yet


class JobEventKind(Enum):
    PRESENT = "present"
    LISTED = "listed"
    CHANGED = "changed"
    REMOVED = "removed"


class JobWatchEvent(NamedTuple):
    """`row` is None only for LISTED. `token`: everything up to here has been told; "": see an event after this."""

    kind: JobEventKind
    row: JobRow | None
    token: str = ""


class JobFeed:
    """cronring.controller.api.hub.Feed."""

    def __init__(self, reads: Reads, box: TokenBox) -> None:
        self._reads = reads
        self._box = box

    async def position(self) -> WatchPosition:
        # The first answer also holds older changes, and is dropped: it only finds out which ids are missing.
        return (await self._reads.job_changes(await self._reads.job_position()))[0]

    async def changes(self, position: WatchPosition) -> Sequence[tuple[WatchPosition, Sequence[JobRow]]]:
        return [await self._reads.job_changes(position)]

    def encode(self, position: WatchPosition) -> str:
        return self._box.lock(_KIND, self._reads.encode_position(position))

    def decode(self, token: str) -> WatchPosition:
        return self._reads.decode_position(self._box.open(_KIND, token))


class Selection(Protocol):
    """Which jobs somebody watches."""

    def sees(self, row: JobRow) -> bool:
        """Whether they may be told of it at all. That never changes."""
        ...

    def matches(self, row: JobRow) -> bool:
        """As it is now."""
        ...


class JobWatcher:
    """One stream's share: changes of the rows that match, merged by key.

    `resumed`: it isn't known what the watcher was told before. So each changed job that doesn't match is REMOVED.
    """

    def __init__(self, selection: Selection, *, resumed: bool) -> None:
        self._selection = selection
        self._resumed = resumed
        self._present: set[str] = set()
        self._caught_up: dict[str, JobRow] = {}
        self._pending: dict[str, JobWatchEvent] = {}
        self._token: Token[Any, Any] | None = None
        self._something = asyncio.Event()
        self._failure: Exception | None = None

    @property
    def waiting(self) -> int:
        """How many jobs it has yet to be told of."""
        return len(self._pending)

    def present(self, row: JobRow) -> None:
        """The first listing told of this row."""
        self._present.add(row.key)

    def caught_up(self, changes: Sequence[JobRow]) -> None:
        """Note the changes that catching up has offered. The hub's poller may find the same ones again."""
        self._caught_up.update((row.key, row) for row in changes)

    def offer(self, changes: Sequence[JobRow], token: Token[Any, Any]) -> None:
        """Take note of changes. Never waits; a watcher that is too far behind is failed."""
        for row in filter(self._selection.sees, changes):
            self._take(row)
        self._token = token
        if len(self._pending) > PENDING_MAX:
            self.fail(too_slow())

    def _take(self, row: JobRow) -> None:
        key = row.key
        if self._caught_up.get(key) == row:
            return
        self._caught_up.pop(key, None)
        if row.removed_at is None and self._selection.matches(row):
            self._present.add(key)
            self._pending[key] = JobWatchEvent(JobEventKind.CHANGED, row)
        elif key in self._present or self._resumed:
            self._present.discard(key)
            self._pending[key] = JobWatchEvent(JobEventKind.REMOVED, row)
        else:
            return
        self._something.set()

    def fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._pending.clear()
        self._something.set()

    async def changes(self) -> AsyncGenerator[JobWatchEvent, None]:
        """For ever. Raises what the watcher was failed with."""
        while True:
            await self._something.wait()
            if self._failure is not None:
                raise self._failure
            self._something.clear()
            pending, self._pending = list(self._pending.values()), {}
            token = "" if self._token is None else self._token.text()
            for number, event in enumerate(pending, 1):
                yield event._replace(token=token) if number == len(pending) else event
                if self._failure is not None:
                    raise self._failure


class JobHub(Hub[JobRow, WatchPosition]):
    """All watchers of jobs."""

    def __init__(
        self, reads: Reads, box: TokenBox, fail: Callable[[BaseException], None], poll_s: float = POLL_S
    ) -> None:
        super().__init__(JobFeed(reads, box), fail, poll_s)

    async def watch(
        self, selection: Selection, listing: Callable[[], AsyncIterator[JobRow]]
    ) -> AsyncGenerator[JobWatchEvent, None]:
        """PRESENT for each row of the listing, LISTED, then CHANGED and REMOVED, those during the listing among them.

        Raises SlowReaderError, StoreUnavailable, StoreError.
        """
        watcher = JobWatcher(selection, resumed=False)
        begun = await self.add(watcher)
        try:
            async for row in listing():
                watcher.present(row)
                yield JobWatchEvent(JobEventKind.PRESENT, row)
            yield JobWatchEvent(JobEventKind.LISTED, None, begun.text())
            async for event in watcher.changes():
                yield event
        finally:
            self.remove(watcher)

    async def resume(self, selection: Selection, position: WatchPosition) -> AsyncGenerator[JobWatchEvent, None]:
        """CHANGED and REMOVED since `position`. Raises as `watch` does."""
        watcher = JobWatcher(selection, resumed=True)
        await self.add(watcher)
        try:
            while True:
                ((position, rows),) = await self.feed.changes(position)
                if not rows:
                    break
                if len(rows) + watcher.waiting > PENDING_MAX:
                    raise too_much_since()
                watcher.offer(rows, Token(self.feed, position))
                watcher.caught_up(rows)
            async for event in watcher.changes():
                yield event
        finally:
            self.remove(watcher)
