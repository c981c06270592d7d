"""What the API reads, held against what the store did."""

from collections.abc import AsyncIterator

import pytest

from cronring.controller.core.model import SkipRequest
from cronring.controller.errors import NotFound
from cronring.controller.ports.reads import Cursor, DeploymentFilter, ExecutionFilter, ExecutionSort, JobFilter
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.controller.store.reads import PostgresReads
from cronring.schema.execution import Outcome, Skipped, SkipReason
from cronring.schema.module import Module, Verb
from cronring.schema.policy import Policy
from cronring.sql.parameters import FindExecutionBefore
from tests.conformance.harness import LOST_AFTER_MS, SECOND, TIMEOUT_MS, PostgresScene, World, end_of

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await Database.open(database_url, "cronring test")
    yield database
    await database.close()


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "cronring test scene")
    yield connection
    await connection.close()


@pytest.fixture
def world(database: Database, scene: Connection) -> World:
    return World(PostgresScene(database, scene))


@pytest.fixture
def reads(database: Database) -> PostgresReads:
    return PostgresReads(database, LOST_AFTER_MS)


async def test_jobs_are_listed_by_key_page_by_page(world: World, reads: PostgresReads) -> None:
    await world.jobs("a", "b", "c", "d", "e")
    other = Module("alpha", (Verb("z", schedule="5s"),), "staging")
    await world.store.create_deployment(other, "b" * 64, 1, TIMEOUT_MS, True)
    keys: list[str] = []
    while page := await reads.list_jobs(JobFilter(), keys[-1] if keys else "", 4):
        keys += [job.key for job in page]
    assert keys == [f"billing.{name}" for name in "abcde"] + ["staging/alpha.z"]


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        (JobFilter(namespace="staging"), ["staging/billing.a"]),
        (JobFilter(module="billing", verb="a"), ["billing.a", "staging/billing.a"]),
        (JobFilter(statuses=("running",)), ["billing.b"]),
        (JobFilter(statuses=("scheduled",)), ["billing.a", "staging/billing.a"]),
        (JobFilter(statuses=("failed",)), ["billing.c"]),
        (JobFilter(statuses=("completed",)), ["billing.d"]),
        (JobFilter(statuses=("pending",)), ["billing.e"]),
        (JobFilter(module="other"), []),
        (JobFilter(contains=("LING.A",)), ["billing.a", "staging/billing.a"]),
        (JobFilter(contains=("ling.a", "STAG")), ["staging/billing.a"]),
        (JobFilter(contains=("billing",), statuses=("failed",)), ["billing.c"]),
        (JobFilter(contains=("ling_a",)), []),
        (JobFilter(contains=("%",)), []),
        (
            JobFilter(keys=("billing.c", "billing.a", "none.x"), statuses=("failed", "scheduled")),
            ["billing.a", "billing.c"],
        ),
        (JobFilter(contains=("\\",)), []),
    ],
)
async def test_jobs_are_filtered(world: World, reads: PostgresReads, where: JobFilter, keys: list[str]) -> None:
    await world.jobs("a", "b", "c", "d", "e")
    staging = Module("billing", (Verb("a", schedule="5s"),), "staging")
    await world.store.create_deployment(staging, "b" * 64, 1, TIMEOUT_MS, True)
    jobs = {job.key: job for job in (await world.store.get_cron_jobs(tuple(range(4096)), 10**9))[1]}
    await world.controller("c1")
    due = [await world.due(jobs[f"billing.{name}"]) for name in "bcd"]
    claimed = await world.claim("c1", *due)
    executions = await world.store.get_unfinished(tuple(result.execution_id or 0 for result in claimed))
    ends = [end_of(executions[1], Outcome.LOST), end_of(executions[2])]
    await world.store.end_cron_jobs("c1", [end._replace(next_tick=None, next_run_at=None) for end in ends])
    await world.scene.set_next_tick(jobs["billing.e"].job_id, None)
    assert [job.key for job in await reads.list_jobs(where, "", 100)] == keys


async def test_a_job_tells_its_last_run_and_what_was_skipped(world: World, reads: PostgresReads) -> None:
    (execution,) = await world.running("c1", "a")
    running = await reads.get_job("billing.a")
    assert (running.status, running.running_execution_id) == ("running", execution.execution_id)
    skipped = Skipped(SkipReason.OVERLAP, execution.tick + SECOND, execution.tick + 5 * SECOND, 5)
    await world.store.end_cron_jobs("c1", [end_of(execution, Outcome.FAILED, skipped)])
    job = await reads.get_job("billing.a")
    assert (job.status, job.last_outcome, job.running_execution_id) == ("scheduled", "failed", None)
    assert (job.last_run_at, job.last_started_at) == (execution.run_at, execution.claimed_at)
    assert job.next_tick == execution.tick + 3600 * SECOND
    assert job.skipped == (("overlap", 5),)
    with pytest.raises(NotFound):
        await reads.get_job("billing.b")


async def test_books_have_runs_and_what_did_not_run_the_latest_tick_first(world: World, reads: PostgresReads) -> None:
    """A history without what was skipped shows a gap, and not why."""
    first, other = await world.running("c1", "a", "b")
    skipped = Skipped(SkipReason.OVERLAP, first.tick + SECOND, first.tick + 5 * SECOND, 5)
    await world.store.end_cron_jobs("c1", [end_of(first, Outcome.FAILED, skipped)])
    rows = await reads.list_books(["billing.b", "billing.none", "billing.a"], 20, None)
    assert [(row.job, row.tick, row.skipped, row.ticks, row.execution_id, row.outcome) for row in rows] == [
        ("billing.b", other.tick, "", 1, other.execution_id, ""),
        ("billing.a", first.tick + SECOND, "overlap", 5, 0, ""),
        ("billing.a", first.tick, "", 1, first.execution_id, "failed"),
    ]
    assert rows[1].last_tick == first.tick + 5 * SECOND
    assert [row.skipped for row in await reads.list_books(["billing.a"], 1, None)] == ["overlap"]
    assert [row.skipped for row in await reads.list_books(["billing.a"], 5, first.tick + SECOND)] == [""]
    assert await reads.list_books(["billing.a"], 5, None, ("staging",)) == []


async def ended(world: World, names: list[str]) -> list[int]:
    """Ids of executions of one job each, ended in turn as completed, failed, and still running."""
    executions = await world.running("c1", *names)
    outcomes = [Outcome.COMPLETED, Outcome.FAILED]
    ends = [end_of(each, outcomes[n % 3]) for n, each in enumerate(executions) if n % 3 < 2]
    await world.store.end_cron_jobs("c1", ends)
    return [execution.execution_id for execution in executions]


async def test_executions_are_listed_newest_first_page_by_page(world: World, reads: PostgresReads) -> None:
    ids = await ended(world, list("abcdefgh"))
    found: list[int] = []
    cursor: Cursor | None = None
    while cursor != ():
        page = await reads.list_executions(ExecutionFilter(), ExecutionSort.NEWEST, cursor or (), 3)
        found += [row.execution_id for row in page.rows]
        assert {row.output for row in page.rows} == {None}
        cursor = page.next
    assert found == ids[::-1]
    assert (await reads.get_execution(ids[0])).output == "done"
    with pytest.raises(NotFound):
        await reads.get_execution(999)


async def test_executions_are_filtered(world: World, reads: PostgresReads) -> None:
    ids = await ended(world, list("abcdefgh"))

    async def found(**where: object) -> list[int]:
        chosen = ExecutionFilter(**where)  # type: ignore[arg-type]  # by name
        page = await reads.list_executions(chosen, ExecutionSort.NEWEST, (), 100)
        return [row.execution_id for row in reversed(page.rows)]

    assert await found(outcomes=("completed",)) == ids[::3]
    assert await found(outcomes=("failed",)) == ids[1::3]
    assert await found(outcomes=("running",)) == ids[2::3]
    assert await found(outcomes=("lost",)) == []
    assert await found(after_id=ids[5]) == ids[6:]
    assert await found(outcomes=("running",), after_id=ids[2]) == ids[5::3]
    assert await found(job="billing.c") == [ids[2]]
    assert await found(job="billing.c", outcomes=("running",)) == [ids[2]]
    assert await found(job="billing.c", outcomes=("failed",)) == []
    now = await world.scene.now()
    assert await found(since=now - 60 * SECOND) == ids
    assert await found(since=now) == []
    with pytest.raises(NotFound):
        await found(job="billing.z")


async def test_executions_of_a_key_survive_its_removal(world: World, reads: PostgresReads) -> None:
    (execution,) = await world.running("c1", "a")
    await world.store.end_cron_jobs("c1", [end_of(execution)])
    await world.store.kill_deployment(execution.deployment)
    (job,) = await world.jobs("a")
    (claimed,) = await world.claim("c1", await world.due(job))
    rows = (await reads.list_executions(ExecutionFilter(job="billing.a"), ExecutionSort.NEWEST, (), 100)).rows
    assert [row.execution_id for row in rows] == [claimed.execution_id, execution.execution_id]
    assert rows[0].lateness_us == rows[0].claimed_at - rows[0].run_at
    assert rows[0].started_at is None


async def test_the_search_by_time_finds_the_first_execution_of_an_hour(scene: Connection, database: Database) -> None:
    await scene.execute(
        "INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, "
        "hard_deadline) SELECT 1, 1, t, t, t, 'c', 'r', t FROM (SELECT now() - (1000 - i) * interval '1 minute' AS t "
        "FROM generate_series(1, 1000) i) x"
    )
    await scene.execute("DELETE FROM cron_executions WHERE id % 7 < 3")  # retention and rollbacks leave gaps
    for minutes in (0, 1, 2, 60, 500, 997, 2000):
        instant = await scene.fetchval("SELECT now() - $1 * interval '1 minute'", minutes)
        (record,) = await database.fetch(FindExecutionBefore(instant=instant))
        expected = await scene.fetchval(
            "SELECT coalesce(max(id), 0) FROM cron_executions WHERE claimed_at < $1::timestamptz - interval '1 minute'",
            instant,
        )
        assert 0 <= expected - record[0] <= 10, "never past one that counts, and not far below"


async def test_deployments_count_their_runners_and_jobs(world: World, reads: PostgresReads) -> None:
    await world.jobs("a", "b")
    second = await world.store.create_deployment(
        Module("billing", (Verb("a", schedule="5s"),)), "b" * 64, 2, TIMEOUT_MS, True
    )
    other = await world.store.create_deployment(
        Module("billing2", (Verb("a", schedule="5s"),)), "c" * 64, 1, TIMEOUT_MS, True
    )
    await world.runner("r1", second.key, other.key)
    await world.runner("r2", second.key)
    await world.runner("r3", second.key)
    await world.scene.last_saw_runner("r3", 60)
    rows = await reads.list_deployments(DeploymentFilter(), 0, 100)
    assert [(row.key, row.min_replicas, row.runners, row.jobs) for row in rows] == [
        (other.key, 1, 1, 1), (second.key, 2, 2, 1), ("billing@aaaaaaaaaaaa", 0, 0, 0),
    ]  # fmt: skip
    assert "module billing" in rows[1].schema_text
    assert await reads.list_deployments(DeploymentFilter(), rows[1].deployment_id, 100) == rows[2:]
    active = await reads.list_deployments(DeploymentFilter(module="billing", active_only=True), 0, 100)
    assert active == [rows[1]] == [await reads.get_deployment(second.key)]
    everything, elsewhere = DeploymentFilter(), DeploymentFilter(namespace="prod")
    some = (everything, everything._replace(module="billing"), everything._replace(active_only=True), elsewhere,
            everything._replace(namespaces=("prod",)))  # fmt: skip
    assert [await reads.count_deployments(each) for each in some] == [3, 2, 2, 0, 0]
    with pytest.raises(NotFound):
        await reads.get_deployment("billing@0")
    assert [(row.runner_id, row.alive) for row in await reads.list_runners()] == [
        ("r1", True), ("r2", True), ("r3", False),
    ]  # fmt: skip


async def test_what_runs_soon_lies_in_its_window(world: World, reads: PostgresReads) -> None:
    """`top` showed ticks that are only going to be skipped."""
    now = await world.scene.now()
    hour = (now // (3_600 * SECOND)) % 24
    shut = Policy(window=f"{(hour + 6) % 24:02}:00-{(hour + 7) % 24:02}:00")
    verbs = Verb("a", schedule="1s", policy=shut), Verb("b", schedule="1s")
    await world.store.create_deployment(Module("billing", verbs), "a" * 64, 1, TIMEOUT_MS, True)
    assert [row.job for row in await reads.list_due(60_000, 10)] == ["billing.b"]
    soon = await reads.list_due(86_400_000, 10)
    assert [row.job for row in soon] == ["billing.b", "billing.a"]
    assert soon[1].tick // (3_600 * SECOND) % 24 == (hour + 6) % 24


async def test_a_runner_that_left_is_not_dead_unless_it_left_something_unfinished(
    world: World, reads: PostgresReads
) -> None:
    await world.running("c1", "a", runner_id="r1")
    await world.runner("r2")
    await world.runner("r3")
    for runner_id in ("r1", "r2", "nobody"):
        await world.store.runner_left(runner_id)

    async def told() -> dict[str, tuple[bool, bool]]:
        return {row.runner_id: (row.alive, row.left_at is not None) for row in await reads.list_runners()}

    assert await told() == {"r1": (True, False), "r2": (False, True), "r3": (True, False)}
    await world.runner("r2")
    assert (await told())["r2"] == (True, False), "it came back"


async def test_a_runner_that_comes_back_leaves_the_replicas_that_somebody_wanted(
    world: World, reads: PostgresReads
) -> None:
    module = Module("billing", (Verb("a", schedule="5s"),))
    deployed = await world.store.create_deployment(module, "a" * 64, 3, TIMEOUT_MS, True)
    await world.store.create_deployment(module, "a" * 64, 1, TIMEOUT_MS, False)
    assert (await reads.get_deployment(deployed.key)).min_replicas == 3


async def test_controllers_are_listed_with_their_leases(world: World, reads: PostgresReads) -> None:
    await world.controller("c2")
    await world.controller("c1")
    await world.store.remove_controller("c2")
    rows = await reads.list_controllers()
    assert [(row.controller_id, row.leased, row.draining) for row in rows] == [("c1", True, False), ("c2", False, True)]
    assert rows[0].lease_expires_at > await reads.database_now()


async def test_changes_tell_of_every_job_that_moved(world: World, reads: PostgresReads) -> None:
    names = list("abc")
    jobs = await world.due_jobs(*names)
    await world.controller("c1")
    position = await reads.job_position()
    position, changed = await reads.job_changes(position)
    assert {row.key for row in changed} <= {f"billing.{name}" for name in names}  # those just deployed
    position, changed = await reads.job_changes(position)
    assert changed == []
    claimed = await world.claim("c1", *jobs[:2])
    position, changed = await reads.job_changes(position)
    assert [(row.key, row.status) for row in changed] == [("billing.a", "running"), ("billing.b", "running")]
    position, changed = await reads.job_changes(position)
    assert changed == []
    executions = await world.store.get_unfinished(tuple(result.execution_id or 0 for result in claimed))
    await world.store.end_cron_jobs("c1", [end_of(executions[1])])
    position, changed = await reads.job_changes(position)
    assert [(row.key, row.last_outcome) for row in changed] == [("billing.b", "completed")]
    tick = jobs[2].next_tick
    assert tick is not None
    moved = tick + 3600 * SECOND
    skipped = Skipped(SkipReason.NO_RUNNER, tick, tick, 1)
    await world.store.skip_ticks("c1", [SkipRequest(jobs[2].job_id, tick, 1, (skipped,), moved, moved)])
    position, changed = await reads.job_changes(position)
    assert [(row.key, row.next_tick) for row in changed] == [("billing.c", moved)]
    module = Module("billing", (Verb("a", schedule="every 1h"), Verb("d", schedule="5s")))
    await world.store.create_deployment(module, "b" * 64, 1, TIMEOUT_MS, True)
    position, changed = await reads.job_changes(position)
    assert {row.key: row.removed_at is not None for row in changed} == {
        "billing.a": False, "billing.b": True, "billing.c": True, "billing.d": False,
    }  # fmt: skip
    assert (await reads.job_changes(position))[1] == []


async def test_changes_that_commit_out_of_order_are_told(world: World, reads: PostgresReads, database_url: str) -> None:
    slow, fast = await world.due_jobs("slow", "fast")
    await world.controller("c1")
    position = await reads.job_position()
    position, _ = await reads.job_changes(position)
    other = await connect(database_url, "other")
    try:
        transaction = other.transaction()
        await transaction.start()
        await other.execute(
            "INSERT INTO cron_executions (job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id, "
            "hard_deadline) VALUES ($1, 1, now(), now(), now(), 'c2', 'r2', now())",
            slow.job_id,
        )
        await world.claim("c1", fast)
        position, changed = await reads.job_changes(position)
        assert [row.key for row in changed] == ["billing.fast"]
        await transaction.commit()
        position, changed = await reads.job_changes(position)
        assert [row.key for row in changed] == ["billing.slow"]
    finally:
        await other.close()
