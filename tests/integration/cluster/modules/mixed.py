"""Verbs of all policies. Each notes its start, that it goes on, and its end if it comes to one, for the judge."""

import asyncio
import json
import os
import time

from cronring import Context, cron, every

NOTE_S = 0.1


def note(event: str, verb: str, ctx: Context) -> None:
    entry = {
        "event": event, "verb": verb, "execution": ctx.execution_id, "tick": ctx.tick.timestamp(), "at": time.time(),
    }  # fmt: skip
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


async def last(verb: str, ctx: Context, seconds: float) -> None:
    note("start", verb, ctx)
    note("on", verb, ctx)
    for _ in range(round(seconds / NOTE_S)):
        await asyncio.sleep(NOTE_S)
        note("on", verb, ctx)
    note("end", verb, ctx)


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    await last("each_second", ctx, 0.1)


@cron("* * * * * *", on_missed="run_all", catch_up_window="20s")
def each_second_sync(ctx: Context) -> None:
    note("start", "each_second_sync", ctx)
    note("on", "each_second_sync", ctx)
    time.sleep(0.05)
    note("end", "each_second_sync", ctx)


@cron("* * * * * *", on_missed="skip")
async def never_late(ctx: Context) -> None:
    await last("never_late", ctx, 0.2)


@cron("*/2 * * * * *")
async def longer_than_its_period(ctx: Context) -> None:
    await last("longer_than_its_period", ctx, 3)


@cron("*/2 * * * * *", overlap="buffer_one")
async def buffering(ctx: Context) -> None:
    await last("buffering", ctx, 2.5)


@cron("*/3 * * * * *", overlap="buffer_all")
async def buffering_all(ctx: Context) -> None:
    await last("buffering_all", ctx, (ctx.tick.timestamp() % 6) + 0.5)


@cron("*/3 * * * * *", overlap="cancel_running", timeout="20s")
async def cut(ctx: Context) -> None:
    await last("cut", ctx, 10)


@cron("* * * * * *", overlap="allow", max_concurrent=3)
async def beside(ctx: Context) -> None:
    await last("beside", ctx, 3.5)


@cron("*/5 * * * * *", retries=2, backoff="500ms")
async def failing(ctx: Context) -> None:
    await last("failing", ctx, 0.3)
    if ctx.attempt < 3:
        raise ConnectionError("not yet")


@cron("*/4 * * * * *", retries=1, backoff="5s", pause_after_failures=5)
async def always_failing(ctx: Context) -> None:
    await last("always_failing", ctx, 0.2)
    raise ValueError("never")


@cron("*/5 * * * * *", timeout="40s")
async def long(ctx: Context) -> None:
    await last("long", ctx, 12)


@cron("*/10 * * * * *", on_disconnect="finish", timeout="40s")
async def finishing(ctx: Context) -> None:
    await last("finishing", ctx, 13)


@cron("*/3 * * * * *", jitter="1s")
def spread(ctx: Context) -> None:
    note("start", "spread", ctx)
    note("on", "spread", ctx)
    note("end", "spread", ctx)


@every("2s", jitter="±10%")
def interval(ctx: Context) -> None:
    pass
