"""What the API reads of operators' work, on PostgreSQL: pauses that end, labels, and who did what."""

from collections.abc import AsyncIterator

import pytest

from cronring.controller.core.orders.orders import Cancel, Pause, SkipNext
from cronring.controller.errors import NotFound
from cronring.controller.ports.many import NewJob
from cronring.controller.ports.reads import ActionFilter, JobFilter
from cronring.controller.store.connect import connect
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import LOST_AFTER_MS, SECOND, TIMEOUT_MS, PostgresScene, World

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
HOURLY = NewJob(
    "default",
    "m",
    "a",
    "x",
    JobSpec("every 1h", timeout_ms=1_000, on_disconnect="stop", policy=Policy(jitter="off").text),
)


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[World]:
    database = await Database.open(database_url, "cronring test")
    connection = await connect(database_url, "cronring test scene")
    world = World(PostgresScene(database, connection))
    await world.store.create_deployment(Module("m", (Verb("a"),)), "a" * 64, 1, TIMEOUT_MS, True, "", "ada", "first")
    yield world
    await connection.close()
    await database.close()


@pytest.fixture
async def reads(database_url: str) -> AsyncIterator[PostgresReads]:
    database = await Database.open(database_url, "cronring reads")
    yield PostgresReads(database, LOST_AFTER_MS)
    await database.close()


async def test_a_pause_is_shown_while_it_is_in_force_and_its_end_is_told(world: World, reads: PostgresReads) -> None:
    job = (await world.control.make_job(HOURLY, "me")).job
    ends = await world.scene.now() + 3 * SECOND  # time enough for the reads below
    await world.control.order_job(job.key, Pause("x", ends), "me")
    row = await reads.get_job(job.key)
    assert (row.status, row.paused_until, row.paused_note) == ("paused", ends, "x")
    _, changed = await reads.job_changes(await reads.job_position())
    position, _ = await reads.job_changes(await reads.job_position())
    assert [each.status for each in changed] == ["paused"]
    while await reads.database_now() <= ends:
        pass  # PostgreSQL's clock is what ends it
    _, changed = await reads.job_changes(position)
    assert [(each.key, each.status, each.paused_at) for each in changed] == [(job.key, "scheduled", None)]


async def test_jobs_are_found_by_labels_and_status_in_order_of_their_ids(world: World, reads: PostgresReads) -> None:
    made = [
        (await world.control.make_job(HOURLY._replace(name=name, spec=HOURLY.spec._replace(labels=labels)), "me")).job
        for name, labels in (("c", {"team": "x"}), ("b", {"team": "x", "tier": "1"}), ("a", {"team": "y"}))
    ]
    await world.control.order_job(made[0].key, Cancel(), "me")
    for where, expected in (
        (JobFilter(labels={"team": "x"}), [made[0], made[1]]),
        (JobFilter(labels={"team": "x", "tier": "1"}), [made[1]]),
        (JobFilter(labels={"team": "x"}, statuses=("cancelled",)), [made[0]]),
        (JobFilter(module="m", statuses=("scheduled",)), [made[1], made[2]]),
        (JobFilter(namespace="other"), []),
        (JobFilter(contains=(":B",)), [made[1]]),
        (JobFilter(keys=(made[2].key, made[0].key), labels={"team": "x"}), [made[0]]),
        (JobFilter(keys=(made[2].key, "m.none")), [made[2]]),
        (JobFilter(contains=("m.", ":"), module="m"), [*made]),
        (JobFilter(contains=(":a",), labels={"team": "x"}), []),
    ):
        found = await reads.find_jobs(where, 0, 10)
        assert found == [(job.job_id, job.key) for job in expected]
        assert await reads.count_jobs(where) == len(expected)
        assert {row.key for row in await reads.list_jobs(where, "", 10)} == {job.key for job in expected}
    assert await reads.find_jobs(JobFilter(module="m"), made[1].job_id, 1) == [(made[2].job_id, made[2].key)]
    cancelled = await reads.get_job(made[0].key)
    assert (cancelled.status, cancelled.cancelled_by, cancelled.removed_at) == ("cancelled", "me", None)


async def test_actions_are_listed_of_a_job_of_a_deployment_and_at_all(world: World, reads: PostgresReads) -> None:
    job = (await world.control.make_job(HOURLY, "bob")).job
    await world.control.order_job(job.key, SkipNext(None, "why"), "ada")
    of_job = await reads.list_actions(ActionFilter(job=job.key), 0, 10)
    assert [(each.action, each.actor, each.note, each.job) for each in of_job] == [
        ("skip_next", "ada", "why", job.key), ("create", "bob", "", job.key),
    ]  # fmt: skip
    (of_deployment,) = await reads.list_actions(ActionFilter(deployment=job.deployment), 0, 10)
    assert (of_deployment.action, of_deployment.actor, of_deployment.note) == ("deploy", "ada", "first")
    everything = await reads.list_actions(ActionFilter(), 0, 2)
    assert [each.action_id for each in everything] == [each.action_id for each in of_job]
    assert [each.action for each in await reads.list_actions(ActionFilter(), everything[-1].action_id, 2)] == ["deploy"]
    later = ActionFilter(since=await world.scene.now())
    assert await reads.list_actions(later, 0, 10) == []
    for unknown in (ActionFilter(job="m.x"), ActionFilter(deployment="m@x")):
        with pytest.raises(NotFound):
            await reads.list_actions(unknown, 0, 10)
