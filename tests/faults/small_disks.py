"""A stage's PostgreSQL on two small file systems, one for its data and one for its write-ahead log."""

import contextlib
import signal
import time
from collections.abc import Iterator
from typing import Final

import asyncpg

from tests.faults.stage import Stage
from tests.support.databases import running_server
from tests.support.disks import Disk, can_mount, mounted_disk, move_folder
from tests.support.server_faults import fetch_value

TABLES_MIB: Final = 400
WAL_MIB: Final = 96
NO_SPACE: Final = "No space left on device"
FILLS_WITHIN_S: Final = 30.0
MESSAGE: Final = "SELECT pg_logical_emit_message(false, 'test', repeat('x', 200000))"


def cannot_mount() -> str:
    return "" if can_mount() else "needs the right to mount a tmpfs (root)"


class ServerOnDisks:
    """Becomes the stage's server. Segments of the log are 1 MiB, so that it needs another one often.

    What it prints is on neither disk: else a full one would swallow the reason of a PANIC.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._refused = 0
        self._tables = stage.stack.enter_context(mounted_disk(TABLES_MIB))
        self._wal = stage.stack.enter_context(mounted_disk(WAL_MIB))
        self._server = stage.stack.enter_context(running_server("postgres18", durable=True))
        self._server.stop()
        self._server.run("pg_resetwal", "--wal-segsize=1", "-D", str(self._server.data))
        move_folder(self._server.data / "pg_wal", self._wal.path)
        move_folder(self._server.data, self._tables.path)
        self._server.settings |= {"min_wal_size": "2MB", "max_wal_size": "4MB"}
        self._server.start()
        stage.server = self._server

    def tables_full(self, seconds: float) -> str:
        """No table, index or temporary file grows for so long, counted from the first refusal. What PostgreSQL said."""
        mark = self._log_size()
        with self._full(self._tables):
            self._try("CHECKPOINT")
            told = self._wait_for_refusal(mark, "ERROR", "PANIC")
            self._supervise_for(seconds)
        return told

    def wal_full(self, seconds: float) -> str:
        """The same of the log, which somebody else fills as well: PostgreSQL panics."""
        mark = self._log_size()
        with self._full(self._wal):
            self._write_much()
            told = self._wait_for_refusal(mark, "PANIC")
            self._supervise_for(seconds)
        return told

    @contextlib.contextmanager
    def _full(self, disk: Disk) -> Iterator[None]:
        """PostgreSQL may panic, and a supervisor starts it again.

        It does so at once without room for its log. Without room for its data it does at some checkpoints (PostgreSQL
        18, replication/logical/origin.c: a PANIC when `pg_logical/replorigin_checkpoint` can't be written).
        """
        for meant in (
            f"PANIC: .*{NO_SPACE}",
            "terminated by signal 6",
            "terminating any other active server processes",
        ):
            self._server.crash_log.excuse(meant)
        disk.fill()
        try:
            yield
        finally:
            disk.relieve()
        self._supervise(ready=True)

    def _supervise_for(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._stage.pass_time(0.5)
            self._supervise(ready=False)

    def _write_much(self) -> None:
        """Another program of the same server's, until it can't."""
        for _ in range(WAL_MIB * 10):
            if not self._try(MESSAGE):
                return

    def _try(self, statement: str) -> bool:
        """Whether it came to its end."""
        try:
            fetch_value(self._server.url(), statement)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True

    def _supervise(self, *, ready: bool) -> None:
        """Start it again if it has given up; without `ready` it may give up once more."""
        if self._server.alive():
            return
        self._server.end(signal.SIGQUIT)
        if ready:
            self._server.start()
            return
        try:
            self._server.start(within_s=1.0)
        except AssertionError:
            self._refused += 1
            self._stage.measured["starts refused"] = str(self._refused)

    def _log_size(self) -> int:
        return self._server.log.stat().st_size

    def _wait_for_refusal(self, mark: int, *levels: str) -> str:
        def told() -> str:
            lines = self._server.log.read_bytes()[mark:].decode(errors="replace").splitlines()
            return next((line for line in lines if NO_SPACE in line and any(level in line for level in levels)), "")

        self._stage.wait_until(f"{' or '.join(levels)}: {NO_SPACE}", lambda: bool(told()), FILLS_WITHIN_S)
        return told()
