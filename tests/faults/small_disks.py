"""A stage's PostgreSQL on two small file systems, one for its tables and one for its write-ahead log."""

import contextlib
import signal
import time
from typing import Final

import asyncpg

from tests.faults.stage import Stage
from tests.support.databases import running_server
from tests.support.disks import can_mount, mounted_disk, move_wal
from tests.support.server_faults import fetch_value

TABLES_MIB: Final = 400
WAL_MIB: Final = 96
NO_SPACE: Final = "No space left on device"
FILLS_WITHIN_S: Final = 30.0
MESSAGE: Final = "SELECT pg_logical_emit_message(false, 'test', repeat('x', 200000))"


def cannot_mount() -> str:
    return "" if can_mount() else "needs the right to mount a tmpfs (root)"


class ServerOnDisks:
    """Becomes the stage's server. Segments of the log are 1 MiB, so that it needs another one often."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._refused = 0
        self._tables = stage.stack.enter_context(mounted_disk(TABLES_MIB))
        self._wal = stage.stack.enter_context(mounted_disk(WAL_MIB))
        self._server = stage.stack.enter_context(running_server("postgres18", folder=self._tables.path, durable=True))
        self._server.stop()
        self._server.run("pg_resetwal", "--wal-segsize=1", "-D", str(self._server.data))
        move_wal(self._server, self._wal.path)
        self._server.settings |= {"min_wal_size": "2MB", "max_wal_size": "4MB"}
        self._server.start()
        stage.server = self._server

    def tables_full(self, seconds: float) -> str:
        """No table, index or temporary file grows for so long, counted from the first refusal. What PostgreSQL said."""
        mark = self._log_size()
        self._tables.fill()
        try:
            told = self._wait_for_refusal(mark, "ERROR")
            self._stage.pass_time(seconds)
        finally:
            self._tables.relieve()
        return told

    def wal_full(self, seconds: float) -> str:
        """The same of the log, which somebody else fills as well. PostgreSQL panics; a supervisor starts it again."""
        mark = self._log_size()
        for meant in (
            f"PANIC: .*{NO_SPACE}",
            "terminated by signal 6",
            "terminating any other active server processes",
        ):
            self._server.crash_log.excuse(meant)
        self._wal.fill()
        try:
            self._write_much()
            told = self._wait_for_refusal(mark, "PANIC")
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                self._stage.pass_time(0.5)
                self._supervise(ready=False)
        finally:
            self._wal.relieve()
        self._supervise(ready=True)
        return told

    def _write_much(self) -> None:
        """Another program of the same server's, until it can't."""
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            for _ in range(WAL_MIB * 10):
                fetch_value(self._server.url(), MESSAGE)

    def _supervise(self, *, ready: bool) -> None:
        """Start it again if it has given up; without `ready` it may give up once more."""
        if self._server.alive():
            return
        self._server.end(signal.SIGQUIT)
        try:
            self._server.start()
        except AssertionError:
            if ready:
                raise
            self._refused += 1
            self._stage.measured["starts refused"] = str(self._refused)

    def _log_size(self) -> int:
        return self._server.log.stat().st_size

    def _wait_for_refusal(self, mark: int, level: str) -> str:
        def told() -> str:
            lines = self._server.log.read_bytes()[mark:].decode(errors="replace").splitlines()
            return next((line for line in lines if NO_SPACE in line and level in line), "")

        self._stage.wait_until(f"{level}: {NO_SPACE}", lambda: bool(told()), FILLS_WITHIN_S)
        return told()
