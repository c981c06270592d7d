"""The second of two versions of a module, between which operators go forth and back."""

from cronring import Context, cron, every


@cron("*/2 * * * * *")
async def staying(ctx: Context) -> None:
    pass


@cron("*/3 * * * * *")
async def rescheduled(ctx: Context) -> None:
    pass


@every("5s")
async def added(ctx: Context) -> None:
    pass
