"""Verbs that jobs are made for by hand: `site` is left out of the file that takes this one's place."""

from cronring import Context, cron, verb


@cron("0 0 1 1 *")
async def yearly(ctx: Context) -> None:
    """Declared."""


@verb
async def site(ctx: Context, url: str) -> str:
    return url
