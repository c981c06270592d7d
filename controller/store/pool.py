"""One pool of connections to PostgreSQL, and named statements run on it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg

import sql
from controller.store.columns import prepare_columns
from controller.store.connect import Connection, connect_arguments, connecting, prepare_codecs
from controller.store.errors import READ_ONLY, translated
from controller.store.hosts import connect_to_newest
from controller.store.migrate import check_version

# The server gives up first, so that the outcome is known; the client only when the server is out of reach.
STATEMENT_TIMEOUT_S: Final = 8
COMMAND_TIMEOUT_S: Final = 10.0
ACQUIRE_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 3.0
SESSION_SETTINGS: Final = {
    "timezone": "UTC",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "idle_in_transaction_session_timeout": f"{STATEMENT_TIMEOUT_S}s",
    # Every statement is planned once for a connection: planning takes as long as running. That plan must be right for
    # any length of array and any size of table, even if it was made when the table was empty: always by index.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}


async def _prepare(connection: Connection) -> None:
    await prepare_codecs(connection)
    prepare_columns(connection)


async def _keep_session(_: Connection) -> None:
    """Sessions hold nothing that a reset would have to clear, and one would cost a round trip per statement."""


class Database:
    """Runs statements of `sql/` by name. Every method raises StoreUnavailable or StoreError."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str, application: str, connections: int = 10) -> "Database":
        """Connect, and check the schema's version. Raises SchemaVersionError, too.

        `url`: any libpq URL; of several hosts, the one that takes writes. `application`: its name in pg_stat_activity.
        """
        with connecting(url):
            pool = await asyncpg.create_pool(
                **connect_arguments(url, application, dict(SESSION_SETTINGS)),
                connect=connect_to_newest,
                min_size=1,
                max_size=connections,
                max_queries=2**62,
                max_inactive_connection_lifetime=300,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,  # no limit: EndCronJob is near asyncpg's, comments included
                command_timeout=COMMAND_TIMEOUT_S,
                init=_prepare,
                reset=_keep_session,
            )
        database = cls(pool)
        try:
            async with database._connection("reading the schema's version") as connection:
                await check_version(connection)
        except BaseException:
            await database.close()
            raise
        return database

    async def close(self) -> None:
        """End all connections, whatever they do."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._pool.close()
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._pool.terminate()

    async def fetch(self, name: str, *arguments: Any) -> list[asyncpg.Record]:
        """Run one statement in a transaction of its own."""
        async with self._connection(name) as connection:
            records: list[asyncpg.Record] = await connection.fetch(sql.statement(name), *arguments)
            return records

    @contextlib.asynccontextmanager
    async def transaction(self, what: str, *, snapshot: bool = False) -> AsyncIterator["Transaction"]:
        """Statements that take effect together. `snapshot`: read only, all as of one instant."""
        async with (
            self._connection(what) as connection,
            connection.transaction(isolation="repeatable_read" if snapshot else "read_committed", readonly=snapshot),
        ):
            yield Transaction(connection)

    @contextlib.asynccontextmanager
    async def _connection(self, what: str) -> AsyncIterator[Any]:
        with translated(what):
            connection = await self._pool.acquire(timeout=ACQUIRE_TIMEOUT_S)
            try:
                yield connection
            except BaseException as error:
                await self._dismiss(connection, error)
                raise
            finally:
                await self._pool.release(connection)

    async def _dismiss(self, connection: Any, error: BaseException) -> None:
        """Don't hand a connection on that still runs something, or that leads to a standby.

        A server that let a statement run out of the client's time did not give up by itself, so it is out of reach, or
        an old primary that waits for its standby for ever: who connects anew may find another.
        """
        became_standby = isinstance(error, asyncpg.PostgresError) and error.sqlstate == READ_ONLY
        if isinstance(error, asyncio.CancelledError):
            connection.terminate()
        elif became_standby or isinstance(error, TimeoutError):
            connection.terminate()
            await self._pool.expire_connections()


class Transaction:
    """Statements by name, on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def fetch(self, name: str, *arguments: Any) -> list[asyncpg.Record]:
        return await self._connection.fetch(sql.statement(name), *arguments)
