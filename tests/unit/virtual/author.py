"""An author's module, as the tests of virtual time find it. `told` is what its verbs have been told."""

import asyncio
import os
from datetime import datetime

from cronring import Context, cron, every, manual

told: list[tuple[str, datetime]] = []


def charge() -> str:
    return "charged"


@cron("30 2 * * *", timezone="Europe/Berlin")
async def nightly(ctx: Context) -> None:
    await asyncio.sleep(120)
    print(f"night {ctx.local_tick.isoformat()}, {charge()}")
    ctx.log.info("logged")


@every("6h", retries=2, backoff="1m", jitter="off")
def fragile(ctx: Context) -> None:
    if ctx.attempt == 1:
        raise ConnectionError("hung up")


@cron("0 * * * *", on_missed="run_all")
def hourly(ctx: Context) -> None:
    told.append((ctx.trigger, ctx.tick))


@cron("0 * * * *")
def lazy(ctx: Context) -> None:
    told.append((f"missed {ctx.missed}", ctx.tick))


@cron("15 * * * *", timeout="5m")
async def endless() -> None:
    await asyncio.sleep(3_600)


@every("12h", pause_after_failures=2, jitter="off")
def hopeless() -> None:
    raise ValueError(os.sep)


@every("1h", jitter="off")
def busy(ctx: Context) -> None:
    if ctx.tick.hour == 5:
        ctx.next_in("10m")


@manual
def by_hand(ctx: Context) -> None:
    print(ctx.payload)
