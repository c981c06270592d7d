"""Bring a database's schema to this program's version, or say why it can't be used."""

from collections.abc import Callable
from typing import Final

import sql
from controller.errors import SchemaVersionError
from controller.store.connect import Connection, connect
from controller.store.errors import translated

_APPLICATION: Final = "cronring migrate"


async def migrate(url: str, on_applied: Callable[[sql.Migration], None] | None = None) -> int:
    """Apply the missing migrations, each in a transaction of its own; return how many.

    Advisory-locked, so that any number may run at once. Raises SchemaVersionError when the database is newer than this
    program or was migrated by different scripts; StoreUnavailable; StoreError.
    """
    connection = await connect(url, _APPLICATION)
    try:
        with translated("migrating"):
            await connection.execute(sql.statement("LockMigrations"))
            try:
                return await _apply_missing(connection, on_applied)
            finally:
                if not connection.is_closed():
                    await connection.execute(sql.statement("UnlockMigrations"))
    finally:
        await connection.close(timeout=5)


async def _apply_missing(connection: Connection, on_applied: Callable[[sql.Migration], None] | None) -> int:
    # Asked first, because CREATE TABLE IF NOT EXISTS needs the right to create even when there is nothing to do.
    if not await connection.fetchval(sql.statement("HasMigrations")):
        await connection.execute(sql.statement("CreateMigrations"))
    missing = await _missing(connection)
    if missing:
        await connection.execute(sql.statement("PrepareMigrations"))
    for migration in missing:
        async with connection.transaction():
            await connection.execute(migration.script)
            await connection.execute(
                sql.statement("RecordMigration"),
                migration.version,
                migration.name,
                migration.checksum,
                migration.works_with,
            )
        if on_applied is not None:
            on_applied(migration)
    return len(missing)


async def check_version(connection: Connection) -> None:
    """Raises SchemaVersionError unless the database's schema is this program's, or a newer one that it can work on.

    So in a rolling upgrade the release before may be started again, after a crash or to go back to it.
    """
    with translated("reading the schema's version"):
        migrated = await connection.fetchval(sql.statement("HasMigrations"))
        missing = await _missing(connection) if migrated else list(sql.migrations())
    if missing:
        have = missing[0].version - 1
        raise SchemaVersionError(
            f"the database's schema is at version {have}, this program needs {len(sql.migrations())}: "
            "run `cronring migrate --database-url ...`"
        )


async def _missing(connection: Connection) -> list[sql.Migration]:
    """The migrations that are not applied yet. Raises SchemaVersionError when the applied ones are not ours."""
    known = sql.migrations()
    applied = await connection.fetch(sql.statement("GetMigrations"))
    if len(applied) > len(known) and await _needed(connection, len(known)) > len(known):
        raise SchemaVersionError(
            f"the database's schema is at version {len(applied)}, this program only knows {len(known)}: "
            "upgrade it with `pip install --upgrade cronring`"
        )
    for row, migration in zip(applied, known, strict=False):
        if row["checksum"] != migration.checksum:
            raise SchemaVersionError(
                f"migration {row['version']} ({row['name']}) of this database is not the one of this program "
                "(another checksum): use the cronring release that migrated it, or an empty database and "
                "`cronring migrate --database-url ...`"
            )
    return list(known[len(applied) :])


async def _needed(connection: Connection, known: int) -> int:
    """The version that a program must know of, as of the migrations that this one doesn't know."""
    needed: int = await connection.fetchval(sql.statement("GetNewerMigrations"), known)
    return needed
