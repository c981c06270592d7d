"""Verbs whose ticks end in as many ways as there are."""

import asyncio

from cronring import Context, cron


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    pass


@cron("*/2 * * * * *")
async def longer_than_its_period(ctx: Context) -> None:
    await asyncio.sleep(3)


@cron("* * * * * *", on_missed="skip")
async def never_late(ctx: Context) -> None:
    pass


@cron("*/5 * * * * *", retries=1, backoff="1s")
async def failing(ctx: Context) -> None:
    raise ValueError("no such account")


@cron("0 0 1 1 *")
async def yearly(ctx: Context) -> None:
    pass
