"""Whoever is told to come again does so, for a while, and says so; over real gRPC."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from cronring.client import AsyncClient, Refused, Unavailable, lasting, patience
from cronring.controller.api.judging import Known
from cronring.controller.api.throttle import Allowances, Throttle
from cronring.controller.core.rates import Rate
from cronring.schema.identity import Role, RoleGrant
from tests.support.callers import NamedCallers, no_certificate
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi, serving

ANN = "test-ann"
WHY = "token:ann makes too many calls to this controller (--call-rate)"


def limited(rate: Rate, now_ns: Callable[[], int] = time.monotonic_ns, streams: int = 1) -> FakeApi:
    api = FakeApi()
    callers = NamedCallers(ann=(RoleGrant(Role.ADMIN),))
    api.judge = Known([callers], no_certificate, Throttle(Allowances(rate, streams), now_ns))
    return api


@pytest.fixture
def hurried() -> Iterator[FakeApi]:
    """Takes one call each 50 ms."""
    with serving(limited(Rate(20, 1))) as api:
        yield api


@pytest.fixture
def closed() -> Iterator[FakeApi]:
    """Takes one call, and its clock stands then."""
    with serving(limited(Rate(20, 1), lambda: 0)) as api:
        yield api


async def test_reads_and_changes_come_again(hurried: FakeApi) -> None:
    async with AsyncClient([hurried.address], token=ANN, insecure=True) as client:
        await asyncio.gather(*(client.jobs.list() for _ in range(5)))
        job = await client.jobs.pause("billing.refresh")
    assert job.key == "billing.refresh"


async def test_streams_come_again(hurried: FakeApi) -> None:
    async with AsyncClient([hurried.address], token=ANN, insecure=True) as client:
        await client.jobs.list()
        first = await anext(client.jobs.watch())
        reports = [each async for each in client.jobs.control("pause", module="billing")]
        assert reports, "it was let in"
    assert first.job is not None
    assert first.job.key == "billing.close_month"


async def test_another_controller_may_have_room(closed: FakeApi) -> None:
    with serving(limited(Rate(20, 5), lambda: 0)) as other:
        async with AsyncClient([closed.address, other.address], token=ANN, insecure=True) as client:
            for _ in range(3):
                await client.jobs.list()
            assert client.current_address == other.address


async def test_it_comes_again_for_so_long_and_then_says_who_is_limited(
    closed: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "BUSY_MAX_S", 0.2)
    monkeypatch.setattr(patience, "TOLD_S", 0.0)  # at once: a busy machine may take all of that time for two tries
    monkeypatch.setattr(lasting, "FIRST_MAX_S", 0.0)
    told: list[str] = []
    async with AsyncClient([closed.address], token=ANN, insecure=True, waiting=told.append) as client:
        await client.jobs.list()
        for ask in (client.jobs.list, lambda: client.jobs.pause("billing.refresh"), lambda: anext(client.jobs.watch())):
            told.clear()
            with pytest.raises(Unavailable) as refused:
                await ask()
            assert str(refused.value).startswith(WHY)
            assert len(told) == 1, "once for each call"
            assert told[0].startswith(WHY)
    assert len(closed.requests) == 1, "nothing else was begun"


async def test_one_stream_too_many_is_told_at_once() -> None:
    with serving(limited(Rate(1_000, 1_000))) as api:
        async with AsyncClient([api.address], token=ANN, insecure=True) as client:
            watching = client.jobs.watch()
            await anext(watching)
            with pytest.raises(Refused, match="token:ann has 1 open at this controller"):
                await anext(client.jobs.watch())


def test_a_command_says_why_it_waits(closed: FakeApi, cronring: Cronring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "BUSY_MAX_S", 0.2)
    monkeypatch.setattr(patience, "TOLD_S", 0.0)
    settings = {"CRONRING_CONTROLLERS": closed.address, "CRONRING_TOKEN": ANN}
    assert cronring("jobs", "list", **settings).exit_code == 0
    refused = cronring("jobs", "list", **settings)
    assert refused.exit_code == 3
    waits, says = refused.stderr.splitlines()
    assert waits.startswith(f"waiting, for a minute at most: {WHY}")
    assert says.startswith(f"error: {WHY}: 20 a second are allowed, and 1 at once; come again in ")
