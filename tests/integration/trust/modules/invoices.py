from cronring import Context, cron


@cron("* * * * * *")
async def each_second(ctx: Context) -> None:
    print(ctx.tick)
