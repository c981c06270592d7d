"""Shared memory between a child and its runner: what survives a segfault, and can be read while a verb holds the GIL.

Each run in a child has a slot, given by the runner. Words are unsigned 64-bit, each written by one side only:

    CURRENT   child   the slot whose code is on the CPU right now; 0 while the child waits. A sync child, which runs one
                      verb at a time, leaves it at the running slot.
    STEPS     child   grows with every step of a coroutine. CURRENT set and STEPS unmoved for long: the loop is blocked.
    LINES     child   how many lines of the runner it has read.
    TARGET    runner  the slot that the next STOP_SIGNAL is for (low bits), and a number that is new for each stop.
    DELIVERED child   the TARGET for which it has raised VerbStopped in the verb.
    FENCE     runner  monotonic ns from which on the cluster may take this runner for lost; 0: not known yet.
    FENCED    child   1 while FENCE has passed and it stops, by itself, what may not run on unseen.
    UNSENT    child   1 if its runner had not read everything when a run last ended.
    state     child   one word per slot: how far its run has come, so that a crash leaves no doubt about what had begun.
                      (The runner sets WAITING before it gives the slot out.)
    recall    runner  one word per slot: 1 asks the child not to begin it any more.
    finish    runner  one word per slot: 1 lets the run go on after FENCE (`on_disconnect="finish"`).

Taking a run back needs no lock although both sides race: the child first writes STARTED, then reads `recall`; the
runner first writes `recall`, waits for many milliseconds, then reads `state`. If the runner still sees WAITING, the
child will see the recall. If it sees STARTED, the run either runs, or the child says that it handed it back.
(Dekker's algorithm, with the store's delay outwaited in place of a fence.)
"""

from __future__ import annotations

import mmap
import os
import signal

SLOTS = 8192
CURRENT, STEPS, LINES, TARGET, DELIVERED, FENCE, FENCED, UNSENT = 0, 1, 2, 3, 4, 5, 6, 7
SLOT_BITS = 16  # of TARGET
STATE = 8
RECALL = STATE + SLOTS + 1
FINISH = RECALL + SLOTS + 1
WORDS = FINISH + SLOTS + 1
BYTES = WORDS * 8

WAITING, STARTED, COMPLETED, RAISED = 0, 1, 2, 3

STOP_SIGNAL = signal.SIGUSR1  # raises in the verb of slot TARGET, if that is what runs
DUMP_SIGNAL = signal.SIGUSR2  # writes every thread's stack to the dump file, even while C code holds the GIL


def open_board(fd: int) -> memoryview:
    """The words of the board behind a file descriptor of at least BYTES bytes. Slots count from 1.

    The descriptor is closed: the mapping has one of its own.
    """
    words = memoryview(mmap.mmap(fd, BYTES)).cast("Q")
    os.close(fd)
    return words
