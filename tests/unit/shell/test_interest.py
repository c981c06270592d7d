"""Whether anybody wants to be told by webhooks: nothing is asked while nobody does, and who speaks up is heard."""

import asyncio

import pytest

from cronring.controller.runtime.webhooks import Interest
from tests.support.waiting import TIMEOUT_S


async def test_until_it_is_known_somebody_may_want_to_be_told() -> None:
    interest = Interest()
    assert interest.wanted.is_set()
    interest.learn(wanted=False)
    assert not interest.wanted.is_set()
    interest.learn(wanted=True)
    assert interest.wanted.is_set()


async def test_what_is_heard_while_the_answer_is_on_its_way_is_not_missed() -> None:
    interest = Interest()
    interest.ask()
    interest.hear()
    interest.learn(wanted=False)  # as it was before
    async with asyncio.timeout(TIMEOUT_S):
        await interest.pause(60)


async def test_what_was_heard_before_asking_is_in_the_answer() -> None:
    interest = Interest()
    interest.hear()
    interest.ask()
    interest.learn(wanted=False)
    pausing = asyncio.ensure_future(interest.pause(0))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not pausing.done()
    interest.hear()
    async with asyncio.timeout(TIMEOUT_S):
        await pausing


async def test_a_notification_that_is_lost_costs_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cronring.controller.runtime.webhooks.UNWANTED_S", 0.01)
    interest = Interest()
    interest.learn(wanted=False)
    async with asyncio.timeout(TIMEOUT_S):
        await interest.pause(60)
