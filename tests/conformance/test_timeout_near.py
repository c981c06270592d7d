"""Webhooks are warned of runs that have used nine tenths of their timeout: each once, whoever looks, and when."""

import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from cronring.controller.core.model import Execution
from cronring.controller.ports.webhooks import DeliveryFilter, NewWebhook
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.notices import PostgresNotifier
from cronring.controller.store.pool import Database
from cronring.controller.store.webhooks import PostgresWebhooks
from cronring.schema.execution import Outcome
from tests.conformance.harness import CONSOLE, GRACE_MS, PostgresScene, World
from tests.support.waiting import wait_until

WARNED = NewWebhook("pager", "http://127.0.0.1:1", "cronring1$plain$$", ("timeout_near",), (), "", "", "", {}, "ann")


class Notified(NamedTuple):
    """Two controllers that look, and what they look at."""

    world: World
    scene: Connection
    webhooks: PostgresWebhooks
    first: PostgresNotifier
    second: PostgresNotifier

    async def give(self, execution: Execution, timeout_ms: int) -> None:
        """Another timeout than its job's, as if it had been claimed with that."""
        await self.scene.execute(
            "UPDATE cron_executions SET hard_deadline = claimed_at + $2 * interval '1 ms' WHERE id = $1",
            execution.execution_id,
            timeout_ms + (GRACE_MS if execution.runner_id else 0),
        )

    async def told(self) -> list[dict[str, Any]]:
        """The oldest first."""
        rows = await self.webhooks.deliveries(DeliveryFilter(), 2**62, 100)
        return [json.loads(row.body)["data"] for row in reversed(rows)]

    async def added(self) -> int:
        return (await self.first.read()).added


@pytest.fixture
async def notified(database_url: str) -> AsyncIterator[Notified]:
    database, scene = await Database.open(database_url, "near", connections=4), await connect(database_url, "scene")
    webhooks = PostgresWebhooks(database)
    await webhooks.add(WARNED)
    yield Notified(
        World(PostgresScene(database, scene)), scene, webhooks,
        PostgresNotifier(database, "c1", GRACE_MS, CONSOLE), PostgresNotifier(database, "c2", GRACE_MS, CONSOLE),
    )  # fmt: skip
    await scene.close()
    await database.close()


async def test_a_run_is_warned_of_once_while_it_runs(notified: Notified) -> None:
    near, far = await notified.world.running("c1", "a", "b")
    assert await notified.added() == 0, "five minutes are far"
    now = await notified.world.scene.now()
    # Seen before, and near only later: by a position that was kept.
    timeout_ms = (now - near.claimed_at) // 1_000 + 1_000
    await notified.give(near, timeout_ms)

    async def warned() -> bool:
        return await notified.added() == 1

    await wait_until(warned, "nobody is warned")
    (told,) = await notified.told()
    assert (told["execution_id"], told["timeout_ms"], told["running"]) == (near.execution_id, timeout_ms, True)
    await notified.first.leave()
    assert (await notified.second.read()).added == 0, "another controller goes on where the first one stopped"
    await notified.world.end(near, Outcome.TIMED_OUT)
    await notified.world.end(far, Outcome.COMPLETED)
    assert (await notified.second.read()).added == 0


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.TIMED_OUT, Outcome.CANCELLED])
async def test_one_that_ended_before_anybody_looked_is_told_of_as_well(notified: Notified, outcome: Outcome) -> None:
    near, far = await notified.world.running("c1", "a", "b")
    await notified.give(near, 1)
    await notified.world.end(near, outcome)
    await notified.world.end(far, outcome)
    assert await notified.added() == 1
    assert [(told["execution_id"], told["running"]) for told in await notified.told()] == [(near.execution_id, False)]
    assert await notified.added() == 0


async def test_whose_look_was_not_committed_tells_it_again_as_the_same_event(notified: Notified) -> None:
    await notified.added()
    position = await notified.scene.fetchval("SELECT position FROM cron_notifier")
    (near,) = await notified.world.running("c1", "a")
    await notified.give(near, 1)
    assert await notified.added() == 1
    await notified.scene.execute("UPDATE cron_notifier SET position = $1", position)
    assert await notified.added() == 0
    assert len(await notified.told()) == 1


async def test_who_wants_to_be_told_later_is_told_of_no_older_one(notified: Notified) -> None:
    await notified.webhooks.set_enabled("pager", enabled=False, reason="")
    await notified.added()
    (near,) = await notified.world.running("c1", "a")
    await notified.give(near, 1)
    await notified.webhooks.set_enabled("pager", enabled=True, reason="")
    assert await notified.added() == 0


async def test_a_message_of_a_queue_has_no_grace(notified: Notified) -> None:
    (near,) = await notified.world.running("c1", "a")
    await notified.scene.execute(
        "UPDATE cron_executions SET runner_id = '', hard_deadline = claimed_at + interval '1 ms' WHERE id = $1",
        near.execution_id,
    )
    assert await notified.added() == 1
    assert [told["timeout_ms"] for told in await notified.told()] == [1]


async def test_a_run_keeps_the_timeout_that_it_was_claimed_with(notified: Notified) -> None:
    await notified.world.running("c1", "a")
    await notified.scene.execute("UPDATE cron_jobs SET timeout_ms = 1")
    assert await notified.added() == 0
