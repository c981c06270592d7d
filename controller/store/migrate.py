"""Bring a database's schema to this program's version, or say why it can't be used."""

from collections.abc import Callable
from typing import Final

from cronring import sql
from cronring.controller.config import DEFAULT_SCHEMA
from cronring.controller.errors import SchemaVersionError, StoreError
from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.errors import translated
from cronring.sql.parameters import (
    CloseSchema,
    CreateMigrations,
    FormatCreateSchema,
    FormatGrants,
    GetMigrations,
    GetNewerMigrations,
    GetRole,
    GetSchema,
    HasMigrations,
    LockMigrations,
    RecordMigration,
    UnlockMigrations,
)

_APPLICATION: Final = "cronring migrate"
_SETTINGS: Final = {"timezone": "UTC"}  # partitions are days of UTC

OnApplied = Callable[[sql.Migration], None]


async def migrate(
    url: str, on_applied: OnApplied | None = None, *, schema: str = DEFAULT_SCHEMA, grant_to: str = ""
) -> int:
    """Apply the missing migrations, each in a transaction of its own; return how many. Makes the schema, if need be.

    `grant_to`: a role that may run controllers from then on, and owns nothing; "": only the owner may. An advisory lock
    lets any number of programs migrate at once. Raises SchemaVersionError when the database is newer than this program
    or was migrated by different scripts; StoreUnavailable; StoreError.
    """
    connection = await connect(url, _APPLICATION, dict(_SETTINGS), schema=schema)
    try:
        with translated(f"migrating the schema {schema}"):
            await connection.execute(*LockMigrations(schema=schema))
            try:
                await _make_schema(connection, schema)
                applied = await _apply_missing(connection, on_applied)
                if grant_to:
                    await _grant(connection, grant_to)
                return applied
            finally:
                if not connection.is_closed():
                    await connection.execute(*UnlockMigrations(schema=schema))
    finally:
        await connection.close(timeout=5)


async def _make_schema(connection: Connection, schema: str) -> None:
    """Make the schema if it is missing. Raises StoreError, with advice, if our tables can't be in it, or not safely."""
    found = await connection.fetchrow(*GetSchema(schema=schema))
    if found is None:
        role, database, may_create = await connection.fetchrow(*GetRole()) or ("", "", False)
        if not may_create:
            raise StoreError(
                f"there is no schema {schema}, and the role {role} may not make one in the database {database}: have "
                f"its owner run `CREATE SCHEMA {schema} AUTHORIZATION {role}`, or name another one by --schema"
            )
        await connection.execute(await connection.fetchval(*FormatCreateSchema(schema=schema)))
        return
    if found["migrated"]:
        return
    if not (found["usable"] and found["ours"]):
        raise StoreError(
            f"the schema {schema} is {found['owner']}'s, and the role {found['role']} may make no tables in it: "
            "migrate as its owner, or name another one by --schema"
        )
    if found["relations"]:
        raise StoreError(
            f"the schema {schema} holds what is not cronring's ({', '.join(found['relations'][:3])}...): "
            f"name one of its own by --schema, such as {DEFAULT_SCHEMA}; it is made if there is none"
        )
    if found["open"]:
        raise StoreError(
            f"everybody may make tables and functions in the schema {schema}, and so run code as its owner: name "
            f"another one by --schema, or `REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC`"
        )


async def _grant(connection: Connection, role: str) -> None:
    async with connection.transaction():
        for (statement,) in await connection.fetch(*FormatGrants(role=role)):
            await connection.execute(statement)


async def _apply_missing(connection: Connection, on_applied: OnApplied | None) -> int:
    # Asked first, because CREATE TABLE IF NOT EXISTS needs the right to create even when there is nothing to do.
    if not await connection.fetchval(*HasMigrations()):
        await connection.execute(*CreateMigrations())
    missing = await _missing(connection)
    for migration in missing:
        async with connection.transaction():
            await connection.execute(migration.script)
            await connection.execute(*CloseSchema())
            await connection.execute(
                *RecordMigration(
                    version=migration.version,
                    name=migration.name,
                    checksum=migration.checksum,
                    works_with=migration.works_with,
                )
            )
        if on_applied is not None:
            on_applied(migration)
    return len(missing)


async def check_version(connection: Connection, schema: str = DEFAULT_SCHEMA) -> None:
    """Raises SchemaVersionError unless the database's schema is this program's, or a newer one that it can work on.

    So in a rolling upgrade the release before may be started again, after a crash or to go back to it.
    """
    with translated("reading the schema's version"):
        migrated = await connection.fetchval(*HasMigrations())
        found = await connection.fetchrow(*GetSchema(schema=schema))
        if found is not None and not found["usable"]:
            raise StoreError(
                f"the role {found['role']} has no rights on the schema {schema}: run `cronring migrate --grant-to "
                f"{found['role']}` as {found['owner']}, its owner"
            )
        missing = await _missing(connection) if migrated else list(sql.migrations())
    if not migrated:
        raise SchemaVersionError(
            f"there are no tables of cronring in the schema {schema}: run `cronring migrate`, with the same database "
            "and --schema"
        )
    if missing:
        have = missing[0].version - 1
        raise SchemaVersionError(
            f"the database's schema is at version {have}, this program needs {len(sql.migrations())}: "
            "run `cronring migrate --database-url ...`"
        )


async def _missing(connection: Connection) -> list[sql.Migration]:
    """The migrations that are not applied yet. Raises SchemaVersionError when the applied ones are not ours."""
    known = sql.migrations()
    applied = await connection.fetch(*GetMigrations())
    # Checksums first: the versions of other scripts mean nothing here.
    for row, migration in zip(applied, known, strict=False):
        if row["checksum"] != migration.checksum:
            raise SchemaVersionError(
                f"migration {row['version']} ({row['name']}) of this database is not the one of this program "
                "(another checksum): use the cronring release that migrated it, or migrate an empty database, or "
                "another schema of this one (`cronring migrate --database-url ... --schema ...`)"
            )
    if len(applied) > len(known) and await _needed(connection, len(known)) > len(known):
        raise SchemaVersionError(
            f"the database's schema is at version {len(applied)}, this program only knows {len(known)}: "
            "upgrade it with `pip install --upgrade cronring`"
        )
    return list(known[len(applied) :])


async def _needed(connection: Connection, known: int) -> int:
    """The lowest version that a program must know to work with the migrations that are unknown here."""
    needed: int = await connection.fetchval(*GetNewerMigrations(version=known))
    return needed
