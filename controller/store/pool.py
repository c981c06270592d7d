"""One pool of connections to PostgreSQL, and named statements run on it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import asyncpg

from cronring.controller.config import DEFAULT_SCHEMA
from cronring.controller.ports import fates
from cronring.controller.ports.verb_calls import call_to_keep
from cronring.controller.store.columns import prepare_columns
from cronring.controller.store.connect import Connection, connect_arguments, connecting, prepare_codecs, set_session
from cronring.controller.store.errors import READ_ONLY, is_refusal, translated
from cronring.controller.store.hosts import connect_to_newest
from cronring.controller.store.keeping import keep
from cronring.controller.store.migrate import check_version
from cronring.sql.records import Statement

# The server gives up first, so that the outcome is known. The client gives up only if the server is out of reach.
STATEMENT_TIMEOUT_S: Final = 8
COMMAND_TIMEOUT_S: Final = 10.0
ACQUIRE_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 3.0
SESSION_SETTINGS: Final = {
    "timezone": "UTC",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "idle_in_transaction_session_timeout": f"{STATEMENT_TIMEOUT_S}s",
    # Connections may idle for a day. Firewalls in between would forget them, and a herd's claims would be the first to
    # fail.
    "tcp_keepalives_idle": "60s",
    # Every statement is planned once for a connection: planning takes as long as running. That plan must be right for
    # any length of array and any size of table, even if it was made when the table was empty: always by index.
    # docs/decisions/0002: a plan is made once and stays, so its shape must not depend on statistics
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}


async def _prepare(arguments: dict[str, Any], connection: Connection) -> None:
    await set_session(connection, arguments)
    await prepare_codecs(connection)
    prepare_columns(connection)


async def _keep_session(_: Connection) -> None:
    """No reset: sessions hold nothing to clear, and a reset costs a round trip per statement."""


def _version(connection: Connection) -> str:
    major, _, minor, *_ = connection.get_server_version()
    return f"{major}.{minor}"


class Database:
    """Runs statements of `sql/`, which are records. Every method raises StoreUnavailable or StoreError."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", controller_id: str = "") -> None:
        self._pool = pool
        self._controller_id = controller_id
        self.server_version = ""  # of PostgreSQL when it was opened, like 18.4
        self.skipped: Counter[str] = Counter()  # ticks skipped through this pool, by reason

    @classmethod
    async def open(
        cls, url: str, application: str, connections: int = 10, *, schema: str = DEFAULT_SCHEMA, controller_id: str = ""
    ) -> "Database":
        """Connect, and check the schema's version. Raises SchemaVersionError, too.

        `url`: any libpq URL; of several hosts, the one that takes writes. `application`: its name in pg_stat_activity.
        `controller_id`: the pool's controller, for the audit log; "": none.
        """
        with connecting(url):
            arguments = connect_arguments(url, application, dict(SESSION_SETTINGS), schema)
            pool = await asyncpg.create_pool(
                **arguments,
                connect=connect_to_newest,
                min_size=1,
                max_size=connections,
                max_queries=2**62,
                # docs/decisions/0062: what a herd opened, and planned, stays for the next one
                max_inactive_connection_lifetime=0,
                max_cached_statement_lifetime=0,
                # docs/decisions/0009: longer statements would be planned at every run
                max_cacheable_statement_size=0,  # no limit
                command_timeout=COMMAND_TIMEOUT_S,
                init=partial(_prepare, arguments),
                reset=_keep_session,
            )
        database = cls(pool, controller_id)
        try:
            async with database._connection("reading the schema's version") as connection:
                await check_version(connection, schema)
                database.server_version = _version(connection)
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

    async def fetch(self, statement: Statement) -> list[asyncpg.Record]:
        """Run one statement in a transaction of its own."""
        async with self._connection(statement.name) as connection:
            records: list[asyncpg.Record] = await connection.fetch(*statement)
            return records

    @contextlib.asynccontextmanager
    async def transaction(
        self, what: str, *, snapshot: bool = False, rehearsal: bool = False
    ) -> AsyncIterator["Transaction"]:
        """Statements that take effect together. `snapshot`: read only, as of one instant. `rehearsal`: rolled back."""
        isolation = "repeatable_read" if snapshot else "read_committed"
        with contextlib.suppress(_Rehearsed):
            async with self._connection(what) as connection:
                with fates.change(is_refusal) as change:
                    async with connection.transaction(isolation=isolation, readonly=snapshot):
                        transaction = Transaction(connection, self._controller_id)
                        yield transaction
                        if rehearsal:
                            raise _Rehearsed
                        if not snapshot and (call := call_to_keep()) is not None:
                            await keep(transaction.fetch, call)
                            transaction.unchanged = False
                        # docs/decisions/0056: from here on, a failure doesn't tell whether the change was made.
                        if not (snapshot or transaction.unchanged):
                            change.committing()
            self.skipped.update(transaction.skipped)

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
        """Don't give back to the pool a connection that still runs a statement, or that leads to a standby.

        If the client's timeout came first, the server did not give up by itself. So it is out of reach, or is an old
        primary that waits for its standby for ever. A new connection may find another server.
        """
        became_standby = isinstance(error, asyncpg.PostgresError) and error.sqlstate == READ_ONLY
        if isinstance(error, asyncio.CancelledError):
            connection.terminate()
        elif became_standby or isinstance(error, TimeoutError):
            connection.terminate()
            await self._pool.expire_connections()


class _Rehearsed(Exception):
    """Rolls back a rehearsal that went well."""


class Transaction:
    """Statements on one connection."""

    def __init__(self, connection: Connection, controller_id: str = "") -> None:
        self._connection = connection
        self.controller_id = controller_id
        self.unchanged = False  # set if there was nothing to change
        self.skipped: Counter[str] = Counter()  # added to Database.skipped once it is committed

    async def fetch(self, statement: Statement) -> list[asyncpg.Record]:
        return await self._connection.fetch(*statement)
