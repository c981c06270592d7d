"""The load of the trials: about twenty ticks a second of all kinds of verbs, which note their starts and ends."""

import asyncio
import time

from noting import go_on, go_on_sync, note

from cronring import Context, cron

LONG_S = 6.0


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
    await go_on(ctx, 3.0)


@cron("*/10 * * * * *")
async def long(ctx: Context) -> None:
    await go_on(ctx, LONG_S)


@cron("*/10 * * * * *")
def long_sync(ctx: Context) -> None:
    go_on_sync(ctx, LONG_S)


@cron("*/10 * * * * *", on_disconnect="finish")
async def finishing(ctx: Context) -> None:
    await go_on(ctx, LONG_S)


@cron("*/10 * * * * *", retries=3, backoff="1s")
async def retried(ctx: Context) -> None:
    """Tried again when its runner or child dies."""
    await go_on(ctx, LONG_S)
