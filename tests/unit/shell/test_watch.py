import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple

import pytest

from cronring.controller.api import hub as hub_module
from cronring.controller.api import watch as watch_module
from cronring.controller.api.problems import InvalidRequest, SlowReaderError
from cronring.controller.api.token_box import TokenBox
from cronring.controller.api.watch import JobEventKind, JobHub, JobWatchEvent
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.reads import JobRow
from tests.support.boxes import BOX
from tests.support.waiting import TIMEOUT_S, wait_until

POLL_S = 0.001


def row(key: str, status: str = "scheduled", removed: bool = False) -> JobRow:
    return JobRow(
        1, key, "default", "m", "v", status, 1, "d", 0, 1 if removed else None,
        None, None, None, None, None, None, None,
    )  # fmt: skip


class At(NamedTuple):
    """A position: so many batches have been told."""

    database_now: int


class Changes:
    """Feeds a hub what a test puts in; counts the polls. The other methods of Reads are not for a hub."""

    def __init__(self) -> None:
        self.batches: list[Sequence[JobRow]] = []
        self.polls = 0
        self.error: Exception | None = None

    async def job_position(self) -> At:
        return At(len(self.batches))

    async def job_changes(self, position: At) -> tuple[At, Sequence[JobRow]]:
        self.polls += 1
        if self.error is not None:
            raise self.error
        fresh = [row for batch in self.batches[position.database_now :] for row in batch]
        return At(len(self.batches)), fresh

    def encode_position(self, position: At) -> bytes:
        return b"%d" % position.database_now

    def decode_position(self, packed: bytes) -> At:
        return At(int(packed))


def token(batches: int) -> str:
    return BOX.lock("watch jobs", b"%d" % batches)


def made(changes: Changes) -> tuple[JobHub, list[BaseException]]:
    failures: list[BaseException] = []
    return JobHub(changes, BOX, failures.append, POLL_S), failures  # type: ignore[arg-type]  # two methods of Reads


async def listing(*rows: JobRow) -> AsyncIterator[JobRow]:
    for each in rows:
        yield each


def anything(row: JobRow) -> bool:
    return bool(row.key)


class Chosen:
    """Its caller may see all but what is in the namespace "hidden"."""

    def __init__(self, matches: Callable[[JobRow], bool]) -> None:
        self.matches = matches

    def sees(self, row: JobRow) -> bool:
        return row.namespace != "hidden"


def watching(hub: JobHub, *rows: JobRow, matches: Callable[[JobRow], bool] = anything) -> AsyncIterator[JobWatchEvent]:
    return hub.watch(Chosen(matches), lambda: listing(*rows))


async def take(events: AsyncIterator[JobWatchEvent], count: int) -> list[tuple[JobEventKind, str]]:
    async with asyncio.timeout(TIMEOUT_S):
        taken = [await anext(events) for _ in range(count)]
    return [(event.kind, event.row.key if event.row else "") for event in taken]


async def end(events: AsyncIterator[JobWatchEvent]) -> None:
    await events.aclose()  # type: ignore[attr-defined]  # it is an async generator


async def test_a_listing_then_changes() -> None:
    changes = Changes()
    hub, _ = made(changes)
    events = watching(hub, row("a"), row("b"))
    assert await take(events, 3) == [
        (JobEventKind.PRESENT, "a"),
        (JobEventKind.PRESENT, "b"),
        (JobEventKind.LISTED, ""),
    ]
    changes.batches.append([row("a", "running"), row("c"), row("b", removed=True), row("unknown", removed=True)])
    assert await take(events, 3) == [
        (JobEventKind.CHANGED, "a"),
        (JobEventKind.CHANGED, "c"),
        (JobEventKind.REMOVED, "b"),
    ]
    await end(events)


async def test_what_changes_during_the_listing_follows_it() -> None:
    changes = Changes()
    hub, _ = made(changes)
    events = watching(hub, row("a"), row("b"))
    assert await take(events, 1) == [(JobEventKind.PRESENT, "a")]
    changes.batches.append([row("a", "running")])
    polls = changes.polls
    await wait_until(lambda: changes.polls > polls + 1, "the poller sleeps")
    assert await take(events, 3) == [
        (JobEventKind.PRESENT, "b"),
        (JobEventKind.LISTED, ""),
        (JobEventKind.CHANGED, "a"),
    ]
    await end(events)


async def test_a_job_that_leaves_the_filter_is_removed_and_may_come_back() -> None:
    changes = Changes()
    hub, _ = made(changes)
    events = watching(hub, row("a", "running"), matches=lambda row: row.status == "running")
    await take(events, 2)
    changes.batches.append([row("a", "scheduled"), row("b", "scheduled")])
    assert await take(events, 1) == [(JobEventKind.REMOVED, "a")]
    changes.batches.append([row("a", "running")])
    assert await take(events, 1) == [(JobEventKind.CHANGED, "a")]
    await end(events)


async def test_the_poller_runs_only_while_somebody_watches_and_serves_all() -> None:
    changes = Changes()
    hub, _ = made(changes)
    first, second = watching(hub), watching(hub)
    await take(first, 1)
    await take(second, 1)
    assert len(hub) == 2
    changes.batches.append([row("a")])
    assert await take(first, 1) == await take(second, 1) == [(JobEventKind.CHANGED, "a")]
    await end(first)
    polls = changes.polls
    await wait_until(lambda: changes.polls > polls, "the second watcher lost its poller")
    await end(second)
    assert len(hub) == 0
    polls = changes.polls
    for _ in range(20):
        await asyncio.sleep(POLL_S)  # time in which it would have polled
    assert changes.polls == polls


async def test_changes_of_one_job_are_merged_for_who_reads_late() -> None:
    changes = Changes()
    hub, _ = made(changes)
    events = watching(hub)
    await take(events, 1)
    for _ in range(100):
        changes.batches.append([row("a", "running"), row("a", "scheduled")])
    polls = changes.polls
    await wait_until(lambda: changes.polls > polls + 1, "the poller sleeps")
    changes.batches.append([row("b")])
    assert await take(events, 2) == [(JobEventKind.CHANGED, "a"), (JobEventKind.CHANGED, "b")]
    await end(events)


async def test_a_slow_watcher_is_dropped_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "PENDING_MAX", 10)
    changes = Changes()
    hub, _ = made(changes)
    slow, quick = watching(hub), watching(hub)
    await take(slow, 1)
    await take(quick, 1)
    for number in range(11):
        changes.batches.append([row(f"job-{number}")])
        assert await take(quick, 1) == [(JobEventKind.CHANGED, f"job-{number}")]
    with pytest.raises(SlowReaderError, match="open another stream"):
        await take(slow, 1)
    assert len(hub) == 1
    await end(quick)


async def test_a_short_absence_of_the_database_goes_unnoticed() -> None:
    changes = Changes()
    hub, failures = made(changes)
    events = watching(hub)
    await take(events, 1)
    changes.error = StoreUnavailable("away")
    polls = changes.polls
    await wait_until(lambda: changes.polls > polls + 3, "the poller gave up")
    changes.error = None
    changes.batches.append([row("a")])
    assert await take(events, 1) == [(JobEventKind.CHANGED, "a")]
    assert not failures
    await end(events)


@pytest.mark.parametrize("error", [StoreUnavailable("away"), StoreError("refused")])
async def test_a_long_absence_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(hub_module, "AWAY_S", 0.0)
    changes = Changes()
    hub, failures = made(changes)
    events = watching(hub)
    await take(events, 1)
    changes.error = error
    with pytest.raises(type(error)):
        await take(events, 1)
    assert len(hub) == 0
    assert not failures


async def test_a_defect_in_the_poller_fails_the_process() -> None:
    changes = Changes()
    hub, failures = made(changes)
    events = watching(hub)
    await take(events, 1)
    changes.error = ZeroDivisionError("a defect")
    await wait_until(lambda: bool(failures), "it was swallowed")
    assert isinstance(failures[0], ZeroDivisionError)
    await end(events)


async def test_a_token_stands_on_the_last_event_of_what_came_together() -> None:
    changes = Changes()
    hub, _ = made(changes)
    events = watching(hub, row("a"))
    async with asyncio.timeout(TIMEOUT_S):
        present, listed = await anext(events), await anext(events)
        assert (present.token, listed.token) == ("", token(0))
        changes.batches.append([row("a", "running"), row("b")])
        first, second = await anext(events), await anext(events)
    assert (first.token, second.token) == ("", token(1))
    await end(events)


async def test_a_watch_goes_on_from_a_token_without_a_listing() -> None:
    changes = Changes()
    changes.batches = [[row("a")], [row("b")], [row("c", removed=True), row("d", "running")]]
    hub, _ = made(changes)
    events = hub.resume(Chosen(lambda row: row.status == "scheduled"), hub.resumed(token(1), 0))
    # Whatever doesn't match may be something that it was told of before.
    assert await take(events, 3) == [
        (JobEventKind.CHANGED, "b"),
        (JobEventKind.REMOVED, "c"),
        (JobEventKind.REMOVED, "d"),
    ]
    changes.batches.append([row("e")])
    async with asyncio.timeout(TIMEOUT_S):
        last = await anext(events)
    assert (last.kind, last.token) == (JobEventKind.CHANGED, token(4))
    await end(events)
    assert len(hub) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x", "none that this API gave out"),
        ("\0", "none that this API gave out"),
        (token(5)[:-1], "none that this API gave out"),
        (BOX.lock("watch executions", b"5"), "none that this API gave out"),
        (TokenBox(b"another key of 32 bytes or more.").lock("watch jobs", b"5"), "none that this API gave out"),
        (token(5), "more than a day old"),
    ],
)
async def test_tokens_that_lead_nowhere_are_refused(given: str, message: str) -> None:
    hub, _ = made(Changes())
    with pytest.raises(InvalidRequest, match=message):
        hub.resumed(given, hub_module.TOKEN_AGE_MAX_US + 6)


async def test_of_what_a_watcher_may_not_see_not_even_the_end_is_told() -> None:
    hidden = row("hidden/a", removed=True)._replace(namespace="hidden")
    changes = Changes()
    changes.batches = [[hidden], [hidden, row("b", removed=True)]]
    hub, _ = made(changes)
    events = hub.resume(Chosen(anything), hub.resumed(token(0), 0))
    assert await take(events, 1) == [(JobEventKind.REMOVED, "b")]


async def test_too_much_since_a_token_is_told_instead_of_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "PENDING_MAX", 10)
    changes = Changes()
    changes.batches = [[row(f"job-{number}") for number in range(11)]]
    hub, _ = made(changes)
    events = hub.resume(Chosen(anything), At(0))
    with pytest.raises(InvalidRequest, match="begin anew"):
        await take(events, 1)
    assert len(hub) == 0
