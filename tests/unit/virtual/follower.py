"""A chain of jobs in a module of its own: each month is closed, reported, and the report is sent."""

from cronring import Context, cron

RAN: list[tuple[str, str, str]] = []


@cron("0 6 1 * *", retries=1, backoff="1h")
def close_month(ctx: Context) -> None:
    if ctx.tick.month == 3 and ctx.attempt == 1:
        raise ConnectionError("the ledger is away")
    if ctx.tick.month == 4:
        raise ValueError("April never closes")
    RAN.append(("close", ctx.trigger, f"{ctx.tick:%Y-%m-%d %H:%M}"))


@cron(after="follower.close_month")
def report(ctx: Context) -> None:
    RAN.append(("report", ctx.trigger, f"{ctx.tick:%Y-%m-%d %H:%M}"))


@cron(after="follower.report")
async def send(ctx: Context) -> None:
    RAN.append(("send", ctx.trigger, f"{ctx.tick:%Y-%m-%d %H:%M}"))
