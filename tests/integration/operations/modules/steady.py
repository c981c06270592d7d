"""A tick each second, so that there is always something to claim."""

from cronring import Context, cron


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    pass
