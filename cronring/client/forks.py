"""gRPC and fork(): what a process may do that was forked from one with open channels.

docs/decisions/0096: with a channel open at the fork, gRPC in the child hangs or crashes. Without one, both go on.
"""

import contextlib
import gc
import os
import threading
import time
from pathlib import Path
from typing import Final

from cronring.client.errors import ClientError

SETTLE_MAX_S: Final = 1.0  # threads of others, that came since, must not hold up a fork for long
SETTLE_PAUSE_S: Final = 0.001
_WORDS: Final = (
    "this process was forked while a client of its parent was in use, so gRPC would hang here. "
    "Make clients in the workers (gunicorn: post_fork; Celery: worker_process_init), or close them before the fork"
)


class ForkedError(ClientError):
    """This process can have no client: its parent had one in use when it was forked."""


class OpenChannels:
    """Of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._is_lost = False
        self._before: set[int] | None = None  # threads of others; None: gRPC has none of its own

    def opened(self) -> None:
        """One more. Raises ForkedError."""
        with self._lock:
            if self._is_lost:
                raise ForkedError(_WORDS)
            if self._count == 0:
                self._before = _foreign_threads()
            self._count += 1

    def closed(self, count: int) -> None:
        with self._lock:
            self._count = max(0, self._count - count)  # a forked process may close what its parent opened

    def wait_for_threads(self) -> None:
        """gRPC ends its threads after the last channel was closed, and not at once. With one of them a fork hangs."""
        if self._before is None or self._count:
            return
        gc.collect()  # calls that have ended stay in cycles, and gRPC's poller with them
        until_s = time.monotonic() + SETTLE_MAX_S
        while _foreign_threads() - self._before and time.monotonic() < until_s:
            time.sleep(SETTLE_PAUSE_S)
        self._before = None

    def in_child(self) -> None:
        self._lock = threading.Lock()  # another thread of the parent may have had it
        self._is_lost = self._is_lost or self._count > 0
        self._count = 0


def _foreign_threads() -> set[int]:
    """Those that Python doesn't know. Where nobody can tell, none."""
    with contextlib.suppress(OSError):
        known = {each.native_id for each in threading.enumerate()}
        return {int(each.name) for each in Path("/proc/self/task").iterdir()} - known
    return set()


CHANNELS: Final = OpenChannels()
os.register_at_fork(after_in_child=CHANNELS.in_child)
