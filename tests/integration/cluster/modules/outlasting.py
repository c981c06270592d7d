"""Verbs that run for longer than an outage takes, beside one each second. They note how they go on, for the judge."""

import asyncio
import json
import os
import time

from cronring import Context, cron

RUN_S = 14.0
NOTE_S = 0.1


def note(event: str, verb: str, ctx: Context) -> None:
    entry = {
        "event": event, "verb": verb, "execution": ctx.execution_id, "tick": ctx.tick.timestamp(), "at": time.time(),
    }  # fmt: skip
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


async def run_on(verb: str, ctx: Context) -> None:
    note("start", verb, ctx)
    for _ in range(round(RUN_S / NOTE_S)):
        note("on", verb, ctx)
        await asyncio.sleep(NOTE_S)
    note("end", verb, ctx)


@cron("* * * * * *")
async def brief(ctx: Context) -> None:
    note("start", "brief", ctx)
    note("end", "brief", ctx)


@cron("*/5 * * * * *")
async def stopping(ctx: Context) -> None:
    await run_on("stopping", ctx)


@cron("*/5 * * * * *")
def stopping_sync(ctx: Context) -> None:
    note("start", "stopping_sync", ctx)
    for _ in range(round(RUN_S / NOTE_S)):
        note("on", "stopping_sync", ctx)
        time.sleep(NOTE_S)
    note("end", "stopping_sync", ctx)


@cron("*/5 * * * * *", on_disconnect="finish")
async def finishing(ctx: Context) -> None:
    await run_on("finishing", ctx)
