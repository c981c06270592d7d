"""Processes of other users than root, whose interpreter may lie where root alone looks."""

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Final

import pytest

USER, OTHER = 65_534, 1  # nobody, daemon: every Linux has them
# A view of its own: a copy of the way to the interpreter, with nothing else on it, that everybody may go.
_OPENED: Final = (
    'mount --bind "$1" /mnt; mount -t tmpfs -o mode=755 cronring-test "$2"; mkdir -p "$1"; mount --move /mnt "$1"; '
    'shift 2; exec "$@"'
)


def as_user(uid: int, capabilities: str = "") -> tuple[str, ...]:
    """A command that starts another as that user, and its group alone. `capabilities`: as setpriv has them."""
    kept = [f"--{kind}={capabilities}" for kind in ("inh-caps", "ambient-caps", "bounding-set") if capabilities]
    return (*_opened(), "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *kept)


def as_root(capabilities: str = "+all") -> tuple[str, ...]:
    """A command that starts another, as a root with no more than these. Skips the test where nobody can be others."""
    if os.geteuid() != 0 or not shutil.which("setpriv") or not shutil.which("unshare"):
        pytest.skip("only root can be others, by util-linux")
    return (*_opened(), "setpriv", f"--bounding-set={capabilities}")


def _opened() -> tuple[str, ...]:
    home = Path(sys.base_prefix)
    closed = next((each for each in reversed(home.parents) if not each.stat().st_mode & stat.S_IXOTH), None)
    return ("unshare", "--mount", "sh", "-ec", _OPENED, "sh", str(home), str(closed)) if closed is not None else ()


def python_for_all() -> str:
    """An interpreter that others may start. Skips the test where there is none."""
    found = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if os.geteuid() != 0 or found is None:
        pytest.skip("only root can be others, and they need an interpreter outside of its home")
    return found
