"""What other modules follow: ticks that succeed, but for every fourth."""

import json
import os
import time

from cronring import Context, cron


def note(ctx: Context) -> None:
    entry = {"job": ctx.job, "tick": ctx.tick.timestamp(), "trigger": ctx.trigger, "at": time.time()}
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


@cron("*/2 * * * * *")
async def close(ctx: Context) -> None:
    note(ctx)
    if ctx.tick.second % 8 == 0:
        raise ValueError("not every tick succeeds")
