"""Webhooks are told of late ticks of jobs that don't say `late_after`, once the cluster has a default for them."""

import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from cronring.controller.core.model import Job
from cronring.controller.ports.defaults import DefaultsRow
from cronring.controller.ports.webhooks import DeliveryFilter, NewWebhook
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.notices import PostgresNotifier
from cronring.controller.store.pool import Database
from cronring.controller.store.webhooks import PostgresWebhooks
from cronring.schema.policy import Policy
from tests.conformance.harness import CONSOLE, GRACE_MS, PostgresScene, World

TOLD = NewWebhook("pager", "http://127.0.0.1:1", "cronring1$plain$$", ("late",), (), "", "", "", {}, "ann")
LOOKS = 9  # all slots, and the first again


class Watched(NamedTuple):
    """Who looks, and what at."""

    world: World
    scene: Connection
    webhooks: PostgresWebhooks
    notifier: PostgresNotifier

    async def default(self, late_after_ms: int | None) -> None:
        def decide(row: DefaultsRow) -> DefaultsRow:
            return row._replace(late_after_ms=late_after_ms)

        await self.world.scene.defaults.set_defaults(decide, "ada")

    async def added(self) -> int:
        return sum([(await self.notifier.read()).added for _ in range(LOOKS)])

    async def told(self) -> list[dict[str, Any]]:
        rows = await self.webhooks.deliveries(DeliveryFilter(), 2**62, 100)
        return [json.loads(row.body)["data"] for row in reversed(rows)]

    async def waiting(self, seconds: int, *names: str, policy: Policy = Policy()) -> list[Job]:  # noqa: B008
        """Jobs whose next tick came due so long ago, and which nobody claims."""
        return await self.world.due_jobs(*names, policy=policy, seconds_ago=seconds)


@pytest.fixture
async def watched(database_url: str) -> AsyncIterator[Watched]:
    database, scene = await Database.open(database_url, "late", connections=4), await connect(database_url, "scene")
    webhooks = PostgresWebhooks(database)
    await webhooks.add(TOLD)
    await scene.execute("UPDATE cron_webhooks SET enabled_at = now() - interval '1 day'")
    world = World(PostgresScene(database, scene))
    yield Watched(world, scene, webhooks, PostgresNotifier(database, "c1", GRACE_MS, CONSOLE))
    await scene.close()
    await database.close()


async def test_a_tick_that_waits_is_told_of_once_by_the_default_of_now(watched: Watched) -> None:
    await watched.waiting(60, *(f"j{number}" for number in range(20)))
    assert await watched.added() == 0
    await watched.default(3_600_000)
    assert await watched.added() == 0
    await watched.default(30_000)
    assert await watched.added() == 20, "whatever their slots are"
    assert {told["late_after_ms"] for told in await watched.told()} == {30_000}
    await watched.default(20_000)
    assert await watched.added() == 0, "each tick once"
    await watched.default(None)
    await watched.scene.execute("UPDATE cron_jobs SET next_tick = next_tick + interval '1 s'")
    assert await watched.added() == 0


async def test_what_a_job_says_itself_counts_and_not_the_default(watched: Watched) -> None:
    await watched.default(1_000)
    await watched.waiting(60, "a", policy=Policy(late_after="1h"))
    assert await watched.added() == 0
    await watched.default(3_600_000)
    await watched.scene.execute(
        "UPDATE cron_jobs SET policy = replace(policy, '1h', '30s'), next_tick = next_tick - interval '1 s'"
    )
    assert await watched.added() == 1
    assert [told["late_after_ms"] for told in await watched.told()] == [30_000]


async def test_a_value_that_reads_like_the_fields_name_says_nothing(watched: Watched) -> None:
    await watched.default(30_000)
    await watched.waiting(60, "a", policy=Policy(retries=1, retry_on=("late_after",)))
    assert await watched.added() == 1


async def test_a_tick_that_began_too_late_is_told_of_when_that_is_known(watched: Watched) -> None:
    await watched.default(30_000)
    await watched.world.running("c1", "a", "b", seconds_ago=60)
    assert await watched.added() == 2
    assert {told["started"] for told in await watched.told()} == {True}


async def test_one_that_began_in_time_is_not_late(watched: Watched) -> None:
    await watched.default(30_000)
    await watched.world.running("c1", "a", seconds_ago=2)
    assert await watched.added() == 0


async def test_a_default_that_comes_later_says_nothing_of_what_began_before(watched: Watched) -> None:
    await watched.world.running("c1", "a", seconds_ago=60)
    assert await watched.added() == 0
    await watched.default(30_000)
    assert await watched.added() == 0
