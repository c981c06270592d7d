"""WatchExecutions: every start and every end, once, also from a token on."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

import pytest

from cronring.controller.api import watch_executions as watch_module
from cronring.controller.api.hub import Token
from cronring.controller.api.problems import SlowReaderError
from cronring.controller.api.watch_executions import ExecutionEventKind, ExecutionHub, ExecutionWatchEvent
from cronring.controller.ports.reads import ExecutionChange, ExecutionRow
from tests.support.boxes import BOX
from tests.support.waiting import TIMEOUT_S

POLL_S = 0.001


def row(execution_id: int, outcome: str | None = None, job: str = "m.v") -> ExecutionRow:
    ended = 9 if outcome else None
    return ExecutionRow(execution_id, job, "d", 0, 0, 1, ended, ended, outcome, 1, "schedule", "c", "r", None, None)


def change(execution_id: int, outcome: str | None = None, *, started: bool, job: str = "m.v") -> ExecutionChange:
    return ExecutionChange(row(execution_id, outcome, job), started)


class At(NamedTuple):
    """A position: so many batches have been told."""

    database_now: int


class Books:
    """What a test says has happened, in batches; the part of Reads that a hub asks."""

    def __init__(self) -> None:
        self.batches: list[Sequence[ExecutionChange]] = []
        self.polls = 0

    async def execution_position(self) -> At:
        return At(len(self.batches))

    async def execution_changes(self, position: At) -> tuple[At, Sequence[ExecutionChange]]:
        self.polls += 1
        if position.database_now >= len(self.batches):
            return position, []
        return At(position.database_now + 1), self.batches[position.database_now]

    def news(self, position: At, change: ExecutionChange) -> ExecutionChange | None:
        told = [each for batch in self.batches[: position.database_now] for each in batch]
        before = {each.row.outcome for each in told if each.row.execution_id == change.row.execution_id}
        if change.row.outcome in before:
            return None
        return change._replace(started=change.started and not before)

    def encode_position(self, position: At) -> bytes:
        return b"%d" % position.database_now

    def decode_position(self, packed: bytes) -> At:
        return At(int(packed))


def token(batches: int) -> str:
    return BOX.lock("watch executions", b"%d" % batches)


def anything(kind: ExecutionEventKind, row: ExecutionRow) -> bool:
    return bool(kind and row)


def made(books: Books) -> ExecutionHub:
    def fail(error: BaseException) -> None:
        raise error

    return ExecutionHub(books, BOX, fail, POLL_S)  # type: ignore[arg-type]  # five methods of Reads


async def take(events: AsyncGenerator[ExecutionWatchEvent, None], count: int) -> list[tuple[str, int, str]]:
    async with asyncio.timeout(TIMEOUT_S):
        taken = [await anext(events) for _ in range(count)]
    return [(event.kind.value, event.row.execution_id if event.row else 0, event.token) for event in taken]


async def test_every_start_and_end_is_told_and_a_short_run_twice() -> None:
    books = Books()
    hub = made(books)
    events = hub.watch(anything)
    assert await take(events, 1) == [("watching", 0, token(0))]
    books.batches.append([change(1, started=True), change(2, "failed", started=True)])
    books.batches.append([change(1, "completed", started=False)])
    assert await take(events, 4) == [
        ("started", 1, ""), ("started", 2, ""), ("ended", 2, token(1)), ("ended", 1, token(2)),
    ]  # fmt: skip
    await events.aclose()
    assert len(hub) == 0


async def test_a_start_is_told_as_it_was() -> None:
    books = Books()
    events = made(books).watch(anything)
    await take(events, 1)
    books.batches.append([change(1, "failed", started=True)])
    started, ended = await anext(events), await anext(events)
    assert started.row is not None
    assert (started.row.outcome, started.row.ended_at) == (None, None)
    assert ended.row is not None
    assert ended.row.outcome == "failed"
    await events.aclose()


async def test_a_resumed_watch_is_told_what_it_missed_and_nothing_twice() -> None:
    books = Books()
    books.batches = [[change(1, started=True)], [change(2, started=True)], [change(1, "completed", started=False)]]
    hub = made(books)
    others = hub.watch(anything)
    await take(others, 1)
    events = hub.resume(anything, hub.resumed(token(1), 0))
    assert await take(events, 1) == [("watching", 0, "")]
    # Meanwhile the hub finds these too, and keeps them for the watcher, which has caught up with them by then.
    books.batches.append([change(2, "completed", started=False)])
    assert await take(others, 1) == [("ended", 2, token(4))]
    assert await take(events, 3) == [("started", 2, token(2)), ("ended", 1, token(3)), ("ended", 2, token(4))]
    books.batches.append([change(3, started=True)])
    assert await take(events, 1) == [("started", 3, token(5))]
    await events.aclose()
    await others.aclose()


async def test_a_start_that_was_caught_up_with_is_not_told_again_with_its_end() -> None:
    books = Books()
    hub = made(books)
    at = hub.resumed(token(0), 0)
    books.batches.append([change(1, started=True)])
    events = hub.resume(anything, at)
    assert await take(events, 2) == [("watching", 0, ""), ("started", 1, token(1))]
    # The hub's poller, which asks for itself, finds the start and the end of the same run at once.
    later = Token(hub.feed, At(2))
    (watcher,) = hub._watchers
    watcher.offer([change(1, "completed", started=True)], later)
    assert await take(events, 1) == [("ended", 1, token(2))]
    await events.aclose()


async def test_a_watch_of_something_else_gets_tokens_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "TOKEN_S", 0.02)
    books = Books()
    events = made(books).watch(lambda kind, row: kind is ExecutionEventKind.ENDED and row.job == "m.rare")
    await take(events, 1)
    books.batches.append([change(1, "completed", started=True)])
    tokens = [token for _, _, token in await take(events, 3)]
    assert tokens[-1] == token(1)
    books.batches.append([change(2, "completed", started=True, job="m.rare")])
    found = [event async for event in until_row(events)]
    assert found[-1].kind is ExecutionEventKind.ENDED
    await events.aclose()


async def until_row(events: AsyncGenerator[ExecutionWatchEvent, None]) -> AsyncGenerator[ExecutionWatchEvent, None]:
    async with asyncio.timeout(TIMEOUT_S):
        async for event in events:
            yield event
            if event.row is not None:
                return


async def test_a_slow_watcher_is_told_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "PENDING_MAX", 10)
    books = Books()
    hub = made(books)
    slow = hub.watch(anything)
    await take(slow, 1)
    books.batches += [[change(number, started=True)] for number in range(11)]
    async with asyncio.timeout(TIMEOUT_S):
        while books.polls < 12:
            await asyncio.sleep(POLL_S)
    with pytest.raises(SlowReaderError, match="resume_token"):
        await take(slow, 1)
    assert len(hub) == 0
