"""`cronring dev` as a user starts it, in a process of its own, and who of its family still lives."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import psutil

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "demo.py"
MARK = "TESTED_FAMILY"
PATIENCE_S = 200.0  # on a machine whose cores are all at work; only who fails waits for so long


class Dev:
    """Started in a `with`; its output is read line by line. Its whole family is killed at the end."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        terminal: int | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        more = environment or {}
        self.family = uuid.uuid4().hex
        # pytest-xdist sets COLUMNS for its workers: here the terminal's own size counts.
        environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith("CRONRING_") and name not in {"COLUMNS", "LINES"}
        }  # fmt: skip
        environment |= {
            MARK: self.family,
            "TMPDIR": str(folder),
            "TERM": "xterm-256color",
            "PYTHONUNBUFFERED": "1",
        } | more
        self.errors = folder / "stderr"
        with self.errors.open("wb") as errors:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "cronring.cli.main", "dev", *arguments],
                stdout=subprocess.PIPE if terminal is None else terminal, stderr=errors, stdin=subprocess.DEVNULL,
                env=environment, cwd=ROOT, start_new_session=True, text=True,
            )  # fmt: skip
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        if terminal is None:
            threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Dev":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.living():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended meanwhile
                process.kill()
        self.popen.wait(PATIENCE_S)
        if self.popen.stdout is not None:
            self.popen.stdout.close()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def wait_for(self, wanted: Callable[[str], bool], timeout_s: float = PATIENCE_S) -> str:
        """The next line that is wanted. Fails with everything printed when it doesn't come."""
        deadline = time.monotonic() + timeout_s
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self._queue.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                break
            self.lines.append(line)
            if wanted(line):
                return line
        raise AssertionError("it did not come:\n" + "\n".join(self.lines[-60:]) + "\n" + self.errors.read_text())

    def stop_reading(self) -> None:
        """Close the reading end, as `| head` does."""
        assert self.popen.stdout is not None
        # Not popen.stdout.close(): it would wait for the lock that the reading thread holds.
        os.dup2(os.open(os.devnull, os.O_RDONLY), self.popen.stdout.fileno())

    def finish(self) -> int:
        """Everything it still prints, and its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while (line := self._queue.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            self.lines.append(line)
        return self.popen.wait(timeout=max(0.1, deadline - time.monotonic()))

    def pid_of(self, name: str) -> int:
        """Of the latest process that was started under this name."""
        found = [fields(line) for line in self.lines if " process_started " in line]
        return int(next(each["pid"] for each in reversed(found) if each["name"] == name))

    def living(self) -> list[psutil.Process]:
        """Everybody who inherited this session's environment, and is no zombie."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.family and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def wait_gone(self, timeout_s: float = PATIENCE_S) -> list[str]:
        """Command lines of those who still live after `timeout_s`; empty as soon as there is nobody."""
        deadline = time.monotonic() + timeout_s
        while (left := self.living()) and time.monotonic() < deadline:
            psutil.wait_procs(left, timeout=0.2)
        return [str(process) for process in left if process.is_running()]

    def interrupt(self) -> None:
        self.popen.send_signal(signal.SIGINT)


def fields(line: str) -> dict[str, str]:
    """`key=value` of a plain line, for values without blanks."""
    return dict(part.split("=", 1) for part in line.split() if "=" in part)
