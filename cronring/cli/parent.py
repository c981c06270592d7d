"""A process that must not outlive whoever started it watches its standard input: the kernel closes it with them."""

import os
import signal
import threading
import time
from typing import Final

GRACE_S: Final = 3.0


def watch_parent(wanted: bool) -> None:
    """If wanted: SIGTERM to this process when its standard input ends, and SIGKILL if it is still there 3 s later."""
    if not wanted:
        return
    os.environ.pop("CRONRING_STOP_ON_EOF", None)  # for this process alone, not for those that it starts
    threading.Thread(target=_watch, name="parent-watch", daemon=True).start()


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.kill(os.getpid(), signal.SIGKILL)
