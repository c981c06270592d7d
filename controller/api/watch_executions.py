"""WatchExecutions: every start and every end, in the order in which they are found; none is left out, none merged."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from cronring.controller.api.hub import POLL_S, Hub, Token, too_slow
from cronring.controller.api.token_box import TokenBox
from cronring.controller.ports.reads import ExecutionChange, ExecutionRow, Reads, WatchPosition

_KIND: Final = "watch executions"
PENDING_MAX: Final = 50_000  # a few seconds of the fastest cluster
PART: Final = 128  # changes from one token to the next: one of thousands of runs takes a millisecond to make
TOKEN_S: Final = 10.0  # a watcher without events gets a token this often, so that its token doesn't become too old


class ExecutionEventKind(Enum):
    WATCHING = "watching"
    STARTED = "started"
    ENDED = "ended"


class ExecutionWatchEvent(NamedTuple):
    """`row` is None only for WATCHING. `token`: everything up to here has been told; "": see an event after this."""

    kind: ExecutionEventKind
    row: ExecutionRow | None
    token: str = ""


Matches = Callable[[ExecutionEventKind, ExecutionRow], bool]


class ExecutionFeed:
    """cronring.controller.api.hub.Feed."""

    def __init__(self, reads: Reads, box: TokenBox) -> None:
        self._reads = reads
        self._box = box

    async def position(self) -> WatchPosition:
        return await self._reads.execution_position()

    async def changes(self, position: WatchPosition) -> Sequence[tuple[WatchPosition, Sequence[ExecutionChange]]]:
        after, changes = await self._reads.execution_changes(position)
        parts = [changes[first : first + PART] for first in range(0, len(changes), PART)] or [changes]
        found: list[tuple[WatchPosition, Sequence[ExecutionChange]]] = []
        for part in parts[:-1]:
            position = self._reads.having_told(position, after, part)
            found.append((position, part))
        return [*found, (after, parts[-1])]

    def encode(self, position: WatchPosition) -> str:
        return self._box.lock(_KIND, self._reads.encode_position(position))

    def decode(self, token: str) -> WatchPosition:
        return self._reads.decode_position(self._box.open(_KIND, token))


def events_of(change: ExecutionChange) -> list[ExecutionWatchEvent]:
    """The start, if that is news, with the row as it was then; and the end, if it has ended."""
    row = change.row
    found = []
    if change.started:
        begun = row._replace(started_at=None, ended_at=None, outcome=None, error_type=None, error_message=None)
        found.append(ExecutionWatchEvent(ExecutionEventKind.STARTED, begun))
    if row.outcome is not None:
        found.append(ExecutionWatchEvent(ExecutionEventKind.ENDED, row))
    return found


class ExecutionWatcher:
    """One stream's share. `behind`: it first catches up with what has happened before."""

    def __init__(self, matches: Matches, *, behind: bool) -> None:
        self._matches = matches
        self._pending: deque[tuple[ExecutionWatchEvent, Token[Any, Any] | None]] = deque()
        self._token: Token[Any, Any] | None = None
        self._something = asyncio.Event()
        self._failure: Exception | None = None
        self._later: list[tuple[Sequence[ExecutionChange], Token[Any, Any]]] | None = [] if behind else None
        self._news: Callable[[ExecutionChange], ExecutionChange | None] = lambda change: change

    def offer(self, changes: Sequence[ExecutionChange], token: Token[Any, Any]) -> None:
        """Never waits; a watcher that is too far behind is failed."""
        if self._later is None:
            self._take(changes, token)
        else:
            self._later.append((changes, token))
        if len(self._pending) + sum(len(each) for each, _ in self._later or ()) > PENDING_MAX:
            self.fail(too_slow())

    def caught_up(self, news: Callable[[ExecutionChange], ExecutionChange | None]) -> None:
        """Take what was offered meanwhile. `news` leaves out what catching up has told already.

        The poller reads by itself: it may find start and end together when catching up has told the start already.
        """
        self._news = news
        later, self._later = self._later or [], None
        for changes, token in later:
            self._take(changes, token)

    def _take(self, changes: Sequence[ExecutionChange], token: Token[Any, Any]) -> None:
        self._token = token
        told = filter(None, map(self._news, changes))
        events = [event for news in told for event in events_of(news) if self.matches(event)]
        if events:
            self._pending.extend((event, None) for event in events[:-1])
            self._pending.append((events[-1], token))
            self._something.set()

    def matches(self, event: ExecutionWatchEvent) -> bool:
        return event.row is not None and self._matches(event.kind, event.row)

    def fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._pending.clear()
        self._later = None
        self._something.set()

    async def events(self) -> AsyncGenerator[ExecutionWatchEvent, None]:
        """For ever. Raises what the watcher was failed with."""
        while True:
            await self._heard()
            if self._failure is not None:
                raise self._failure
            pending, self._pending = self._pending, deque()
            if not pending:
                token = "" if self._token is None else self._token.text()
                yield ExecutionWatchEvent(ExecutionEventKind.WATCHING, None, token)
            while pending:
                event, reached = pending.popleft()
                yield event if reached is None else event._replace(token=reached.text())
                if self._failure is not None:
                    raise self._failure

    async def _heard(self) -> None:
        try:
            async with asyncio.timeout(TOKEN_S):
                await self._something.wait()
        except TimeoutError:
            return
        self._something.clear()


class ExecutionHub(Hub[ExecutionChange, WatchPosition]):
    """All watchers of executions."""

    def __init__(
        self, reads: Reads, box: TokenBox, fail: Callable[[BaseException], None], poll_s: float = POLL_S
    ) -> None:
        super().__init__(ExecutionFeed(reads, box), fail, poll_s)
        self._reads = reads

    async def watch(self, matches: Matches) -> AsyncGenerator[ExecutionWatchEvent, None]:
        """WATCHING, then what happens. Raises SlowReaderError, StoreUnavailable, StoreError."""
        watcher = ExecutionWatcher(matches, behind=False)
        begun = await self.add(watcher)
        try:
            yield ExecutionWatchEvent(ExecutionEventKind.WATCHING, None, begun.text())
            async for event in watcher.events():
                yield event
        finally:
            self.remove(watcher)

    async def resume(self, matches: Matches, position: WatchPosition) -> AsyncGenerator[ExecutionWatchEvent, None]:
        """WATCHING, then what has happened since `position`, and goes on happening. Raises as `watch` does."""
        watcher = ExecutionWatcher(matches, behind=True)
        await self.add(watcher)
        try:
            yield ExecutionWatchEvent(ExecutionEventKind.WATCHING, None)
            reached, more = position, True
            while more:
                more = False
                parts = await self.feed.changes(reached)
                for reached, changes in parts:
                    more = more or bool(changes)
                    events = [event for change in changes for event in events_of(change) if watcher.matches(event)]
                    for event in events[:-1]:
                        yield event
                    if events:
                        yield events[-1]._replace(token=Token(self.feed, reached).text())
                if more and not events:
                    yield ExecutionWatchEvent(ExecutionEventKind.WATCHING, None, Token(self.feed, reached).text())
            watcher.caught_up(lambda change: self._reads.news(reached, change))
            async for event in watcher.events():
                yield event
        finally:
            self.remove(watcher)
