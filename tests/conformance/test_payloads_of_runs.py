"""Each execution tells with which payload it ran, whatever has become of its job's since."""

from collections.abc import AsyncIterator

import pytest

from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from tests.conformance.harness import LOST_AFTER_MS, TIMEOUT_MS, PostgresScene, World

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
SPEC = JobSpec("every 1h", timeout_ms=1_000, on_disconnect="stop", payload='{"n": 1}')
KEY = "billing.a:nightly"


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "cronring test scene")
    yield connection
    await connection.close()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.open(database_url, "cronring test")
    yield database
    await database.close()


@pytest.fixture
async def world(database: Database, scene: Connection) -> World:
    world = World(PostgresScene(database, scene))
    await world.store.create_deployment(Module("billing", (Verb("a"),)), "a" * 64, 1, TIMEOUT_MS, True)
    await world.controller("c1")
    await world.runner("r1")
    await world.control.make_job(NewJob("default", "billing", "a", "nightly", SPEC), "me")
    return world


async def ran(world: World, payload: str | None = None) -> int:
    """The id of a run by hand that has ended. `payload`: in place of the job's."""
    (begun,) = await world.activate("c1", await world.control.trigger_job(KEY, "me", payload))
    assert begun.execution is not None
    await world.end(begun.execution)
    return begun.execution.execution_id


async def change(world: World, payload: str) -> None:
    await world.control.update_job(KEY, JobChange.to(payload=payload), "me")


async def test_what_a_run_was_given_stays_known(world: World, database: Database, scene: Connection) -> None:
    reads = PostgresReads(database, LOST_AFTER_MS)

    async def told(execution_id: int) -> tuple[str | None, str]:
        row = await reads.get_execution(execution_id)
        return row.payload, row.payload_of

    first = await ran(world)
    assert await told(first) == ('{"n": 1}', "job")
    await change(world, '{"n": 2}')
    assert await told(first) == ('{"n": 1}', "job")
    assert await told(await ran(world, '{"n": 9}')) == ('{"n": 9}', "run")
    assert await told(await ran(world)) == ('{"n": 2}', "job")
    await change(world, "")
    await change(world, "")
    assert await told(first) == ('{"n": 1}', "job")
    assert await scene.fetchval("SELECT count(*) FROM cron_payloads") == 2, "what changes nothing is not kept"


async def test_the_newest_hundred_are_kept_and_older_ones_are_told_as_unknown(
    world: World, database: Database, scene: Connection
) -> None:
    reads = PostgresReads(database, LOST_AFTER_MS)
    first = await ran(world)
    await change(world, "0")
    second = await ran(world)
    for number in range(1, 101):
        await change(world, str(number))
    row = await reads.get_execution(first)
    assert (row.payload, row.payload_of) == (None, "")
    row = await reads.get_execution(second)
    assert (row.payload, row.payload_of) == ("0", "job")
    assert await scene.fetchval("SELECT count(*) FROM cron_payloads") == 101


async def test_actions_tell_how_both_begin(world: World) -> None:
    await change(world, '{"n": 2}')
    (*_, action) = await world.scene.actions()
    told = action.details["payload"]
    assert isinstance(told, dict)
    assert (told["old"]["bytes"], told["new"]["bytes"]) == (8, 8)
    assert told["old"]["sha256"] != told["new"]["sha256"]
    assert (told["old"]["text"], told["new"]["text"]) == ('{"n": 1}', '{"n": 2}')
    await change(world, f'"a{"é" * 4_000}"')
    (*_, action) = await world.scene.actions()
    told = action.details["payload"]
    assert isinstance(told, dict)
    assert (told["new"]["bytes"], told["new"]["text"]) == (8_003, f'"a{"é" * 2_047}'), "cut between characters"
    await change(world, "")
    (*_, action) = await world.scene.actions()
    assert action.details["payload"]["new"] is None  # type: ignore[index]  # details are any JSON
