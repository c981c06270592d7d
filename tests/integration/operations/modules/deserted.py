"""Deployed, and hosted by nobody."""

from cronring import Context, cron


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    pass
