"""Followers of runs, on the runner's side."""

import asyncio

import pytest

from cronring.protos.runner.v1.runner_pb2 import Follow, Output
from cronring.runner import following as following_module
from cronring.runner.following import Following
from cronring.runner.held import Held
from cronring.schema.execution import Run
from cronring.schema.recorded import KEEP_BYTES
from tests.support.waiting import wait_until


class Stage:
    """Runs 1 and 2, and links that take what they are given, unless they are `congested`."""

    def __init__(self) -> None:
        self.held = {number: Held(Run(number, 1, "m.v", "d", "v", 0, 0, 0, 1, 1, "manual", False)) for number in (1, 2)}
        self.sent: list[tuple[str, Output]] = []
        self.congested = False
        self.watched = False
        self.refused = 0
        self.following = Following(self.held, self._send, self._watch)

    def _send(self, address: str, output: Output, last: bool) -> bool:
        if self.congested and not last:
            self.refused += 1
            return False
        self.sent.append((address, output))
        return True

    def _watch(self, wanted: bool) -> None:
        self.watched = wanted

    def follow(self, execution_id: int = 1, offset: int = 0, follow_id: int = 7, address: str = "a") -> None:
        asked = Follow(follow_id=follow_id, execution_id=execution_id, from_offset=offset)
        self.following.asked(address, asked)

    def take(self) -> list[tuple[int, bytes, str]]:
        sent, self.sent = self.sent, []
        return [(output.offset, output.data, Output.State.Name(output.state)[6:]) for _, output in sent]


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(following_module, "INTERVAL_S", 0.001)
    return Stage()


async def test_the_first_answer_comes_at_once_and_the_rest_with_the_end(stage: Stage) -> None:
    stage.follow()
    assert stage.take() == [(0, b"", "RUNNING")]
    stage.held[1].write("grün\n")
    await wait_until(lambda: bool(stage.sent), "nothing is sent")
    assert stage.take() == [(0, "grün\n".encode(), "RUNNING")]
    stage.held[1].write("end")
    stage.following.ended(stage.held[1])
    assert stage.take() == [(6, b"end", "ENDED")]
    assert (len(stage.following), stage.watched) == (0, False)


async def test_nothing_is_sent_or_watched_while_nobody_follows(stage: Stage) -> None:
    stage.held[1].write("x" * 1_000)
    stage.following.ended(stage.held[1])
    assert (stage.sent, stage.watched) == ([], False)
    stage.follow()
    assert stage.watched
    stage.following.asked("a", Follow(follow_id=7, stop=True))
    assert not stage.watched
    stage.take()
    stage.held[1].write("more")
    await asyncio.sleep(0.01)  # several intervals
    assert stage.sent == []


async def test_it_goes_on_from_an_offset_and_skips_what_is_no_longer_kept(stage: Stage) -> None:
    stage.held[1].write("0123456789")
    stage.follow(offset=4)
    assert stage.take() == [(4, b"456789", "RUNNING")]
    stage.held[1].write("x" * 3 * KEEP_BYTES)
    await wait_until(lambda: bool(stage.sent), "nothing is sent")
    ((offset, data, _),) = stage.take()
    assert len(data) == KEEP_BYTES
    assert offset == 10 + 2 * KEEP_BYTES
    stage.follow(offset=10**9, follow_id=8)
    assert stage.take() == [(10**9, b"", "RUNNING")]


async def test_a_link_that_is_behind_gets_no_more_but_learns_of_the_end(stage: Stage) -> None:
    stage.congested = True
    stage.follow()
    stage.held[1].write("first")
    refused = stage.refused
    await wait_until(lambda: stage.refused > refused + 1, "it isn't tried again")
    assert stage.sent == []
    stage.congested = False
    await wait_until(lambda: bool(stage.sent), "nothing is sent")
    assert stage.take() == [(0, b"first", "RUNNING")]
    stage.congested = True
    stage.held[1].write(" last")
    stage.following.ended(stage.held[1])
    assert stage.take() == [(5, b" last", "ENDED")]


async def test_what_does_not_run_here_is_unknown_and_too_many_are_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.follow(execution_id=3)
    assert stage.take() == [(0, b"", "UNKNOWN")]
    monkeypatch.setattr(following_module, "FOLLOWERS_MAX", 1)
    stage.follow()
    stage.follow(follow_id=8)
    assert [state for _, _, state in stage.take()] == ["RUNNING", "REFUSED"]


async def test_a_broken_link_takes_its_followers_with_it_and_no_others(stage: Stage) -> None:
    stage.follow(address="a")
    stage.follow(address="b")
    stage.take()
    stage.following.disconnected("a")
    stage.held[1].write("x")
    stage.following.ended(stage.held[1])
    assert [address for address, _ in stage.sent] == ["b"]
    stage.follow(execution_id=2)
    stage.following.close()
    assert len(stage.following) == 0
