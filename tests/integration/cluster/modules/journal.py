"""Verbs that note their own starts and ends, so that a judge need not believe the books."""

import asyncio
import json
import os
import time

from cronring import Context, cron


def note(event: str, verb: str, ctx: Context) -> None:
    entry = {
        "event": event, "verb": verb, "execution": ctx.execution_id, "tick": ctx.tick.timestamp(), "at": time.time(),
    }  # fmt: skip
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    note("start", "each_second", ctx)
    await asyncio.sleep(0.05)
    note("end", "each_second", ctx)


@cron("* * * * * *")
def each_second_sync(ctx: Context) -> None:
    note("start", "each_second_sync", ctx)
    time.sleep(0.05)
    note("end", "each_second_sync", ctx)


@cron("*/2 * * * * *")
async def longer_than_its_period(ctx: Context) -> None:
    note("start", "longer_than_its_period", ctx)
    try:
        await asyncio.sleep(3)  # so long does this verb run: longer than its period, as it is called
    except asyncio.CancelledError:
        note("on", "longer_than_its_period", ctx)  # until here; what is cancelled doesn't come to its end
        raise
    note("end", "longer_than_its_period", ctx)
