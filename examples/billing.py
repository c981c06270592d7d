"""The jobs of a billing service."""

from cronring import Context, cron, every


@cron("0 6 1 * *", timezone="Europe/Berlin", timeout="10m", retries=3, on_missed="run_last")
async def close_month(ctx: Context) -> None:
    ctx.log.info("closing everything since %s", ctx.previous_success)  # missed ticks are made up for in one run


@cron("30 1 * * *", timezone="Europe/Berlin")
def close_day(ctx: Context) -> None:
    print(f"closed the day before {ctx.local_tick:%Y-%m-%d}")  # what it prints is kept with the execution


@every("30m", overlap="buffer_one", window="Mon-Fri 08:00-18:00")
def refresh() -> None:  # sync verbs are as good as async ones
    ...
