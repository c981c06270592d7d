"""The user that verbs run as, where that isn't the runner's own: `--run-as USER[:GROUP]`."""

import grp
import os
import pwd
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

UMASK: Final = 0o077  # what a verb writes is its user's alone, unless it says otherwise
# To start a process as somebody else, and to end it.
_NEEDED: Final = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}


@dataclass(frozen=True, slots=True)
class RunAs:
    """`groups`: all of its groups, `gid` among them."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    def environment(self) -> dict[str, str]:
        """What login(1) would set."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}


def find_user(text: str) -> RunAs:
    """USER has its groups, USER:GROUP that group alone; both are names or numbers.

    Raises ValueError for one that doesn't exist, that is root or this process's own, or that it may not become.
    """
    user, colon, group = text.partition(":")
    name, uid, own_gid, home = _user(user)
    if uid == 0:
        raise ValueError("--run-as: root reaches whatever the runner holds; name another user")
    if uid == os.geteuid():
        raise ValueError(f"--run-as: {user} is the runner's own user, so its verbs would reach what it holds")
    gid = _group(group) if colon else own_gid
    if gid is None:
        raise ValueError(f"--run-as: no user has the number {uid}, so its group isn't known; give {uid}:GROUP")
    groups = tuple(os.getgrouplist(name, gid)) if not colon else (gid,)
    _require_rights()
    return RunAs(name, uid, gid, groups, home)


def _user(text: str) -> tuple[str, int, int | None, str]:
    """(name, uid, gid, home); no gid where only the number is known."""
    try:
        entry = pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except (KeyError, OverflowError):
        if not text.isdecimal() or int(text) >= 2**32 - 1:
            raise ValueError(f"--run-as: there is no user {text!r} here") from None
        return text, int(text), None, "/"
    return entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir


def _group(text: str) -> int:
    if text.isdecimal() and int(text) < 2**32 - 1:
        return int(text)
    try:
        return grp.getgrnam(text).gr_gid
    except KeyError:
        raise ValueError(f"--run-as: there is no group {text!r} here") from None


def _require_rights() -> None:
    lacks = [name for name, bit in _NEEDED.items() if not _capabilities() >> bit & 1]
    if lacks:
        raise ValueError(
            f"--run-as: only root may do that, or a process with {', '.join(_NEEDED)}; this one lacks"
            f" {', '.join(lacks)}. Start it as root, or with systemd's AmbientCapabilities={' '.join(_NEEDED)};"
            " without --run-as, verbs are the runner's own user"
        )


def _capabilities() -> int:
    """The effective ones, as a bit each."""
    if sys.platform != "linux":
        return -1 if os.geteuid() == 0 else 0
    _, _, rest = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").partition("CapEff:")
    return int(rest.split(None, 1)[0], 16)
