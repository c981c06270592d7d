"""Runners that stay connected hear which of their versions are active, when that changes and only then."""

import asyncio
from collections.abc import Collection

import pytest

from cronring.controller.core.model import RunnerInfo
from cronring.controller.errors import StoreUnavailable
from cronring.protos.cronring.v1 import schema_pb2
from cronring.protos.runner.v1 import runner_pb2 as wire
from tests.support.fake_runner import FakeRunner, hello
from tests.support.waiting import TIMEOUT_S
from tests.unit.shell import test_gateway
from tests.unit.shell.test_gateway import OTHER_DIGEST, World

world = test_gateway.world


async def connected(world: World, message: wire.Hello) -> tuple[FakeRunner, str]:
    """A runner, and the deployment of its first module."""
    runner = await world.connect(message)
    return runner, (await runner.hear()).welcome.modules[0].deployment


async def heard(runner: FakeRunner) -> dict[str, bool]:
    standings = (await runner.hear_of("standings")).standings.standings
    return {standing.deployment: standing.active for standing in standings}


async def test_each_change_is_told_to_whom_it_concerns(world: World) -> None:
    old, first = await connected(world, hello("r-1"))
    new, second = await connected(world, hello("r-2", OTHER_DIGEST, "0 6 1 * *"))
    assert await heard(old) == {first: False}
    await world.store.activate_deployment(first, 1, 60_000)
    assert await heard(old) == {first: True}
    assert await heard(new) == {second: False}
    await world.store.kill_deployment(first)
    assert await heard(old) == {first: False}


async def test_what_is_no_news_is_not_told(world: World) -> None:
    both = hello("r-1")
    both.modules.add(digest=OTHER_DIGEST, schema=schema_pb2.Module(name="idle", verbs=[schema_pb2.Verb(name="a")]))
    both.modules.add(digest="short", schema=schema_pb2.Module(name="worse"))  # refused
    runner, first = await connected(world, both)
    world.store.on_notify()  # some job has changed
    await world.store.kill_deployment(first)
    assert await heard(runner) == {first: False}, "neither the other module, nor one that was refused"


async def test_a_change_under_a_registration_is_told_behind_its_welcome(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its modules were registered, the others told of the change, and only then it was there to be told."""
    other, deployment = await connected(world, hello("r-1"))
    registered, going_on = asyncio.Event(), asyncio.Event()
    register_runner = world.store.register_runner

    async def slowly(runner: RunnerInfo) -> None:
        registered.set()
        await going_on.wait()
        await register_runner(runner)

    monkeypatch.setattr(world.store, "register_runner", slowly)
    runner = await world.connect(hello("r-2"))
    await registered.wait()
    await world.store.kill_deployment(deployment)
    assert await heard(other) == {deployment: False}
    going_on.set()
    assert (await runner.hear()).welcome.modules[0].active
    assert await heard(runner) == {deployment: False}


async def test_postgresql_may_be_away_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, deployment = await connected(world, hello())
    asked = asyncio.Event()

    async def away(_: Collection[str]) -> frozenset[str]:
        asked.set()
        raise StoreUnavailable("connection refused")

    monkeypatch.setattr(world.store, "find_active", away)
    await world.store.kill_deployment(deployment)
    async with asyncio.timeout(TIMEOUT_S):
        await asked.wait()
    monkeypatch.undo()
    assert await heard(runner) == {deployment: False}
