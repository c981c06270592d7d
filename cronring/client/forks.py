"""gRPC and fork(): what a process may do that was forked from one with open channels.

docs/decisions/0096: with a channel open at the fork, gRPC in the child hangs or crashes. Without one, both go on.
"""

import os
import threading
from typing import Final

from cronring.client.errors import ClientError

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

    def opened(self) -> None:
        """One more. Raises ForkedError."""
        with self._lock:
            if self._is_lost:
                raise ForkedError(_WORDS)
            self._count += 1

    def closed(self, count: int) -> None:
        with self._lock:
            self._count = max(0, self._count - count)  # a forked process may close what its parent opened

    def in_child(self) -> None:
        self._lock = threading.Lock()  # another thread of the parent may have had it
        self._is_lost = self._is_lost or self._count > 0
        self._count = 0


CHANNELS: Final = OpenChannels()
os.register_at_fork(after_in_child=CHANNELS.in_child)
