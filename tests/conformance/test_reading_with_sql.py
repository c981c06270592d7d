"""What docs/sql.md says: its role can read two views and nothing else, and its queries run as that role."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import Database
from cronring.schema.execution import Outcome
from cronring.schema.policy import Policy
from tests.conformance.harness import PostgresScene, World, end_of

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])
PAGE: Final = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
MAKING, *QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[Connection]:
    connection = await connect(database_url, "cronring test scene")
    yield connection
    await connection.execute("RESET ROLE; DROP OWNED BY cronring_reader; DROP ROLE cronring_reader")
    await connection.close()


@pytest.fixture
async def world(database_url: str, scene: Connection) -> AsyncIterator[World]:
    database = await Database.open(database_url, "cronring test")
    world = World(PostgresScene(database, scene))
    done, failed = await world.running("c1", "a", "b")
    await world.store.end_cron_jobs("c1", [end_of(done), end_of(failed, Outcome.LOST)])
    await scene.execute("UPDATE cron_jobs SET labels = '{\"team\": \"billing\"}' WHERE verb = 'b'")
    await scene.execute(MAKING)
    yield world
    await database.close()


async def test_its_queries_run_as_the_role_that_it_makes(world: World, scene: Connection) -> None:
    await scene.execute("SET ROLE cronring_reader")
    troubled, failing, of_team = [await scene.fetch(query) for query in QUERIES]
    assert [(row["key"], row["last_outcome"], row["failures"]) for row in troubled] == [("billing.b", "lost", 1)]
    assert [(row["job"], row["outcome"], row["count"]) for row in failing] == [("billing.b", "lost", 1)]
    assert [(row["key"], row["status"]) for row in of_team] == [("billing.b", "scheduled")]


async def test_the_role_reads_two_views_and_nothing_else(world: World, scene: Connection) -> None:
    relations = await scene.fetch(
        "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = 'cronring'::regnamespace "
        "AND relkind IN ('r', 'p', 'v', 'S', 'm')"
    )
    await scene.execute("SET ROLE cronring_reader")
    readable = set()
    for name, kind in relations:
        try:
            await scene.fetch(f"SELECT * FROM cronring.{name} LIMIT 1")
            readable.add(name)
        except asyncpg.InsufficientPrivilegeError:
            assert kind
    assert readable == {"cron_job_status", "cron_execution_details"}
    assert len(relations) > 25
    for statement in (
        "UPDATE cron_job_status SET key = 'x'",
        "DELETE FROM cron_execution_details",
        "CREATE TABLE cronring.mine (a integer)",
    ):
        with pytest.raises(asyncpg.PostgresError):
            await scene.execute(statement)


async def test_its_columns_are_those_of_the_views(world: World, scene: Connection) -> None:
    for view in ("cron_job_status", "cron_execution_details"):
        (row,) = re.findall(rf"^\| `{view}` \|.*$", PAGE, re.MULTILINE)
        named = re.findall(r"`([a-z_]+)`", row.split("|")[3])
        columns = [
            record[0]
            for record in await scene.fetch(
                "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0", view
            )
        ]
        assert set(named) <= set(columns)
        if view == "cron_job_status":
            assert named == columns


async def test_when_a_job_with_a_window_runs_is_not_told(world: World, scene: Connection) -> None:
    """Its row has the next tick of the schedule, which may be one that the window forbids."""
    policy = Policy(window="Mon 03:00-04:00", jitter="off").text
    await scene.execute("UPDATE cron_jobs SET policy = $1 WHERE verb = 'a'", policy)
    rows = await scene.fetch("SELECT verb, next_tick, next_execution FROM cron_job_status ORDER BY verb")
    assert [(row["verb"], row["next_tick"] is None, row["next_execution"] is None) for row in rows] == [
        ("a", False, True), ("b", False, False),
    ]  # fmt: skip


async def test_a_value_that_reads_like_window_is_none(world: World, scene: Connection) -> None:
    policy = Policy(retries=1, retry_on=("window",)).text
    await scene.execute("UPDATE cron_jobs SET policy = $1 WHERE verb = 'a'", policy)
    assert await scene.fetchval("SELECT next_execution IS NOT NULL FROM cron_job_status WHERE verb = 'a'")


async def test_a_removed_job_has_no_status(world: World, scene: Connection) -> None:
    await scene.execute(
        "UPDATE cron_jobs SET removed_at = now(), next_tick = NULL, next_execution = NULL WHERE verb = 'a'"
    )
    assert [row[0] for row in await scene.fetch("SELECT key FROM cron_job_status")] == ["billing.b"]
