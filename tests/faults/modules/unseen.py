"""Verbs that run for longer than a runner may be out of sight: some are stopped then, others may finish."""

import asyncio
import json
import os
import time

from cronring import Context, cron

NOTE_S = 0.1
UNSEEN_S = 12.0  # so long do they run


async def go_on(ctx: Context) -> None:
    note("start", ctx)
    for _ in range(round(UNSEEN_S / NOTE_S)):
        note("on", ctx)
        await asyncio.sleep(NOTE_S)
    note("end", ctx)


def note(event: str, ctx: Context) -> None:
    entry = {
        "event": event, "verb": ctx.job.split(".")[-1], "execution": ctx.execution_id, "tick": ctx.tick.timestamp(),
        "attempt": ctx.attempt, "at": time.time(), "pid": os.getpid(),
    }  # fmt: skip
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


@cron("*/15 * * * * *")
async def unseen_stopped_a(ctx: Context) -> None:
    await go_on(ctx)


@cron("*/15 * * * * *")
async def unseen_stopped_b(ctx: Context) -> None:
    await go_on(ctx)


@cron("*/15 * * * * *", on_disconnect="finish")
async def unseen_finishing_a(ctx: Context) -> None:
    await go_on(ctx)


@cron("*/15 * * * * *", on_disconnect="finish")
async def unseen_finishing_b(ctx: Context) -> None:
    await go_on(ctx)
