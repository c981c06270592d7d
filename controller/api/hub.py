"""What every kind of watch shares: one poller for all watchers of a controller, which runs only while there are any.

A watcher that falls behind is dropped, and told so; nobody waits for it. With the token of the last event that it has
read, it can go on from there, through any controller.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from cronring.controller.api.problems import InvalidRequest, SlowReaderError
from cronring.controller.errors import StoreError, StoreUnavailable

POLL_S: Final = 0.25
AWAY_S: Final = 10.0  # watchers don't hear of a shorter absence of PostgreSQL
TOKEN_AGE_MAX_US: Final = 86_400_000_000

Change = TypeVar("Change")
Told_co = TypeVar("Told_co", covariant=True)
Position = TypeVar("Position", bound="DatedPosition")


class DatedPosition(Protocol):
    """How far a watcher has read. `database_now`: PostgreSQL's time at that position."""

    @property
    def database_now(self) -> int: ...


class Feed(Protocol[Told_co, Position]):
    """What there is to watch."""

    async def position(self) -> Position:
        """Nothing that happens from now on is left out of `changes`."""
        ...

    async def changes(self, position: Position) -> Sequence[tuple[Position, Sequence[Told_co]]]:
        """What has happened since then, in one part or more, each with the position after it.

        A watcher that is cut off hears again all that came after its last position. So parts are small.
        """
        ...

    def encode(self, position: Position) -> str: ...
    def decode(self, token: str) -> Position:
        """Raises ValueError for what is none of its tokens."""
        ...


class Token(Generic[Change, Position]):
    """A position as a text, made once, when the first watcher wants it."""

    def __init__(self, feed: Feed[Change, Position], position: Position) -> None:
        self._feed = feed
        self._position = position
        self._text = ""

    def text(self) -> str:
        self._text = self._text or self._feed.encode(self._position)
        return self._text


class Watching(Protocol[Change, Position]):
    """One watcher."""

    def offer(self, changes: Sequence[Change], token: Token[Change, Position]) -> None:
        """Take note of what matters to it. Never waits."""
        ...

    def fail(self, error: Exception) -> None: ...


def too_slow() -> SlowReaderError:
    return SlowReaderError(
        "this watcher reads too slowly, and was dropped; open another stream, with the latest resume_token it has read"
    )


def too_much_since() -> InvalidRequest:
    return InvalidRequest([("resume_token", "lies so far back that too much has changed since; begin anew without it")])


class Hub(Generic[Change, Position]):
    """All watchers of one feed. `fail` is told of an error that nobody foresaw, which ends the process."""

    def __init__(
        self, feed: Feed[Change, Position], fail: Callable[[BaseException], None], poll_s: float = POLL_S
    ) -> None:
        self.feed = feed
        self._fail = fail
        self._poll_s = poll_s
        self._watchers: list[Watching[Change, Position]] = []
        self._poller: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._position: Position | None = None  # of the poller, while it runs

    def __len__(self) -> int:
        return len(self._watchers)

    def resumed(self, token: str, now: int) -> Position:
        """The position that a caller's token stands for. Raises InvalidRequest."""
        try:
            position = self.feed.decode(token)
        except ValueError:
            raise InvalidRequest([("resume_token", "is none that this API gave out; begin anew without it")]) from None
        if now - position.database_now > TOKEN_AGE_MAX_US:
            raise InvalidRequest([("resume_token", "is more than a day old; begin anew without it")])
        return position

    async def add(self, watcher: Watching[Change, Position]) -> Token[Change, Position]:
        """Add a watcher. It misses nothing from now on. Returns the token of the present position."""
        async with self._starting:
            if self._poller is None:
                self._position = await self.feed.position()
                self._poller = asyncio.get_running_loop().create_task(self._poll(self._position))
                self._poller.add_done_callback(self._done)
            self._watchers.append(watcher)
            assert self._position is not None, "a poller without a position"
            return Token(self.feed, self._position)

    def remove(self, watcher: Watching[Change, Position]) -> None:
        self._watchers.remove(watcher)
        if not self._watchers and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    def _done(self, poller: "asyncio.Task[None]") -> None:
        if not poller.cancelled() and (error := poller.exception()) is not None:
            self._fail(error)

    async def _poll(self, position: Position) -> None:
        loop = asyncio.get_running_loop()
        away_since: float | None = None
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                parts = await self.feed.changes(position)
                away_since = None
            except StoreUnavailable as error:
                away_since = away_since or loop.time()
                if loop.time() - away_since > AWAY_S:
                    self._fail_all(error)
                continue
            except StoreError as error:
                self._fail_all(error)
                continue
            for reached, changes in parts:
                self._position = position = reached
                token = Token(self.feed, position)
                for watcher in self._watchers:
                    watcher.offer(changes, token)

    def _fail_all(self, error: Exception) -> None:
        for watcher in self._watchers:
            watcher.fail(error)
