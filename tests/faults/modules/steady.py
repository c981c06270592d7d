"""The load of the trials: about twenty ticks a second of all kinds of verbs, which note their starts and ends."""

import asyncio
import json
import os
import time

from cronring import Context, cron

LONG_S = 6.0
NOTE_S = 0.1


def note(event: str, ctx: Context) -> None:
    entry = {
        "event": event, "verb": ctx.job.split(".")[-1], "execution": ctx.execution_id, "tick": ctx.tick.timestamp(),
        "attempt": ctx.attempt, "at": time.time(), "pid": os.getpid(),
    }  # fmt: skip
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


async def go_on(ctx: Context) -> None:
    """For some seconds, noting each tenth of one that it still does."""
    note("start", ctx)
    for _ in range(round(LONG_S / NOTE_S)):
        note("on", ctx)
        await asyncio.sleep(NOTE_S)
    note("end", ctx)


async def brief(ctx: Context) -> None:
    note("start", ctx)
    await asyncio.sleep(0.02)
    note("end", ctx)


for number in range(14):

    async def run(ctx: Context) -> None:
        await brief(ctx)

    run.__name__ = run.__qualname__ = f"brief_{number:02}"
    globals()[run.__name__] = cron("* * * * * *")(run)


@cron("* * * * * *")
def sync(ctx: Context) -> None:
    note("start", ctx)
    time.sleep(0.05)
    note("end", ctx)


@cron("* * * * * *", on_missed="skip")
async def missed_skipped(ctx: Context) -> None:
    await brief(ctx)


@cron("*/5 * * * * *", on_missed="run_all")
async def missed_all(ctx: Context) -> None:
    await brief(ctx)


@cron("*/2 * * * * *")
async def longer_than_its_period(ctx: Context) -> None:
    note("start", ctx)
    for _ in range(30):
        note("on", ctx)
        await asyncio.sleep(NOTE_S)
    note("end", ctx)


@cron("*/10 * * * * *")
async def long(ctx: Context) -> None:
    await go_on(ctx)


@cron("*/10 * * * * *")
def long_sync(ctx: Context) -> None:
    note("start", ctx)
    for _ in range(round(LONG_S / NOTE_S)):
        note("on", ctx)
        time.sleep(NOTE_S)
    note("end", ctx)


@cron("*/10 * * * * *", on_disconnect="finish")
async def finishing(ctx: Context) -> None:
    await go_on(ctx)


@cron("*/10 * * * * *", retries=3, backoff="1s")
async def retried(ctx: Context) -> None:
    """Tried again when its runner or child dies."""
    await go_on(ctx)
