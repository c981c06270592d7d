"""How many requests are at work, how many wait, and what becomes of the others."""

import asyncio

import pytest

from cronring.controller.interval_jobs.gate import Gate
from cronring.controller.interval_jobs.problems import IntervalRefused, refused
from tests.support.waiting import wait_until


async def test_so_many_are_at_work_and_the_others_follow_in_their_order() -> None:
    gate, began, go = Gate(2, 8, 60), list[int](), asyncio.Event()

    async def work(number: int) -> None:
        async with gate.place():
            began.append(number)
            await go.wait()

    tasks = [asyncio.create_task(work(number)) for number in range(5)]
    await wait_until(lambda: len(began) == 2, "two begin")
    assert began == [0, 1]
    go.set()
    await asyncio.gather(*tasks)
    assert began == [0, 1, 2, 3, 4]


async def test_whoever_comes_when_too_many_wait_is_sent_away() -> None:
    gate = Gate(1, 1, 60)
    async with gate.place():
        waiting = asyncio.create_task(gate.place().__aenter__())
        await asyncio.sleep(0)
        with pytest.raises(IntervalRefused) as sent_away:
            await gate.place().__aenter__()
        assert sent_away.value.status == 429
        assert refused(sent_away.value, "/api/v1/jobs").headers["Retry-After"] == "1"
    await waiting


async def test_whoever_waits_for_too_long_is_sent_away_and_leaves_the_place() -> None:
    gate = Gate(1, 8, 0.01)
    async with gate.place():
        with pytest.raises(IntervalRefused):
            await gate.place().__aenter__()
    async with gate.place():
        """The place is there."""
