"""Commands on a terminal of their own, as somebody sits before it."""

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from types import TracebackType
from typing import Final

PATIENCE_S: Final = 60.0  # on a busy machine


class Terminal:
    """A command of ours on a pty, in a `with`. `seen`: all that it has shown, escapes included."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, size: tuple[int, int] = (24, 80)
    ) -> None:
        """`environment`: beside the usual one without CRONRING_*. `size`: rows and columns."""
        self._leader, follower = pty.openpty()
        ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        usual = {
            name: value for name, value in os.environ.items()
            if not name.startswith("CRONRING_") and name not in {"COLUMNS", "LINES", "NO_COLOR", "CLICOLOR"}
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cronring.cli.main", *arguments], stdin=follower, stdout=follower, stderr=follower,
            cwd=folder, env=usual | {"TERM": "xterm-256color", "CRONRING_INSECURE": "1"} | dict(environment),
            start_new_session=True,
        )  # fmt: skip
        os.close(follower)
        self.seen = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)

    def wait_for(self, sign: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while sign not in self.seen:
            more = self._read()
            assert more, f"it ended, and {sign!r} didn't come:\n{self.seen[-3000:]}"
            assert time.monotonic() < deadline, f"{sign!r} didn't come:\n{self.seen[-3000:]}"

    def interrupt(self) -> None:
        """Ctrl-C, as a terminal does it: to the whole group, once it waits.

        Python hears a signal too late that comes between the prompt that input() shows and its read, which is then
        not interrupted. Nobody's finger is that quick.
        """
        deadline = time.monotonic() + PATIENCE_S
        while Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
            assert time.monotonic() < deadline, f"it doesn't wait for anything:\n{self.seen[-3000:]}"
            time.sleep(0.01)
        os.killpg(self.process.pid, signal.SIGINT)

    def type(self, text: str) -> None:
        os.write(self._leader, text.encode())

    def finish(self) -> int:
        """Everything that it still shows, and its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read():
            assert time.monotonic() < deadline, f"it doesn't end:\n{self.seen[-3000:]}"
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        """Some more of it, if there is; False once nobody has the other end any more."""
        if select.select([self._leader], [], [], 0.2)[0]:
            try:
                data = os.read(self._leader, 1 << 16)
            except OSError:  # EIO
                return False
            self.seen += data.decode(errors="replace")
            return bool(data)
        return True
