"""Verbs for races of operators with ticks, with ends and with each other."""

import asyncio

from cronring import Context, cron, manual


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    """Its runs are in the books; nothing else has to be known of them."""


@manual
async def brief(ctx: Context, seconds: float) -> None:
    """Ends after so long, if nobody wants it cancelled before."""
    await asyncio.sleep(seconds)


@manual
async def idle(ctx: Context) -> None:
    """For orders that race each other."""


@manual
async def labelled(ctx: Context, payload: dict[str, str] | None = None) -> None:
    """Of which jobs are made."""
