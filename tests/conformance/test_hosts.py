"""A URL of several hosts: whichever of them is silent, gone or outdated, the one that leads is found."""

import asyncio
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronring.controller.errors import StoreUnavailable
from cronring.controller.store import pool
from cronring.controller.store.connect import connect
from cronring.controller.store.hosts import named_hosts
from cronring.controller.store.pool import Database
from cronring.sql.parameters import GetNow
from tests.support.databases import TEMPLATE, PostgresServer, running_server

DEAF_S = 30.0  # nobody may wait for a silent host as long as for a connection: twice as long here


@pytest.fixture(scope="module")
def promoted() -> Iterator[PostgresServer]:
    """A server that was a standby once: its timeline is the second."""
    with running_server("postgres18") as server:
        server.stop()
        signal = server.data / "recovery.signal"
        signal.touch()
        if server.user is not None:
            shutil.chown(signal, server.user)
        server.settings |= {"restore_command": "false", "hot_standby": "off"}  # it answers once it is promoted
        server.start()
        yield server


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator[Path]:
    """The folder of a socket that takes connections and never says a word, as of a host that stands still."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / ".s.PGSQL.5432"))
        listener.listen()
        yield tmp_path


def url_of(*folders: Path, database: str = "postgres") -> str:
    return f"postgresql://postgres@/{database}?host={','.join(map(str, folders))}&connect_timeout=60"


async def where(database_url: str) -> str:
    connection = await connect(database_url, "cronring test")
    try:
        told: str = await connection.fetchval("SHOW unix_socket_directories")
        return told
    finally:
        await connection.close()


@pytest.mark.parametrize("silent_first", [True, False])
async def test_a_silent_host_hides_no_other(postgres: PostgresServer, deaf: Path, silent_first: bool) -> None:
    folders = (deaf, postgres.sockets) if silent_first else (postgres.sockets, deaf)
    async with asyncio.timeout(DEAF_S):
        assert await where(url_of(*folders)) == str(postgres.sockets)


async def test_the_pool_and_its_statements_do_not_wait_for_a_silent_host(postgres: PostgresServer, deaf: Path) -> None:
    async with asyncio.timeout(DEAF_S):
        database = await Database.open(url_of(deaf, postgres.sockets, database=TEMPLATE), "cronring test")
        assert await database.fetch(GetNow())
        await database.close()


@pytest.mark.parametrize("newest_first", [True, False])
async def test_of_two_that_take_writes_the_one_that_was_promoted_last_is_used(
    postgres: PostgresServer, promoted: PostgresServer, newest_first: bool
) -> None:
    folders = (promoted.sockets, postgres.sockets) if newest_first else (postgres.sockets, promoted.sockets)
    assert await where(url_of(*folders)) == str(promoted.sockets)


async def test_a_pool_leaves_an_old_primary_whose_statements_do_not_come_to_an_end(
    postgres: PostgresServer, promoted: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND_TIMEOUT_S", 1.5)
    promoted.stop()
    url = url_of(postgres.sockets, promoted.sockets, database=TEMPLATE)
    database = await Database.open(url, "cronring test", connections=3)
    try:
        assert await _all_of(database) == {str(postgres.sockets)}
        promoted.start()
        assert await _all_of(database) == {str(postgres.sockets)}, "nothing has told yet"
        with pytest.raises(StoreUnavailable):
            async with database._connection("waiting for a standby") as connection:
                await connection.execute("SELECT pg_sleep(60)")
        assert await _all_of(database) == {str(promoted.sockets)}
    finally:
        await database.close()


async def _all_of(database: Database) -> set[str]:
    """Where three connections at once lead."""

    async def ask(everybody: asyncio.Barrier) -> str:
        async with database._connection("asking") as connection:
            await everybody.wait()
            told: str = await connection.fetchval("SHOW unix_socket_directories")
            return told

    barrier = asyncio.Barrier(3)
    return set(await asyncio.gather(*(ask(barrier) for _ in range(3))))


async def test_when_none_takes_writes_it_is_worth_another_try(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute(f"ALTER DATABASE {TEMPLATE} SET default_transaction_read_only = on")
    try:
        with pytest.raises(StoreUnavailable):
            await where(url_of(postgres.sockets, tmp_path, database=TEMPLATE))
    finally:
        postgres.execute(f"ALTER DATABASE {TEMPLATE} RESET default_transaction_read_only")


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://u:p@a,b:5433,[::1]:5434/d", [("a", 5432), ("b", 5433), ("::1", 5434)]),
        ("postgresql://a:1,b:2/d?target_session_attrs=read-write", [("a", 1), ("b", 2)]),
        ("postgresql://u@%2Ftmp%2Fx,b/d", [("/tmp/x", 5432), ("b", 5432)]),
        ("postgresql:///d?host=/tmp/x,b&port=5433", [("/tmp/x", 5433), ("b", 5433)]),
        ("postgresql://u@/d?host=a,b&port=1,2", [("a", 1), ("b", 2)]),
        ("postgresql://u@a/d", [("a", 5432)]),
        ("postgresql://[::1]/d", [("::1", 5432)]),
        ("postgresql:///d", []),
        ("postgresql://u@/d?sslmode=disable", []),
    ],
)
def test_the_hosts_of_a_url(url: str, hosts: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPORT", raising=False)
    assert named_hosts(url) == hosts
