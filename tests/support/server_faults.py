"""What operators, other programs and bad luck do to a PostgreSQL that runs."""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import asyncpg
import psutil

from tests.support.databases import PostgresServer, run_coroutine
from tests.support.looking import look

TERMINATE_ALL: Final = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Storm:
    """In a `with`: every connection to the database is ended, over and over. `ended` counts them, `blows` how often."""

    def __init__(self, database_url: str, every_s: float = 1.0) -> None:
        self._url = database_url
        self._every_s = every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._blow()))
        self.blows = 0
        self.ended = 0

    def __enter__(self) -> "Storm":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    async def _blow(self) -> None:
        connection = await look(self._url)
        try:
            while not self._over.is_set():
                self.ended += await connection.fetchval(TERMINATE_ALL)
                self.blows += 1
                await asyncio.sleep(self._every_s)
        finally:
            await connection.close()


@contextlib.contextmanager
def held(database_url: str, *statements: str) -> Iterator[None]:
    """A session that has run these in a transaction and sits on their locks until the end of the `with`."""
    done, taken = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    async def hold() -> None:
        connection = await look(database_url)
        try:
            async with connection.transaction():
                for statement in statements:
                    await connection.execute(statement)
                taken.set()
                await asyncio.to_thread(done.wait)
        finally:
            await connection.close()

    def run() -> None:
        try:
            asyncio.run(hold())
        except BaseException as error:
            errors.append(error)
            taken.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        taken.wait()
        if errors:
            raise errors[0]
        yield
    finally:
        done.set()
        thread.join()


def kill_nine(server: PostgresServer) -> None:
    """kill -9 of the postmaster and of all its processes, and reaped: nothing is written or said any more."""
    processes = psutil.Process(server.pid).children(recursive=True)
    server.end(signal.SIGKILL)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=60)


def kill_backend(server: PostgresServer, database: str) -> int:
    """kill -9 of one backend of the database: PostgreSQL ends all the others and recovers by itself. Its pid.

    Returns when they are gone: until then it may take a connection more, and isn't recovering yet.
    """
    others = psutil.Process(server.pid).children()
    pid: int = fetch_value(
        server.url(),
        "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' LIMIT 1",
        database,
    )
    server.crash_log.excuse(rf"\(PID {pid}\) was terminated by signal 9")
    server.crash_log.excuse("terminating any other active server processes")
    psutil.Process(pid).kill()
    _, alive = psutil.wait_procs(others, timeout=30)
    assert not alive, f"PostgreSQL did not end {alive}"
    return pid


def fetch_value(database_url: str, statement: str, *arguments: Any) -> Any:
    async def fetch() -> Any:
        connection = await look(database_url)
        try:
            return await connection.fetchval(statement, *arguments)
        finally:
            await connection.close()

    return run_coroutine(fetch())


def wait_until_it_answers(database_url: str, seconds: float = 60.0) -> None:
    """Until a new connection can write. Raises AssertionError with the last refusal."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if fetch_value(database_url, "SHOW transaction_read_only") == "off":
                return
        except (OSError, asyncpg.PostgresError) as error:
            if time.monotonic() > deadline:
                raise AssertionError(f"no answer after {seconds:g} s") from error
        time.sleep(0.05)  # a poll with a deadline: a server that recovers has no other way to tell
