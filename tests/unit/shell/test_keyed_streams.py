"""What is kept of many answers, and told again: all of them, whatever their sizes; slowly to who reads slowly."""

import asyncio
import gc
import random
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from cronring.controller.api import keyed_streams
from cronring.controller.api.keyed_streams import KeptAnswers, KeyedStreams, unpacked
from cronring.protos.cronring.v1.jobs_pb2 import ControlJobsProgress


def answers(count: int, largest: int) -> list[ControlJobsProgress]:
    draw = random.Random(count)
    sizes = [0, 1, largest, *(draw.randrange(largest) for _ in range(count))]
    return [
        ControlJobsProgress(position=number, details=draw.randbytes(size // 2).hex())
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(("count", "largest"), [(0, 1), (5_000, 200), (40, 300_000)])
def test_what_is_kept_is_told_again(count: int, largest: int) -> None:
    told, kept = answers(count, largest), KeptAnswers()
    for each in told:
        kept.add(each)
    assert list(unpacked(kept.whole(), ControlJobsProgress)) == told
    assert list(unpacked(kept.whole(), ControlJobsProgress)) == told, "whoever keeps them may have to try again"


def test_answers_of_an_order_that_failed_go_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for the whole of them. Found on Python 3.13."""
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    kept = KeptAnswers()
    for each in answers(3, 1_000):
        kept.add(each)
    del kept
    gc.collect()
    assert complaints == []


def test_nothing_is_kept_of_what_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_streams, "KEPT_BYTES", 50_000)
    kept = KeptAnswers()
    for each in answers(10_000, 200):
        kept.add(each)
    assert kept.whole() == b""


async def test_who_reads_slowly_is_waited_for_and_who_leaves_is_not() -> None:
    made, ended = list[int](), asyncio.Event()

    async def behave() -> AsyncGenerator[Any, None]:
        for number in range(1_000):
            made.append(number)
            yield ControlJobsProgress(position=number)
        ended.set()

    async def once(do: Callable[[], Awaitable[KeptAnswers]], _: Callable[[KeptAnswers], bytes]) -> KeptAnswers | bytes:
        return await do()

    streams = KeyedStreams()
    stream: AsyncGenerator[Any, None] = streams.answers(behave, once, ControlJobsProgress, lambda: None)
    assert [(await anext(stream)).position for _ in range(10)] == list(range(10))
    for _ in range(20):
        await asyncio.sleep(0)  # a turn of the loop: whoever need not wait for the reader goes on
    assert len(made) < 200
    await stream.aclose()
    async with asyncio.timeout(5):
        await ended.wait()
    assert len(made) == 1_000
