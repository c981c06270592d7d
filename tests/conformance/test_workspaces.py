"""Workspaces on PostgreSQL: what there is of each, and what becomes of it."""

from collections.abc import AsyncIterator

import pytest

from cronring.controller.errors import Conflict
from cronring.controller.ports.many import JobChange, NewJob
from cronring.controller.ports.workspaces import WorkspaceRow
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.workspaces import PostgresWorkspaces
from cronring.schema.job import JobSpec
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from tests.conformance.harness import SLOTS, TIMEOUT_MS, PostgresScene, World

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
OFF = Policy(jitter="off").text


class Tenants:
    """A store with jobs of workspaces in two namespaces."""

    def __init__(self, world: World, database: Database, connection: Connection) -> None:
        self.world = world
        self._connection = connection
        self.workspaces = PostgresWorkspaces(database)

    async def make(self, name: str, workspace: str | None, namespace: str = "default") -> int:
        labels = {} if workspace is None else {"workspace": workspace}
        spec = JobSpec("every 1h", timeout_ms=TIMEOUT_MS, on_disconnect="stop", policy=OFF, labels=labels)
        job = (await self.world.control.make_job(NewJob(namespace, "billing", "run", name, spec), "ann")).job
        return job.job_id

    async def told_to_stop(self) -> list[str]:
        found = await self._connection.fetch("SELECT cancel_requested_by FROM cron_executions WHERE outcome IS NULL")
        return [record[0] for record in found]

    async def run(self, statement: str, *values: object) -> None:
        await self._connection.execute(statement, *values)

    async def put(self, queue: str, workspace: str, namespace: str = "default") -> int:
        put = "SELECT cron_queue_put($1, '1', $2, $3)"
        message_id: int = await self._connection.fetchval(put, queue, workspace, namespace)
        return message_id

    async def messages(self) -> list[int]:
        return [record[0] for record in await self._connection.fetch("SELECT id FROM cron_queue ORDER BY id")]

    async def of(self, workspace: str) -> tuple[int, int, int, int]:
        row = await self.workspaces.get_workspace("default", workspace)
        assert row[:2] == ("default", workspace)
        return row[2:6]


@pytest.fixture
async def tenants(database_url: str) -> AsyncIterator[Tenants]:
    database = await Database.open(database_url, "cronring test")
    connection = await connect(database_url, "cronring test scene")
    world = World(PostgresScene(database, connection))
    await world.controller("c1")
    await world.runner("r1")
    for number, namespace in enumerate(("default", "prod")):
        module = Module("billing", (Verb("run"),), namespace)
        await world.store.create_deployment(module, str(number) * 64, 1, TIMEOUT_MS, True)
    yield Tenants(world, database, connection)
    await connection.close()
    await database.close()


async def test_those_that_have_jobs_are_listed_in_pages(tenants: Tenants) -> None:
    for name, workspace in (("a", "ws_2"), ("b", "ws_2"), ("c", "ws_1"), ("d", None), ("e", ""), ("f", "Zoe")):
        await tenants.make(name, workspace)
    await tenants.make("a", "ws_0", "prod")
    await tenants.world.control.pause_job("billing.run:b", "ann", "")
    listed = await tenants.workspaces.list_workspaces(None, None, ("", ""), 9)
    assert listed == [
        WorkspaceRow("default", "Zoe", 1, 0, 0),
        WorkspaceRow("default", "ws_1", 1, 0, 0),
        WorkspaceRow("default", "ws_2", 2, 1, 0),
        WorkspaceRow("prod", "ws_0", 1, 0, 0),
    ]
    first = await tenants.workspaces.list_workspaces(None, None, ("", ""), 2)
    rest = await tenants.workspaces.list_workspaces(None, None, first[-1][:2], 9)
    assert first + rest == listed
    assert await tenants.workspaces.list_workspaces("prod", None, ("", ""), 9) == listed[3:]
    assert await tenants.workspaces.list_workspaces(None, ("prod",), ("", ""), 9) == listed[3:]
    assert await tenants.workspaces.list_workspaces(None, (), ("", ""), 9) == []


async def test_those_that_have_messages_alone_are_listed_as_well(tenants: Tenants) -> None:
    await tenants.make("a", "ws_2")
    for queue, workspace in (("mails", "ws_2"), ("mails", "ws_4"), ("mails", "ws_4"), ("mails", ""), ("pdfs", "ws_1")):
        await tenants.put(queue, workspace)
    await tenants.put("mails", "ws_0", "prod")
    letter = "INSERT INTO cron_dead_letters VALUES ($1, 'default', 'q', $2, NULL, NULL, NULL, 1, '1', now(), now(), 5, "
    for number, workspace in enumerate(("ws_3", "ws_3", "", "ws_4")):
        await tenants.run(f"{letter}'failed', '', '')", 1_000 + number, workspace)
    listed = await tenants.workspaces.list_workspaces(None, None, ("", ""), 9)
    assert [row[:3] for row in listed] == [
        ("default", "ws_1", 0), ("default", "ws_2", 1), ("default", "ws_3", 0), ("default", "ws_4", 0),
        ("prod", "ws_0", 0),
    ]  # fmt: skip
    paged, after = [], ("", "")
    while page := await tenants.workspaces.list_workspaces(None, None, after, 1):
        paged += page
        after = page[-1][:2]
    assert paged == listed
    assert await tenants.workspaces.list_workspaces("prod", None, ("", ""), 9) == listed[4:]
    assert await tenants.workspaces.list_workspaces(None, ("prod",), ("", ""), 9) == listed[4:]


async def test_what_runs_and_what_waits_is_counted_even_of_jobs_that_are_gone(tenants: Tenants) -> None:
    world = tenants.world
    first, second = await tenants.make("a", "ws_1"), await tenants.make("b", "ws_1")
    await tenants.make("c", "ws_2")
    jobs = [await world.due(job) for job in [await world.job(first), await world.job(second)] if job is not None]
    await world.claim("c1", jobs[0])
    await world.control.trigger_job("billing.run:b", "ann", None)
    assert await tenants.of("ws_1") == (2, 0, 1, 1)
    await world.control.delete_job("billing.run:a", "ann")
    assert await tenants.of("ws_1") == (1, 0, 1, 1)
    assert await tenants.of("nobody") == (0, 0, 0, 0)


async def test_it_ends_in_order_and_going_on_after_a_cut_changes_nothing_twice(tenants: Tenants) -> None:
    """First nothing comes any more, and what runs is told to stop; then its jobs go. Others don't notice."""
    world, store = tenants.world, tenants.workspaces
    ids = [await tenants.make(f"j{number}", "ws_1") for number in range(3)]
    await tenants.make("other", "ws_2")
    await tenants.make("j0", "ws_1", "prod")
    job = await world.job(ids[0])
    assert job is not None
    await world.claim("c1", await world.due(job))
    await world.control.trigger_job("billing.run:j1", "ann", None)
    assert await store.end_jobs("default", "ws_1", "ann", "left us") == 3
    assert await store.end_jobs("default", "ws_1", "ann", "left us") == 0
    assert await tenants.of("ws_1") == (3, 0, 1, 0)
    assert await tenants.told_to_stop() == ["ann"]
    _, coming = await world.store.get_cron_jobs(SLOTS, 86_400_000)
    assert not set(ids) & {job.job_id for job in coming}
    await tenants.make("late", "ws_1")  # somebody makes another meanwhile
    assert await store.end_jobs("default", "ws_1", "ann", "left us") == 1
    assert await store.delete_jobs("default", "ws_1", "ann", "left us") == 4
    assert await store.delete_jobs("default", "ws_1", "ann", "left us") == 0
    assert await tenants.of("ws_1") == (0, 0, 1, 0)
    assert await tenants.of("ws_2") == (1, 0, 0, 0)
    assert (await store.get_workspace("prod", "ws_1")).jobs == 1


async def test_a_job_that_has_moved_on_is_none_of_it(tenants: Tenants) -> None:
    await tenants.make("a", "ws_1")
    await tenants.world.control.update_job("billing.run:a", JobChange.to(labels={"workspace": "ws_2"}), "ann")
    assert await tenants.workspaces.end_jobs("default", "ws_1", "ann", "") == 0
    assert await tenants.workspaces.delete_jobs("default", "ws_1", "ann", "") == 0
    assert await tenants.of("ws_2") == (1, 0, 0, 0)


async def test_a_job_that_a_newer_release_wrote_is_not_asked_of_for_ever(tenants: Tenants) -> None:
    for name in ("a", "b"):
        await tenants.make(name, "ws_1")
    await tenants.world.scene.set_schedule(await tenants.make("c", "ws_1"), "sunset 30m before")
    assert await tenants.workspaces.end_jobs("default", "ws_1", "ann", "") == 2
    with pytest.raises(Conflict, match=r"'billing\.run:c': its schedule is 'sunset 30m before', which this release"):
        await tenants.workspaces.end_jobs("default", "ws_1", "ann", "")


async def test_more_than_are_locked_at_once_end_a_part_at_a_time(tenants: Tenants) -> None:
    for number in range(120):
        await tenants.make(f"j{number}", "ws_1")
    store = tenants.workspaces
    assert [await store.end_jobs("default", "ws_1", "ann", "") for _ in range(3)] == [100, 20, 0]
    assert [await store.delete_jobs("default", "ws_1", "ann", "") for _ in range(3)] == [100, 20, 0]


async def test_its_messages_and_dead_letters_go_and_those_of_others_stay(tenants: Tenants) -> None:
    """What an execution waits for goes with that; what a consumer is ending, with its commit."""
    store = tenants.workspaces
    for queue in ("reports", "reports", "mails"):
        await tenants.put(queue, "ws_1")
    locked = await tenants.put("mails", "ws_1")
    others = [await tenants.put("reports", "ws_2"), await tenants.put("reports", "ws_1", "prod")]
    await tenants.run(
        "INSERT INTO cron_queue (namespace, queue, workspace, job_id, execution_id, tick, run_at, payload, awaited) "
        "VALUES ('default', 'reports', 'ws_1', 1, 1, now(), now(), '1', true)"
    )
    for dead, workspace in ((101, "ws_1"), (102, "ws_2")):
        await tenants.run(
            "INSERT INTO cron_dead_letters VALUES ($1, 'default', 'mails', $2, NULL, NULL, NULL, 1, '1', now(), "
            "now(), 5, 'failed', '', '')", dead, workspace,
        )  # fmt: skip
    await tenants.run("SELECT * FROM cron_queue_take('reports', 'c1')")
    assert (await store.get_workspace("default", "ws_1")).messages == 5, "the awaited one is a run's"
    await tenants.run("BEGIN")
    await tenants.run("SELECT FROM cron_queue WHERE id = $1 FOR UPDATE", locked)
    assert [await store.drop_messages("default", "ws_1") for _ in range(2)] == [4, 0]
    await tenants.run("COMMIT")
    assert (await store.get_workspace("default", "ws_1")).messages == 1
    assert await store.drop_messages("default", "ws_1") == 1
    (awaited,) = set(await tenants.messages()) - set(others)
    assert awaited == others[-1] + 1
    assert (await store.get_workspace("default", "ws_2")).messages == 2
    assert (await store.get_workspace("prod", "ws_1")).messages == 1
