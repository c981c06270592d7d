"""Where each `cronring dev` of this user can be asked: a file that its process holds locked as long as it lives.

The lock is what counts: a file that nobody holds is what a killed dev left. Whoever has it has the fixed ports, too,
unless another user's dev has them.
"""

import contextlib
import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import IO, Final

from cronring.client.running_dev import DevTold, context_file, is_free, other_files

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
TRIES: Final = 5
TRY_AGAIN_S: Final = 0.01
PORTS_NAME: Final = "\0cronring dev: fixed ports"  # in Linux's abstract namespace: no file, and gone with its process


class DevHold:
    """One dev's hold on a file of its own. The first dev has `dev.json`, and is the one that commands find by default.

    `first` is false where another dev is the first, or there is nowhere to write.
    """

    def __init__(self) -> None:
        self.path = context_file()
        self._file: IO[str] | None = None

    @property
    def first(self) -> bool:
        return self._file is not None and self.path == context_file()

    def take(self) -> bool:
        """Hold one from now on. Whether it is the first one's."""
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            try:
                self._file = _held(self.path)
            except BlockingIOError:
                self._take_another()
        return self.first

    def _take_another(self) -> None:
        """Its name is given once it is locked: before, another dev could take it for what a killed one left."""
        for other in other_files():
            with contextlib.suppress(OSError), other.open() as opened:
                if is_free(opened):
                    other.unlink()
        beginning = self.path.with_name(f".dev-{os.getpid()}")
        self._file = _held(beginning)
        self.path = beginning.rename(self.path.with_name(f"dev-{os.getpid()}.json"))

    def tell(self, told: "DevTold") -> None:
        """From now on other terminals find its controllers, and who they are."""
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()
            json.dump(told._asdict() | {"pid": os.getpid()}, self._file)
            self._file.flush()

    def release(self) -> None:
        """The first one's is emptied rather than removed: another dev may wait at the very file that would be gone."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.seek(0)
                self._file.truncate()
                if not self.first:
                    self.path.unlink()
            self._file.close()
            self._file = None


def _held(path: Path) -> IO[str]:
    """The file, locked. Raises BlockingIOError where another dev has it; OSError."""
    opened = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE), "r+")
    try:
        _lock(opened)
        opened.truncate()
        os.fchmod(opened.fileno(), FILE_MODE)
    except OSError:
        opened.close()
        raise
    return opened


class FixedPorts:
    """One dev's hold on the fixed ports of this machine.

    Devs with different files would both find them free, as controllers listen there only a second later.
    """

    def __init__(self) -> None:
        self._holder: socket.socket | None = None

    def take(self) -> bool:
        """Hold them from now on, if nobody does. Where there is no such hold, whoever asks has them."""
        if sys.platform != "linux":
            return True
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(PORTS_NAME)
        except OSError:
            holder.close()
            return False
        self._holder = holder
        return True

    def release(self) -> None:
        if self._holder is not None:
            self._holder.close()
            self._holder = None


def _lock(opened: IO[str]) -> None:
    """Raises OSError where another dev has it. A command that asks whether one has it holds it for an instant, too."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(TRY_AGAIN_S)
    return fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
