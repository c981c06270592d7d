"""What the verbs of the trials note of themselves: their starts, that they go on, and their ends."""

import asyncio
import json
import os
import time

from cronring import Context

NOTE_S = 0.1


def note(event: str, ctx: Context) -> None:
    entry = {
        "event": event, "verb": ctx.job.split(".")[-1], "execution": ctx.execution_id, "tick": ctx.tick.timestamp(),
        "attempt": ctx.attempt, "at": time.time(), "pid": os.getpid(),
    }  # fmt: skip
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


async def go_on(ctx: Context, seconds: float) -> None:
    """For so long, noting each tenth of a second that it still does."""
    note("start", ctx)
    for _ in range(round(seconds / NOTE_S)):
        note("on", ctx)
        await asyncio.sleep(NOTE_S)
    note("end", ctx)


def go_on_sync(ctx: Context, seconds: float) -> None:
    """The same in a thread."""
    note("start", ctx)
    for _ in range(round(seconds / NOTE_S)):
        note("on", ctx)
        time.sleep(NOTE_S)
    note("end", ctx)
