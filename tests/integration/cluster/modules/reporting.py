"""Follows another module's ticks, and itself has a follower."""

import json
import os
import time

from cronring import Context, cron


def note(ctx: Context) -> None:
    entry = {"job": ctx.job, "tick": ctx.tick.timestamp(), "trigger": ctx.trigger, "at": time.time()}
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


@cron(after="closing.close")
async def report(ctx: Context) -> None:
    note(ctx)


@cron(after="reporting.report")
def send(ctx: Context) -> None:
    note(ctx)
