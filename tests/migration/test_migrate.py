"""What `cronring migrate` and the check at start do with databases of every age."""

import asyncio

import pytest

import sql
from controller.errors import SchemaVersionError
from controller.store.connect import Connection, connect
from controller.store.migrate import check_version, migrate

pytestmark = pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])


async def run(url: str, *statements: str) -> None:
    connection: Connection = await connect(url, "test")
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def check(url: str) -> None:
    connection = await connect(url, "test")
    try:
        await check_version(connection)
    finally:
        await connection.close()


async def test_an_empty_database_is_migrated_and_then_accepted(empty_database_url: str) -> None:
    applied: list[int] = []
    count = await migrate(empty_database_url, lambda migration: applied.append(migration.version))
    assert applied == [migration.version for migration in sql.migrations()]
    assert count == len(applied)
    await check(empty_database_url)


async def test_migrating_again_changes_nothing(database_url: str) -> None:
    applied: list[str] = []
    assert await migrate(database_url, lambda migration: applied.append(migration.name)) == 0
    assert applied == []


async def test_many_migrators_at_once_apply_each_migration_once(empty_database_url: str) -> None:
    counts = await asyncio.gather(*(migrate(empty_database_url) for _ in range(8)))
    assert sum(counts) == len(sql.migrations())
    await check(empty_database_url)


async def test_an_empty_database_is_refused_with_the_command_that_mends_it(empty_database_url: str) -> None:
    with pytest.raises(SchemaVersionError, match=r"version 0, .* needs \d+: run `cronring migrate"):
        await check(empty_database_url)


async def test_an_older_schema_is_refused_with_the_command_that_mends_it(database_url: str) -> None:
    await run(
        database_url, "DELETE FROM cronring_migrations WHERE version = (SELECT max(version) FROM cronring_migrations)"
    )
    with pytest.raises(SchemaVersionError, match="run `cronring migrate"):
        await check(database_url)


async def test_a_newer_schema_is_refused_by_both(database_url: str) -> None:
    await run(
        database_url, "INSERT INTO cronring_migrations SELECT max(version) + 1, 'x', 'x' FROM cronring_migrations"
    )
    with pytest.raises(SchemaVersionError, match="upgrade"):
        await check(database_url)
    with pytest.raises(SchemaVersionError, match="upgrade"):
        await migrate(database_url)


async def test_a_schema_made_by_other_scripts_is_refused_by_both(database_url: str) -> None:
    await run(database_url, "UPDATE cronring_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(SchemaVersionError, match="checksum"):
        await check(database_url)
    with pytest.raises(SchemaVersionError, match="checksum"):
        await migrate(database_url)


async def test_a_migration_that_fails_leaves_no_trace(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_ = sql.migrations()
    broken = first._replace(script=first.script + "; SELECT 1 / 0")
    monkeypatch.setattr(sql, "migrations", lambda: (broken,))
    with pytest.raises(Exception, match="division by zero"):
        await migrate(empty_database_url)
    monkeypatch.undo()
    assert await migrate(empty_database_url) == len(sql.migrations())
