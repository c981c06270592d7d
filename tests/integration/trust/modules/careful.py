from cronring import Context, cron


@cron("* * * * * *")
async def tick(ctx: Context) -> None:
    print(ctx.tick)
