"""Two jobs of a billing service, and a verb that nothing schedules."""

from cronring import Context, cron, every, verb


@cron("0 6 1 * *", timeout="30m", on_disconnect="finish")
async def close_month(ctx: Context) -> None:
    """06:00 UTC on the first of each month. Goes on even if every controller is away."""
    ctx.log.info("closing the month before %s", ctx.tick.date())


@every("30m")
def refresh_rates() -> None:
    """Sync verbs are as good as async ones."""
    print("rates refreshed")


@verb
def quote(amount: int) -> int:
    """Has no schedule."""
    return amount * 119 // 100
