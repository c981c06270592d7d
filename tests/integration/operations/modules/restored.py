"""Jobs of each missed policy, which note what they run and by which fence."""

import json
import os

from cronring import Context, cron


def note(ctx: Context) -> None:
    entry = {"verb": ctx.job.rpartition(".")[2], "tick": ctx.tick.timestamp(), "fence": ctx.fence}
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())  # one write below PIPE_BUF: lines never mix
    os.close(file)


@cron("* * * * * *", on_missed="run_last")
async def last(ctx: Context) -> None:
    note(ctx)


@cron("* * * * * *", on_missed="run_all")
async def every(ctx: Context) -> None:
    note(ctx)


@cron("* * * * * *", on_missed="run_all")
async def paused(ctx: Context) -> None:
    note(ctx)


@cron("* * * * * *", on_missed="skip")
async def none(ctx: Context) -> None:
    note(ctx)
