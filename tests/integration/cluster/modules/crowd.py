"""Twenty jobs, each due every second, whose runs last a third of a second; one more that is urgent."""

import asyncio
import json
import os
import time

from cronring import Context, cron


def _note(event: str, ctx: Context) -> None:
    entry = {"event": event, "job": ctx.job, "execution": ctx.execution_id, "at": time.time(), "pid": os.getpid()}
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(entry) + "\n").encode())
    os.close(file)


async def _crowd(ctx: Context) -> None:
    _note("start", ctx)
    await asyncio.sleep(0.3)
    _note("end", ctx)


for number in range(20):

    async def run(ctx: Context) -> None:
        await _crowd(ctx)

    run.__name__ = run.__qualname__ = f"job_{number:02}"
    globals()[run.__name__] = cron("* * * * * *")(run)


@cron("* * * * * *", priority=60)
async def urgent(ctx: Context) -> None:
    await _crowd(ctx)
