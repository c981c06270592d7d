"""python -m tests.proxies.counting FOLDER python (-m MODULE | FILE) ARGUMENTS: run that here, and count its calls.

At SIGWINCH, which nobody else minds, the calls of functions so far, Python's and C's, are written to FOLDER/calls.PID,
as JSON by function. cProfile counts what the main thread calls: its event loop with all that is done there.
"""

import json
import os
import runpy
import signal
import sys
from cProfile import Profile
from pathlib import Path
from types import FrameType

from tests.proxies.metered import counted


def calls_file(folder: Path, pid: int) -> Path:
    return folder / f"calls.{pid}"


def main() -> None:
    folder, _, *command = sys.argv[1:]
    profile = Profile()

    def write(_signum: int, _frame: FrameType | None) -> None:
        profile.disable()
        file = calls_file(Path(folder), os.getpid())
        unfinished = file.with_name(f"unfinished.{os.getpid()}")
        unfinished.write_text(json.dumps(counted(profile)))
        unfinished.replace(file)
        profile.enable()

    signal.signal(signal.SIGWINCH, write)
    is_module = command[0] == "-m"
    sys.argv = command[1:] if is_module else command
    profile.enable()
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
