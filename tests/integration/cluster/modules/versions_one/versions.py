"""The first of two versions of a module, between which operators go forth and back."""

from cronring import Context, cron, every


@cron("*/2 * * * * *")
async def staying(ctx: Context) -> None:
    pass


@cron("*/2 * * * * *", overlap="buffer_one")
async def rescheduled(ctx: Context) -> None:
    pass


@every("3s")
async def removed(ctx: Context) -> None:
    pass
