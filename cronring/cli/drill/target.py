"""Which process `--kill` may kill: a controller that a living `cronring dev` on this machine has started, no other."""

import os
import signal
from typing import Final

from cronring.cli.failures import Failure
from cronring.client.model import Member
from cronring.trust.names import DEV_PARENT

INSTEAD: Final = "Without --kill, the controller only stops claiming for a while, which is safe anywhere"


def require_dev(member: Member) -> None:
    """Raises Failure unless the member's process is here, at that address, and the child of a `cronring dev`.

    The process says so itself: by the mark that dev gave it, which must name its living parent, and by its arguments.
    Ids of processes on other machines, or of others that took them over, have neither.
    """
    try:
        import psutil
    except ImportError:
        raise Failure(
            f"--kill needs psutil to be sure of its process: pip install 'cronring[embedded]'. {INSTEAD}"
        ) from None
    try:
        process = psutil.Process(member.pid)
        mark, parent, arguments = process.environ().get(DEV_PARENT), process.ppid(), process.cmdline()
    except psutil.Error:
        raise _not_dev(member, "no process of yours on this machine has its id") from None
    if mark is None or mark != str(parent):
        raise _not_dev(member, "no `cronring dev` on this machine has started it")
    if member.grpc_address not in arguments:
        raise _not_dev(member, f"the process with its id does not listen at {member.grpc_address}")


def kill(member: Member) -> None:
    """kill -9. Raises Failure as require_dev, which is asked once more."""
    require_dev(member)
    os.kill(member.pid, signal.SIGKILL)


def _not_dev(member: Member, why: str) -> Failure:
    return Failure(
        f"--kill is for clusters of `cronring dev` only, and {member.id} (process {member.pid}) is none: {why}. "
        f"{INSTEAD}; to see a kill, run `cronring dev MODULE.py` and point --controllers at it"
    )
