"""How many requests are at work, how many wait, and what becomes of the others."""

import asyncio

import pytest

from cronring.controller.api.places import CallPlaces
from cronring.controller.errors import Busy
from tests.support.waiting import wait_until


async def test_so_many_are_at_work_and_the_others_follow_in_their_order() -> None:
    places, began, go = CallPlaces(2, 8), list[int](), asyncio.Event()

    async def work(number: int) -> None:
        async with places.place(60):
            began.append(number)
            await go.wait()

    tasks = [asyncio.create_task(work(number)) for number in range(5)]
    await wait_until(lambda: len(began) == 2, "two begin")
    assert began == [0, 1]
    go.set()
    await asyncio.gather(*tasks)
    assert began == [0, 1, 2, 3, 4]


async def test_whoever_comes_when_too_many_wait_is_sent_away() -> None:
    places = CallPlaces(1, 1, 10)
    async with places.place(60):
        with pytest.raises(Busy):
            await places.take(60, 11)
        waiting = asyncio.create_task(places.take(60, 9))
        await wait_until(lambda: places.waiting == 1, "it waits")
        with pytest.raises(Busy, match="1 calls in hand, and 1 that wait"):
            await places.take(60)
    await waiting
    assert (places.full, places.waiting) == (True, 0)
    places.give_back()
    assert not places.full


async def test_whoever_waits_for_too_long_is_sent_away_and_leaves_the_place() -> None:
    places = CallPlaces(1, 8)
    async with places.place(60):
        with pytest.raises(Busy):
            await places.take(0.01)
    async with places.place(60):
        """The place is there."""
