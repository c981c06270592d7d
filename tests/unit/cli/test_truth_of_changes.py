"""What the client says of a change whose answer it never got."""

import asyncio

import pytest

from cronring.client import AsyncClient, DatabaseAway, OutcomeUnknown, Unavailable, Unreachable
from cronring.client.model import JobSpec
from cronring.controller.api import calls
from cronring.controller.errors import CronringError, RunnerAway, StoreUnavailable, TooSlow
from cronring.controller.errors import NotFound as NoSuchJob
from tests.unit.cli.fake_api import FakeApi, changes, serving

NOBODY = "127.0.0.1:1"
# What gRPC says of connections, each of which PostgreSQL's driver may say, too.
WORDS = [
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:5432: connection refused",
    "connection reset by peer", "socket closed", "broken pipe", "goaway", "dns resolution failed", "endpoint",
    "transport", "stream removed", "keepalive", "server is shutting down", "empty address list",
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS)
async def test_a_controllers_own_words_decide_nothing(api: FakeApi, words: str) -> None:
    api.refusal = StoreUnavailable(words)
    with serving(FakeApi()) as other:
        async with AsyncClient([api.address]) as client:
            with pytest.raises(DatabaseAway):
                await client.jobs.list()
            with pytest.raises(DatabaseAway):
                await client.jobs.trigger("billing.refresh")
        api.refused_at_commit = True
        async with AsyncClient([api.address, other.address]) as client:
            with pytest.raises(OutcomeUnknown):
                await client.jobs.trigger("billing.refresh")
        assert not other.requests, "what may have been done is asked of nobody else"


@pytest.mark.parametrize("error", [StoreUnavailable("x"), TooSlow("x"), RunnerAway("x")])
async def test_what_was_surely_not_done_is_asked_of_the_next(api: FakeApi, error: CronringError) -> None:
    api.refusal = error
    with serving(FakeApi()) as other:
        async with AsyncClient([NOBODY, api.address, other.address]) as client:
            await client.jobs.create("billing", "refresh", "a", JobSpec("* * * * *"))
        assert len(other.requests) == 1


async def test_only_the_database_is_said_to_be_away(api: FakeApi) -> None:
    api.refusal = RunnerAway("runner r-1 isn't connected")
    async with AsyncClient([api.address]) as client:
        with pytest.raises(Unavailable) as caught:
            await client.jobs.list()
    assert str(caught.value) == "runner r-1 isn't connected"


async def test_what_may_be_repeated_goes_on_and_says_so_if_nobody_answers(api: FakeApi) -> None:
    api.refusal, api.refused_at_commit = StoreUnavailable("x"), True
    with serving(FakeApi()) as other:
        async with AsyncClient([api.address, other.address]) as client:
            await client.jobs.pause("billing.refresh")
        assert len(other.requests) == 1
    async with AsyncClient([api.address, NOBODY]) as client:
        with pytest.raises(OutcomeUnknown, match=r"cronring jobs show billing\.refresh"):
            await client.jobs.pause("billing.refresh")


async def test_a_refusal_after_a_lost_answer_may_come_of_what_was_done(api: FakeApi) -> None:
    api.refusal, api.refused_at_commit = StoreUnavailable("x"), True
    with serving(FakeApi()) as other:
        other.refusal = NoSuchJob("no job")
        async with AsyncClient([api.address, other.address]) as client:
            with pytest.raises(OutcomeUnknown):
                await client.executions.cancel(3)


async def test_without_any_connection_it_is_said_that_nothing_was_sent() -> None:
    async with AsyncClient([NOBODY]) as client:
        with pytest.raises(Unreachable, match="nothing listens there"):
            await client.jobs.trigger("billing.refresh")


async def test_those_who_are_sent_away_come_again_until_all_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALLS_MAX", 3)
    monkeypatch.setattr(calls, "WAITING_MAX", 2)
    most = 0

    async def slow() -> None:
        nonlocal most
        api.in_hand += 1
        most = max(most, api.in_hand)
        await asyncio.sleep(0.01)
        api.in_hand -= 1

    with serving(FakeApi()) as api:
        api.slowly = slow
        async with AsyncClient([api.address]) as client:
            made = await asyncio.gather(*(client.jobs.trigger("billing.refresh") for _ in range(60)))
    assert len(made) == 60
    assert (most, changes(api)) == (3, 60)
