"""The signal that raises VerbStopped inside the verb that it is meant for, and nowhere else."""

from __future__ import annotations

import os
import signal
from types import FrameType

from cronring.child.board import CURRENT, DELIVERED, SLOT_BITS, STOP_SIGNAL, TARGET
from cronring.context import VerbStopped

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Our files that call an author's code. The frame directly above one of them is the verb's.
_CALLERS = (_HERE + "steps.py", _HERE + "verbs.py")


class Stops:
    """`delivered`: VerbStopped has been raised since this was last set to False."""

    def __init__(self, board: memoryview) -> None:
        self.delivered = False
        self._board = board

    def listen(self) -> None:
        """Install the handler. Too late, or inside our own code, it does nothing; the runner repeats the signal."""
        signal.signal(STOP_SIGNAL, self._stop)

    def _stop(self, _signum: int, frame: FrameType | None) -> None:
        target = self._board[TARGET]
        if target == self._board[DELIVERED] or self._board[CURRENT] != target & (1 << SLOT_BITS) - 1:
            return
        if _in_verb(frame):
            self._board[DELIVERED] = target
            self.delivered = True
            raise VerbStopped("this run must stop: its deadline has passed, or it was cancelled")


def _in_verb(frame: FrameType | None) -> bool:
    if frame is None or frame.f_code.co_filename.startswith(_HERE):
        return False
    while frame is not None and not frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename in _CALLERS
