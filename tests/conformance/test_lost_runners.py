"""What was lost with a runner is ended only if that is still unseen when its end is committed."""

import asyncio

import pytest

from cronring.controller.core.model import EndResult, Execution, Unseen
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.schema.execution import Outcome
from tests.conformance.harness import PostgresScene, World, end_of
from tests.support.databases import PostgresServer
from tests.support.locks import until_locked_out

UNSEEN = Unseen("r1", 8_750)


async def lose(world: World, *executions: Execution) -> list[EndResult]:
    requests = [end_of(each, Outcome.LOST)._replace(unseen=UNSEEN) for each in executions]
    return await world.store.end_cron_jobs("c1", requests)


async def test_a_run_of_a_runner_that_is_back_is_not_lost(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    await world.scene.last_saw_runner("r1", 8)
    (result,) = await lose(world, execution)
    assert (result.ended, result.busy) == (False, True)
    assert await world.store.get_unfinished((execution.execution_id,)) == [execution]
    assert (await world.end(execution)).ended, "as its runner says"


async def test_a_run_of_a_runner_that_stays_away_is(world: World) -> None:
    executions = await world.running("c1", "a", "b")
    await world.scene.last_saw_runner("r1", 9)
    assert [result.ended for result in await lose(world, *executions)] == [True, True]
    booked = await world.scene.executions()
    assert [row.outcome for row in booked] == ["lost", "lost"]


async def test_what_others_end_with_it_is_ended(world: World) -> None:
    first, second = await world.running("c1", "a", "b")
    await world.scene.last_saw_runner("r1", 1)
    requests = [end_of(first, Outcome.LOST)._replace(unseen=UNSEEN), end_of(second)]
    lost, done = await world.store.end_cron_jobs("c1", requests)
    assert (lost.ended, lost.busy, done.ended) == (False, True, True)


async def test_a_runner_that_nobody_knows_any_more_is_lost(world: World) -> None:
    (execution,) = await world.running("c1", "a")
    request = end_of(execution, Outcome.LOST)._replace(unseen=Unseen("r9", 8_750))
    assert (await world.store.end_cron_jobs("c1", [request]))[0].ended


@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
async def test_who_comes_back_at_that_instant_is_waited_for(postgres: PostgresServer, database_url: str) -> None:
    """A renewal that is not committed yet decides: else both would be so, that it is back and that its run is lost."""
    database = await Database.open(database_url, "cronring test")
    scene, renewing = await connect(database_url, "scene"), await connect(database_url, "renewing")
    try:
        world = World(PostgresScene(database, scene))
        (execution,) = await world.running("c1", "a")
        await world.scene.last_saw_runner("r1", 9)
        renewal = renewing.transaction()
        await renewal.start()
        await renewing.execute("UPDATE runners SET last_seen_at = now() WHERE id = 'r1'")
        losing = asyncio.ensure_future(lose(world, execution))
        await until_locked_out(scene)
        await renewal.commit()
        (result,) = await losing
        assert (result.ended, result.busy) == (False, True)
        assert await world.store.get_unfinished((execution.execution_id,)) == [execution]
    finally:
        await renewing.close()
        await scene.close()
        await database.close()
