"""What a process on Linux may decide about itself, by prctl(2). Elsewhere nothing of this happens."""

import ctypes
import os
import sys
from typing import Final

_SET_DUMPABLE: Final = 4
_SET_NO_NEW_PRIVS: Final = 38
_CAP_AMBIENT: Final = 47
_CAP_AMBIENT_CLEAR_ALL: Final = 4


# docs/decisions/0075: the verbs that a runner starts are processes of its user, as a rule
def close_to_own_user() -> None:
    """From here on other processes of this user can't read this one's memory, environment and descriptors.

    Nor can they trace it, and it leaves no core dump. To root nothing is closed. What it starts (exec) is open again.
    Raises OSError.
    """
    _prctl(_SET_DUMPABLE, 0)


def gain_nothing_by_exec() -> None:
    """No program that this process or a descendant starts has rights by its file (setuid), or by being started.

    Under another user, such a program has no capability of this process. Raises OSError.
    """
    _prctl(_SET_NO_NEW_PRIVS, 1)
    _prctl(_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL)


def _prctl(what: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    # The kernel reads longs: of an int, the upper half may hold anything.
    if libc.prctl(ctypes.c_long(what), *map(ctypes.c_long, (value, 0, 0, 0))) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({what}): {os.strerror(number)}")
