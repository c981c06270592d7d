"""An end names the partition of its day where it can (docs/decisions/0068), and finds its row wherever it is."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.ending import Partitions
from cronring.controller.store.pool import Database
from cronring.schema.execution import Outcome
from cronring.sql.records import Statement
from tests.conformance.harness import PostgresScene, World, end_of

on_both = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])

DAY_US = 86_400_000_000
DAY_S = 86_400
NARROW = """
UPDATE cron_maintenance SET width = '1 hour';
SELECT cron_add_partition('infinity') FROM generate_series(1, 3);
UPDATE cron_partitions SET until_at = until_at - interval '1 minute' WHERE from_at > '-infinity';
"""
NAMED = "SELECT count(*) FROM pg_prepared_statements WHERE statement ~ 'UPDATE cron_executions_\\d'"
ANYWHERE = "SELECT count(*) FROM pg_prepared_statements WHERE statement ~ 'UPDATE cron_executions [e]'"


class OneConnection(Database):
    """Says which statements it has prepared."""

    async def count(self, query: str) -> int:
        async with self._connection("looking") as connection:
            found: int = await connection.fetchval(query)
            return found


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[tuple[World, OneConnection, Connection]]:
    database = await OneConnection.open(database_url, "ends", connections=1)
    assert isinstance(database, OneConnection)
    connection = await connect(database_url, "scene")
    yield World(PostgresScene(database, connection)), database, connection
    await connection.close()
    await database.close()


@on_both
async def test_the_partition_of_today_is_named(scene: tuple[World, OneConnection, Connection]) -> None:
    world, database, _ = scene
    first, second = await world.running("c1", "a", "b")
    (ended,) = await world.store.end_cron_jobs("c1", [end_of(first)])
    assert ended.ended
    assert (await database.count(NAMED), await database.count(ANYWHERE)) == (1, 0)
    (ended,) = await world.store.end_cron_jobs("c1", [end_of(second, Outcome.FAILED)])
    assert ended.ended
    assert (await database.count(NAMED), await database.count(ANYWHERE)) == (2, 0)


@on_both
async def test_a_tick_of_long_ago_is_found_all_the_same(scene: tuple[World, OneConnection, Connection]) -> None:
    world, database, _ = scene
    executions = await world.running("c1", "old", "another", seconds_ago=9 * DAY_S)
    for batch in (executions[:1], executions):
        results = await world.store.end_cron_jobs("c1", [end_of(each) for each in batch])
        assert [result.ended for result in results] == [len(batch) == 1] + [True] * (len(batch) - 1)
    assert await database.count(ANYWHERE) == 2, "one for what completes, and one for what that one didn't find"


@on_both
async def test_where_partitions_are_no_days_none_is_named(scene: tuple[World, OneConnection, Connection]) -> None:
    world, database, connection = scene
    await connection.execute(NARROW)
    (execution,) = await world.running("c1", "a")
    (ended,) = await world.store.end_cron_jobs("c1", [end_of(execution)])
    assert ended.ended
    assert (await database.count(NAMED), await database.count(ANYWHERE)) == (0, 1)


async def test_what_retention_may_take_away_is_named_no_more() -> None:
    """A day that was yesterday's is one of those by the day after."""
    asked: list[str] = []

    async def fetch(statement: Statement) -> list[asyncpg.Record]:
        asked.append(statement.name)
        return [(f"part{len(asked)}",)]  # type: ignore[list-item]  # a record is read as a tuple is

    partitions, first = Partitions(), 20_000 * DAY_US
    assert await partitions.name(fetch, [first, first + DAY_US - 1]) == "part1"
    assert await partitions.name(fetch, [first, first + DAY_US]) == "", "of two days"
    assert await partitions.name(fetch, [first + DAY_US]) == "part2"
    assert await partitions.name(fetch, [first]) == "part1", "yesterday's"
    assert await partitions.name(fetch, [first + 2 * DAY_US]) == "part3"
    assert await partitions.name(fetch, [first]) == ""
    assert len(asked) == 3, "each was asked for once"
