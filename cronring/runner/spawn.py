"""Starting a child process: its own session, its user, the descriptors that it needs, and no secret."""

import fcntl
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from cronring.child import board
from cronring.runner.run_as import UMASK, RunAs
from cronring.trust.names import without_secrets

CHILD = Path(board.__file__).parent


@dataclass(frozen=True)
class Program:
    """What children of one module run: a file, as the bytes that were read once, under an interpreter."""

    python: str
    file: Path  # absolute
    source: bytes
    namespace: str
    code: bytes = b""  # compiled by the child that described it; empty before that
    run_as: RunAs | None = None  # None: who this process is

    def source_file(self) -> IO[bytes]:
        """The bytes behind a descriptor that a child can read."""
        return _file_of(self.source)

    def code_file(self) -> IO[bytes]:
        """As `source_file`."""
        return _file_of(self.code)


def empty_file() -> IO[bytes]:
    """Without a name; the caller closes it."""
    return tempfile.TemporaryFile()


def _board_file() -> IO[bytes]:
    """Of the board's size for good, where the system can: a verb that cut it would end the runner by SIGBUS."""
    if sys.platform != "linux":
        file = empty_file()
        file.truncate(board.BYTES)
        return file
    file = os.fdopen(os.memfd_create("cronring-board", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "r+b", buffering=0)
    file.truncate(board.BYTES)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return file


def _file_of(data: bytes) -> IO[bytes]:
    file = empty_file()
    file.write(data)
    file.flush()
    return file


class Spawned(NamedTuple):
    """A process and the runner's ends of what connects them."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    output: int  # read end of its fd 1 and 2
    lifeline: int  # the child's group dies when this is closed
    words: memoryview


def spawn(program: Program, mode: str) -> Spawned:
    """Start a child in `mode` "async" or "sync". Raises OSError when the interpreter can't be started."""
    ours, theirs = socket.socketpair()
    lifeline_read, lifeline_write = os.pipe()
    output_read, output_write = os.pipe()
    with (
        theirs,
        program.source_file() as source,
        program.code_file() as code,
        _board_file() as shared,
    ):
        words = memoryview(mmap.mmap(shared.fileno(), board.BYTES)).cast("Q")
        options = {
            "socket": theirs.fileno(),
            "board": shared.fileno(),
            "source": source.fileno(),
            "code": code.fileno(),
        }
        try:
            process = start_child(program, mode, lifeline_read, output_write, options)
        except OSError:
            ours.close()
            os.close(output_read)
            os.close(lifeline_write)
            raise
        finally:
            os.close(lifeline_read)
            os.close(output_write)
    ours.setblocking(False)
    os.set_blocking(output_read, False)
    return Spawned(process, ours, output_read, lifeline_write, words)


def start_child(
    program: Program, mode: str, lifeline: int, output: int, descriptors: dict[str, int]
) -> subprocess.Popen[bytes]:
    """The bare process. It inherits the working directory, the environment but for secrets, and only these descriptors.

    Raises OSError.
    """
    whom = program.run_as
    options = {
        "mode": mode,
        "file": str(program.file),
        "namespace": program.namespace,
        "parent": os.getpid(),
        "lifeline": lifeline,
        **descriptors,
    }
    return subprocess.Popen(
        [program.python, str(CHILD), json.dumps(options)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(lifeline, *descriptors.values()),
        start_new_session=True,
        env=without_secrets() if whom is None else without_secrets() | whom.environment(),
        user=None if whom is None else whom.uid,
        group=None if whom is None else whom.gid,
        extra_groups=None if whom is None else whom.groups,
        umask=-1 if whom is None else UMASK,
    )


def reap(process: subprocess.Popen[bytes]) -> int:
    """Wait for the child's end, kill what it left of its process group, and return its exit code (-signal)."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    kill_group(process.pid)  # while the zombie still holds the number
    return process.wait()


def kill_group(pid: int) -> None:
    """SIGKILL to the child and everything that it started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return
