"""Verbs that run for longer than a runner may be out of sight: some are stopped then, others may finish."""

from noting import go_on

from cronring import Context, cron

UNSEEN_S = 12.0  # so long do they run


@cron("*/15 * * * * *")
async def unseen_stopped_a(ctx: Context) -> None:
    await go_on(ctx, UNSEEN_S)


@cron("*/15 * * * * *")
async def unseen_stopped_b(ctx: Context) -> None:
    await go_on(ctx, UNSEEN_S)


@cron("*/15 * * * * *", on_disconnect="finish")
async def unseen_finishing_a(ctx: Context) -> None:
    await go_on(ctx, UNSEEN_S)


@cron("*/15 * * * * *", on_disconnect="finish")
async def unseen_finishing_b(ctx: Context) -> None:
    await go_on(ctx, UNSEEN_S)
