"""Following executions through a controller: from runners' streams, and from the books."""

import asyncio
from collections.abc import Callable

import pytest

from cronring.controller.api import following as following_module
from cronring.controller.api.following import Chunk, OutputFollowers
from cronring.controller.api.problems import SlowReaderError
from cronring.controller.errors import NotFound, RunnerAway, TooMany
from cronring.controller.ports.reads import ExecutionRow
from cronring.controller.ports.store import OutputPart, OutputState
from cronring.controller.runners.following import UNREAD_BYTES_MAX, Follow, Follows
from cronring.protos.executions import MalformedError
from cronring.protos.runner.v1.runner_pb2 import Output
from tests.support.waiting import TIMEOUT_S

RUNNING, ENDED = Output.STATE_RUNNING, Output.STATE_ENDED


def row(outcome: str | None = None, output: str | None = None) -> ExecutionRow:
    return ExecutionRow(
        7, "m.v", "d", 0, 0, 0, 0, 1 if outcome else None, outcome, 1, "manual", "c", "r", "", "", output=output
    )


class Stage:
    """One execution in the books, and its runner's stream, if it is connected."""

    def __init__(self) -> None:
        self.row: ExecutionRow | None = row()
        self.follows: Follows | None = Follows()
        self.asked: list[tuple[str, int, int]] = []
        self.looks = 0
        self.following = OutputFollowers(self, self)  # type: ignore[arg-type]  # one method of Reads

    async def get_execution(self, execution_id: int) -> ExecutionRow:
        self.looks += 1
        await asyncio.sleep(0)
        if self.row is None:
            raise NotFound(f"there is no execution {execution_id}")
        return self.row

    def follow(self, runner_id: str, execution_id: int, from_offset: int) -> Follow | None:
        self.asked.append((runner_id, execution_id, from_offset))
        return None if self.follows is None else self.follows.open(execution_id, from_offset)

    def say(self, offset: int, data: bytes, state: Output.State.ValueType = RUNNING) -> None:
        """As the runner, to the follower that came last."""
        assert self.follows is not None
        self.follows.received(Output(follow_id=len(self.asked), offset=offset, data=data, state=state))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    for name in ("LOOK_S", "END_LOOK_S", "RECHECK_S", "AWAY_S"):
        monkeypatch.setattr(following_module, name, 0.02)
    return Stage()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0)


async def test_output_comes_as_it_is_printed_and_then_the_outcome(stage: Stage) -> None:
    chunks = stage.following.follow(7, 0, once=False)
    first = asyncio.ensure_future(anext(chunks))
    await until(lambda: stage.asked)
    stage.say(0, b"")
    stage.say(0, b"one ")
    assert await first == Chunk(0, b"one ")
    stage.say(4, b"two", ENDED)
    assert await anext(chunks) == Chunk(4, b"two")
    last = asyncio.ensure_future(anext(chunks))
    looks = stage.looks
    await until(lambda: stage.looks > looks + 1)  # its end is being committed
    stage.row = row("completed", "one two")
    assert await last == Chunk(7, b"", stage.row)
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)
    assert stage.asked == [("r", 7, 0)]


async def test_what_its_runner_does_not_know_is_looked_up_again(stage: Stage) -> None:
    chunks = stage.following.follow(7, 2, once=False)
    first = asyncio.ensure_future(anext(chunks))
    await until(lambda: stage.asked)
    stage.say(2, b"", Output.STATE_UNKNOWN)
    await until(lambda: len(stage.asked) == 2)
    stage.say(2, b"", Output.STATE_UNKNOWN)
    stage.row = row("failed", "0123")
    assert await first == Chunk(2, b"23")
    assert (await anext(chunks)).row == stage.row


async def test_a_stream_that_breaks_goes_on_where_it_was(stage: Stage) -> None:
    chunks = stage.following.follow(7, 0, once=False)
    first = asyncio.ensure_future(anext(chunks))
    await until(lambda: stage.asked)
    stage.say(0, b"abc")
    await first
    second = asyncio.ensure_future(anext(chunks))
    assert stage.follows is not None
    stage.follows.break_off()
    await until(lambda: len(stage.asked) == 2)
    assert stage.asked[-1] == ("r", 7, 3)
    stage.say(3, b"d")
    assert await second == Chunk(3, b"d")
    await chunks.aclose()
    assert len(stage.follows) == 0
    assert stage.follows.to_send[-1].stop


async def test_without_its_runner_another_controller_is_to_be_asked(stage: Stage) -> None:
    stage.follows = None
    with pytest.raises(RunnerAway, match="runner r of execution 7"):
        await anext(stage.following.follow(7, 0, once=False))
    with pytest.raises(RunnerAway):
        await anext(stage.following.follow(7, 0, once=True))


async def test_once_is_what_there_is_now(stage: Stage) -> None:
    chunks = stage.following.follow(7, 0, once=True)
    first = asyncio.ensure_future(anext(chunks))
    await until(lambda: stage.asked)
    stage.say(0, b"so far")
    assert await first == Chunk(0, b"so far")
    assert await anext(chunks) == Chunk(6, b"", row())
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)


@pytest.mark.parametrize(
    ("output", "offset", "found"),
    [
        ("hello", 0, Chunk(0, b"hello")),
        ("hello", 3, Chunk(3, b"lo")),
        ("[… 100 bytes of earlier output cut …]\nend", 0, Chunk(100, b"end")),
        ("[… 100 bytes of earlier output cut …]\nend", 101, Chunk(101, b"nd")),
        ("[… more than 100 bytes of earlier output cut …]\nend", 5, Chunk(100, b"end")),
        ("[… earlier output cut …]\nend", 0, Chunk(0, b"end")),
    ],
)
async def test_after_the_end_the_rest_is_what_was_recorded(
    stage: Stage, output: str, offset: int, found: Chunk
) -> None:
    stage.row = row("completed", output)
    chunks = [chunk async for chunk in stage.following.follow(7, offset, once=False)]
    assert chunks == [found, Chunk(found.offset + len(found.data), b"", stage.row)]
    assert stage.asked == []


@pytest.mark.parametrize("output", [None, "", "short"])
async def test_beyond_the_end_there_is_only_the_outcome(stage: Stage, output: str | None) -> None:
    stage.row = row("lost", output)
    assert [chunk async for chunk in stage.following.follow(7, 5, once=False)] == [Chunk(5, b"", stage.row)]


async def test_who_is_unknown_and_who_are_too_many(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.row = None
    with pytest.raises(NotFound):
        await anext(stage.following.follow(8, 0, once=False))
    stage.row = row()
    monkeypatch.setattr(following_module, "FOLLOWERS_MAX", 1)
    chunks = stage.following.follow(7, 0, once=False)
    waiting = asyncio.ensure_future(anext(chunks))
    await until(lambda: stage.asked)
    with pytest.raises(TooMany, match="ask another one"):
        await anext(stage.following.follow(7, 0, once=False))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert stage.follows is not None
    assert len(stage.follows) == 0


async def test_a_slow_follower_is_dropped_and_told_where_it_was(stage: Stage) -> None:
    chunks = stage.following.follow(7, 0, once=False)
    first = asyncio.ensure_future(anext(chunks))
    await until(lambda: stage.asked)
    stage.say(0, b"read")
    await first
    block = b"x" * 65_536
    for number in range(UNREAD_BYTES_MAX // len(block) + 1):
        stage.say(4 + number * len(block), block)
    assert stage.follows is not None
    assert len(stage.follows) == 0
    with pytest.raises(SlowReaderError, match="go on from offset 4"):
        await anext(chunks)


async def test_too_many_on_a_runner_are_told(stage: Stage) -> None:
    waiting = asyncio.ensure_future(anext(stage.following.follow(7, 0, once=False)))
    await until(lambda: stage.asked)
    stage.say(0, b"", Output.STATE_REFUSED)
    with pytest.raises(TooMany):
        await waiting


async def test_parts_of_many_followers_are_kept_apart() -> None:
    follows = Follows()
    one, other = follows.open(1, 0), follows.open(2, 5)
    assert [(each.follow_id, each.execution_id, each.from_offset) for each in follows.to_send] == [(1, 1, 0), (2, 2, 5)]
    follows.received(Output(follow_id=2, offset=5, data=b"b", state=RUNNING))
    follows.received(Output(follow_id=1, offset=0, data=b"a", state=ENDED))
    follows.received(Output(follow_id=9, offset=0, data=b"nobody's", state=RUNNING))
    assert await one.next() == OutputPart(0, b"a", OutputState.ENDED)
    assert await other.next() == OutputPart(5, b"b", OutputState.RUNNING)
    assert len(follows) == 1


@pytest.mark.parametrize(
    "output",
    [
        Output(follow_id=1, offset=-1, state=RUNNING),
        Output(follow_id=1, state=Output.STATE_UNSPECIFIED),
        Output(follow_id=1, data=b"x" * 65_537, state=RUNNING),
    ],
)
def test_what_no_runner_sends_is_malformed(output: Output) -> None:
    with pytest.raises(MalformedError):
        Follows().received(output)
