"""What test servers say when they crash: read after every test, only what is new."""

import re
from pathlib import Path
from typing import Final

# Words of the postmaster and of its processes. A shutdown, a recovery and an error of a statement are none.
CRASH: Final = re.compile(
    r"terminated by signal|server process \(PID|PANIC: |TRAP: |terminating any other active server processes"
    r"|invalid page in block|could not read blocks? \d|missing chunk number|stack smashing|double free|munmap_chunk"
)


class ServerLog:
    """One server's log. `excuse` is for faults that crash it on purpose, and names the lines that these make."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        self._excused: list[re.Pattern[str]] = []

    def excuse(self, pattern: str) -> None:
        """Lines in which this is found are meant to be there, from now on."""
        self._excused.append(re.compile(pattern))

    def crashes(self) -> list[str]:
        """The lines about crashes that nobody has read yet."""
        try:
            if self.path.stat().st_size <= self._read:
                return []
            with self.path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return []
        whole = new.rpartition(b"\n")[0]
        self._read += len(whole)
        lines = whole.decode(errors="replace").splitlines()
        return [line for line in lines if CRASH.search(line) and not any(each.search(line) for each in self._excused)]


class ServerLogs:
    """Those of all servers that run, and what those said that have been closed since somebody asked."""

    def __init__(self) -> None:
        self._open: list[ServerLog] = []
        self._last_words: list[str] = []

    def open(self, path: Path) -> ServerLog:
        log = ServerLog(path)
        self._open.append(log)
        return log

    def close(self, log: ServerLog) -> None:
        if log in self._open:
            self._last_words += log.crashes()
            self._open.remove(log)

    def crashes(self) -> list[str]:
        """The lines about crashes that nobody has read yet, of all of them."""
        words, self._last_words = self._last_words, []
        return words + [line for log in self._open for line in log.crashes()]


LOGS: Final = ServerLogs()
