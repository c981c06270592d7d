"""Each execution tells with which payload it ran, whatever has become of its job's since."""

import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.services import audit_changes
from cronring.controller.store import many
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.controller.store.slices import BESIDE_FROM
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


async def test_of_several_jobs_at_once_no_text_is_kept(world: World) -> None:
    """A thousand of 63 KB were 10.8 MB of details in one statement."""
    await world.control.make_job(NewJob("default", "billing", "a", "other", SPEC), "me")
    asked = {KEY: JobChange.to(payload='"a"'), "billing.a:other": JobChange.to(payload='"b"')}
    await world.control.update_jobs(asked, "me")
    *_, one, two = await world.scene.actions()
    for action in (one, two):
        told: Any = action.details["payload"]
        assert ([*told["old"]], told["old"]["bytes"], told["new"]["bytes"]) == (["bytes", "sha256"], 8, 3)
    asked["billing.a:other"] = JobChange.to(payload='"c"')
    await world.control.update_jobs(asked, "me")
    (*_, alone) = await world.scene.actions()
    changed: Any = alone.details["payload"]
    assert (changed["old"]["text"], changed["new"]["text"]) == ('"b"', '"c"'), "of two, one was so already"


async def test_a_payload_that_stays_is_not_told(world: World) -> None:
    await world.control.update_job(KEY, JobChange.to(payload=SPEC.payload, schedule="every 2h"), "me")
    (*_, action) = await world.scene.actions()
    assert action.details == {"schedule": "every 2h"}


async def test_payloads_of_many_are_digested_beside_the_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of 63 KB held it for a quarter of a second, and ticks wait for it."""
    jobs = [NewJob("default", "billing", "a", str(number), SPEC) for number in range(BESIDE_FROM)]
    await world.control.create_jobs(jobs, "me")
    digest, threads = audit_changes.digest, set[int]()

    def noted(text: str) -> dict[str, object] | None:
        threads.add(threading.get_ident())
        return digest(text)

    for module in (audit_changes, many):
        monkeypatch.setattr(module, "digest", noted)
    keys = [f"billing.a:{job.name}" for job in jobs]
    await world.control.update_jobs({key: JobChange.to(payload="2") for key in keys}, "me")
    assert (bool(threads), threading.get_ident() in threads) == (True, False)
    threads.clear()
    await world.control.delete_jobs(keys, "me")
    assert (bool(threads), threading.get_ident() in threads) == (True, False)
