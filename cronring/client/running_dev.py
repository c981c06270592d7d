"""Where the `cronring dev` of this user that runs can be asked, and who one is there: it tells by a file.

Its process holds the file locked as long as it lives. One that nobody holds is what a killed dev left.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any, NamedTuple


class DevTold(NamedTuple):
    """What a dev tells other terminals. `ca` and `token_file`: paths; without a CA it has plaintext."""

    controllers: tuple[str, ...]
    ca: str = ""
    token_file: str = ""


def context_file() -> Path:
    """$XDG_STATE_HOME/cronring/dev.json, as a rule below ~/.local/state."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "cronring" / "dev.json"


def other_files() -> list[Path]:
    """Files of devs that are not the first, or were not when they began."""
    return sorted(context_file().parent.glob("dev-*.json"))


def running_dev(addresses: Collection[str] = ()) -> DevTold | None:
    """What a dev that runs has told: of several, the first one that has these controllers. None where none does."""
    for path in (context_file(), *other_files()):
        told = _told(path)
        if told is not None and set(addresses) <= set(told.controllers):
            return told
    return None


def _told(path: Path) -> DevTold | None:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError), path.open() as opened:
        if os.fstat(opened.fileno()).st_uid != os.getuid() or is_free(opened):
            return None
        told: Any = json.load(opened)
        controllers = tuple(str(each) for each in told["controllers"])
        return DevTold(controllers, str(told["ca"]), str(told["token_file"]))
    return None


def controllers_of_dev() -> tuple[str, ...]:
    """The gRPC addresses of the controllers of the dev that runs; none where none does."""
    dev = running_dev()
    return dev.controllers if dev is not None else ()


def is_free(opened: IO[str]) -> bool:
    """Nobody holds it: its dev was killed, or has ended."""
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
